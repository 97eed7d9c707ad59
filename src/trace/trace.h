// SPDX-License-Identifier: Apache-2.0
//
// The common model of any profiler's trace: slices (spans of time) on tracks,
// typed arguments, flows, instants, counters, and facts about the recording.
// A reader fills it through TraceBuilder; everything after that is read-only.
//
// Slices live in columns. What belongs to a slice of one kind only (shapes of
// an op, stream of a kernel) lives in a row of that kind's argument table,
// named by `detail`: a Python frame, the most frequent slice of a PyTorch
// trace, costs 42 bytes and no empty columns.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/pod_vector.h"
#include "base/string_pool.h"
#include "trace/diagnostics.h"
#include "trace/kinds.h"

namespace lamina::trace {

struct SliceTag;
struct TrackTag;
struct StreamTag;
using SliceId = Id<SliceTag>;
using TrackId = Id<TrackTag>;
using StreamId = Id<StreamTag>;

// "No value" for integer arguments.
inline constexpr int64_t kNoInt = std::numeric_limits<int64_t>::min();
inline constexpr uint32_t kNoRow = 0xFFFFFFFF;

// Times that a reader accepts. Differences of times then stay within int64:
// 2^61 ns is 73 years, more than any clock since 1970 shows. 7 days are longer
// than any span of a recording; sums of durations are bounded by the number of
// events alone.
inline constexpr int64_t kMaxTimeNs = int64_t{1} << 61;
inline constexpr int64_t kMaxDurationNs = int64_t{7} * 86'400 * 1'000'000'000;
constexpr bool IsUsableTime(int64_t ns) {
  return ns >= -kMaxTimeNs && ns <= kMaxTimeNs;
}

// Arguments of framework ops and of host ranges. The four lists are the raw
// JSON text of the trace, interned; an invalid id means the profiler recorded
// none, which differs from an empty list.
struct OpArgs {
  StringId dims;      // "Input Dims"
  StringId types;     // "Input type"
  StringId strides;   // "Input Strides"
  StringId concrete;  // "Concrete Inputs"
  int64_t external_id = kNoInt;
  // "Sequence number" of autograd; of a range of kStepCategory: its number.
  int64_t sequence = kNoInt;
  int64_t fwd_thread = kNoInt;    // "Fwd thread id"
  uint32_t collective = kNoRow;   // row of collectives
  uint32_t instruction = kNoRow;  // row of instructions
};

// Category of annotations that a profiler marks as steps, whatever their name.
inline constexpr std::string_view kStepCategory = "step";

struct ApiArgs {
  int64_t correlation = kNoInt;
  int64_t external_id = kNoInt;
  StringId kernel;           // ROCm: name of the kernel it launches
  uint32_t config = kNoRow;  // row of configs
  int64_t stream = kNoInt;
};

struct DeviceArgs {
  int64_t correlation = kNoInt;
  int64_t external_id = kNoInt;
  int64_t device = kNoInt;
  int64_t context = kNoInt;
  int64_t stream = kNoInt;
  int64_t queue = kNoInt;
  int64_t bytes = kNoInt;
  int64_t graph_id = kNoInt;
  int64_t graph_node_id = kNoInt;
  uint32_t config = kNoRow;
  uint32_t collective = kNoRow;
  StreamId lane;  // set when loading ends
};

struct PythonArgs {
  int32_t id = -1;
  int32_t parent_id = -1;
  int32_t module_id = -1;
};

// How a kernel was launched; equal configurations share a row.
struct LaunchConfig {
  std::array<uint32_t, 3> grid{};   // blocks
  std::array<uint32_t, 3> block{};  // threads
  int64_t shared_memory_bytes = kNoInt;
  int64_t registers_per_thread = kNoInt;
  double occupancy_pct = -1;  // estimated by the profiler; -1 unknown

  friend bool operator==(const LaunchConfig&, const LaunchConfig&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const LaunchConfig& c) {
    return H::combine(std::move(h), c.grid, c.block, c.shared_memory_bytes,
                      c.registers_per_thread, c.occupancy_pct);
  }
};

// Fields of a collective as the profiler wrote them, on a kernel or on the
// record_param_comms op above its launch.
struct CollectiveArgs {
  StringId name;         // "Collective name"
  StringId group;        // "Process Group Name"
  StringId group_desc;   // "Process Group Description"
  StringId group_ranks;  // "Process Group Ranks", raw text
  StringId dtype;
  StringId in_split;  // raw text
  StringId out_split;
  int64_t group_size = kNoInt;
  int64_t in_elements = kNoInt;
  int64_t out_elements = kNoInt;
  int64_t sequence = kNoInt;  // "Seq"
  int64_t src_rank = kNoInt;
  int64_t dst_rank = kNoInt;
  int64_t comms_id = kNoInt;
};

// An operation of a compiled program that the recording carries (an HLO
// instruction): what ops that run it cost and where they come from. Costs are
// those of one run.
struct Instruction {
  StringId module;     // program, "jit_step"
  StringId name;       // "dot.3"
  StringId opcode;     // "dot"
  StringId op_name;    // framework name, "jit(step)/mlp/dot_general"
  StringId shape;      // of the result, "bf16[128,64]"
  StringId target;     // of a custom call
  StringId source;     // file
  StringId precision;  // element type of products: "bf16"; invalid: none
  int64_t source_line = kNoInt;
  int64_t program = kNoInt;      // id of the program in the recording
  double flops = -1;             // -1: not known
  double unpadded_flops = -1;    // of a convolution, without taps on padding
  double bytes = -1;             // operands and result
  bool exact = false;            // false: estimated
  bool matrix = false;           // the FLOPs are those of matrix products
  bool backward = false;         // of the backward pass
  uint32_t collective = kNoRow;  // row of collectives
};

// A row of Slices.
struct SliceRow {
  int64_t start_ns = 0;
  int64_t dur_ns = 0;
  StringId name;
  Kind kind = Kind::kOther;
  uint8_t category = 0;
  TrackId track;
  uint32_t uid = 0;
  uint64_t offset = 0;
  uint32_t detail = kNoRow;
};

// Spans of time, one row each. `uid` is the position of the event among all
// events of the input, `offset` the byte where its text begins.
struct Slices {
  PodVector<int64_t> start_ns;
  PodVector<int64_t> dur_ns;  // never negative
  PodVector<StringId> name;
  PodVector<Kind> kind;
  PodVector<uint8_t> category;  // index into Trace::categories
  PodVector<TrackId> track;
  PodVector<uint32_t> uid;
  PodVector<uint64_t> offset;
  PodVector<uint32_t> detail;  // row of the argument table of its kind

  size_t size() const { return start_ns.size(); }
  void push_back(const SliceRow& row) {
    start_ns.push_back(row.start_ns);
    dur_ns.push_back(row.dur_ns);
    name.push_back(row.name);
    kind.push_back(row.kind);
    category.push_back(row.category);
    track.push_back(row.track);
    uid.push_back(row.uid);
    offset.push_back(row.offset);
    detail.push_back(row.detail);
  }
  // Keeps the first `count` rows.
  void Truncate(size_t count) {
    ForEachColumn([count](auto& column) { column.resize(count); });
  }
  // Moves a row to a place before it.
  void MoveRow(size_t from, size_t to) {
    ForEachColumn([from, to](auto& column) { column[to] = column[from]; });
  }
  // Room for `count` rows in all.
  void reserve(size_t count) {
    ForEachColumn([count](auto& column) { column.reserve(count); });
  }
  void clear() {
    ForEachColumn([](auto& column) { column.clear(); });
  }

 private:
  template <class F>
  void ForEachColumn(F f) {
    const auto each = [&f](auto&... columns) { (f(columns), ...); };
    each(start_ns, dur_ns, name, kind, category, track, uid, offset, detail);
  }
};

enum class FlowPhase : uint8_t { kStart, kStep, kFinish };
enum class FlowKind : uint8_t { kLaunch /* ac2g */, kForwardBackward, kOther };

struct Flows {
  PodVector<int64_t> time_ns;
  PodVector<int64_t> id;
  PodVector<TrackId> track;
  PodVector<FlowPhase> phase;
  PodVector<FlowKind> kind;
  PodVector<uint32_t> uid;

  size_t size() const { return id.size(); }
};

struct MemoryArgs {
  int64_t bytes = kNoInt;  // of this allocation; negative: freed
  int64_t total_allocated = kNoInt;
  int64_t total_reserved = kNoInt;
  int64_t address = kNoInt;
  int32_t device_type = -1;  // 0 host, 1 CUDA or HIP
  int32_t device_id = -1;
};

struct Instants {
  PodVector<int64_t> time_ns;
  PodVector<StringId> name;
  PodVector<TrackId> track;
  PodVector<uint32_t> uid;
  PodVector<uint32_t> memory;  // row of Trace::memory, or kNoRow

  size_t size() const { return time_ns.size(); }
};

struct Counters {
  PodVector<int64_t> time_ns;
  PodVector<StringId> name;
  PodVector<StringId> series;
  PodVector<TrackId> track;
  PodVector<double> value;
  PodVector<uint32_t> uid;

  size_t size() const { return time_ns.size(); }
};

// What a profiler counted over one event, as hardware counters over a kernel.
struct EventCounter {
  double value = 0;
  StringId name;
  uint32_t uid = 0;  // of the event
};

// A node of a device graph, made on a host thread while the graph was recorded
// or copied from another node when it was instantiated or cloned. Ids are those
// of DeviceArgs::graph_node_id and are unique within the process of `track`.
struct GraphNode {
  int64_t id = kNoInt;
  int64_t original = kNoInt;  // the node it is a copy of; kNoInt: none
  int64_t start_ns = 0;
  TrackId track;
};

// One (process, thread) of the input; ids are kept as text since profilers
// write strings as well as numbers.
struct Track {
  StringId pid;
  StringId tid;
  StringId process_name;  // invalid: not given
  StringId process_labels;
  StringId thread_name;
  std::optional<int64_t> process_sort;
  std::optional<int64_t> thread_sort;
};

// One lane of device work: kernels of one stream run in order. Lanes are
// sorted by (process, device, stream).
struct Stream {
  StringId pid;  // of the device process in the input
  int64_t device = kNoInt;
  int64_t stream = kNoInt;
  // Device slices by (start, uid).
  std::vector<SliceId> slices;
};

struct DeviceInfo {
  int64_t id = 0;
  std::string name;
  int64_t memory_bytes = kNoInt;
  int64_t compute_major = kNoInt;
  int64_t compute_minor = kNoInt;
  int64_t sm_count = kNoInt;
  int64_t clock_khz = kNoInt;
  int64_t memory_bandwidth_bytes_per_s = kNoInt;
};

// Host slices of capture traces, put below the graph launches that replay what
// they recorded (see trace/graft.h). They are not events of the input: their
// times are those of the launch, so only their order and nesting mean anything.
struct Captured {
  // All slices from here on.
  uint32_t first = kNoRow;
  // Of slice `first + i`: a captured slice before it or, for the outermost, the
  // launch. The slices below one launch stand together, in preorder.
  PodVector<SliceId> parents;
  // By row of `device`: the captured call that a replayed slice comes from, and
  // whether that is a fact or only likely. Empty when nothing was captured.
  PodVector<SliceId> calls;
  PodVector<uint8_t> facts;

  bool empty() const { return parents.empty(); }
  bool Has(SliceId s) const { return s.value >= first; }
  SliceId Parent(SliceId s) const { return parents[s.value - first]; }
};

// Facts about the recording.
struct Info {
  std::string format;        // "kineto"
  std::string format_lacks;  // what no recording of the format can tell
  std::string file;
  uint64_t file_bytes = 0;   // as stored
  uint64_t input_bytes = 0;  // after unpacking
  uint64_t events = 0;       // all records, of every phase
  std::vector<DeviceInfo> devices;
  std::optional<int64_t> rank;
  std::optional<int64_t> world_size;
  std::string backend;
  std::string process_groups;           // raw text of pg_config
  std::optional<int64_t> base_time_ns;  // wall clock of time 0
  std::string display_time_unit;
  bool plain = true;  // offsets are offsets in the file
  // Other top-level values, raw text, in input order.
  std::vector<std::pair<std::string, std::string>> properties;
};

struct Trace {
  Info info;
  Diagnostics diagnostics;

  StringPool strings;
  std::vector<StringId> categories;
  std::vector<Track> tracks;
  Slices slices;
  std::vector<Stream> streams;

  PodVector<OpArgs> ops;         // kOp, kAnnotation, kGpuAnnotation
  PodVector<ApiArgs> api_calls;  // kRuntime, kDriver
  PodVector<DeviceArgs> device;  // kKernel, kMemcpy, kMemset, kGraph
  PodVector<PythonArgs> python;  // kPython
  PodVector<LaunchConfig> configs;
  PodVector<CollectiveArgs> collectives;
  PodVector<MemoryArgs> memory;
  PodVector<GraphNode> graph_nodes;  // see trace/graph_nodes.h
  std::vector<Instruction> instructions;

  Flows flows;
  Instants instants;
  Counters counters;
  PodVector<EventCounter> event_counters;  // in the order of the events
  Captured captured;

  std::string_view Text(StringId id) const { return strings[id]; }
  std::string_view Name(SliceId s) const {
    return strings[slices.name[s.value]];
  }
  // A device as all tables name it: its number, behind the process where that
  // has another name ("0", "4711:0").
  std::string DeviceName(const Stream& stream) const;
  Kind KindOf(SliceId s) const { return slices.kind[s.value]; }
  int64_t Start(SliceId s) const { return slices.start_ns[s.value]; }
  int64_t Duration(SliceId s) const { return slices.dur_ns[s.value]; }
  int64_t End(SliceId s) const { return Start(s) + Duration(s); }
  uint32_t Uid(SliceId s) const { return slices.uid[s.value]; }
  // Time of the host in a call. A captured one took none of the recording.
  int64_t HostTime(SliceId s) const {
    return captured.Has(s) ? 0 : Duration(s);
  }
  // The event of the input that a slice stands for; a captured one stands for
  // the launch above it. Uids tell slices apart, these point into the file.
  uint32_t EventOf(SliceId s) const {
    while (captured.Has(s)) s = captured.Parent(s);
    return Uid(s);
  }
  const Track& TrackOf(SliceId s) const {
    return tracks[slices.track[s.value].value];
  }
  std::string_view Category(SliceId s) const {
    return strings[categories[slices.category[s.value]]];
  }

  // Argument rows; null when the slice has none of that kind.
  const OpArgs* Op(SliceId s) const {
    const Kind kind = KindOf(s);
    const uint32_t row = slices.detail[s.value];
    return (kind == Kind::kOp || kind == Kind::kAnnotation ||
            kind == Kind::kGpuAnnotation) &&
                   row != kNoRow
               ? &ops[row]
               : nullptr;
  }
  const ApiArgs* Api(SliceId s) const {
    const uint32_t row = slices.detail[s.value];
    return IsApiCall(KindOf(s)) && row != kNoRow ? &api_calls[row] : nullptr;
  }
  const DeviceArgs* Device(SliceId s) const {
    const uint32_t row = slices.detail[s.value];
    return IsDevice(KindOf(s)) && row != kNoRow ? &device[row] : nullptr;
  }
  const PythonArgs* Python(SliceId s) const {
    const uint32_t row = slices.detail[s.value];
    return KindOf(s) == Kind::kPython && row != kNoRow ? &python[row] : nullptr;
  }
  const LaunchConfig* Config(uint32_t row) const {
    return row == kNoRow ? nullptr : &configs[row];
  }
  const Instruction* InstructionOf(SliceId s) const {
    const OpArgs* op = Op(s);
    return op == nullptr || op->instruction == kNoRow
               ? nullptr
               : &instructions[op->instruction];
  }
  const CollectiveArgs* Collective(uint32_t row) const {
    return row == kNoRow ? nullptr : &collectives[row];
  }

  // All device slices by (start, uid), over all streams.
  std::span<const SliceId> device_slices() const { return device_order; }

  // Device slices by (start, uid); filled when loading ends.
  std::vector<SliceId> device_order;
  // Start of the earliest slice: the zero of every relative time in tables.
  int64_t first_ns = 0;
  // Keeps what borrowed columns and texts stand on; see snapshot/.
  std::shared_ptr<const void> holds;
};

}  // namespace lamina::trace
