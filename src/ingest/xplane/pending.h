// SPDX-License-Identifier: Apache-2.0
//
// Rows that wait until all of the file is known. A launch call, the op that it
// belongs to and the scopes around that op must come in this order in the
// trace, but the op is known from the device's events, on other planes.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/pod_vector.h"
#include "trace/trace.h"

namespace lamina::ingest::xplane {

// Rows that are taken off the end, whose memory goes back meanwhile: what they
// turn into takes its place.
template <class T>
class Waiting : public PodVector<T> {
 public:
  void Pop() {
    constexpr size_t kPiece = size_t{1} << 16;
    PodVector<T>::pop_back();
    if (this->size() % kPiece == 0) this->shrink_to_fit();
  }
};

// Sorts so that the smallest is the last: rows are taken off the end. Profilers
// write most rows in order.
template <class T, class Key>
void SortBackwards(Waiting<T>& rows, Key key) {
  if (std::is_sorted(rows.begin(), rows.end(),
                     [&](const T& a, const T& b) { return key(a) < key(b); })) {
    std::reverse(rows.begin(), rows.end());
    return;
  }
  std::sort(rows.begin(), rows.end(),
            [&](const T& a, const T& b) { return key(b) < key(a); });
}

// A host call with a correlation.
struct Call {
  int64_t correlation = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint64_t offset = 0;
  StringId name;
  trace::TrackId track;
  uint32_t device = trace::kNoRow;  // of the run that it launched
  trace::Kind kind = trace::Kind::kRuntime;
};

// A kernel that names no instruction.
struct NamelessKernel {
  trace::DeviceArgs args;
  int64_t start_ns = 0;
  int64_t dur_ns = 0;
  uint64_t offset = 0;
  StringId name;
  trace::TrackId track;
  uint32_t device = 0;  // row of Pending::devices
};

// One device event that ran an instruction.
struct Launch {
  int64_t correlation = 0;
  int64_t start_ns = 0;
  uint32_t device = 0;                   // row of Pending::devices
  uint32_t instruction = trace::kNoRow;  // of Programs
  uint32_t nameless = trace::kNoRow;     // row of Pending::nameless
  StringId kernel;
};

// One run of an instruction: an op of the trace.
struct Run {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t external_id = trace::kNoInt;  // of device events that no call links
  trace::TrackId track;
  uint32_t device = 0;  // row of Pending::devices
  uint32_t instruction = trace::kNoRow;
  uint32_t execution = trace::kNoRow;  // of its program
  uint32_t number = 0;                 // in order of device and launch
};

// A range of the host in which a program runs.
struct Execution {
  trace::TrackId track;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

// An event of a line of TPU ops.
struct TpuOp {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint64_t offset = 0;
  uint32_t line = 0;  // row of Pending::tpu_lines
  uint32_t instruction = trace::kNoRow;
  StringId name;
};
struct TpuLine {
  trace::TrackId track;
  int64_t device = 0;
  uint32_t device_row = 0;  // of Pending::devices
  int64_t id = 0;
};

// What threads add to, each its own, and the joined rows of all of them. Names,
// tracks and configurations are those of Shared::names, numbered in whatever
// order threads ask for them: no order of rows may follow from these numbers.
struct Pending {
  Waiting<Call> calls;
  Waiting<NamelessKernel> nameless;
  Waiting<Launch> launches;
  Waiting<TpuOp> tpu_ops;
  Waiting<Run> runs;  // of devices without launches (TPU)
  PodVector<Execution> thunks, modules;
  std::vector<TpuLine> tpu_lines;
  std::vector<int64_t> devices;  // numbers of the devices, as they come
  uint64_t events = 0;
  int64_t next_external_id = 1;

  uint32_t Device(int64_t number) {
    const auto [it, is_new] =
        device_rows_.try_emplace(number, static_cast<uint32_t>(devices.size()));
    if (is_new) devices.push_back(number);
    return it->second;
  }

  // Takes over the rows of a thread.
  void Join(Pending& other) {
    Append(calls, other.calls);
    Append(nameless, other.nameless);
    Append(launches, other.launches);
    Append(tpu_ops, other.tpu_ops);
    Append(thunks, other.thunks);
    Append(modules, other.modules);
    events += other.events;
  }

 private:
  template <class Rows>
  static void Append(Rows& to, Rows& from) {
    if (to.empty()) {
      std::swap(to, from);
    } else {
      to.append(from.data(), from.size());
    }
    from.Reset();
  }

  absl::flat_hash_map<int64_t, uint32_t> device_rows_;
};

}  // namespace lamina::ingest::xplane
