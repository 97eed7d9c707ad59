// SPDX-License-Identifier: Apache-2.0
#include "trace/segment.h"

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

}  // namespace lamina::trace
