// SPDX-License-Identifier: Apache-2.0
//
// The tracks of a Perfetto trace: a forest of processes, threads, counters and
// named tracks. Each becomes one (process, thread) of the model.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/protobuf/wire.h"
#include "trace/builder.h"

namespace lamina::ingest::pftrace {

struct Track {
  uint64_t parent = 0;
  bool described = false;
  bool process = false;
  bool thread = false;
  bool counter = false;
  bool incremental = false;
  int64_t pid = trace::kNoInt;
  int64_t tid = trace::kNoInt;
  int64_t rank = trace::kNoInt;
  double multiplier = 1;
  std::string name, process_name, label;
  // What the name says of device lanes.
  int64_t device = trace::kNoInt;
  int64_t stream = trace::kNoInt;
  int64_t queue = trace::kNoInt;
  // Set on first use.
  trace::TrackId id;
  double last_value = 0;  // of an incremental counter
};

class Tracks {
 public:
  // A TrackDescriptor.
  void Describe(const protobuf::Field& descriptor);
  // Old forms: the ProcessDescriptor or ThreadDescriptor of a packet.
  void DescribeProcess(const protobuf::Field& process);
  // Returns the track that events of the sequence without one stand on.
  uint64_t DescribeThread(const protobuf::Field& thread);

  // The track of an event; its names become facts of `segment` on first use.
  Track& Use(uint64_t uuid, trace::Segment& segment);
  size_t undescribed() const { return undescribed_; }

 private:
  const Track* ProcessOf(const Track& track) const;
  void Place(uint64_t uuid, Track& track, trace::Segment& segment);

  absl::flat_hash_map<uint64_t, std::unique_ptr<Track>> tracks_;
  absl::flat_hash_map<int64_t, std::string> process_names_, process_labels_;
  absl::flat_hash_set<std::pair<std::string, std::string>> taken_;
  // The next number of a name that is taken.
  absl::flat_hash_map<std::pair<std::string, std::string>, int> namesakes_;
  uint64_t last_uuid_ = 0;
  Track* last_ = nullptr;
  size_t undescribed_ = 0;
};

}  // namespace lamina::ingest::pftrace
