// SPDX-License-Identifier: Apache-2.0
#include "ingest/pftrace/event_args.h"

#include <algorithm>
#include <string>

#include "base/decimal.h"
#include "base/json/scan.h"
#include "base/wide_id.h"

namespace lamina::ingest::pftrace {

using trace::kNoInt;

int64_t EventArgs::Int(ArgKey key) const {
  if (!Has(key)) return kNoInt;
  const Value& value = (*this)[key];
  switch (value.type) {
    case Value::Type::kInt:
      return value.integer;
    case Value::Type::kText:
      return (IsId(key) ? ParseWideId(value.text) : ParseInt(value.text))
          .value_or(kNoInt);
    default:
      return kNoInt;
  }
}

std::optional<double> EventArgs::Real(ArgKey key) const {
  if (!Has(key)) return std::nullopt;
  const Value& value = (*this)[key];
  switch (value.type) {
    case Value::Type::kInt:
      return static_cast<double>(value.integer);
    case Value::Type::kReal:
      return value.real;
    case Value::Type::kText:
      return ParseDouble(value.text);
    default:
      return std::nullopt;
  }
}

StringId EventArgs::Text(ArgKey key) {
  if (!Has(key)) return {};
  const Value& value = (*this)[key];
  if (value.interned.valid()) return value.interned;
  if (value.type == Value::Type::kText || value.type == Value::Type::kJson)
    return names_->Intern(value.text);
  if (value.type == Value::Type::kInt) {
    std::string text;
    AppendInt(text, value.integer);
    return names_->Intern(text);
  }
  return {};
}

StringId EventArgs::List(ArgKey key) {
  if (!Has(key) || !(*this)[key].text.starts_with('[')) return {};
  const StringId text = Text(key);
  const auto [it, is_new] = lists_.try_emplace(text, StringId());
  if (is_new) it->second = names_->Intern(json::Canonical((*this)[key].text));
  return it->second;
}

std::array<uint32_t, 3> EventArgs::Triple(ArgKey key) const {
  const Value& value = (*this)[key];
  if (value.type == Value::Type::kTriple) return value.triple;
  // A product of three: rocprofv3 gives no more.
  if (value.type == Value::Type::kInt && value.integer > 0)
    return {Small(static_cast<uint64_t>(value.integer)), 1, 1};
  std::array<uint32_t, 3> out{};
  size_t index = 0;
  for (size_t i = 0; i < value.text.size() && index < 3;) {
    if (value.text[i] < '0' || value.text[i] > '9') {
      ++i;
      continue;
    }
    uint64_t number = 0;
    while (i < value.text.size() && value.text[i] >= '0' &&
           value.text[i] <= '9')
      number = std::min<uint64_t>(
          number * 10 + static_cast<uint64_t>(value.text[i++] - '0'),
          0xFFFFFFFF);
    out[index++] = static_cast<uint32_t>(number);
  }
  return out;
}

}  // namespace lamina::ingest::pftrace
