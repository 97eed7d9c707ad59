// SPDX-License-Identifier: Apache-2.0
//
// Which events of a trace make a smaller one that still reports right: what
// was asked for, the launches of its kernels, everything that encloses these,
// and the flows whose both ends are there.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/layers/layers.h"
#include "base/interval_set.h"

namespace lamina::analysis::slice {

// What an event has to meet; with several, all of them.
struct Options {
  // From the first event of the trace. Host and device events that overlap.
  std::optional<Interval> time_ns;
  // Number of a step: what begins in its host range and the device work that
  // this launched, whenever it ran.
  std::optional<int64_t> step;
  // Device work of layers with these numbers, in every pass.
  std::optional<std::vector<uint32_t>> layers;
  // RE2, found anywhere in a name: kernels of that name, and everything inside
  // host events of that name.
  std::string name;
  std::optional<int64_t> stream;  // device work of streams with this number
  // Device work that may be kept, by slice; empty: all may.
  std::vector<bool> device;
};

enum class Fate : uint8_t {
  kUnknown,  // no event that the model knows: metadata, ends of "B" events
  kDropped,
  kKept,
};

struct Selection {
  std::vector<Fate> events;  // by event number
  struct Count {
    uint64_t kept = 0;
    uint64_t all = 0;
  };
  std::array<Count, trace::kKinds> slices{};  // by kind
  Count flows, instants, counters;

  bool Kept(const Trace& trace, SliceId s) const {
    return events[trace.Uid(s)] == Fate::kKept;
  }
};

// `context` has Python frames in its tree. Errors: kUsage for a step that is
// not there, a broken pattern, or when nothing is selected.
Result<Selection> Select(const Context& context, const layers::Rules& rules,
                         const Options& options);

}  // namespace lamina::analysis::slice
