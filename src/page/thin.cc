// SPDX-License-Identifier: Apache-2.0
#include "page/thin.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <map>
#include <tuple>

namespace lamina::page {
namespace {

constexpr size_t kSlowest = 200;  // of each kernel name

// The slowest rows of each name: at most `most` in all.
void KeepSlowest(std::span<const DeviceRow> rows,
                 std::span<const uint32_t> names, size_t most,
                 std::vector<bool>& keep) {
  std::vector<uint32_t> order(rows.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::tuple(names[a], -rows[a].dur_ns, a) <
           std::tuple(names[b], -rows[b].dur_ns, b);
  });
  // How many rows of its name are slower, and how many have such a place.
  std::vector<size_t> with_place(kSlowest);
  std::vector<uint32_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const bool same = i > 0 && names[order[i]] == names[order[i - 1]];
    place[i] = same ? place[i - 1] + 1 : 0;
    if (place[i] < kSlowest) ++with_place[place[i]];
  }
  size_t kept = 0, places = 0;
  while (places < kSlowest && kept + with_place[places] <= most)
    kept += with_place[places++];
  for (size_t i = 0; i < order.size(); ++i)
    if (place[i] < places) keep[order[i]] = true;
}

void KeepAround(std::span<const DeviceRow> rows, const std::vector<bool>& found,
                std::vector<bool>& keep) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!found[i]) continue;
    const size_t last = std::min(rows.size() - 1, i + kAround);
    for (size_t k = i - std::min(i, kAround); k <= last; ++k)
      if (rows[k].lane == rows[i].lane) keep[k] = true;
  }
}

// In the order in which they are given up.
struct Droppable {
  std::string_view name;
  uint32_t DeviceRow::*column;
};
constexpr Droppable kDroppable[] = {{"layer", &DeviceRow::layer},
                                    {"pass", &DeviceRow::pass},
                                    {"step", &DeviceRow::step}};

auto KeyOf(const DeviceRow& row) {
  return std::tuple(row.lane, row.kernel, row.family, row.op, row.module,
                    row.layer, row.pass, row.step);
}

DeviceRow WithoutTimes(DeviceRow row, size_t dropped) {
  for (size_t i = 0; i < dropped; ++i) row.*kDroppable[i].column = 0;
  row.start_ns = row.dur_ns = 0;
  row.slice = {};
  return row;
}

// False if there are more than `most` merged rows.
bool Merge(std::span<const DeviceRow> rows, const std::vector<bool>& keep,
           size_t dropped, size_t most, std::vector<MergedRow>& merged) {
  absl::flat_hash_map<decltype(KeyOf(DeviceRow())), uint32_t> known;
  merged.clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (keep[i]) continue;
    const DeviceRow row = WithoutTimes(rows[i], dropped);
    const auto [it, is_new] =
        known.try_emplace(KeyOf(row), static_cast<uint32_t>(merged.size()));
    if (is_new) {
      if (merged.size() == most) return false;
      merged.push_back({row, 0});
    }
    merged[it->second].of.dur_ns += rows[i].dur_ns;
    ++merged[it->second].events;
  }
  return true;
}

// Adds the buckets of one lane; false if there are more than `most`.
bool FillLane(std::span<const DeviceRow> lane, const ThinRows& thin,
              size_t most, std::vector<BucketRow>& out) {
  std::map<std::pair<int64_t, uint32_t>, int64_t> open;  // not yet passed
  const auto flush = [&](int64_t before) {
    while (!open.empty() && open.begin()->first.first < before) {
      const auto& [key, busy] = *open.begin();
      out.push_back({lane[0].lane, key.second, key.first, busy});
      open.erase(open.begin());
    }
    return out.size() <= most;
  };
  for (const DeviceRow& row : lane) {
    const int64_t begin = row.start_ns - thin.origin_ns;
    const int64_t end = begin + row.dur_ns;
    int64_t bucket = begin / thin.bucket_ns;
    if (!flush(bucket)) return false;
    for (int64_t at = begin; at < end; ++bucket) {
      const int64_t next = std::min(end, (bucket + 1) * thin.bucket_ns);
      open[{bucket, row.family}] += next - at;
      at = next;
      if (out.size() + open.size() > most) return false;
    }
  }
  return flush(INT64_MAX);
}

void FillBuckets(std::span<const DeviceRow> rows, size_t most, ThinRows& thin) {
  if (rows.empty()) return;
  thin.origin_ns = rows[0].start_ns;
  for (const DeviceRow& row : rows) {
    thin.origin_ns = std::min(thin.origin_ns, row.start_ns);
    thin.last_ns = std::max(thin.last_ns, row.start_ns + row.dur_ns);
  }
  const int64_t span = thin.last_ns - thin.origin_ns;
  const auto fill = [&](size_t limit) {
    thin.buckets.clear();
    for (size_t begin = 0; begin < rows.size();) {
      size_t end = begin;
      while (end < rows.size() && rows[end].lane == rows[begin].lane) ++end;
      if (!FillLane(rows.subspan(begin, end - begin), thin, limit,
                    thin.buckets))
        return false;
      begin = end;
    }
    return true;
  };
  // Few enough buckets in a lane, then until there are few enough in all or
  // one of them holds everything.
  thin.bucket_ns = 64;
  while (span / thin.bucket_ns > static_cast<int64_t>(most))
    thin.bucket_ns *= 2;
  while (!fill(thin.bucket_ns > span ? SIZE_MAX : most)) thin.bucket_ns *= 2;
}

}  // namespace

ThinRows Thin(std::span<const DeviceRow> rows, std::span<const uint32_t> names,
              const std::vector<bool>& found, size_t most) {
  std::vector<bool> keep(rows.size());
  KeepSlowest(rows, names, most, keep);
  KeepAround(rows, found, keep);
  ThinRows thin;
  for (uint32_t i = 0; i < rows.size(); ++i)
    if (keep[i]) thin.singles.push_back(i);
  size_t dropped = 0;
  while (!Merge(rows, keep, dropped,
                dropped < std::size(kDroppable) ? most : rows.size(),
                thin.merged)) {
    thin.dropped.push_back(kDroppable[dropped++].name);
  }
  FillBuckets(rows, most, thin);
  return thin;
}

}  // namespace lamina::page
