// SPDX-License-Identifier: Apache-2.0
//
// Where the values of an event stand in the text of a Kineto trace. Keys may
// come in any order ("args" before "ph"), and a repeated key means the last
// one, as in Python's json.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/json/tokens.h"
#include "ingest/common/arg_rows.h"
#include "ingest/common/json_records.h"
#include "trace/arg_keys.h"

namespace lamina::ingest::kineto {

struct ArgValues {
  uint64_t present = 0;
  std::array<RawValue, trace::kArgKeys> values;

  bool Has(ArgKey key) const { return (present & ArgBit(key)) != 0; }
  const RawValue& operator[](ArgKey key) const {
    return values[static_cast<size_t>(key)];
  }
};

// Values are views of the text, none of them parsed.
struct Event {
  RawValue ph, cat, name, pid, tid, ts, dur, id;
  size_t args_token = 0;  // 0: none
  bool empty = false;     // the object has no members
  ArgValues args;

  void Reset() {
    ph = cat = name = pid = tid = ts = dur = id = RawValue{};
    args_token = 0;
    args.present = 0;
  }
};

// The object at `token`; moves behind it. False when it is none.
bool ReadEvent(const json::Tokens& tokens, size_t& token, Event& event);

}  // namespace lamina::ingest::kineto
