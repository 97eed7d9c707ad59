// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/attach.h"

#include <algorithm>
#include <set>
#include <utility>

namespace lamina::analysis::layers {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

}  // namespace

void SortLayers(const Trace& trace, std::vector<uint32_t>& layer_of,
                LayerModel& model) {
  const auto first_start = [&](uint32_t layer) {
    return trace.Start(model.layers[layer].work.front());
  };
  for (Layer& layer : model.layers) SortByStart(trace, layer.work);
  std::vector<uint32_t> order(model.layers.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return first_start(a) < first_start(b);
  });
  std::vector<Layer> sorted;
  std::vector<uint32_t> place(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(std::move(model.layers[order[i]]));
  }
  model.layers = std::move(sorted);
  for (uint32_t& layer : layer_of) {
    if (layer != kNone) layer = place[layer];
  }
}

void AttachOthers(const Trace& trace, const std::vector<Lane>& lanes,
                  std::vector<uint32_t>& layer_of, LayerModel& model) {
  struct Span {
    int64_t device, start, end;
    uint32_t layer;
  };
  std::vector<Span> spans;
  for (const Lane& lane : lanes) {
    uint32_t last = kNone;
    for (const SliceId s : lane.kernels) {
      const uint32_t layer = layer_of[s.value];
      if (layer == kNone) {
        last = kNone;
        continue;
      }
      if (layer != last)
        spans.push_back({lane.device, trace.Start(s), trace.End(s), layer});
      spans.back().end = std::max(spans.back().end, trace.End(s));
      last = layer;
    }
  }
  std::stable_sort(
      spans.begin(), spans.end(), [](const Span& a, const Span& b) {
        return std::pair(a.device, a.start) < std::pair(b.device, b.start);
      });
  std::vector<std::pair<SliceId, uint32_t>> joined;
  for (const SliceId s : trace.device_slices()) {
    if (layer_of[s.value] != kNone) continue;
    const std::pair key(DeviceOf(trace, s), trace.Start(s));
    auto it = std::upper_bound(spans.begin(), spans.end(), key,
                               [](const auto& k, const Span& span) {
                                 return k < std::pair(span.device, span.start);
                               });
    if (it == spans.begin()) continue;
    --it;
    if (it->device == key.first && key.second < it->end)
      joined.emplace_back(s, it->layer);
  }
  std::set<uint32_t> changed;
  for (const auto& [s, layer] : joined) {
    layer_of[s.value] = layer;
    model.layers[layer].work.push_back(s);
    changed.insert(layer);
  }
  for (const uint32_t layer : changed)
    SortByStart(trace, model.layers[layer].work);
}

}  // namespace lamina::analysis::layers
