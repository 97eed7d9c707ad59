// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "ingest/common/format.h"

namespace lamina::ingest::kineto {

FormatInfo Format();

namespace {

using trace::Kind;
using trace::kNoInt;
using trace::SliceId;
using trace::Trace;

Result<Trace> ReadText(const std::string& text, int threads = 2) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("kineto_test" + std::to_string(getpid()) + ".json");
  std::ofstream(path, std::ios::binary) << text;
  ReadOptions options;
  options.threads = threads;
  Input input(path.string());
  auto trace = Format().read(input, options);
  std::filesystem::remove(path);
  return trace;
}

Trace ReadEvents(const std::string& events) {
  auto trace = ReadText("{\"traceEvents\": [" + events + "]}");
  EXPECT_TRUE(trace.has_value())
      << (trace ? std::string() : trace.error().ToString());
  return trace ? std::move(*trace) : Trace();
}

TEST(Kineto, TypedArgumentsInAnyKeyOrder) {
  const Trace trace = ReadEvents(R"(
    {"args": {"Input Dims": [[2, 3], [], [[1], [2]]],
              "Input type": ["float", "Scalar", "TensorList"],
              "Sequence number": 5, "External id": 9, "Fwd thread id": 1},
     "dur": 1.25, "ts": "100.5", "tid": "main", "pid": 7, "name": "aten::mm",
     "cat": "cpu_op", "ph": "X"})");
  ASSERT_EQ(trace.slices.size(), 1u);
  const SliceId s(0);
  EXPECT_EQ(trace.Name(s), "aten::mm");
  EXPECT_EQ(trace.KindOf(s), Kind::kOp);
  EXPECT_EQ(trace.Start(s), 100500);
  EXPECT_EQ(trace.Duration(s), 1250);
  EXPECT_EQ(trace.Text(trace.TrackOf(s).tid), "main");
  const trace::OpArgs& op = *trace.Op(s);
  EXPECT_EQ(trace.Text(op.dims), "[[2,3],[],[[1],[2]]]");
  EXPECT_EQ(trace.Text(op.types), "[\"float\",\"Scalar\",\"TensorList\"]");
  // Absent differs from empty.
  EXPECT_FALSE(op.strides.valid());
  EXPECT_EQ(op.sequence, 5);
  EXPECT_EQ(op.external_id, 9);
  EXPECT_EQ(op.fwd_thread, 1);
}

TEST(Kineto, DeviceWorkAndCollectives) {
  const Trace trace = ReadEvents(R"(
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0,
     "tid": 13, "ts": 5, "dur": 2, "args": {"correlation": 77, "device": 0,
     "context": 1, "stream": 13, "grid": [8, 1, 1], "block": [544, 1, 1],
     "registers per thread": 96, "shared memory": 87568,
     "est. achieved occupancy %": 12, "graph id": 3, "graph node id": 12884901890,
     "Collective name": "allreduce", "In msg nelems": 10, "Out msg nelems": 10,
     "Group size": 2, "dtype": "Float", "Process Group Name": "0",
     "Process Group Ranks": "[0, 1]", "Seq": 4, "In split size": "[]"}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0,
     "tid": 7, "ts": 1, "dur": 1, "args": {"bytes": 4096, "stream": 7}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9,
     "tid": 9, "ts": 0, "dur": 1, "args": {"correlation": 77}})");
  ASSERT_EQ(trace.device.size(), 2u);
  // In order of time, streams sorted by number.
  EXPECT_EQ(trace.Name(trace.device_slices()[0]), "Memcpy HtoD");
  ASSERT_EQ(trace.streams.size(), 2u);
  EXPECT_EQ(trace.streams[0].stream, 7);
  EXPECT_EQ(trace.streams[1].stream, 13);
  const SliceId kernel = trace.device_slices()[1];
  const trace::DeviceArgs& args = *trace.Device(kernel);
  EXPECT_EQ(args.correlation, 77);
  EXPECT_EQ(args.graph_node_id, 12884901890);
  const trace::LaunchConfig& config = *trace.Config(args.config);
  EXPECT_EQ(config.block[0], 544u);
  EXPECT_EQ(config.registers_per_thread, 96);
  const trace::CollectiveArgs& c = *trace.Collective(args.collective);
  EXPECT_EQ(trace.Text(c.name), "allreduce");
  EXPECT_EQ(trace.Text(c.group_ranks), "[0, 1]");
  EXPECT_EQ(c.sequence, 4);
  EXPECT_FALSE(c.out_split.valid());
  EXPECT_EQ(trace.Device(trace.device_slices()[0])->bytes, 4096);
}

TEST(Kineto, EveryPhase) {
  const Trace trace = ReadEvents(R"(
    {"ph": "B", "cat": "cpu_op", "name": "outer", "pid": 1, "tid": 1, "ts": 0},
    {"ph": "B", "cat": "cpu_op", "name": "inner", "pid": 1, "tid": 1, "ts": 2},
    {"ph": "E", "pid": 1, "tid": 1, "ts": 3},
    {"ph": "E", "pid": 1, "tid": 1, "ts": 9},
    {"ph": "E", "pid": 1, "tid": 2, "ts": 9},
    {"ph": "s", "cat": "ac2g", "id": 5, "pid": 1, "tid": 1, "ts": 1},
    {"ph": "f", "cat": "ac2g", "id": 5, "pid": 0, "tid": 7, "ts": 4},
    {"ph": "s", "cat": "fwdbwd", "id": "x", "pid": 1, "tid": 1, "ts": 1},
    {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1,
     "tid": 1, "ts": 6, "args": {"Bytes": -512, "Total Allocated": 1024,
     "Total Reserved": 2048, "Device Id": 0, "Device Type": 1}},
    {"ph": "C", "name": "queue", "pid": 1, "ts": 7, "args": {"a": 1, "b": 2.5}},
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0,
     "args": {"name": "python"}},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "ts": 0,
     "args": {"name": "main"}},
    {"ph": "b", "cat": "async", "name": "a", "id": 1, "pid": 1, "ts": 1})");
  ASSERT_EQ(trace.slices.size(), 2u);
  EXPECT_EQ(trace.Name(SliceId(0)), "inner");
  EXPECT_EQ(trace.Duration(SliceId(0)), 1000);
  EXPECT_EQ(trace.Duration(SliceId(1)), 9000);
  EXPECT_EQ(trace.diagnostics.Count("end_without_begin"), 1u);
  EXPECT_EQ(trace.diagnostics.Count("unused_phase"), 1u);
  ASSERT_EQ(trace.flows.size(), 3u);
  EXPECT_EQ(trace.flows.id[0], 5);
  EXPECT_LT(trace.flows.id[2], 0);  // a text id
  EXPECT_EQ(trace.flows.kind[2], trace::FlowKind::kForwardBackward);
  ASSERT_EQ(trace.instants.size(), 1u);
  EXPECT_EQ(trace.memory[trace.instants.memory[0]].bytes, -512);
  ASSERT_EQ(trace.counters.size(), 2u);
  EXPECT_EQ(trace.counters.value[1], 2.5);
  EXPECT_EQ(trace.Text(trace.TrackOf(SliceId(0)).process_name), "python");
  EXPECT_EQ(trace.Text(trace.TrackOf(SliceId(0)).thread_name), "main");
}

TEST(Kineto, BadValuesCostOneEventAndAreCounted) {
  const Trace trace = ReadEvents(R"(
    {"ph": "X", "cat": "cpu_op", "name": "good", "pid": 1, "tid": 1, "ts": 1, "dur": 1},
    {"ph": "X", "cat": "cpu_op", "name": "negative", "pid": 1, "tid": 1, "ts": 1, "dur": -1},
    {"ph": "X", "cat": "cpu_op", "name": "huge", "pid": 1, "tid": 1, "ts": 1, "dur": 1e300},
    {"ph": "X", "cat": "cpu_op", "name": "late", "pid": 1, "tid": 1, "ts": 9223372036854775, "dur": 900},
    {"ph": "X", "cat": "cpu_op", "name": "long", "pid": 1, "tid": 1, "ts": 1, "dur": 1200000000000},
    {"ph": "X", "cat": "cpu_op", "name": "no time", "pid": 1, "tid": 1},
    {"ph": "X", "cat": "cpu_op", "name": "text", "pid": 1, "tid": 1, "ts": "soon"},
    {"ph": "X", "cat": "cpu_op", "name": "fine", "pid": 1, "tid": 1, "ts": 2.00049, "dur": 1, "dur": 3},
    {"ph": "X", "cat": "kernel", "name": "no args", "pid": 0, "tid": 7, "ts": 3},
    17, "text", [1], null, {"no": "phase"})");
  EXPECT_EQ(trace.diagnostics.Count("negative_duration"), 1u);
  EXPECT_EQ(trace.diagnostics.Count("duration_out_of_range"), 2u);
  EXPECT_EQ(trace.diagnostics.Count("event_without_time"), 1u);
  EXPECT_EQ(trace.diagnostics.Count("time_out_of_range"), 2u);
  EXPECT_EQ(trace.diagnostics.Count("sub_nanosecond_input"), 1u);
  EXPECT_EQ(trace.diagnostics.Count("not_an_event"), 5u);
  ASSERT_EQ(trace.slices.size(), 3u);
  EXPECT_EQ(trace.Duration(SliceId(1)), 3000);  // the last of equal keys
  EXPECT_EQ(trace.Start(SliceId(1)), 2000);
  EXPECT_EQ(trace.Duration(SliceId(2)), 0);
  EXPECT_EQ(trace.info.events, 14u);
  EXPECT_EQ(trace.Uid(SliceId(2)), 8u);
  // The lane of a kernel without arguments is its row in a viewer.
  ASSERT_EQ(trace.streams.size(), 1u);
  EXPECT_EQ(trace.streams[0].stream, 7);
}

TEST(Kineto, MetadataAroundTheEvents) {
  auto trace = ReadText(R"({"schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 5,
      "computeMajor": 9, "numSms": 132}, {"id": 1, "name": "second"}],
    "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1,
                     "tid": 1, "ts": 1, "dur": 1}],
    "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 16,
      "pg_config": [{"pg_name": "0", "ranks": [0, 3]}]},
    "displayTimeUnit": "ms", "baseTimeNanoseconds": 1751410836000000000})");
  ASSERT_TRUE(trace.has_value());
  const trace::Info& info = trace->info;
  ASSERT_EQ(info.devices.size(), 2u);
  EXPECT_EQ(info.devices[0].sm_count, 132);
  EXPECT_EQ(info.devices[1].name, "second");
  EXPECT_EQ(info.rank, 3);
  EXPECT_EQ(info.world_size, 16);
  EXPECT_EQ(info.backend, "nccl");
  EXPECT_EQ(info.base_time_ns, 1751410836000000000);
  EXPECT_EQ(info.display_time_unit, "ms");
  ASSERT_EQ(info.properties.size(), 1u);
  EXPECT_EQ(info.properties[0].second, "1");
}

TEST(Kineto, UnusableInputSaysWhy) {
  const auto message = [](const std::string& text) {
    const auto trace = ReadText(text);
    EXPECT_FALSE(trace.has_value());
    if (trace) return std::string();
    EXPECT_EQ(trace.error().kind, ErrorKind::kInput);
    return trace.error().what;
  };
  EXPECT_EQ(message("{\"traceEvents\": []}"),
            "the list of events has no event");
  EXPECT_EQ(message("{\"a\": 1}"),
            "the JSON document has no list of events (\"traceEvents\")");
  EXPECT_EQ(message("{\"traceEvents\": [1, 2]}"),
            "none of the 2 events can be used (A record is no JSON object)");
}

// The same trace for any number of threads and any layout of the text.
TEST(Kineto, IsIndependentOfThreads) {
  std::string events;
  for (int i = 0; i < 60000; ++i) {
    if (i > 0) events += ", ";
    events += "{\"ph\": \"X\", \"cat\": \"" +
              std::string(i % 3 == 0 ? "kernel" : "cpu_op") +
              "\", \"name\": \"name" + std::to_string(i * 7919 % 501) +
              "\", \"pid\": " + std::to_string(i % 2) +
              ", \"tid\": " + std::to_string(i % 5) +
              ", \"ts\": " + std::to_string(i) +
              ", \"dur\": 1, \"args\": {\"Input Dims\": [[" +
              std::to_string(i % 17) +
              "]], \"correlation\": " + std::to_string(i) + "}}";
  }
  const std::string text = "{\"traceEvents\": [" + events + "]}";
  auto one = ReadText(text, 1);
  auto many = ReadText(text, 5);
  ASSERT_TRUE(one && many);
  ASSERT_EQ(one->slices.size(), 60000u);
  ASSERT_EQ(many->slices.size(), one->slices.size());
  ASSERT_EQ(many->strings.size(), one->strings.size());
  for (uint32_t i = 0; i < one->slices.size(); ++i) {
    ASSERT_EQ(one->slices.name[i], many->slices.name[i]);
    ASSERT_EQ(one->slices.offset[i], many->slices.offset[i]);
    ASSERT_EQ(one->slices.uid[i], many->slices.uid[i]);
    ASSERT_EQ(one->slices.detail[i], many->slices.detail[i]);
  }
  for (size_t i = 0; i < one->ops.size(); ++i)
    ASSERT_EQ(one->ops[i].dims, many->ops[i].dims);
}

}  // namespace
}  // namespace lamina::ingest::kineto
