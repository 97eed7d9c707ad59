// SPDX-License-Identifier: Apache-2.0

#include "ingest/pftrace/event_args.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/scan.h"
#include "base/wide_id.h"
#include "ingest/common/pytorch.h"
#include "ingest/pftrace/events.h"
#include "trace/categories.h"

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

// The debug annotations of a track event: arguments of the model, and what
// lamina wrote about a recording.

using protobuf::Field;
using protobuf::Walker;
using trace::kNoInt;

namespace {

constexpr int kMaxJsonDepth = 8;
constexpr size_t kMaxJson = size_t{1} << 20;

void AppendReal(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  AppendNumber(out, value);
}

}  // namespace

// The values of an annotation as JSON: lists of shapes.
void EventReader::AppendJson(const Field& annotation, const Sequence& sequence,
                             int depth, std::string& out) {
  bool list = false;
  bool any = false;
  const size_t begin = out.size();
  for (Walker walk(annotation); walk.Next();) {
    if (out.size() - begin > kMaxJson) return;
    switch (walk->number) {
      case 2:
        out += walk->value != 0 ? "true" : "false";
        any = true;
        break;
      case 3:
      case 4:
        AppendInt(out, walk->Int());
        any = true;
        break;
      case 5:
        AppendReal(out, walk->Double());
        any = true;
        break;
      case 6:
        AppendJsonQuoted(out, walk->bytes);
        any = true;
        break;
      case 17: {
        const StringId* text = sequence.texts.Find(walk->value);
        AppendJsonQuoted(out, text ? names_.Text(*text) : "");
        any = true;
        break;
      }
      case 12:
        if (depth >= kMaxJsonDepth) break;
        out += list ? ',' : '[';
        list = true;
        AppendJson(walk.field(), sequence, depth + 1, out);
        break;
      default:
        break;
    }
  }
  if (list) {
    out += ']';
  } else if (!any) {
    out += "[]";
  }
}

void EventReader::ReadArg(const Field& annotation, const Sequence& sequence) {
  ArgKey key = ArgKey::kCount;
  EventArgs::Value value;
  bool array = false;
  for (Walker walk(annotation); walk.Next();) {
    switch (walk->number) {
      case 1:
        if (const ArgName* name = sequence.arg_names.Find(walk->value))
          key = name->key;
        break;
      case 10:
        if (walk->IsBytes()) key = KeyOfName(walk->bytes);
        break;
      case 2:
      case 3:
      case 4:
      case 7:
        value.type = EventArgs::Value::Type::kInt;
        value.integer = walk->Int();
        break;
      case 5:
        value.type = EventArgs::Value::Type::kReal;
        value.real = walk->Double();
        break;
      case 6:
        value.type = EventArgs::Value::Type::kText;
        value.text = walk->bytes;
        break;
      case 9:
        value.type = EventArgs::Value::Type::kJson;
        value.text = walk->bytes;
        break;
      case 17:
        value.type = EventArgs::Value::Type::kText;
        if (const StringId* text = sequence.texts.Find(walk->value)) {
          value.interned = *text;
          value.text = names_.Text(*text);
        }
        break;
      case 12:
        array = true;
        break;
      default:
        break;
    }
  }
  if (key == ArgKey::kCount) return;
  if (array && (key == ArgKey::kGrid || key == ArgKey::kBlock)) {
    value.type = EventArgs::Value::Type::kTriple;
    size_t index = 0;
    for (Walker walk(annotation); walk.Next() && index < 3;) {
      if (walk->number != 12) continue;
      for (Walker inner(walk.field()); inner.Next();) {
        if (inner->number == 3 || inner->number == 4)
          value.triple[index] = Small(inner->value);
      }
      ++index;
    }
  } else if (array) {
    std::string text;
    AppendJson(annotation, sequence, 0, text);
    json_.push_back(std::move(text));
    value.type = EventArgs::Value::Type::kJson;
    value.text = json_.back();
  }
  args_.Set(key, value);
}

// What lamina wrote about the recording that the trace was made of.
void EventReader::Recording(const Field& event, const Sequence& sequence) {
  for (Walker walk(event); walk.Next();) {
    if (walk->number != 4 || !walk->IsBytes()) continue;
    std::string_view name;
    std::string_view text;
    int64_t number = kNoInt;
    for (Walker arg(walk.field()); arg.Next();) {
      if (arg->number == 1) {
        if (const ArgName* known = sequence.arg_names.Find(arg->value))
          name = names_.Text(known->text);
      } else if (arg->number == 4) {
        number = arg->Int();
      } else if (arg->number == 17) {
        if (const StringId* known = sequence.texts.Find(arg->value))
          text = names_.Text(*known);
      }
    }
    trace::Info& info = builder_.info();
    if (name == trace::kDevicePropertiesArg) {
      ReadDeviceProperties(text, info);
    } else if (name == trace::kDistributedArg) {
      ReadDistributedInfo(text, info);
    } else if (name == trace::kBaseTimeArg && number != kNoInt) {
      info.base_time_ns = number;
    }
  }
}

}  // namespace lamina::ingest::pftrace
