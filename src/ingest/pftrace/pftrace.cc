// SPDX-License-Identifier: Apache-2.0
//
// Reader of Perfetto traces: what rocprofv3, PyTorch, Chrome, programs with the
// Perfetto SDK and this program write. See README.md in this folder.
#include <absl/container/flat_hash_map.h>
#include <fmt/core.h>

#include "base/protobuf/wire.h"
#include "ingest/common/input.h"
#include "ingest/pftrace/events.h"
#include "ingest/pftrace/reader.h"
#include "ingest/pftrace/sequences.h"

namespace lamina::ingest::pftrace {

using protobuf::Field;
using protobuf::Stream;
using protobuf::Walker;
using trace::Effect;

namespace {

// No writer makes packets this long: a file that claims one is damaged.
constexpr size_t kMaxPacket = size_t{1} << 28;
constexpr int kMaxNesting = 2;

// Fields of a packet that the reader uses, as they stand.
struct Packet {
  uint64_t timestamp = 0;
  uint64_t clock = 0;
  uint64_t sequence = 0;
  uint64_t flags = 0;
  bool has_time = false, has_clock = false, cleared = false, dropped = false;
  std::optional<Field> interned, defaults, snapshot, event, descriptor, stage,
      process, thread, stats, deflated, zstd;
};

class Reader {
 public:
  Reader(trace::TraceBuilder* builder, trace::LocalNames* names,
         const ReadOptions& options)
      : names_(*names), options_(options), events_(builder, names) {}

  // All packets of a source; `offset` is that of its packet for those inside
  // a compressed one.
  Status Read(ByteSource& source, int depth, uint64_t offset) {
    Stream stream(source);
    while (!options_.Stopped() && stream.Next()) {
      const Field field = stream.field();
      if (field.number != 1 || !field.IsBytes()) continue;
      if (!stream.Take(kMaxPacket)) {
        if (!stream.damage()) {
          events_.Lost("packet_too_long", "A packet is longer than 256 MiB.",
                       field.offset);
        }
        continue;
      }
      const uint64_t place = depth == 0 ? field.offset : offset;
      Walker walk(stream.bytes(), place);
      LAMINA_TRY(ReadPacket(walk, place, depth));
      if ((++packets_ & 0xFFFF) == 0 && options_.progress && depth == 0)
        options_.progress(source.stored_position(), source.stored_size());
    }
    if (stream.damage()) {
      events_.Lost("trace_cut",
                   std::string("The trace is not read to its end: ") +
                       stream.damage().what + ".",
                   depth == 0 ? stream.damage().offset : offset);
    }
    if (!stream.status()) return Fail(stream.status().error());
    if (depth == 0) bytes_ = stream.offset();
    return {};
  }

  void Finish() { events_.Finish(); }
  uint64_t packets() const { return packets_; }
  uint64_t bytes() const { return bytes_; }

 private:
  Status ReadPacket(Walker& walk, uint64_t offset, int depth) {
    Packet packet;
    while (walk.Next()) Note(walk.field(), packet);
    if (walk.damage()) {
      events_.Lost(
          "packet_damaged",
          std::string("A packet cannot be read: ") + walk.damage().what + ".",
          walk.damage().offset);
      return {};
    }
    if (packet.deflated || packet.zstd) {
      if (depth >= kMaxNesting) {
        events_.Lost("packets_in_packets",
                     "Compressed packets are nested too deep.", offset);
        return {};
      }
      const Field& body = packet.deflated ? *packet.deflated : *packet.zstd;
      auto source = packet.deflated ? OpenDeflated("packet", body.bytes)
                                    : OpenMemory("packet", body.bytes);
      if (!source) {
        events_.Lost("packet_damaged", "A compressed packet cannot be read.",
                     offset);
        return {};
      }
      LAMINA_TRY(Read(**source, depth + 1, offset));
      if ((*source)->damage()) {
        events_.Lost("packet_damaged",
                     "A compressed packet is damaged: " +
                         (*source)->damage()->what + ".",
                     offset);
      }
      return {};
    }
    Apply(packet, offset);
    return {};
  }

  static void Note(const Field& field, Packet& packet) {
    switch (field.number) {
      case 6:
        if (field.IsBytes()) packet.snapshot = field;
        break;
      case 8:
        packet.timestamp = field.value;
        packet.has_time = true;
        break;
      case 10:
        packet.sequence = field.value;
        break;
      case 11:
        if (field.IsBytes()) packet.event = field;
        break;
      case 12:
        if (field.IsBytes()) packet.interned = field;
        break;
      case 13:
        packet.flags = field.value;
        break;
      case 35:
        if (field.IsBytes()) packet.stats = field;
        break;
      case 41:
        packet.cleared = field.value != 0;
        break;
      case 42:
        packet.dropped = field.value != 0;
        break;
      case 43:
        if (field.IsBytes()) packet.process = field;
        break;
      case 44:
        if (field.IsBytes()) packet.thread = field;
        break;
      case 50:
        if (field.IsBytes()) packet.deflated = field;
        break;
      case 53:
        if (field.IsBytes()) packet.stage = field;
        break;
      case 58:
        packet.clock = field.value;
        packet.has_clock = true;
        break;
      case 59:
        if (field.IsBytes()) packet.defaults = field;
        break;
      case 60:
        if (field.IsBytes()) packet.descriptor = field;
        break;
      case 133:
        if (field.IsBytes()) packet.zstd = field;
        break;
      default:
        break;
    }
  }

  void Apply(const Packet& packet, uint64_t offset) {
    Sequence& sequence = SequenceOf(packet.sequence);
    if ((packet.flags & 1) != 0 || packet.cleared) {
      sequence.Clear();
    } else if (packet.dropped) {
      sequence.valid = false;
      events_.Lost("packets_dropped",
                   "The recorder lost packets of a writer; its events up to "
                   "the next fresh start cannot be read.",
                   offset);
    }
    if (packet.snapshot) clocks_.Snapshot(packet.sequence, *packet.snapshot);
    if (packet.defaults) Defaults(*packet.defaults, sequence);
    if (packet.interned) sequence.Intern(*packet.interned, names_);
    if (packet.descriptor) events_.tracks().Describe(*packet.descriptor);
    if (packet.process) events_.tracks().DescribeProcess(*packet.process);
    if (packet.thread) {
      const uint64_t track = events_.tracks().DescribeThread(*packet.thread);
      if (sequence.track == 0) sequence.track = track;
    }
    if (packet.stats) BufferLosses(*packet.stats, offset);
    if (!packet.event && !packet.stage) return;
    const uint64_t clock = packet.has_clock ? packet.clock : sequence.clock;
    // Events after a loss are skipped, but an incremental clock goes on.
    const auto time_ns =
        clocks_.ToBoot(packet.sequence, clock, packet.timestamp);
    if (!sequence.valid && (packet.flags & 2) != 0) {
      events_.Lost("event_after_loss",
                   "An event needs tables that were lost with other packets.",
                   offset);
      return;
    }
    if (!packet.has_time || !time_ns) {
      events_.Lost("event_without_time",
                   "An event has no time, or one of a clock that nothing "
                   "relates to the others.",
                   offset);
      return;
    }
    if (packet.event) events_.Event(*packet.event, *time_ns, sequence, offset);
    if (packet.stage) events_.Stage(*packet.stage, *time_ns, sequence, offset);
  }

  static void Defaults(const Field& defaults, Sequence& sequence) {
    for (Walker walk(defaults); walk.Next();) {
      if (walk->number == 58) sequence.clock = walk->value;
      if (walk->number != 11 || !walk->IsBytes()) continue;
      for (Walker inner(walk.field()); inner.Next();) {
        if (inner->number == 11) sequence.track = inner->value;
        if (inner->number == 31) {
          ForEachVarint(inner.field(), [&](uint64_t uuid) {
            sequence.counters.push_back(uuid);
          });
        }
      }
    }
  }

  // TraceStats { repeated BufferStats 1 { 3 overwritten chunks, ... 14 lost }
  // }.
  void BufferLosses(const Field& stats, uint64_t offset) {
    for (Walker walk(stats); walk.Next();) {
      if (walk->number != 1 || !walk->IsBytes()) continue;
      for (Walker buffer(walk.field()); buffer.Next();) {
        if ((buffer->number == 3 || buffer->number == 18) &&
            buffer->IsNumber() && buffer->value > 0) {
          events_.Lost("buffer_overwritten",
                       "The recorder's buffer was too small: early or late "
                       "events are missing.",
                       offset);
          return;
        }
      }
    }
  }

  Sequence& SequenceOf(uint64_t id) {
    if (last_ != nullptr && last_id_ == id) return *last_;
    auto& slot = sequences_[id];
    if (slot == nullptr) slot = std::make_unique<Sequence>();
    last_id_ = id;
    return *(last_ = slot.get());
  }

  trace::LocalNames& names_;
  const ReadOptions& options_;
  EventReader events_;
  Clocks clocks_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Sequence>> sequences_;
  uint64_t last_id_ = 0;
  Sequence* last_ = nullptr;
  uint64_t packets_ = 0;
  uint64_t bytes_ = 0;
};

// Every packet is `0a <length> <packet>`. The first few must look like packets:
// known field numbers with their types.
int Sniff(const Input& input) {
  if (input.directory()) return 0;
  const char* at = input.head().data();
  const char* const end = at + input.head().size();
  int good = 0;
  while (at < end && good < 8) {
    if (*at != '\x0A') return 0;
    ++at;
    uint64_t size = 0;
    if (protobuf::ReadVarint(&at, end, &size) != nullptr) break;
    const auto left = static_cast<uint64_t>(end - at);
    const std::string_view body(at, static_cast<size_t>(std::min(size, left)));
    Walker walk(body);
    bool sequence = false;
    while (walk.Next()) {
      const bool bytes = walk->IsBytes();
      switch (walk->number) {
        case 8:
        case 13:
        case 58:
          if (bytes) return 0;
          break;
        case 10:
          if (bytes) return 0;
          sequence = true;
          break;
        case 6:
        case 11:
        case 12:
        case 36:
        case 50:
        case 59:
        case 60:
        case 133:
          if (!bytes) return 0;
          sequence = true;
          break;
        // Planes of other profiles begin with these.
        case 1:
        case 2:
          return 0;
        default:
          break;
      }
    }
    if (size > left) break;
    if (walk.damage()) return 0;
    good += sequence;
    at += size;
  }
  return good > 0 ? std::min(94, 60 + 10 * good) : 0;
}

Result<trace::Trace> Read(Input& input, const ReadOptions& options) {
  LAMINA_ASSIGN(auto source, input.Open());
  return ReadPftrace(std::move(source), options);
}

}  // namespace

Result<trace::Trace> ReadPftrace(std::unique_ptr<ByteSource> source,
                                 const ReadOptions& options) {
  const std::string path = source->name();
  trace::TraceBuilder builder;
  trace::LocalNames names;
  builder.info().format = "pftrace";
  builder.info().file = path;
  builder.info().file_bytes = source->stored_size();
  builder.info().plain = source->plain();
  uint64_t packets = 0;
  {
    const ScopedStage stage(options.times, "read");
    Reader reader(&builder, &names, options);
    LAMINA_TRY(reader.Read(*source, 0, 0));
    reader.Finish();
    packets = reader.packets();
    builder.info().input_bytes = reader.bytes();
  }
  if (const auto damage = source->damage()) {
    builder.diagnostics().Add(
        Effect::kLost, "input_damaged",
        "The packed file is damaged: " + damage->what + ".", damage->offset);
  }
  const ScopedStage stage(options.times, "index");
  trace::Trace trace = builder.Finish(options.threads);
  if (trace.slices.size() == 0 && trace.instants.size() == 0 &&
      trace.counters.size() == 0) {
    return Fail(NothingRead(
        trace, fmt::format("none of the {} packets is a track event", packets),
        "record with track events or GPU stages"));
  }
  return trace;
}

FormatInfo Format() {
  return {
      "pftrace",
      "Perfetto .pftrace",
      "spans, kernels, flows, counters",
      &Sniff,
      &Read,
      "values of tensors; measured FLOPs and memory traffic of kernels; from "
      "rocprofv3 also ops and shapes, the second and third extent of a grid "
      "and when a kernel ends that overlaps the next one of its queue.",
      true};
}

}  // namespace lamina::ingest::pftrace
