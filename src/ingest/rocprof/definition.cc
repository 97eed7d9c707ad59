// SPDX-License-Identifier: Apache-2.0
#include "ingest/rocprof/definition.h"

#include <array>

#include "base/decimal.h"
#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/key_index.h"

namespace lamina::ingest::rocprof {
namespace {

enum Member : size_t {
  kKernelId,
  kRegisters,
  kFirstName,
  kLastName = kFirstName + kSymbolNames.size() - 1,
  kKey,
  kValue,
};
constexpr KeyIndex<7> kMembers(std::array<std::string_view, 7>{
    "kernel_id", kSymbolRegisters, kSymbolNames[0], kSymbolNames[1],
    kSymbolNames[2], "key", "value"});

// Adds the text of a raw JSON string.
template <class Add>
void Decode(std::string_view raw, Add&& add) {
  if (raw.find('\\') == std::string_view::npos) {
    add(raw);
  } else {
    add(json::DecodeString(raw));
  }
}

}  // namespace

bool Definition::Read(const json::Tokens& tokens, size_t& token) {
  *this = Definition();
  return json::WalkObject(tokens, token, [&](std::string_view key, size_t& at) {
    const size_t member = kMembers.Find(key);
    if (member == kMembers.kCount) return json::SkipValue(tokens, at);
    RawValue value;
    if (!ReadValue(tokens, at, value)) return false;
    const std::string_view text =
        value.kind == '"' ? value.text : std::string_view();
    switch (member) {
      case kKernelId:
      case kKey:
        id_ = ParseInt(value.text);
        break;
      case kRegisters:
        registers_ = ParseInt(value.text).value_or(trace::kNoInt);
        break;
      case kValue:
        text_ = text;
        break;
      default:
        names_[member - kFirstName] = text;
    }
    return true;
  });
}

void Definition::AddTo(Definitions& definitions, Domain domain,
                       uint64_t offset) const {
  if (!id_) return;
  if (domain == Domain::kMessages) {
    Decode(text_,
           [&](std::string_view text) { definitions.AddMessage(*id_, text); });
    return;
  }
  for (const std::string_view raw : names_) {
    if (raw.empty()) continue;
    Decode(raw, [&](std::string_view name) {
      definitions.AddSymbol(*id_, offset, {name, registers_});
    });
    return;
  }
}

}  // namespace lamina::ingest::rocprof
