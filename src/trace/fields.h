// SPDX-License-Identifier: Apache-2.0
//
// The rows of the model, described once: every field with its name, one
// sentence and its role. SQL, lists of tables and exports derive from it, so a
// new field is one line here and one in trace.h.
//
// Why it is longer than 250 lines: it is the dictionary of all recorded data.
// A member that is not described does not compile (see the checks at the end).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "trace/trace.h"

namespace lamina::trace {

// What a field means; it says how its value is shown and when there is none.
enum class Role : uint8_t {
  kStart,     // int64 ns: an instant of the recording
  kDur,       // int64 ns: a length, never negative
  kInt,       // a number; kNoInt (int64) and -1 (int32) are no value
  kBytes,     // the same, in bytes; may be negative where the doc says so
  kForeign,   // an id that the profiler gave
  kReal,      // double
  kRealPos,   // double; negative is no value
  kText,      // StringId; invalid is no value
  kJson,      // the same, JSON text as recorded
  kRow,       // row of the table `of`; kNoRow is no value
  kSlice,     // SliceId, shown as the uid of the slice
  kTrack,     // TrackId, row of track
  kStream,    // StreamId, row of stream
  kEnum,      // shown by its name
  kCategory,  // index into Trace::categories, shown as text
  kBool,
  kDim3,    // three uint32: columns _x, _y, _z
  kUid,     // number of the event
  kOffset,  // byte in the unpacked input
  kList,    // rows of its own in another table: no column
};

struct FieldInfo {
  std::string_view name;  // as in SQL, with its unit
  std::string_view doc;   // one sentence
  Role role = Role::kInt;
  std::string_view of = {};  // kRow: name of the table
};

// `Member` is a pointer to a member of a row, or to a column of a struct of
// columns.
template <auto Member>
struct Field {
  FieldInfo info;
  static constexpr auto kMember = Member;
};

// One specialisation per kind of row: kName, kDoc, kRows (the member of Trace
// that holds them) and kFields in the order of the declaration.
template <class T>
struct Described;

template <>
struct Described<Slices> {
  static constexpr std::string_view kName = "slice";
  static constexpr std::string_view kDoc =
      "Every span of time of the trace: ops, calls, frames, ranges, kernels.";
  static constexpr auto kRows = &Trace::slices;
  static constexpr std::tuple kFields{
      Field<&Slices::start_ns>{
          {"start_ns", "Start, from the first event.", Role::kStart}},
      Field<&Slices::dur_ns>{{"dur_ns", "Duration.", Role::kDur}},
      Field<&Slices::name>{{"name", "Name as recorded.", Role::kText}},
      Field<&Slices::kind>{
          {"kind",
           "op, runtime, driver, kernel, memcpy, memset, graph, python, "
           "annotation, gpu_annotation, overhead, profiler or other.",
           Role::kEnum}},
      Field<&Slices::category>{
          {"category", "Category as the profiler wrote it.", Role::kCategory}},
      Field<&Slices::track>{
          {"track_id", "Process and thread, a row of track.", Role::kTrack}},
      Field<&Slices::uid>{
          {"uid", "Event number: the position in the input.", Role::kUid}},
      Field<&Slices::offset>{{"offset_bytes",
                              "Where its record begins in the unpacked input.",
                              Role::kOffset}},
      Field<&Slices::detail>{
          {"arg_id",
           "Row of the argument table of its kind: op_arg, api_arg, "
           "device_arg or python_arg.",
           Role::kRow}}};
};

template <>
struct Described<OpArgs> {
  static constexpr std::string_view kName = "op_arg";
  static constexpr std::string_view kDoc =
      "Arguments of ops and ranges as recorded.";
  static constexpr auto kRows = &Trace::ops;
  static constexpr std::tuple kFields{
      Field<&OpArgs::dims>{{"dims", "Shapes of the inputs.", Role::kJson}},
      Field<&OpArgs::types>{
          {"types", "Element types of the inputs.", Role::kJson}},
      Field<&OpArgs::strides>{
          {"strides", "Strides of the inputs.", Role::kJson}},
      Field<&OpArgs::concrete>{
          {"concrete", "Values of scalar inputs.", Role::kJson}},
      Field<&OpArgs::external_id>{
          {"external_id", "External id.", Role::kForeign}},
      Field<&OpArgs::sequence>{
          {"sequence",
           "Sequence number of autograd; of a step range its number.",
           Role::kForeign}},
      Field<&OpArgs::fwd_thread>{
          {"fwd_thread", "Thread of the forward pass.", Role::kForeign}},
      Field<&OpArgs::collective>{{"collective_id",
                                  "What it says of a collective.", Role::kRow,
                                  "collective_arg"}},
      Field<&OpArgs::instruction>{{"instruction_id",
                                   "The compiled operation that it runs.",
                                   Role::kRow, "instruction"}}};
};

template <>
struct Described<ApiArgs> {
  static constexpr std::string_view kName = "api_arg";
  static constexpr std::string_view kDoc =
      "Arguments of runtime and driver calls.";
  static constexpr auto kRows = &Trace::api_calls;
  static constexpr std::tuple kFields{
      Field<&ApiArgs::correlation>{
          {"correlation", "Joins a call to its device work.", Role::kForeign}},
      Field<&ApiArgs::external_id>{
          {"external_id", "External id.", Role::kForeign}},
      Field<&ApiArgs::kernel>{
          {"kernel", "Name of the kernel that it launches.", Role::kText}},
      Field<&ApiArgs::config>{
          {"launch_config_id", "Grid and block.", Role::kRow, "launch_config"}},
      Field<&ApiArgs::stream>{
          {"stream", "Stream as recorded.", Role::kForeign}}};
};

template <>
struct Described<DeviceArgs> {
  static constexpr std::string_view kName = "device_arg";
  static constexpr std::string_view kDoc =
      "Arguments of kernels, copies and fills.";
  static constexpr auto kRows = &Trace::device;
  static constexpr std::tuple kFields{
      Field<&DeviceArgs::correlation>{{"correlation",
                                       "Joins it to the call that launched it.",
                                       Role::kForeign}},
      Field<&DeviceArgs::external_id>{
          {"external_id", "External id.", Role::kForeign}},
      Field<&DeviceArgs::device>{
          {"device_index", "Device number.", Role::kForeign}},
      Field<&DeviceArgs::context>{
          {"context", "Context of the driver.", Role::kForeign}},
      Field<&DeviceArgs::stream>{
          {"stream", "Stream as recorded.", Role::kForeign}},
      Field<&DeviceArgs::queue>{
          {"queue", "Queue as recorded.", Role::kForeign}},
      Field<&DeviceArgs::bytes>{
          {"bytes", "Bytes of a copy or fill.", Role::kBytes}},
      Field<&DeviceArgs::graph_id>{
          {"graph_id", "Device graph that it belongs to.", Role::kForeign}},
      Field<&DeviceArgs::graph_node_id>{
          {"graph_node_id", "Node of that graph.", Role::kForeign}},
      Field<&DeviceArgs::config>{
          {"launch_config_id", "Grid and block.", Role::kRow, "launch_config"}},
      Field<&DeviceArgs::collective>{{"collective_id",
                                      "What it says of a collective.",
                                      Role::kRow, "collective_arg"}},
      Field<&DeviceArgs::lane>{{"stream_id",
                                "Lane of device work, a row of stream.",
                                Role::kStream}}};
};

template <>
struct Described<PythonArgs> {
  static constexpr std::string_view kName = "python_arg";
  static constexpr std::string_view kDoc = "Arguments of Python frames.";
  static constexpr auto kRows = &Trace::python;
  static constexpr std::tuple kFields{
      Field<&PythonArgs::id>{
          {"python_id", "Number of the call.", Role::kForeign}},
      Field<&PythonArgs::parent_id>{
          {"python_parent_id", "Number of its caller.", Role::kForeign}},
      Field<&PythonArgs::module_id>{
          {"python_module_id", "Number of the nn.Module.", Role::kForeign}}};
};

template <>
struct Described<LaunchConfig> {
  static constexpr std::string_view kName = "launch_config";
  static constexpr std::string_view kDoc =
      "How kernels were launched; equal launches share a row.";
  static constexpr auto kRows = &Trace::configs;
  static constexpr std::tuple kFields{
      Field<&LaunchConfig::grid>{{"grid", "Blocks.", Role::kDim3}},
      Field<&LaunchConfig::block>{
          {"block", "Threads of a block.", Role::kDim3}},
      Field<&LaunchConfig::shared_memory_bytes>{
          {"shared_memory_bytes", "Shared memory of a block.", Role::kBytes}},
      Field<&LaunchConfig::registers_per_thread>{
          {"registers_per_thread", "Registers of a thread.", Role::kInt}},
      Field<&LaunchConfig::occupancy_pct>{
          {"occupancy_percent", "Occupancy as the profiler estimates it.",
           Role::kRealPos}}};
};

template <>
struct Described<CollectiveArgs> {
  static constexpr std::string_view kName = "collective_arg";
  static constexpr std::string_view kDoc =
      "What ops and kernels say of their collective.";
  static constexpr auto kRows = &Trace::collectives;
  static constexpr std::tuple kFields{
      Field<&CollectiveArgs::name>{{"name", "Collective.", Role::kText}},
      Field<&CollectiveArgs::group>{
          {"process_group", "Name of the process group.", Role::kText}},
      Field<&CollectiveArgs::group_desc>{
          {"process_group_desc", "Description of the group.", Role::kText}},
      Field<&CollectiveArgs::group_ranks>{{"process_group_ranks",
                                           "Ranks of the group, as recorded.",
                                           Role::kText}},
      Field<&CollectiveArgs::dtype>{{"dtype", "Element type.", Role::kText}},
      Field<&CollectiveArgs::in_split>{
          {"in_split", "Split of the input, as recorded.", Role::kText}},
      Field<&CollectiveArgs::out_split>{
          {"out_split", "Split of the output, as recorded.", Role::kText}},
      Field<&CollectiveArgs::group_size>{
          {"group_size", "Ranks in the group.", Role::kInt}},
      Field<&CollectiveArgs::in_elements>{
          {"in_elements", "Elements of the input.", Role::kInt}},
      Field<&CollectiveArgs::out_elements>{
          {"out_elements", "Elements of the output.", Role::kInt}},
      Field<&CollectiveArgs::sequence>{
          {"sequence", "Number of the call in its group.", Role::kForeign}},
      Field<&CollectiveArgs::src_rank>{
          {"src_rank", "Sending rank.", Role::kForeign}},
      Field<&CollectiveArgs::dst_rank>{
          {"dst_rank", "Receiving rank.", Role::kForeign}},
      Field<&CollectiveArgs::comms_id>{
          {"comms_id", "Id of the communicator.", Role::kForeign}}};
};

template <>
struct Described<Instruction> {
  static constexpr std::string_view kName = "instruction";
  static constexpr std::string_view kDoc =
      "Operations of the compiled programs that the recording carries.";
  static constexpr auto kRows = &Trace::instructions;
  static constexpr std::tuple kFields{
      Field<&Instruction::module>{{"module", "Program.", Role::kText}},
      Field<&Instruction::name>{{"name", "Name in the program.", Role::kText}},
      Field<&Instruction::opcode>{{"opcode", "What it does.", Role::kText}},
      Field<&Instruction::op_name>{
          {"op_name", "Name in the framework.", Role::kText}},
      Field<&Instruction::shape>{
          {"shape", "Type and shape of the result.", Role::kText}},
      Field<&Instruction::target>{
          {"target", "Target of a custom call.", Role::kText}},
      Field<&Instruction::source>{{"source_file", "Source file.", Role::kText}},
      Field<&Instruction::precision>{
          {"precision", "Element type of its products.", Role::kText}},
      Field<&Instruction::source_line>{
          {"source_line", "Line in the source file.", Role::kInt}},
      Field<&Instruction::program>{{"program_id",
                                    "Id of the program in the recording.",
                                    Role::kForeign}},
      Field<&Instruction::flops>{
          {"flops", "FLOPs of one run.", Role::kRealPos}},
      Field<&Instruction::unpadded_flops>{{"unpadded_flops",
                                           "The same without taps on padding.",
                                           Role::kRealPos}},
      Field<&Instruction::bytes>{
          {"traffic_bytes", "Operands and result of one run.", Role::kRealPos}},
      Field<&Instruction::exact>{
          {"exact", "Whether the costs are exact.", Role::kBool}},
      Field<&Instruction::matrix>{
          {"matrix", "Whether its FLOPs are those of matrix products.",
           Role::kBool}},
      Field<&Instruction::backward>{
          {"backward", "Whether it is of the backward pass.", Role::kBool}},
      Field<&Instruction::collective>{{"collective_id",
                                       "What it says of a collective.",
                                       Role::kRow, "collective_arg"}}};
};

template <>
struct Described<Flows> {
  static constexpr std::string_view kName = "flow";
  static constexpr std::string_view kDoc = "Ends of arrows between events.";
  static constexpr auto kRows = &Trace::flows;
  static constexpr std::tuple kFields{
      Field<&Flows::time_ns>{
          {"time_ns", "When, from the first event.", Role::kStart}},
      Field<&Flows::id>{
          {"flow_id", "Equal for the ends of one arrow.", Role::kForeign}},
      Field<&Flows::track>{
          {"track_id", "Process and thread, a row of track.", Role::kTrack}},
      Field<&Flows::phase>{{"phase", "start, step or finish.", Role::kEnum}},
      Field<&Flows::kind>{
          {"kind", "launch, forward_backward or other.", Role::kEnum}},
      Field<&Flows::uid>{{"uid", "Event number.", Role::kUid}}};
};

template <>
struct Described<Instants> {
  static constexpr std::string_view kName = "instant";
  static constexpr std::string_view kDoc = "Events without a duration.";
  static constexpr auto kRows = &Trace::instants;
  static constexpr std::tuple kFields{
      Field<&Instants::time_ns>{
          {"time_ns", "When, from the first event.", Role::kStart}},
      Field<&Instants::name>{{"name", "Name as recorded.", Role::kText}},
      Field<&Instants::track>{
          {"track_id", "Process and thread, a row of track.", Role::kTrack}},
      Field<&Instants::uid>{{"uid", "Event number.", Role::kUid}},
      Field<&Instants::memory>{{"memory_event_id",
                                "What it says of an allocation.", Role::kRow,
                                "memory_event"}}};
};

template <>
struct Described<Counters> {
  static constexpr std::string_view kName = "counter";
  static constexpr std::string_view kDoc = "Values of counters over time.";
  static constexpr auto kRows = &Trace::counters;
  static constexpr std::tuple kFields{
      Field<&Counters::time_ns>{
          {"time_ns", "When, from the first event.", Role::kStart}},
      Field<&Counters::name>{{"name", "Counter.", Role::kText}},
      Field<&Counters::series>{
          {"series", "Series of the counter.", Role::kText}},
      Field<&Counters::track>{
          {"track_id", "Process and thread, a row of track.", Role::kTrack}},
      Field<&Counters::value>{{"reading", "Value.", Role::kReal}},
      Field<&Counters::uid>{{"uid", "Event number.", Role::kUid}}};
};

template <>
struct Described<EventCounter> {
  static constexpr std::string_view kName = "event_counter";
  static constexpr std::string_view kDoc =
      "What a profiler counted over one event, as hardware counters over a "
      "kernel.";
  static constexpr auto kRows = &Trace::event_counters;
  static constexpr std::tuple kFields{
      Field<&EventCounter::value>{{"reading", "Value.", Role::kReal}},
      Field<&EventCounter::name>{{"name", "Counter.", Role::kText}},
      Field<&EventCounter::uid>{{"uid", "Number of the event.", Role::kUid}}};
};

template <>
struct Described<MemoryArgs> {
  static constexpr std::string_view kName = "memory_event";
  static constexpr std::string_view kDoc =
      "Allocations and frees that the trace records.";
  static constexpr auto kRows = &Trace::memory;
  static constexpr std::tuple kFields{
      Field<&MemoryArgs::bytes>{
          {"bytes", "Size; negative: freed.", Role::kBytes}},
      Field<&MemoryArgs::total_allocated>{
          {"total_allocated_bytes", "Allocated after it.", Role::kBytes}},
      Field<&MemoryArgs::total_reserved>{
          {"total_reserved_bytes", "Reserved after it.", Role::kBytes}},
      Field<&MemoryArgs::address>{{"address", "Address.", Role::kForeign}},
      Field<&MemoryArgs::device_type>{
          {"device_type", "0 host, 1 CUDA or HIP.", Role::kInt}},
      Field<&MemoryArgs::device_id>{
          {"device_index", "Device number.", Role::kForeign}}};
};

template <>
struct Described<GraphNode> {
  static constexpr std::string_view kName = "graph_node";
  static constexpr std::string_view kDoc =
      "Nodes of device graphs with the time at which they were made.";
  static constexpr auto kRows = &Trace::graph_nodes;
  static constexpr std::tuple kFields{
      Field<&GraphNode::id>{
          {"graph_node_id", "Number of the node.", Role::kForeign}},
      Field<&GraphNode::original>{{"original_node_id",
                                   "The node that it is a copy of.",
                                   Role::kForeign}},
      Field<&GraphNode::start_ns>{{"start_ns",
                                   "When it was made, from the first event.",
                                   Role::kStart}},
      Field<&GraphNode::track>{
          {"track_id", "Thread that made it, a row of track.", Role::kTrack}}};
};

template <>
struct Described<Track> {
  static constexpr std::string_view kName = "track";
  static constexpr std::string_view kDoc =
      "Processes and threads of the input.";
  static constexpr auto kRows = &Trace::tracks;
  static constexpr std::tuple kFields{
      Field<&Track::pid>{{"pid", "Process as recorded.", Role::kText}},
      Field<&Track::tid>{{"tid", "Thread as recorded.", Role::kText}},
      Field<&Track::process_name>{
          {"process_name", "Name of the process.", Role::kText}},
      Field<&Track::process_labels>{
          {"process_labels", "Labels of the process.", Role::kText}},
      Field<&Track::thread_name>{
          {"thread_name", "Name of the thread.", Role::kText}},
      Field<&Track::process_sort>{
          {"process_sort", "Place of the process in viewers.", Role::kInt}},
      Field<&Track::thread_sort>{
          {"thread_sort", "Place of the thread in viewers.", Role::kInt}}};
};

template <>
struct Described<Stream> {
  static constexpr std::string_view kName = "stream";
  static constexpr std::string_view kDoc =
      "Lanes of device work: kernels of one stream run in order.";
  static constexpr auto kRows = &Trace::streams;
  static constexpr std::tuple kFields{
      Field<&Stream::pid>{{"pid", "Device process in the input.", Role::kText}},
      Field<&Stream::device>{
          {"device_index", "Device number.", Role::kForeign}},
      Field<&Stream::stream>{{"stream", "Stream as recorded.", Role::kForeign}},
      Field<&Stream::slices>{
          {"kernels", "Its device work; see kernel.", Role::kList}}};
};

namespace fields_internal {

// The element type of a described member: of a column that of its values.
template <class T>
struct Element {
  using Type = T;
  static constexpr bool kColumn = false;
};
template <class T>
struct Element<PodVector<T>> {
  using Type = T;
  static constexpr bool kColumn = true;
};

template <class Owner, class Member>
Member MemberOf(Member Owner::*);

template <class Owner>
struct AnyMember {
  template <class T>
  requires(!std::is_same_v<std::remove_cvref_t<T>, Owner>)
  // NOLINTNEXTLINE: stands for a value of any type
  operator T() const;
};
template <class Row, size_t... I>
constexpr bool HasMembers(std::index_sequence<I...>) {
  return requires { Row{((void)I, AnyMember<Row>{})...}; };
}

// Number of bytes of a row whose members are those described, in that order.
template <class Row>
constexpr size_t LayoutBytes() {
  size_t bytes = 0;
  const auto place = [&bytes](size_t size, size_t alignment) {
    bytes = (bytes + alignment - 1) / alignment * alignment + size;
  };
  std::apply(
      [&](const auto&... field) {
        (place(sizeof(decltype(MemberOf(
                   std::remove_cvref_t<decltype(field)>::kMember))),
               alignof(decltype(MemberOf(
                   std::remove_cvref_t<decltype(field)>::kMember)))),
         ...);
      },
      Described<Row>::kFields);
  return (bytes + alignof(Row) - 1) / alignof(Row) * alignof(Row);
}

template <class Row>
constexpr bool NamesDiffer() {
  constexpr size_t kCount =
      std::tuple_size_v<std::remove_cvref_t<decltype(Described<Row>::kFields)>>;
  return std::apply(
      [](const auto&... field) {
        const std::string_view names[] = {field.info.name...};
        for (size_t i = 0; i < kCount; ++i) {
          for (size_t j = 0; j < i; ++j) {
            if (names[i] == names[j]) return false;
          }
        }
        return true;
      },
      Described<Row>::kFields);
}

}  // namespace fields_internal

// Whether the members described, in this order, fill the row, and no name
// stands twice. A member that hides in padding is found by the count of
// members, which the second check takes.
template <class Row>
constexpr bool IsWhollyDescribed() {
  constexpr size_t kCount =
      std::tuple_size_v<std::remove_cvref_t<decltype(Described<Row>::kFields)>>;
  return fields_internal::LayoutBytes<Row>() == sizeof(Row) &&
         fields_internal::NamesDiffer<Row>() &&
         !fields_internal::HasMembers<Row>(
             std::make_index_sequence<kCount + 1>());
}

// Calls `visit.template operator()<Row>()` for every kind of row.
template <class Visit>
constexpr void ForEachDescribed(Visit&& visit) {
  const auto each = [&visit]<class... Row>(std::type_identity<Row>...) {
    (visit.template operator()<Row>(), ...);
  };
  each(std::type_identity<Slices>(), std::type_identity<OpArgs>(),
       std::type_identity<ApiArgs>(), std::type_identity<DeviceArgs>(),
       std::type_identity<PythonArgs>(), std::type_identity<LaunchConfig>(),
       std::type_identity<CollectiveArgs>(), std::type_identity<Instruction>(),
       std::type_identity<Flows>(), std::type_identity<Instants>(),
       std::type_identity<Counters>(), std::type_identity<EventCounter>(),
       std::type_identity<MemoryArgs>(), std::type_identity<GraphNode>(),
       std::type_identity<Track>(), std::type_identity<Stream>());
}

static_assert(IsWhollyDescribed<Slices>());
static_assert(IsWhollyDescribed<OpArgs>());
static_assert(IsWhollyDescribed<ApiArgs>());
static_assert(IsWhollyDescribed<DeviceArgs>());
static_assert(IsWhollyDescribed<PythonArgs>());
static_assert(IsWhollyDescribed<LaunchConfig>());
static_assert(IsWhollyDescribed<CollectiveArgs>());
static_assert(IsWhollyDescribed<Instruction>());
static_assert(IsWhollyDescribed<Flows>());
static_assert(IsWhollyDescribed<Instants>());
static_assert(IsWhollyDescribed<Counters>());
static_assert(IsWhollyDescribed<EventCounter>());
static_assert(IsWhollyDescribed<MemoryArgs>());
static_assert(IsWhollyDescribed<GraphNode>());
static_assert(IsWhollyDescribed<Track>());
static_assert(IsWhollyDescribed<Stream>());

}  // namespace lamina::trace
