// SPDX-License-Identifier: Apache-2.0
//
// Times that cannot be true are mended, and times that can be are left alone.
#include "trace/repair_times.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "trace/builder.h"

namespace lamina::trace {
namespace {

constexpr int64_t kUs = 1'000;
constexpr int64_t kSecond = 1'000'000'000;

class Maker {
 public:
  Maker() : segment_(&names_) {}

  SliceId Call(std::string_view name, int64_t start, int64_t dur,
               int64_t correlation) {
    ApiArgs args;
    args.correlation = correlation;
    return Add(Kind::kRuntime, name, "host", "1", start, dur,
               segment_.AddApi(args));
  }
  SliceId Kernel(int64_t start, int64_t dur, int64_t correlation = kNoInt,
                 int64_t stream = 7, std::string_view name = "k") {
    DeviceArgs args;
    args.correlation = correlation;
    args.device = 0;
    args.stream = stream;
    return Add(Kind::kKernel, name, "device", std::to_string(stream), start,
               dur, segment_.AddDevice(args));
  }
  Trace Finish() {
    segment_.Seal();
    TraceBuilder builder;
    builder.Append(segment_);
    return builder.Finish(1);
  }

 private:
  SliceId Add(Kind kind, std::string_view name, std::string_view pid,
              std::string_view tid, int64_t start, int64_t dur,
              uint32_t detail) {
    segment_.AddSlice(
        start, dur, names_.Intern(name), kind, names_.InternCategory("c"),
        names_.InternTrack(names_.Intern(pid), names_.Intern(tid)),
        segment_.next_uid, detail);
    return SliceId(segment_.next_uid++);
  }

  LocalNames names_;
  Segment segment_;
};

// Launches every 100 us whose work begins `delay(i)` after them.
template <class Delay>
Trace Launches(int count, const Delay& delay, int64_t dur = 20 * kUs) {
  Maker maker;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = kSecond + 100 * kUs * i;
    maker.Call("cudaLaunchKernel", at, 5 * kUs, i + 1);
    maker.Kernel(at + delay(i), dur, i + 1);
  }
  return maker.Finish();
}

int64_t Window(const Trace& trace) {
  int64_t end = trace.first_ns;
  for (const SliceId s : trace.device_slices())
    end = std::max(end, trace.End(s));
  return end - trace.Start(trace.device_slices().front());
}

TEST(RepairDurations, AnEventThatRunsOverManyIsCut) {
  Maker maker;
  SliceId bad;
  for (int64_t i = 0; i < 40; ++i) {
    const SliceId s =
        maker.Kernel(100 * kUs * i, i == 10 ? 3 * kSecond : 80 * kUs);
    if (i == 10) bad = s;
  }
  const Trace trace = maker.Finish();
  EXPECT_EQ(trace.Duration(bad), 100 * kUs);
  EXPECT_EQ(Window(trace), (39 * 100 + 80) * kUs);
  EXPECT_EQ(trace.diagnostics.Count(kImpossibleDuration), 1u);
}

TEST(RepairDurations, WhatHardwareDoesStays) {
  // The drain of a kernel beside the next one.
  Maker drain;
  for (int64_t i = 0; i < 40; ++i) drain.Kernel(100 * kUs * i, 110 * kUs);
  EXPECT_EQ(drain.Finish().diagnostics.Count(kImpossibleDuration), 0u);
  // A branch of a graph beside many nodes of the same launch.
  Maker branch;
  branch.Kernel(0, 3'000 * kUs, 1);
  for (int64_t i = 1; i < 40; ++i) branch.Kernel(50 * kUs * i, 20 * kUs, 1);
  EXPECT_EQ(branch.Finish().diagnostics.Count(kImpossibleDuration), 0u);
  // A long kernel of another stream.
  Maker streams;
  streams.Kernel(0, 3'000 * kUs, kNoInt, 8);
  for (int64_t i = 1; i < 40; ++i) streams.Kernel(50 * kUs * i, 20 * kUs);
  EXPECT_EQ(streams.Finish().diagnostics.Count(kImpossibleDuration), 0u);
  // Tracks of a format whose events nest are no streams.
  Maker nested;
  for (int64_t i = 0; i < 20; ++i) {
    nested.Kernel(1'000 * kUs * i, 990 * kUs);
    for (int64_t k = 1; k < 9; ++k)
      nested.Kernel(1'000 * kUs * i + 100 * kUs * k, 10 * kUs, kNoInt, 7, "j");
  }
  EXPECT_EQ(nested.Finish().diagnostics.Count(kImpossibleDuration), 0u);
}

// The rule holds against a twin that looks at all pairs, on random streams.
TEST(RepairDurations, RandomStreamsKeepTheirOrderAndNothingGrows) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    Maker maker;
    std::vector<int64_t> dur;
    int64_t at = kSecond;
    const int count = 20 + static_cast<int>(random() % 60);
    for (int i = 0; i < count; ++i) {
      const int64_t usual = (1 + static_cast<int64_t>(random() % 50)) * kUs;
      dur.push_back(random() % 40 == 0 ? kSecond : usual);
      maker.Kernel(at, dur.back());
      at += usual + static_cast<int64_t>(random() % 20) * kUs;
    }
    const Trace trace = maker.Finish();
    ASSERT_EQ(trace.device_slices().size(), dur.size());
    uint64_t cut = 0;
    for (size_t i = 0; i < dur.size(); ++i) {
      const SliceId s = trace.device_slices()[i];
      ASSERT_LE(trace.Duration(s), dur[i]);
      if (trace.Duration(s) == dur[i]) continue;
      ++cut;
      // Five later events had begun and ended in it, and it ends where the
      // next begins.
      size_t inside = 0;
      for (size_t k = i + 1; k < dur.size(); ++k) {
        const SliceId other = trace.device_slices()[k];
        inside += trace.Start(other) + dur[k] <= trace.Start(s) + dur[i];
      }
      ASSERT_GE(inside, 5u);
      ASSERT_EQ(trace.End(s), trace.Start(trace.device_slices()[i + 1]));
    }
    ASSERT_EQ(trace.diagnostics.Count(kImpossibleDuration), cut);
  }
}

TEST(RepairStarts, OutliersAreLeftOut) {
  for (const int64_t off : {int64_t{0}, 9'000 * kSecond}) {
    Maker maker;
    for (int64_t i = 0; i < 60; ++i) {
      const int64_t at = 3'000 * kSecond + 100 * kUs * i;
      maker.Call("cudaLaunchKernel", at, 5 * kUs, i + 1);
      maker.Kernel(at + 10 * kUs, 80 * kUs, i + 1);
    }
    maker.Kernel(off, 10 * kUs);
    const Trace trace = maker.Finish();
    EXPECT_EQ(trace.device_slices().size(), 60u);
    EXPECT_EQ(trace.diagnostics.Count(kTimeOutlier), 1u);
    EXPECT_EQ(trace.first_ns, 3'000 * kSecond);
  }
}

TEST(RepairStarts, PausesOfTheProgramStay) {
  Maker maker;
  // A first kernel that the host launched two minutes before the rest.
  maker.Call("cudaLaunchKernel", 10 * kSecond, 5 * kUs, 1000);
  maker.Kernel(10 * kSecond + 10 * kUs, 80 * kUs, 1000);
  for (int64_t i = 0; i < 60; ++i) {
    const int64_t at = 130 * kSecond + 100 * kUs * i;
    maker.Call("cudaLaunchKernel", at, 5 * kUs, i + 1);
    maker.Kernel(at + 10 * kUs, 80 * kUs, i + 1);
  }
  const Trace trace = maker.Finish();
  EXPECT_EQ(trace.device_slices().size(), 61u);
  EXPECT_EQ(trace.diagnostics.Count(kTimeOutlier), 0u);
  // Without a host nobody can say that nothing happened there.
  Maker alone;
  alone.Kernel(10 * kSecond, 80 * kUs);
  for (int64_t i = 0; i < 60; ++i)
    alone.Kernel(130 * kSecond + 100 * kUs * i, 80 * kUs);
  EXPECT_EQ(alone.Finish().diagnostics.Count(kTimeOutlier), 0u);
}

TEST(RepairStarts, ClocksAreMovedByTheLeastThatCausalityAsks) {
  for (const int64_t off : {-12 * kUs, -35 * kUs, -100 * kSecond}) {
    const Trace trace =
        Launches(50, [&](int64_t i) { return off + (i % 7) * kUs; });
    EXPECT_GT(trace.diagnostics.Count(kClocksDisagree), 0u) << off;
    int64_t least = kSecond;
    for (const SliceId s : trace.device_slices()) {
      const int64_t launch =
          kSecond + 100 * kUs * (trace.Device(s)->correlation - 1);
      // What stood before zero was moved with all others.
      least =
          std::min(least, trace.Start(s) - trace.first_ns - (launch - kSecond));
      EXPECT_EQ(trace.Duration(s), 20 * kUs);
    }
    EXPECT_EQ(least, 0) << off;
  }
  // Days ahead: no work waits that long.
  const Trace ahead =
      Launches(50, [](int64_t) { return 3 * 86'400 * kSecond; });
  EXPECT_EQ(ahead.diagnostics.Count(kClocksDisagree), 50u);
  EXPECT_LT(Window(ahead), kSecond);
}

TEST(RepairStarts, ClocksThatAgreeStay) {
  // A microsecond or two early is how well profilers join clocks.
  const Trace fine = Launches(50, [](int64_t i) { return (i % 5 - 2) * kUs; });
  EXPECT_EQ(fine.diagnostics.Count(kClocksDisagree), 0u);
  // A full queue.
  const Trace late = Launches(50, [](int64_t i) { return 90 * kUs * (i + 1); });
  EXPECT_EQ(late.diagnostics.Count(kClocksDisagree), 0u);
}

// How much later than their launches, one each 100 us, work begins.
std::vector<int64_t> Delays(const Trace& trace) {
  std::vector<int64_t> out;
  for (const SliceId s : trace.device_slices()) {
    out.push_back(trace.Start(s) - kSecond -
                  100 * kUs * (trace.Device(s)->correlation - 1));
  }
  return out;
}

TEST(RepairStarts, ADriftIsTakenOut) {
  std::mt19937 random(7);
  for (const int64_t drift_ns : {-1500, -600, 400, 1900}) {
    // An idle device in one launch of three.
    std::vector<int64_t> truth;
    for (int i = 0; i < 90; ++i)
      truth.push_back(i % 3 == 0 ? 0
                                 : static_cast<int64_t>(random() % 30) * kUs);
    const Trace trace = Launches(90, [&](int64_t i) {
      return truth[static_cast<size_t>(i)] - 40 * kUs +
             drift_ns * (drift_ns < 0 ? i : i - 89);
    });
    EXPECT_GT(trace.diagnostics.Count(kClocksDisagree), 0u);
    EXPECT_EQ(trace.diagnostics.Count(kClocksDrift), 1u);
    const std::vector<int64_t> delays = Delays(trace);
    for (size_t i = 0; i < delays.size(); ++i)
      EXPECT_NEAR(delays[i], truth[i], 2 * kUs) << drift_ns << " at " << i;
    for (const SliceId s : trace.device_slices())
      EXPECT_EQ(trace.Duration(s), 20 * kUs);
  }
}

TEST(RepairStarts, AQueueThatGrowsIsNoDrift) {
  // The clock is off by 30 us, and from the middle on the device falls behind.
  const Trace trace = Launches(60, [](int64_t i) {
    return -30 * kUs + std::max<int64_t>(0, i - 30) * 20 * kUs;
  });
  EXPECT_GT(trace.diagnostics.Count(kClocksDisagree), 0u);
  const std::vector<int64_t> delays = Delays(trace);
  for (size_t i = 0; i < delays.size(); ++i) {
    EXPECT_EQ(delays[i],
              std::max<int64_t>(0, static_cast<int64_t>(i) - 30) * 20 * kUs);
  }
}

TEST(RepairStarts, WorkOfAStreamStaysInOrderWhereAClockDrifts) {
  // Work without a gap, on a clock that is 1 % fast.
  Maker maker;
  for (int64_t i = 0; i < 90; ++i) {
    const int64_t at = kSecond + 100 * kUs * i;
    maker.Call("cudaLaunchKernel", at, 5 * kUs, i + 1);
    maker.Kernel(at + (i - 90) * kUs, 101 * kUs, i + 1);
  }
  const Trace trace = maker.Finish();
  EXPECT_EQ(trace.diagnostics.Count(kClocksDrift), 1u);
  SliceId before;
  for (const SliceId s : trace.device_slices()) {
    if (before.valid()) {
      EXPECT_GE(trace.Start(s), trace.End(before));
    }
    EXPECT_EQ(trace.Duration(s), 101 * kUs);
    before = s;
  }
  for (const int64_t delay : Delays(trace)) EXPECT_GE(delay, 0);
}

TEST(RepairStarts, WorkAfterItsSynchronisationIsLate) {
  Maker maker;
  for (int64_t i = 0; i < 30; ++i) {
    const int64_t at = kSecond + 200 * kUs * i;
    maker.Call("cudaLaunchKernel", at, 5 * kUs, i + 1);
    // It ran 40 us later than it can have.
    maker.Kernel(at + 10 * kUs + 40 * kUs, 50 * kUs, i + 1);
    maker.Call("cudaDeviceSynchronize", at + 10 * kUs, 52 * kUs, 1000 + i);
  }
  const Trace trace = maker.Finish();
  EXPECT_GT(trace.diagnostics.Count(kClocksDisagree), 0u);
  for (const SliceId s : trace.device_slices()) {
    const int64_t at = kSecond + 200 * kUs * (trace.Device(s)->correlation - 1);
    EXPECT_LE(trace.End(s), at + 62 * kUs);
    EXPECT_GE(trace.Start(s), at);
  }
}

TEST(Builder, NegativeTimesStayAsTheyAre) {
  Maker maker;
  for (int64_t i = 0; i < 6; ++i)
    maker.Kernel(-5'000 * kUs + 200 * kUs * i, 100 * kUs);
  const Trace trace = maker.Finish();
  EXPECT_EQ(trace.first_ns, -5'000 * kUs);
  EXPECT_EQ(Window(trace), 1'100 * kUs);
  EXPECT_EQ(trace.diagnostics.Count("negative_times"), 6u);
}

TEST(Builder, ZeroThatMeansNotRecordedIsNoMeasure) {
  LocalNames names;
  Segment segment(&names);
  LaunchConfig config;
  config.registers_per_thread = 0;
  config.shared_memory_bytes = 0;
  config.occupancy_pct = 0;
  DeviceArgs args;
  args.config = names.InternConfig(config);
  segment.AddSlice(0, 10, names.Intern("k"), Kind::kKernel,
                   names.InternCategory("kernel"),
                   names.InternTrack(names.Intern("0"), names.Intern("7")), 0,
                   segment.AddDevice(args));
  segment.next_uid = 1;
  segment.Seal();
  TraceBuilder builder;
  builder.Append(segment);
  DeviceInfo device;
  device.sm_count = 0;
  device.clock_khz = 0;
  device.memory_bandwidth_bytes_per_s = 0;
  builder.info().devices.push_back(device);
  const Trace trace = builder.Finish(1);
  EXPECT_EQ(trace.configs[0].registers_per_thread, kNoInt);
  EXPECT_EQ(trace.configs[0].occupancy_pct, -1);
  EXPECT_EQ(trace.info.devices[0].sm_count, kNoInt);
  EXPECT_EQ(trace.info.devices[0].clock_khz, kNoInt);
}

}  // namespace
}  // namespace lamina::trace
