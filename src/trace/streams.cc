// SPDX-License-Identifier: Apache-2.0
#include "trace/streams.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/decimal.h"
#include "base/run_sort.h"

namespace lamina::trace {
namespace {

struct LaneKey {
  StringId pid;
  int64_t device = 0;
  int64_t stream = 0;

  bool operator==(const LaneKey&) const = default;
  template <class H>
  friend H AbslHashValue(H h, const LaneKey& key) {
    return H::combine(std::move(h), key.pid, key.device, key.stream);
  }
};

std::vector<SliceId> DeviceOrder(const Trace& trace, int threads) {
  const Slices& slices = trace.slices;
  std::vector<SliceId> order;
  order.reserve(trace.device.size());
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (IsDevice(slices.kind[i])) order.push_back(SliceId(i));
  }
  RunSort(order, threads, [&](SliceId a, SliceId b) {
    if (slices.start_ns[a.value] != slices.start_ns[b.value])
      return slices.start_ns[a.value] < slices.start_ns[b.value];
    return slices.uid[a.value] < slices.uid[b.value];
  });
  return order;
}

void NameLane(DeviceArgs& args, const Track& track, const Trace& trace) {
  if (args.device == kNoInt) {
    const auto device = ParseInt(trace.strings[track.pid]);
    if (device) args.device = *device;
  }
  if (args.stream == kNoInt) {
    const auto stream = ParseInt(trace.strings[track.tid]);
    if (stream) args.stream = *stream;
  }
}

// Streams in the order of their first work.
void FillStreams(Trace& trace) {
  absl::flat_hash_map<LaneKey, uint32_t> ids;
  for (const SliceId s : trace.device_order) {
    DeviceArgs& args = trace.device[trace.slices.detail[s.value]];
    const Track& track = trace.TrackOf(s);
    NameLane(args, track, trace);
    const LaneKey key{track.pid, args.device, args.stream};
    const auto [it, is_new] =
        ids.try_emplace(key, static_cast<uint32_t>(trace.streams.size()));
    if (is_new) trace.streams.push_back({key.pid, key.device, key.stream, {}});
    args.lane = StreamId(it->second);
    trace.streams[it->second].slices.push_back(s);
  }
}

// The order people expect, whatever came first in the file.
void OrderStreams(Trace& trace) {
  const auto rank = [&](uint32_t index) {
    const Stream& stream = trace.streams[index];
    const std::string_view pid = trace.strings[stream.pid];
    return std::tuple(ParseInt(pid).value_or(kNoInt), pid, stream.device,
                      stream.stream);
  };
  std::vector<uint32_t> order(trace.streams.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return rank(a) < rank(b); });
  std::vector<uint32_t> place(order.size());
  std::vector<Stream> sorted;
  for (const uint32_t index : order) {
    place[index] = static_cast<uint32_t>(sorted.size());
    sorted.push_back(std::move(trace.streams[index]));
  }
  trace.streams = std::move(sorted);
  for (DeviceArgs& args : trace.device) {
    if (args.lane.valid()) args.lane = StreamId(place[args.lane.value]);
  }
}

}  // namespace

void MakeStreams(Trace& trace, int threads) {
  trace.device_order = DeviceOrder(trace, threads);
  FillStreams(trace);
  OrderStreams(trace);
}

}  // namespace lamina::trace
