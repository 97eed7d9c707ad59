// SPDX-License-Identifier: Apache-2.0

#include "trace/segment.h"

#include <algorithm>

#include "trace/id_map.h"

namespace lamina::trace {

StringId LocalNames::Intern(std::string_view text) {
  return strings_.Intern(text);
}

TrackId LocalNames::InternTrack(StringId pid, StringId tid) {
  const auto [it, is_new] = track_ids_.try_emplace(
      std::pair(pid, tid), static_cast<uint32_t>(tracks_.size()));
  if (is_new) tracks_.emplace_back(pid, tid);
  return TrackId(it->second);
}

uint32_t LocalNames::InternConfig(const LaunchConfig& config) {
  const auto [it, is_new] =
      config_ids_.try_emplace(config, static_cast<uint32_t>(configs_.size()));
  if (is_new) configs_.push_back(config);
  return it->second;
}

uint8_t LocalNames::InternCategory(StringId text) {
  for (size_t i = 0; i < categories_.size(); ++i) {
    if (categories_[i] == text) return static_cast<uint8_t>(i);
  }
  if (categories_.size() >= kNoCategory) return kNoCategory;
  categories_.push_back(text);
  return static_cast<uint8_t>(categories_.size() - 1);
}

uint8_t LocalNames::InternCategory(std::string_view text) {
  // A few short texts: looking at them is faster than a hash.
  for (size_t i = 0; i < categories_.size(); ++i) {
    if (strings_[categories_[i]] == text) return static_cast<uint8_t>(i);
  }
  return InternCategory(Intern(text));
}

void Segment::Seal() {
  LocalNames& n = *names;
  for (size_t i = n.sent_strings_; i < n.strings_.size(); ++i)
    new_texts_.push_back(n.strings_[StringId(static_cast<uint32_t>(i))]);
  n.sent_strings_ = n.strings_.size();
  new_tracks_.assign(n.tracks_.begin() + static_cast<ptrdiff_t>(n.sent_tracks_),
                     n.tracks_.end());
  n.sent_tracks_ = n.tracks_.size();
  new_configs_.assign(
      n.configs_.begin() + static_cast<ptrdiff_t>(n.sent_configs_),
      n.configs_.end());
  n.sent_configs_ = n.configs_.size();
  new_categories_.assign(
      n.categories_.begin() + static_cast<ptrdiff_t>(n.sent_categories_),
      n.categories_.end());
  n.sent_categories_ = n.categories_.size();
}

void Segment::Clear() {
  next_uid = 0;
  slices.clear();
  ops.clear();
  api_calls.clear();
  device.clear();
  python.clear();
  collectives.clear();
  memory.clear();
  graph_nodes.clear();
  instructions.clear();
  flows.time_ns.clear();
  flows.id.clear();
  flows.track.clear();
  flows.phase.clear();
  flows.kind.clear();
  flows.uid.clear();
  instants.time_ns.clear();
  instants.name.clear();
  instants.track.clear();
  instants.uid.clear();
  instants.memory.clear();
  counters.time_ns.clear();
  counters.name.clear();
  counters.series.clear();
  counters.track.clear();
  counters.value.clear();
  counters.uid.clear();
  event_counters.clear();
  halves.clear();
  facts.clear();
  diagnostics = Diagnostics();
  new_texts_.clear();
  new_tracks_.clear();
  new_configs_.clear();
  new_categories_.clear();
}

namespace {

template <class T>
void Extend(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

TrackId GlobalIds::Track(StringId pid, StringId tid) {
  const auto [it, is_new] = tracks_.try_emplace(
      std::pair(pid, tid), static_cast<uint32_t>(trace_.tracks.size()));
  if (is_new) {
    trace::Track track;
    track.pid = pid;
    track.tid = tid;
    trace_.tracks.push_back(track);
  }
  return TrackId(it->second);
}

// Profilers write zeros for what they do not know. No kernel has a grid
// without blocks, so the rest of such a record is no measure either.
uint32_t GlobalIds::Config(const LaunchConfig& recorded) {
  LaunchConfig config = recorded;
  const auto unknown = [](const std::array<uint32_t, 3>& extent) {
    return std::find(extent.begin(), extent.end(), 0u) != extent.end();
  };
  if (unknown(config.grid)) {
    config.grid = {};
    if (config.registers_per_thread == 0) config.registers_per_thread = kNoInt;
    if (config.shared_memory_bytes == 0) config.shared_memory_bytes = kNoInt;
    if (config.occupancy_pct == 0) config.occupancy_pct = -1;
  }
  if (unknown(config.block)) config.block = {};
  const auto [it, is_new] = configs_.try_emplace(
      config, static_cast<uint32_t>(trace_.configs.size()));
  if (is_new) trace_.configs.push_back(config);
  return it->second;
}

uint8_t GlobalIds::Category(StringId text) {
  const auto it = categories_.find(text);
  if (it != categories_.end()) return it->second;
  if (trace_.categories.size() >= LocalNames::kNoCategory) return NoCategory();
  const auto index = static_cast<uint8_t>(trace_.categories.size());
  trace_.categories.push_back(text);
  categories_.emplace(text, index);
  return index;
}

uint8_t GlobalIds::NoCategory() {
  const auto [it, is_new] = categories_.try_emplace(
      StringPool::kEmpty, static_cast<uint8_t>(trace_.categories.size()));
  if (is_new) trace_.categories.push_back(StringPool::kEmpty);
  return it->second;
}

IdMap::IdMap(GlobalIds* ids, const Segment& segment)
    : ids_(*ids), names_(segment.names->joined_) {
  Extend(names_.texts, segment.new_texts_);
  names_.text_ids.resize(names_.texts.size());
  Extend(names_.tracks, segment.new_tracks_);
  names_.track_ids.resize(names_.tracks.size());
  Extend(names_.configs, segment.new_configs_);
  names_.config_ids.resize(names_.configs.size(), kNoRow);
  Extend(names_.categories, segment.new_categories_);
  names_.category_ids.resize(names_.categories.size(), -1);
}

}  // namespace lamina::trace
