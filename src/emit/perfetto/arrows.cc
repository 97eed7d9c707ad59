// SPDX-License-Identifier: Apache-2.0
#include "emit/perfetto/arrows.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace lamina::emit::perfetto {
namespace {

using trace::kNoInt;
using trace::SliceId;

constexpr uint64_t kAutogradFlow = uint64_t{1} << 62;

// Number of the flow from a call to its work, or kNoInt.
int64_t Correlation(const trace::Trace& trace, SliceId s) {
  if (const trace::ApiArgs* api = trace.Api(s)) return api->correlation;
  const trace::DeviceArgs* device = trace.Device(s);
  return device != nullptr ? device->correlation : kNoInt;
}

// Ops by track, then start, then longest first.
std::vector<SliceId> OpsByTrack(const trace::Trace& trace) {
  std::vector<SliceId> ops;
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    if (trace.slices.kind[i] == trace::Kind::kOp) ops.push_back(SliceId(i));
  }
  const auto key = [&](SliceId s) {
    return std::tuple(trace.slices.track[s.value].value, trace.Start(s),
                      -trace.Duration(s));
  };
  std::sort(ops.begin(), ops.end(),
            [&](SliceId a, SliceId b) { return key(a) < key(b); });
  return ops;
}

}  // namespace

// An autograd arrow stands at the innermost op around its time on its track.
Arrows::Arrows(const trace::Trace& trace) : trace_(trace) {
  const trace::Flows& flows = trace.flows;
  std::vector<uint32_t> wanted;
  for (uint32_t f = 0; f < flows.size(); ++f) {
    if (flows.kind[f] == trace::FlowKind::kForwardBackward &&
        flows.id[f] != kNoInt)
      wanted.push_back(f);
  }
  if (wanted.empty()) return;
  const std::vector<SliceId> ops = OpsByTrack(trace);
  for (const uint32_t f : wanted) {
    const std::pair at(flows.track[f].value, flows.time_ns[f]);
    const auto after = std::upper_bound(
        ops.begin(), ops.end(), at, [&](const auto& place, SliceId s) {
          return place <
                 std::pair(trace.slices.track[s.value].value, trace.Start(s));
        });
    // Kineto's arrows begin with the op: the last one that has begun.
    if (after == ops.begin()) continue;
    const SliceId s = *(after - 1);
    if (trace.slices.track[s.value] != flows.track[f] ||
        trace.End(s) < flows.time_ns[f])
      continue;
    autograd_[s.value].push_back(
        kAutogradFlow |
        (static_cast<uint64_t>(flows.id[f]) & (kAutogradFlow - 1)));
  }
}

const std::vector<uint64_t>& Arrows::Of(SliceId slice) {
  found_.clear();
  const int64_t correlation = Correlation(trace_, slice);
  if (correlation > 0) {
    // Ranks in one file have numbers of their own.
    found_.push_back(
        (static_cast<uint64_t>(trace_.info.rank.value_or(0)) << 32) ^
        static_cast<uint64_t>(correlation));
  }
  const auto it = autograd_.find(slice.value);
  if (it != autograd_.end())
    found_.insert(found_.end(), it->second.begin(), it->second.end());
  return found_;
}

}  // namespace lamina::emit::perfetto
