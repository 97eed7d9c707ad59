// SPDX-License-Identifier: Apache-2.0
//
// What packets of one writer share (string tables, defaults, clocks), and the
// tracks that packets describe.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/protobuf/wire.h"
#include "trace/arg_keys.h"
#include "trace/builder.h"

namespace lamina::ingest::pftrace {

// What packets of one writer share: string tables, defaults, clocks. Packets of
// a sequence are in order; sequences may be interleaved.

// Numbers to entries: dense, as writers count from 1; others in a map.
template <class Entry>
class IidTable {
 public:
  const Entry* Find(uint64_t iid) const {
    if (iid < dense_.size()) return &dense_[iid];
    const auto it = sparse_.find(iid);
    return it == sparse_.end() ? nullptr : &it->second;
  }
  void Set(uint64_t iid, const Entry& entry) {
    // One step ahead of what is there: a hostile number claims no memory.
    if (iid <= dense_.size() && iid < kMaxDense) {
      if (iid == dense_.size()) dense_.emplace_back();
      dense_[iid] = entry;
    } else if (iid == 1 && dense_.empty()) {
      dense_.resize(2);
      dense_[1] = entry;
    } else {
      sparse_[iid] = entry;
    }
  }
  void Clear() {
    dense_.clear();
    sparse_.clear();
  }

 private:
  static constexpr size_t kMaxDense = size_t{1} << 24;
  std::vector<Entry> dense_;
  absl::flat_hash_map<uint64_t, Entry> sparse_;
};

struct ArgName {
  StringId text;
  trace::ArgKey key = trace::ArgKey::kCount;
};

// The clocks of a trace. Offsets to BOOTTIME come from snapshots; clocks 64 to
// 127 belong to a sequence.
class Clocks {
 public:
  static constexpr uint64_t kBoot = 6;

  // A ClockSnapshot of a sequence.
  void Snapshot(uint64_t sequence, const protobuf::Field& snapshot);
  // The BOOTTIME of a timestamp; nothing when no snapshot knows the clock or
  // the result is out of range. Moves an incremental clock on.
  std::optional<int64_t> ToBoot(uint64_t sequence, uint64_t clock,
                                uint64_t timestamp);

 private:
  struct Clock {
    bool incremental = false;
    uint64_t multiplier = 1;
    int64_t last_ns = 0;     // of an incremental clock
    int64_t to_boot_ns = 0;  // to be added
    bool known = false;
  };
  static std::pair<uint64_t, uint64_t> Key(uint64_t sequence, uint64_t clock) {
    return {clock >= 64 && clock < 128 ? sequence : 0, clock};
  }
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, Clock> clocks_;
};

struct Sequence {
  bool valid = true;  // false between a loss and the next clear
  uint64_t clock = Clocks::kBoot;
  uint64_t track = 0;
  std::vector<uint64_t> counters;  // default extra counter tracks
  IidTable<StringId> categories, names, texts;
  IidTable<ArgName> arg_names;
  // Of GPU stages: queues and stages, contexts.
  IidTable<StringId> specifications;

  void Clear() {
    valid = true;
    clock = Clocks::kBoot;
    track = 0;
    counters.clear();
    categories.Clear();
    names.Clear();
    texts.Clear();
    arg_names.Clear();
    specifications.Clear();
  }
  // Adds an InternedData message.
  void Intern(const protobuf::Field& data, trace::LocalNames& names);
};

// The model's key of an argument name, also for names of other profilers that
// mean the same.
trace::ArgKey KeyOfName(std::string_view name);

// The tracks of a Perfetto trace: a forest of processes, threads, counters and
// named tracks. Each becomes one (process, thread) of the model.

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
