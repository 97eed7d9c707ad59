// SPDX-License-Identifier: Apache-2.0
//
// Reader of XPlane files: what the XLA profiler writes for JAX, TensorFlow and
// PyTorch/XLA. See README.md in this folder for the format.
#include <absl/container/flat_hash_set.h>

#include "base/escape.h"
#include "ingest/common/input.h"
#include "ingest/common/record_reader.h"
#include "ingest/xplane/cutter.h"
#include "ingest/xplane/events.h"
#include "ingest/xplane/reader.h"
#include "ingest/xplane/rows.h"
#include "ingest/xplane/runs.h"

namespace lamina::ingest::xplane {

using protobuf::Stream;
using protobuf::Walker;
using trace::Effect;
using trace::kNoInt;

namespace {

// A file is one message whose fields are planes (1) and texts (2 to 4). The
// head must hold the start of a plane with a name, or lines.
int Sniff(const Input& input) {
  if (input.directory()) return 0;
  std::string_view head = input.head();
  if (head.empty()) return 0;
  const char* at = head.data();
  const char* const end = head.data() + head.size();
  int planes = 0;
  while (at < end) {
    uint64_t tag = 0;
    uint64_t size = 0;
    if (protobuf::ReadVarint(&at, end, &tag) != nullptr ||
        protobuf::ReadVarint(&at, end, &size) != nullptr)
      break;
    if ((tag & 7) != 2 || tag >> 3 < 1 || tag >> 3 > 4) return 0;
    const auto left = static_cast<uint64_t>(end - at);
    const std::string_view body(at, std::min(size, left));
    if (tag >> 3 == 1) {
      // What fits of the plane: id, name, lines.
      bool name = false;
      for (Walker walk(body); walk.Next();) {
        if (walk->number == 0 || walk->number > 6) return 0;
        if (walk->number == 2 && walk->IsBytes())
          name = PlaneKindOf(walk->bytes) != PlaneKind::kSkipped ||
                 walk->bytes.starts_with("/");
        if (name) break;
      }
      if (name) return 95;
      ++planes;
    }
    if (size > left) break;
    at += size;
  }
  return 0;
}

// What must be known of the whole file before its events can be read:
// programs, devices, the time at which profiling began.
class Facts {
 public:
  Facts(Programs* programs, trace::TraceBuilder* builder)
      : programs_(*programs), builder_(*builder) {}

  static Tables Wanted(std::string_view plane) {
    if (plane == kPrograms) return Tables::kAll;
    return IsDevice(plane) || plane == kSettings ? Tables::kStats
                                                 : Tables::kNone;
  }

  void Add(const Plane& plane) {
    ++planes_;
    if (plane.name == kPrograms) damaged_ += programs_.Add(plane);
    if (plane.name == kSettings) ReadStart(plane);
    if (!IsDevice(plane.name)) return;
    idle_ += plane.lines == 0;
    ReadDevice(plane);
  }

  // Says what is missing, once all planes are there.
  void Note(const PlaneReader& planes) {
    Count(Effect::kLost, "program_damaged",
          "Programs (HloProto) that cannot be read.", damaged_);
    Count(Effect::kOddity, "profiler_errors",
          "The profiler reported errors, the first: " +
              planes.first_error().substr(0, 300),
          planes.errors());
    Count(Effect::kInfo, "profiler_warnings", "The profiler reported warnings.",
          planes.warnings());
    Count(Effect::kInfo, "devices_without_events",
          "Devices of the host that recorded nothing.", idle_);
    Count(Effect::kInfo, "no_programs",
          "The file holds no HLO: no shapes, FLOPs, scopes or source lines.",
          programs_.empty() ? 1 : 0);
  }

  uint64_t planes() const { return planes_; }
  int64_t start_ns() const { return start_ns_; }  // kNoInt: not recorded

 private:
  static constexpr std::string_view kPrograms = "/host:metadata";
  static constexpr std::string_view kSettings = "Task Environment";

  static bool IsDevice(std::string_view plane) {
    const PlaneKind kind = PlaneKindOf(plane);
    return kind == PlaneKind::kGpu || kind == PlaneKind::kTpu;
  }

  void Count(Effect effect, std::string_view reason, std::string_view text,
             uint64_t count) {
    if (count == 0) return;
    builder_.diagnostics().Add(effect, reason, text,
                               trace::Diagnostics::kNoOffset, count);
  }

  void ReadStart(const Plane& plane) {
    std::deque<std::string> unpacked;
    Stats stats;
    plane.AddStats(plane.stats, stats, unpacked);
    const int64_t start = stats.Int(StatKey::kProfileStart);
    if (start_ns_ == kNoInt && start != kNoInt && trace::IsUsableTime(start))
      start_ns_ = start;
  }

  void ReadDevice(const Plane& plane) {
    std::deque<std::string> unpacked;
    Stats stats;
    plane.AddStats(plane.stats, stats, unpacked);
    trace::DeviceInfo device;
    device.id = DeviceNumber(plane.name);
    if (!devices_.insert(device.id).second) return;
    device.name = stats.Text(StatKey::kDeviceTypeString);
    device.memory_bytes = stats.Int(StatKey::kMemorySize);
    device.compute_major = stats.Int(StatKey::kComputeMajor);
    device.compute_minor = stats.Int(StatKey::kComputeMinor);
    device.sm_count = stats.Int(StatKey::kCoreCount);
    device.clock_khz = stats.Int(StatKey::kClockRate);
    device.memory_bandwidth_bytes_per_s = stats.Int(StatKey::kMemoryBandwidth);
    builder_.info().devices.push_back(std::move(device));
  }

  Programs& programs_;
  trace::TraceBuilder& builder_;
  absl::flat_hash_set<int64_t> devices_;
  uint64_t planes_ = 0, damaged_ = 0, idle_ = 0;
  int64_t start_ns_ = kNoInt;
};

Status ReadFacts(const OpenSource& open, Facts& facts,
                 trace::TraceBuilder& builder) {
  LAMINA_ASSIGN(const auto source, open());
  builder.info().format = "xplane";
  builder.info().file = source->name();
  builder.info().file_bytes = source->stored_size();
  builder.info().plain = source->plain();
  PlaneReader planes(*source, &Facts::Wanted, &builder.diagnostics());
  for (Plane plane; planes.Next(plane);) facts.Add(plane);
  LAMINA_TRY(planes.status());
  builder.info().input_bytes = planes.bytes();
  if (const auto damage = source->damage()) {
    builder.diagnostics().Add(
        Effect::kLost, "input_damaged",
        "The packed file is damaged: " + damage->what + ".", damage->offset);
  }
  if (facts.planes() == 0) {
    return Fail(InputErrorAt(source->name(), 0,
                             "the file holds no plane of a profile",
                             "give the .xplane.pb that the XLA profiler "
                             "wrote"));
  }
  facts.Note(planes);
  for (const std::string& host : planes.hosts())
    builder.info().properties.emplace_back("hostname", JsonQuote(host));
  return {};
}

// The second pass: threads parse what one of them cuts.
Status ReadEvents(const OpenSource& open, const ReadOptions& options,
                  trace::TraceBuilder& builder, int64_t start_ns,
                  Shared& shared, Pending& pending) {
  LAMINA_ASSIGN(const auto ahead, open());
  LAMINA_ASSIGN(const auto source, open());
  EventCutter cutter(*ahead, *source, &shared, &pending, start_ns);
  const auto next = [&](Chunk& chunk) {
    auto more = cutter.Next(chunk);
    if (options.progress)
      options.progress(source->stored_position(), source->stored_size());
    return more;
  };
  std::deque<Pending> of_threads;
  LAMINA_TRY(ReadChunks(next, options, builder, [&] {
    return std::make_unique<EventParser>(&cutter, &shared,
                                         &of_threads.emplace_back());
  }));
  for (Pending& rows : of_threads) pending.Join(rows);
  builder.diagnostics().Merge(cutter.diagnostics());
  return {};
}

Result<trace::Trace> Read(Input& input, const ReadOptions& options) {
  // Names stand behind the events that use them: the bytes are read twice.
  LAMINA_TRY(input.Keep());
  return ReadXplane([&] { return input.Open(); }, options);
}

}  // namespace

Result<trace::Trace> ReadXplane(const OpenSource& open,
                                const ReadOptions& options) {
  trace::TraceBuilder builder;
  trace::LocalNames names;
  Shared shared(&names);
  Facts facts(&shared.programs, &builder);
  {
    const ScopedStage stage(options.times, "read");
    LAMINA_TRY(ReadFacts(open, facts, builder));
  }
  const int64_t start_ns = facts.start_ns();
  if (start_ns != kNoInt) builder.info().base_time_ns = start_ns;

  Pending pending;
  {
    const ScopedStage stage(options.times, "events");
    LAMINA_TRY(ReadEvents(open, options, builder,
                          start_ns == kNoInt ? 0 : start_ns, shared, pending));
  }
  const ScopedStage stage(options.times, "index");
  Rows rows(&builder, &names);
  EmitPending(pending, shared.programs, rows);
  const uint64_t events = pending.events;
  pending = Pending();
  trace::Trace trace = builder.Finish(options.threads);
  trace.info.events = events;
  if (trace.slices.size() == 0 && trace.instants.size() == 0)
    return Fail(NothingRead(trace, "the profile has no event",
                            "record again and wait until the profiler has "
                            "written the file"));
  return trace;
}

FormatInfo Format() {
  return {"xplane",
          "XLA profiler .xplane.pb",
          "HLO ops, FLOPs, scopes, kernels",
          &Sniff,
          &Read,
          "values of arguments; the time of loops on GPUs, whose kernels name "
          "the instruction inside; occupancy on ROCm."};
}

}  // namespace lamina::ingest::xplane
