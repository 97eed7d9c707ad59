// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/lanes.h"

#include <algorithm>
#include <map>

#include "analysis/layers/repeats.h"
#include "base/text.h"

namespace lamina::analysis::layers {

std::vector<Lane> MakeLanes(const Trace& trace, bool one_per_device) {
  std::map<std::pair<int64_t, uint32_t>, Lane> lanes;
  for (const SliceId s : trace.device_slices()) {
    if (trace.KindOf(s) != trace::Kind::kKernel) continue;
    const trace::DeviceArgs* args = trace.Device(s);
    const bool apart = args != nullptr && !one_per_device;
    const int64_t device = DeviceOf(trace, s);
    Lane& lane = lanes[{device, apart ? args->lane.value : 0}];
    lane.device = device;
    lane.kernels.push_back(s);
  }
  std::vector<Lane> out;
  for (auto& [key, lane] : lanes) out.push_back(std::move(lane));
  return out;
}

// Norms, attention and products of a stream.
std::vector<uint8_t> MarksOf(const Context& context, Labels& labels,
                             const Lane& lane) {
  std::vector<uint8_t> marks;
  for (const SliceId s : lane.kernels) {
    const Part part =
        PartOf(context.catalog.family(context.device.family(s)).name);
    uint8_t mark = kNoMark;
    if (labels.Of(s).kernel.start) mark |= kNormMark;
    if (part == Part::kNorm) mark |= kMaybeNormMark;
    if (part == Part::kAttention) mark |= kAttentionMark;
    if (part == Part::kGemm) mark |= kGemmMark;
    marks.push_back(mark);
  }
  uint32_t step = UINT32_MAX;
  for (size_t i = 0; i < marks.size(); ++i) {
    const uint32_t own = context.steps.StepOf(lane.kernels[i]);
    if (i > 0 && own != step) marks[i] |= kCutMark;
    step = own;
  }
  const auto has = [&](size_t i, std::string_view word) {
    return Contains(context.trace.Name(lane.kernels[i]), word);
  };
  // A norm written out in elementwise kernels begins at its square, or at
  // the cast before that.
  for (size_t i = 0; i < marks.size(); ++i) {
    if (!has(i, "rsqrt_kernel_cuda")) continue;
    for (size_t back = 1; back <= 5 && back <= i; ++back) {
      if (!has(i - back, "pow_tensor")) continue;
      size_t start = i - back;
      if (start > 0 && has(start - 1, "copy")) --start;
      marks[i] &= static_cast<uint8_t>(~kNormMark);
      marks[start] |= kNormMark;
      break;
    }
  }
  return marks;
}

void SortByStart(const Trace& trace, std::vector<SliceId>& work) {
  std::stable_sort(work.begin(), work.end(), [&](SliceId a, SliceId b) {
    return trace.Start(a) != trace.Start(b) ? trace.Start(a) < trace.Start(b)
                                            : a < b;
  });
}

int64_t DeviceOf(const Trace& trace, SliceId s) {
  const trace::DeviceArgs* args = trace.Device(s);
  return args != nullptr ? args->device : 0;
}

}  // namespace lamina::analysis::layers
