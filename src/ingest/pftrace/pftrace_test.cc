// SPDX-License-Identifier: Apache-2.0
//
// Traces are made with libprotobuf, which is also the oracle of the walker.
#include <gtest/gtest.h>
#include <random>
#include <zlib.h>
#include <zstd.h>

#include "ingest/pftrace/events.h"
#include "ingest/pftrace/reader.h"
#include "perfetto.pb.h"

namespace lamina::ingest::pftrace {
namespace {

using lamina::perfetto::TrackEvent;
using trace::Kind;
using trace::kNoInt;
using trace::SliceId;
using Proto = lamina::perfetto::Trace;

class Maker {
 public:
  lamina::perfetto::TracePacket* Packet() {
    auto* packet = trace.add_packet();
    packet->set_trusted_packet_sequence_id(1);
    return packet;
  }
  void Thread(uint64_t uuid, int pid, int tid) {
    auto* descriptor = Packet()->mutable_track_descriptor();
    descriptor->set_uuid(uuid);
    descriptor->mutable_thread()->set_pid(pid);
    descriptor->mutable_thread()->set_tid(tid);
  }
  TrackEvent* Event(TrackEvent::Type type, uint64_t track, uint64_t time) {
    auto* packet = Packet();
    packet->set_timestamp(time);
    auto* event = packet->mutable_track_event();
    event->set_type(type);
    event->set_track_uuid(track);
    return event;
  }
  TrackEvent* Begin(uint64_t track, uint64_t time, const std::string& name) {
    auto* event = Event(TrackEvent::TYPE_SLICE_BEGIN, track, time);
    event->set_name(name);
    return event;
  }
  void End(uint64_t track, uint64_t time) {
    Event(TrackEvent::TYPE_SLICE_END, track, time);
  }

  Proto trace;
};

Result<trace::Trace> ReadBytes(const std::string& bytes) {
  auto source = OpenMemory("test", bytes);
  if (!source) return Fail(source.error());
  return ReadPftrace(std::move(*source), ReadOptions());
}

trace::Trace ReadProto(const Proto& proto) {
  auto trace = ReadBytes(proto.SerializeAsString());
  EXPECT_TRUE(trace.has_value())
      << (trace ? std::string() : trace.error().ToString());
  return trace ? std::move(*trace) : trace::Trace();
}

// "name start+duration", by start.
std::string Slices(const trace::Trace& trace) {
  std::vector<SliceId> order;
  for (uint32_t i = 0; i < trace.slices.size(); ++i) order.emplace_back(i);
  std::sort(order.begin(), order.end(), [&](SliceId a, SliceId b) {
    return std::pair(trace.Start(a), trace.Uid(a)) <
           std::pair(trace.Start(b), trace.Uid(b));
  });
  std::string out;
  for (const SliceId s : order) {
    if (!out.empty()) out += ", ";
    out += std::string(trace.Name(s)) + " " + std::to_string(trace.Start(s)) +
           "+" + std::to_string(trace.Duration(s));
  }
  return out;
}

TEST(Pftrace, InOrderTracksPairInTheOrderOfTheFile) {
  Maker maker;
  maker.Thread(1, 7, 8);
  maker.Begin(1, 10, "outer");
  maker.Begin(1, 10, "empty");
  maker.End(1, 10);
  maker.End(1, 20);
  EXPECT_EQ(Slices(ReadProto(maker.trace)), "outer 10+10, empty 10+0");
}

TEST(Pftrace, UnorderedTracksKeepNeighboursApart) {
  // All begins, then all ends; the second begins when the first ends.
  Maker maker;
  maker.Thread(1, 7, 8);
  maker.Begin(1, 10, "a");
  maker.Begin(1, 20, "b");
  maker.Begin(1, 30, "empty");
  maker.End(1, 20);
  maker.End(1, 30);
  maker.End(1, 30);
  EXPECT_EQ(Slices(ReadProto(maker.trace)), "a 10+10, b 20+10, empty 30+0");
}

TEST(Pftrace, ClocksMoveToBoottime) {
  Maker maker;
  auto* packet = maker.Packet();
  packet->set_sequence_flags(1);
  auto* snapshot = packet->mutable_clock_snapshot();
  auto* boot = snapshot->add_clocks();
  boot->set_clock_id(6);
  boot->set_timestamp(1000);
  auto* mono = snapshot->add_clocks();
  mono->set_clock_id(3);
  mono->set_timestamp(400);
  auto* delta = snapshot->add_clocks();
  delta->set_clock_id(64);
  delta->set_timestamp(1);
  delta->set_is_incremental(true);
  delta->set_unit_multiplier_ns(1000);
  maker.Thread(1, 7, 8);
  maker.Begin(1, 500, "mono");
  maker.trace.mutable_packet()->rbegin()->set_timestamp_clock_id(3);
  maker.End(1, 1150);
  for (const uint64_t step : {1, 2}) {
    maker.Begin(1, step, "delta");
    maker.trace.mutable_packet()->rbegin()->set_timestamp_clock_id(64);
    maker.End(1, 1);
    maker.trace.mutable_packet()->rbegin()->set_timestamp_clock_id(64);
  }
  // mono 500 is boot 1100; each delta event is its steps behind the last.
  EXPECT_EQ(Slices(ReadProto(maker.trace)),
            "mono 1100+50, delta 2000+1000, delta 5000+1000");
}

TEST(Pftrace, EventsOfAnUnknownClockAreCounted) {
  Maker maker;
  maker.Thread(1, 7, 8);
  maker.Begin(1, 10, "a");
  maker.End(1, 20);
  maker.Begin(1, 30, "lost");
  maker.trace.mutable_packet()->rbegin()->set_timestamp_clock_id(9);
  const trace::Trace trace = ReadProto(maker.trace);
  EXPECT_EQ(trace.slices.size(), 1u);
  EXPECT_EQ(trace.diagnostics.Count("event_without_time"), 1u);
}

TEST(Pftrace, TablesStartAnewAfterALoss) {
  Maker maker;
  maker.Thread(1, 7, 8);
  const auto intern = [&](uint64_t iid, const std::string& name,
                          uint32_t flags) {
    auto* packet = maker.Packet();
    packet->set_sequence_flags(flags);
    auto* entry = packet->mutable_interned_data()->add_event_names();
    entry->set_iid(iid);
    entry->set_name(name);
  };
  const auto span = [&](uint64_t time) {
    auto* event = maker.Event(TrackEvent::TYPE_SLICE_BEGIN, 1, time);
    event->set_name_iid(1);
    maker.trace.mutable_packet()->rbegin()->set_sequence_flags(2);
    maker.End(1, time + 5);
    maker.trace.mutable_packet()->rbegin()->set_sequence_flags(2);
  };
  intern(1, "first", 1);
  span(10);
  maker.Packet()->set_previous_packet_dropped(true);
  span(20);
  intern(1, "second", 1);
  span(30);
  const trace::Trace trace = ReadProto(maker.trace);
  EXPECT_EQ(Slices(trace), "first 10+5, second 30+5");
  EXPECT_EQ(trace.diagnostics.Count("event_after_loss"), 2u);
}

TEST(Pftrace, ArgumentsAndFlows) {
  Maker maker;
  maker.Thread(1, 7, 8);
  maker.Thread(2, 7, 9);
  auto* call = maker.Begin(1, 10, "cudaLaunchKernel");
  call->add_flow_ids(55);
  maker.End(1, 12);
  auto* kernel = maker.Begin(2, 20, "gemm");
  kernel->add_flow_ids(55);
  auto* grid = kernel->add_debug_annotations();
  grid->set_name("grid");
  for (const int64_t value : {4, 2, 1})
    grid->add_array_values()->set_int_value(value);
  auto* stream = kernel->add_debug_annotations();
  stream->set_name("stream");
  stream->set_int_value(13);
  maker.End(2, 30);
  auto* op = maker.Begin(1, 40, "aten::mm");
  auto* dims = op->add_debug_annotations();
  dims->set_name("Input Dims");
  dims->set_legacy_json_value("[[2, 3], [3, 4]]");
  maker.End(1, 50);
  const trace::Trace trace = ReadProto(maker.trace);
  ASSERT_EQ(trace.slices.size(), 3u);
  ASSERT_EQ(trace.device_slices().size(), 1u);
  const SliceId s = trace.device_slices()[0];
  EXPECT_EQ(trace.KindOf(s), Kind::kKernel);
  EXPECT_EQ(trace.Device(s)->stream, 13);
  EXPECT_EQ(trace.Device(s)->correlation, 55);
  EXPECT_EQ(trace.Config(trace.Device(s)->config)->grid,
            (std::array<uint32_t, 3>{4, 2, 1}));
  ASSERT_EQ(trace.flows.size(), 2u);
  EXPECT_EQ(trace.flows.kind[0], trace::FlowKind::kLaunch);
  EXPECT_EQ(trace.flows.phase[0], trace::FlowPhase::kStart);
  EXPECT_EQ(trace.flows.phase[1], trace::FlowPhase::kFinish);
  for (uint32_t i = 0; i < 3; ++i) {
    if (trace.Name(SliceId(i)) != "aten::mm") continue;
    EXPECT_EQ(trace.KindOf(SliceId(i)), Kind::kOp);
    EXPECT_EQ(trace.Text(trace.Op(SliceId(i))->dims), "[[2,3],[3,4]]");
  }
}

TEST(Pftrace, CountersHaveTheUnitOfTheirTrack) {
  Maker maker;
  auto* descriptor = maker.Packet()->mutable_track_descriptor();
  descriptor->set_uuid(5);
  descriptor->set_name("copied");
  descriptor->mutable_counter()->set_unit_multiplier(1024);
  descriptor->mutable_counter()->set_is_incremental(true);
  for (const int64_t value : {3, 4})
    maker.Event(TrackEvent::TYPE_COUNTER, 5, 10)->set_counter_value(value);
  const trace::Trace trace = ReadProto(maker.trace);
  ASSERT_EQ(trace.counters.size(), 2u);
  EXPECT_EQ(trace.counters.value[0], 3072);
  EXPECT_EQ(trace.counters.value[1], 7168);
  EXPECT_EQ(trace.Text(trace.counters.name[0]), "copied");
}

Proto TwoSpans() {
  Maker maker;
  maker.Thread(1, 7, 8);
  maker.Begin(1, 10, "a");
  maker.End(1, 20);
  maker.Begin(1, 30, "b");
  maker.End(1, 45);
  return maker.trace;
}

TEST(Pftrace, CompressedPacketsExpand) {
  const std::string inner = TwoSpans().SerializeAsString();
  std::string zlib(compressBound(inner.size()), '\0');
  uLongf size = zlib.size();
  ASSERT_EQ(
      compress(reinterpret_cast<Bytef*>(zlib.data()), &size,
               reinterpret_cast<const Bytef*>(inner.data()), inner.size()),
      Z_OK);
  zlib.resize(size);
  std::string zstd(ZSTD_compressBound(inner.size()), '\0');
  zstd.resize(
      ZSTD_compress(zstd.data(), zstd.size(), inner.data(), inner.size(), 3));
  Proto deflated;
  deflated.add_packet()->set_compressed_packets(zlib);
  Proto packed;
  packed.add_packet()->set_zstd_compressed_packets(zstd);
  EXPECT_EQ(Slices(ReadProto(deflated)), "a 10+10, b 30+15");
  EXPECT_EQ(Slices(ReadProto(packed)), "a 10+10, b 30+15");
  // A cut one keeps what stands before the cut.
  deflated.mutable_packet(0)->set_compressed_packets(
      zlib.substr(0, zlib.size() - 6));
  const auto cut = ReadBytes(deflated.SerializeAsString());
  if (cut) {
    EXPECT_GT(cut->diagnostics.lost(), 0u);
  }
}

TEST(Pftrace, DamagedBytesNeverCrash) {
  const std::string bytes = TwoSpans().SerializeAsString();
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    std::string broken = bytes;
    for (int k = 0; k < 3; ++k)
      broken[random() % broken.size()] = static_cast<char>(random());
    if (i % 4 == 0) broken.resize(random() % broken.size());
    const auto trace = ReadBytes(broken);
    if (!trace) continue;
    for (uint32_t s = 0; s < trace->slices.size(); ++s)
      EXPECT_GE(trace->Duration(SliceId(s)), 0);
  }
}

TEST(Kinds, ByCategoryNameAndArguments) {
  EXPECT_EQ(KindOfCategory("kernel_dispatch"), Kind::kKernel);
  EXPECT_EQ(KindOfCategory("cpu_op"), Kind::kOp);
  EXPECT_EQ(KindOfCategory("disk"), Kind::kOther);
  Hints none;
  EXPECT_EQ(KindOfEvent("cudaLaunchKernel", none), Kind::kRuntime);
  EXPECT_EQ(KindOfEvent("cuLaunchKernel", none), Kind::kDriver);
  EXPECT_EQ(KindOfEvent("customer", none), Kind::kOther);
  EXPECT_EQ(KindOfEvent("hipMemcpyAsync", none), Kind::kRuntime);
  Hints lane;
  lane.stream = lane.correlation = true;
  EXPECT_EQ(KindOfEvent("gemm", lane), Kind::kKernel);
  EXPECT_EQ(KindOfEvent("Memset (Device)", lane), Kind::kMemset);
}

}  // namespace
}  // namespace lamina::ingest::pftrace
