// SPDX-License-Identifier: Apache-2.0
//
// What the files of AMD's profilers have in common, whatever their form: how
// dispatches, copies, API calls and markers become slices. Times are integer
// nanoseconds of the host's boot clock in all of them.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <array>
#include <cstdint>
#include <optional>
#include <simdjson.h>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "ingest/common/pytorch.h"
#include "trace/builder.h"
#include "trace/trace.h"

namespace lamina::ingest::rocm {

// Blocks of a grid that counts work items, rounded up.
uint32_t Blocks(int64_t work_items, int64_t workgroup);

// Copies and fills are done by kernels of the runtime, too.
trace::Kind KernelKind(std::string_view name);

// A name as it is shown: without the suffix of kernel descriptors.
std::string_view PlainKernelName(std::string_view name);

// "hip" and "rccl" calls belong to the runtime, "hsa" calls to the driver.
trace::Kind CallKind(std::string_view api);

struct Span {
  int64_t start_ns = trace::kNoInt;
  int64_t end_ns = trace::kNoInt;
  uint64_t offset = trace::Diagnostics::kNoOffset;
};

struct Thread {
  StringId pid;
  int64_t tid = 0;

  bool operator==(const Thread&) const = default;
};

// Ids are unique within a process: `process` counts those of a file.
int64_t Correlation(uint32_t process, std::optional<int64_t> id);

struct Dispatch {
  Span span;
  StringId pid;
  StringId name;
  trace::Kind kind = trace::Kind::kKernel;
  std::string_view category;  // empty: as the kind says
  int64_t device = trace::kNoInt;
  int64_t queue = trace::kNoInt;
  int64_t stream = trace::kNoInt;
  int64_t correlation = trace::kNoInt;
  std::array<int64_t, 3> workgroup{};  // threads; zero: not recorded
  std::array<int64_t, 3> grid{};       // work items
  int64_t group_bytes = trace::kNoInt;
  int64_t registers = trace::kNoInt;
};

struct Copy {
  Span span;
  StringId pid;
  StringId name;
  int64_t device = trace::kNoInt;
  int64_t queue = trace::kNoInt;
  int64_t stream = trace::kNoInt;
  int64_t correlation = trace::kNoInt;
  int64_t bytes = trace::kNoInt;
};

struct Call {
  Span span;
  Thread thread;
  StringId name;
  trace::Kind kind = trace::Kind::kRuntime;
  std::string_view category;  // "hip_api"
  int64_t correlation = trace::kNoInt;
};

struct Allocation {
  Span span;
  StringId pid;
  int64_t device = trace::kNoInt;
  int64_t address = trace::kNoInt;
  int64_t bytes = 0;  // negative: freed; kNoInt: freed, as many as there are
  std::string_view level;  // "virtual", "scratch"; empty: real
};

// Adds records to a segment. One per thread that reads.
class Writer {
 public:
  explicit Writer(trace::LocalNames* names) : names_(*names), ranges_(names) {}
  void Bind(trace::Segment* segment) { segment_ = segment; }

  StringId Intern(std::string_view text);

  // Whether a record with these times is added; counts it when not.
  bool Usable(const Span& span);
  void Add(const Dispatch& dispatch);
  void Add(const Copy& copy);
  void Add(const Call& call);
  void Add(const Allocation& allocation);
  // A range of roctx, or the op that its text names; an instant when it has no
  // length.
  void AddMarker(const Span& span, const Thread& thread, std::string_view text);
  // The same for a range whose text was looked at before.
  RangeName Name(std::string_view text) { return ranges_.Name(text); }
  void AddRange(const Span& span, const Thread& thread, const RangeName& range);

 private:
  using LaneKey = std::tuple<StringId, int64_t, int64_t>;

  trace::TrackId Lane(StringId pid, int64_t device, int64_t stream);
  trace::TrackId Track(const Thread& thread);

  trace::LocalNames& names_;
  RangeWriter ranges_;
  trace::Segment* segment_ = nullptr;
  // Tracks whose names were made: process, device and stream; process, thread.
  absl::flat_hash_map<LaneKey, trace::TrackId> lanes_;
  absl::flat_hash_map<std::pair<StringId, int64_t>, trace::TrackId> threads_;
  // Where the last record stood: the next one is likely to stand there, too.
  LaneKey last_lane_;
  trace::TrackId last_lane_track_;
  Thread last_thread_;
  trace::TrackId last_thread_track_;
};

// What a recording lacks, and the option that would have given it.
void NoteMissing(trace::Trace& trace);

// Agents as rocprofv3 describes them, in its JSON and in the column extdata of
// its databases.

// Members of an object; nothing when they are absent or of another type.
std::optional<int64_t> IntAt(simdjson::dom::element object,
                             std::string_view key);
std::string TextAt(simdjson::dom::element object, std::string_view key);

// The device that an agent is.
trace::DeviceInfo DeviceOf(simdjson::dom::element agent, int64_t number);

}  // namespace lamina::ingest::rocm
