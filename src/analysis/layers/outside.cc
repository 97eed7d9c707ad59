// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/outside.h"

#include <algorithm>
#include <map>
#include <span>

#include "analysis/layers/lanes.h"

namespace lamina::analysis::layers {
namespace {

using Slices = std::span<const SliceId>;
using trace::StreamId;

// Work between the layers of two passes is the end of the first and the start
// of the second. Where it is what stands behind the last pass and then what
// stands before the first, it is parted there, else at the longest idle time.
// A slice that was launched in a step goes to a pass of that step.
class Placer {
 public:
  Placer(const Context& context, const std::vector<uint32_t>& layer_of,
         int64_t device, std::span<Pass> passes,
         const std::vector<Layer>& layers)
      : context_(context), trace_(context.trace), passes_(passes) {
    constexpr uint32_t kNone = UINT32_MAX;
    for (const SliceId s : trace_.device_slices()) {
      if (layer_of[s.value] == kNone && DeviceOf(trace_, s) == device)
        rest_.push_back(s);
    }
    SortByStart(trace_, rest_);
    for (const Pass& pass : passes_) {
      begins_.push_back(trace_.Start(layers[pass.layers.front()].work[0]));
      int64_t end = begins_.back();
      for (const uint32_t l : pass.layers)
        end = std::max(end, trace_.End(layers[l].work.back()));
      ends_.push_back(end);
      lanes_.push_back(LaneOf(layers[pass.layers.front()].work[0]));
      const uint32_t step =
          context_.steps.StepOf(layers[pass.layers.front()].work[0]);
      if (step != tree::Steps::kOutside)
        of_step_[step].push_back(begins_.size() - 1);
    }
  }

  const std::vector<SliceId>& rest() const { return rest_; }

  void Run() {
    starts_.push_back(INT64_MIN);
    for (size_t p = 1; p < passes_.size(); ++p) starts_.push_back(StartOf(p));
    for (const SliceId s : rest_) passes_[PassOf(s)].outside.push_back(s);
  }

 private:
  StreamId LaneOf(SliceId s) const {
    const trace::DeviceArgs* args = trace_.Device(s);
    return args != nullptr ? args->lane : StreamId();
  }

  // Slices in no layer that start in [from, to).
  Slices Between(int64_t from, int64_t to) const {
    const auto start = [&](SliceId s) { return trace_.Start(s); };
    const auto first = std::ranges::lower_bound(rest_, from, {}, start);
    const auto last =
        std::ranges::lower_bound(first, rest_.end(), to, {}, start);
    return {first, last};
  }

  bool SameNames(Slices a, Slices b) const {
    return std::ranges::equal(a, b, [&](SliceId x, SliceId y) {
      return trace_.slices.name[x.value] == trace_.slices.name[y.value];
    });
  }

  // Start of a pass but the first, with its work before its layers.
  int64_t StartOf(size_t p) const {
    if (ends_[p - 1] >= begins_[p]) return begins_[p];
    const Slices between = Between(ends_[p - 1], begins_[p]);
    const Slices head = Between(INT64_MIN, begins_.front());
    const Slices tail = Between(ends_.back(), INT64_MAX);
    if (!head.empty() && !tail.empty() &&
        between.size() == head.size() + tail.size() &&
        SameNames(between.first(tail.size()), tail) &&
        SameNames(between.last(head.size()), head))
      return trace_.Start(between[tail.size()]);
    return AfterLongestIdle(between, ends_[p - 1], begins_[p]);
  }

  // Start of what follows the longest idle time in [from, to).
  int64_t AfterLongestIdle(Slices work, int64_t from, int64_t to) const {
    int64_t longest = -1;
    int64_t after = to;
    int64_t reached = from;
    const auto wait = [&](int64_t start) {
      if (start - reached <= longest) return;
      longest = start - reached;
      after = start;
    };
    for (const SliceId s : work) {
      wait(trace_.Start(s));
      reached = std::max(reached, trace_.End(s));
    }
    wait(to);
    return after;
  }

  size_t PassOf(SliceId s) const {
    const auto begun = [&](size_t p) { return starts_[p] <= trace_.Start(s); };
    const auto known = of_step_.find(context_.steps.StepOf(s));
    if (known != of_step_.end()) {
      const std::vector<size_t>& own = known->second;
      const auto after = std::ranges::partition_point(own, begun);
      return after == own.begin() ? own.front() : *std::prev(after);
    }
    const auto after = std::ranges::upper_bound(starts_, trace_.Start(s));
    const auto last = static_cast<size_t>(after - starts_.begin()) - 1;
    // Of passes at the same time the one on the stream of the slice.
    for (size_t p = last;; --p) {
      if (lanes_[p] == LaneOf(s)) return p;
      if (p == 0 || ends_[p - 1] <= begins_[last]) return last;
    }
  }

  const Context& context_;
  const Trace& trace_;
  std::span<Pass> passes_;
  std::vector<SliceId> rest_;    // in no layer, by start
  std::vector<int64_t> begins_;  // of the layers, by pass
  std::vector<int64_t> ends_;    // of the layers, by pass
  std::vector<StreamId> lanes_;  // of the first layer, by pass
  std::vector<int64_t> starts_;  // with what stands before the layers
  std::map<uint32_t, std::vector<size_t>> of_step_;  // passes by step
};

}  // namespace

void PlaceOutside(const Context& context, const std::vector<uint32_t>& layer_of,
                  int64_t device, size_t first_pass, LayerModel& model) {
  const std::span<Pass> passes = std::span(model.passes).subspan(first_pass);
  Placer placer(context, layer_of, device, passes, model.layers);
  if (!passes.empty()) return placer.Run();
  model.no_pass.insert(model.no_pass.end(), placer.rest().begin(),
                       placer.rest().end());
}

}  // namespace lamina::analysis::layers
