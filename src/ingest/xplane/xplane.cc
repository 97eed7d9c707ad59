// SPDX-License-Identifier: Apache-2.0
//
// Reader of XPlane files: what the XLA profiler writes for JAX, TensorFlow and
// PyTorch/XLA. See README.md in this folder for the format.
#include <fmt/core.h>

#include "ingest/xplane/lines.h"
#include "ingest/xplane/programs.h"
#include "ingest/xplane/reader.h"
#include "ingest/xplane/rows.h"
#include "ingest/xplane/xspace.h"

namespace lamina::ingest::xplane {

using protobuf::Stream;
using protobuf::Walker;
using trace::Effect;
using trace::kNoInt;

namespace {

// A file is one message whose fields are planes (1) and texts (2 to 4). The
// head must hold the start of a plane with a name, or lines.
int Sniff(const Probe& probe) {
  if (probe.directory) return 0;
  std::string_view head = probe.head;
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

void ReadDevice(const Plane& plane, trace::Info& info) {
  const PlaneKind kind = PlaneKindOf(plane.name);
  if (kind != PlaneKind::kGpu && kind != PlaneKind::kTpu) return;
  std::deque<std::string> unpacked;
  Stats stats;
  plane.AddStats(plane.stats, stats, unpacked);
  trace::DeviceInfo device;
  device.id = DeviceNumber(plane.name);
  device.name = stats.Text(StatKey::kDeviceTypeString);
  device.memory_bytes = stats.Int(StatKey::kMemorySize);
  device.compute_major = stats.Int(StatKey::kComputeMajor);
  device.compute_minor = stats.Int(StatKey::kComputeMinor);
  device.sm_count = stats.Int(StatKey::kCoreCount);
  device.clock_khz = stats.Int(StatKey::kClockRate);
  device.memory_bandwidth_bytes_per_s = stats.Int(StatKey::kMemoryBandwidth);
  for (const trace::DeviceInfo& known : info.devices) {
    if (known.id == device.id) return;
  }
  info.devices.push_back(std::move(device));
}

int64_t ProfileStart(const Space& space) {
  for (const Plane& plane : space.planes) {
    if (plane.name != "Task Environment") continue;
    std::deque<std::string> unpacked;
    Stats stats;
    plane.AddStats(plane.stats, stats, unpacked);
    const int64_t start = stats.Int(StatKey::kProfileStart);
    if (start != kNoInt && trace::IsUsableTime(start)) return start;
  }
  return kNoInt;
}

void Facts(const Space& space, const Programs& programs,
           trace::TraceBuilder& builder) {
  trace::Diagnostics& diagnostics = builder.diagnostics();
  if (space.errors > 0) {
    diagnostics.Add(Effect::kOddity, "profiler_errors",
                    "The profiler reported errors, the first: " +
                        space.first_error.substr(0, 300),
                    trace::Diagnostics::kNoOffset, space.errors);
  }
  if (space.warnings > 0) {
    diagnostics.Add(Effect::kInfo, "profiler_warnings",
                    "The profiler reported warnings.",
                    trace::Diagnostics::kNoOffset, space.warnings);
  }
  uint64_t idle = 0;
  for (const Plane& plane : space.planes) {
    ReadDevice(plane, builder.info());
    const PlaneKind kind = PlaneKindOf(plane.name);
    idle += (kind == PlaneKind::kGpu || kind == PlaneKind::kTpu) &&
            plane.lines == 0;
  }
  if (idle > 0) {
    diagnostics.Add(Effect::kInfo, "devices_without_events",
                    "Devices of the host that recorded nothing.",
                    trace::Diagnostics::kNoOffset, idle);
  }
  if (programs.empty()) {
    diagnostics.Add(Effect::kInfo, "no_programs",
                    "The file holds no HLO: no shapes, FLOPs, scopes or "
                    "source lines.");
  }
}

Result<trace::Trace> Read(const std::string& path, const ReadOptions& options) {
  return ReadXplane([&] { return OpenByteSource(path); }, options);
}

}  // namespace

Result<trace::Trace> ReadXplane(const OpenSource& open,
                                const ReadOptions& options) {
  trace::TraceBuilder builder;
  trace::LocalNames names;
  Space space;
  std::string path;
  {
    const ScopedStage stage(options.times, "read");
    LAMINA_ASSIGN(const auto source, open());
    path = source->name();
    builder.info().format = "xplane";
    builder.info().file = path;
    builder.info().file_bytes = source->stored_size();
    builder.info().plain = source->plain();
    LAMINA_ASSIGN(space, ReadPlanes(*source, builder.diagnostics()));
    if (const auto damage = source->damage()) {
      builder.diagnostics().Add(
          Effect::kLost, "input_damaged",
          "The packed file is damaged: " + damage->what + ".", damage->offset);
    }
  }
  if (space.planes.empty()) {
    return Fail(InputErrorAt(path, 0, "the file holds no plane of a profile",
                             "give the .xplane.pb that the XLA profiler "
                             "wrote"));
  }
  builder.info().input_bytes = space.bytes;

  Programs programs(&names);
  size_t damaged = 0;
  for (Plane& plane : space.planes) {
    if (plane.name != "/host:metadata") continue;
    damaged += programs.Add(plane);
    plane.event_names.clear();
  }
  if (damaged > 0) {
    builder.diagnostics().Add(Effect::kLost, "program_damaged",
                              "Programs (HloProto) that cannot be read.",
                              trace::Diagnostics::kNoOffset, damaged);
  }
  Facts(space, programs, builder);
  const int64_t start = ProfileStart(space);
  if (start != kNoInt) builder.info().base_time_ns = start;

  Rows rows(&builder, &names);
  Pending pending;
  uint64_t events = 0;
  {
    const ScopedStage stage(options.times, "events");
    LAMINA_ASSIGN(const auto source, open());
    Stream stream(*source);
    LineReader lines(&rows, &programs, &pending, &builder.diagnostics(),
                     start == kNoInt ? 0 : start);
    size_t next = 0;
    while (next < space.planes.size() && stream.Next()) {
      if (stream.field().number != 1 || !stream.field().IsBytes()) continue;
      const Plane& plane = space.planes[next++];
      stream.Enter();
      lines.ReadPlane(stream, plane);
      if (stream.damage() && !stream.Recover()) break;
      stream.Leave();
      if (options.progress)
        options.progress(source->stored_position(), source->stored_size());
    }
    if (!stream.status()) return Fail(stream.status().error());
    events = lines.events();
  }
  space.planes.clear();
  const ScopedStage stage(options.times, "index");
  EmitPending(pending, programs, rows);
  pending = Pending();
  trace::Trace trace = builder.Finish(options.threads);
  trace.info.events = events;
  if (trace.slices.size() == 0 && trace.instants.size() == 0) {
    uint64_t offset = 0;
    std::string why = "the profile has no event";
    for (const trace::Diagnostic& d : trace.diagnostics.Sorted()) {
      if (d.effect != Effect::kLost) continue;
      why += " (" + d.text.substr(0, d.text.size() - 1) + ")";
      if (!d.first_offsets.empty()) offset = d.first_offsets[0];
      break;
    }
    return Fail(InputErrorAt(path, offset, why,
                             "record again and wait until the profiler has "
                             "written the file"));
  }
  return trace;
}

FormatInfo Format() {
  return {"xplane", "XLA profiler .xplane.pb",
          "HLO ops, FLOPs, scopes, kernels", &Sniff, &Read};
}

}  // namespace lamina::ingest::xplane
