// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/raw_event.h"

#include "base/json/members.h"

namespace lamina::ingest::kineto {
namespace {

using json::Tokens;

bool ReadArgs(const Tokens& tokens, size_t& token, ArgValues& args) {
  return json::WalkObject(tokens, token, [&](std::string_view key, size_t& at) {
    const ArgKey known = trace::FindArgKey(key);
    if (known == ArgKey::kCount) return json::SkipValue(tokens, at);
    RawValue& value = args.values[static_cast<size_t>(known)];
    args.present |= ArgBit(known);
    return ReadValue(tokens, at, value);
  });
}

// Where the value of a member goes; null: nowhere.
RawValue* FieldOf(std::string_view key, Event& event) {
  switch (key.size()) {
    case 2:
      if (key == "ph") return &event.ph;
      if (key == "ts") return &event.ts;
      if (key == "id") return &event.id;
      break;
    case 3:
      if (key == "cat") return &event.cat;
      if (key == "pid") return &event.pid;
      if (key == "tid") return &event.tid;
      if (key == "dur") return &event.dur;
      break;
    case 4:
      if (key == "name") return &event.name;
      break;
    default:
      break;
  }
  return nullptr;
}

}  // namespace

bool ReadEvent(const Tokens& tokens, size_t& token, Event& event) {
  event.Reset();
  event.empty = true;
  return json::WalkObject(tokens, token, [&](std::string_view key, size_t& at) {
    event.empty = false;
    if (key == "args" && tokens.Kind(at) == '{') {
      event.args_token = at;
      return ReadArgs(tokens, at, event.args);
    }
    RawValue unused;
    RawValue* const to = FieldOf(key, event);
    return ReadValue(tokens, at, to != nullptr ? *to : unused);
  });
}

}  // namespace lamina::ingest::kineto
