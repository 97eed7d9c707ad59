// SPDX-License-Identifier: Apache-2.0
#include "emit/perfetto/packets.h"

namespace lamina::emit::perfetto {

using protobuf::Encoder;

namespace {

// TracePacket
constexpr uint32_t kClockSnapshot = 6;
constexpr uint32_t kTimestamp = 8;
constexpr uint32_t kSequenceId = 10;
constexpr uint32_t kTrackEvent = 11;
constexpr uint32_t kInternedData = 12;
constexpr uint32_t kSequenceFlags = 13;
constexpr uint32_t kDefaults = 59;
constexpr uint32_t kTrackDescriptor = 60;

constexpr uint64_t kSequence = 1;
constexpr uint64_t kStateCleared = 1;
constexpr uint64_t kNeedsState = 2;
constexpr uint64_t kBootClock = 6;
constexpr uint64_t kDeltaClock = 64;

// Fields of InternedData, by table.
constexpr uint32_t kTableFields[] = {1, 2, 3, 29};

constexpr uint64_t kMaxInterned = uint64_t{64} << 20;

enum EventType { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

}  // namespace

uint64_t TrackUuid(std::initializer_list<std::string_view> parts) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](uint64_t byte) {
    hash = (hash ^ byte) * 0x100000001b3;
  };
  for (const std::string_view part : parts) {
    for (const char c : part) add(static_cast<unsigned char>(c));
    for (size_t size = part.size(), i = 0; i < sizeof(size); ++i, size >>= 8)
      add(size & 255);
  }
  return hash == 0 ? 1 : hash;
}

PacketWriter::PacketWriter(ByteSink* sink, int64_t first_ns)
    : sink_(*sink), last_ns_(first_ns) {}

void PacketWriter::Packet() {
  frame_.Clear();
  frame_.Bytes(1, packet_.bytes());
  sink_.Write(frame_.bytes());
  packet_.Clear();
  ++packets_;
}

// Opens the sequence, or clears its tables: they start anew, and so does the
// clock.
void PacketWriter::StartSequence(int64_t time_ns) {
  for (auto& table : tables_) table.clear();
  interned_bytes_ = 0;
  packet_.Varint(kSequenceId, kSequence);
  packet_.Varint(kSequenceFlags, kStateCleared);
  packet_.Int(kTimestamp, time_ns);
  packet_.Varint(58, kBootClock);
  Encoder snapshot;
  for (const uint64_t clock : {kBootClock, kDeltaClock}) {
    Encoder body;
    body.Varint(1, clock);
    body.Int(2, time_ns);
    if (clock == kDeltaClock) body.Varint(3, 1);  // incremental
    snapshot.Bytes(1, body.bytes());
  }
  snapshot.Varint(2, kBootClock);
  packet_.Bytes(kClockSnapshot, snapshot.bytes());
  Encoder defaults;
  defaults.Varint(58, kDeltaClock);
  packet_.Bytes(kDefaults, defaults.bytes());
  Packet();
  last_ns_ = time_ns;
  started_ = true;
}

uint64_t PacketWriter::Intern(Table table, std::string_view text) {
  auto& known = tables_[table];
  const auto it = known.find(text);
  if (it != known.end()) return it->second;
  const uint64_t id = known.size() + 1;
  known.emplace(text, id);
  interned_bytes_ += text.size();
  part_.Clear();
  part_.Varint(1, id);
  part_.Bytes(2, text);
  interned_.Bytes(kTableFields[table], part_.bytes());
  return id;
}

void PacketWriter::AddArgs(std::span<const Arg> args) {
  for (const Arg& arg : args) {
    const uint64_t name = Intern(kArgNames, arg.name);
    const bool is_text =
        arg.type == Arg::Type::kText || arg.type == Arg::Type::kJson;
    const uint64_t text = is_text ? Intern(kTexts, arg.text) : 0;
    inner_.Clear();
    inner_.Varint(1, name);
    switch (arg.type) {
      case Arg::Type::kInt:
        inner_.Int(4, arg.integer);
        break;
      case Arg::Type::kReal:
        inner_.Double(5, arg.real);
        break;
      case Arg::Type::kText:
      case Arg::Type::kJson:
        inner_.Varint(17, text);
        break;
      case Arg::Type::kInts:
        for (const int64_t value : arg.list) {
          part_.Clear();
          part_.Int(4, value);
          inner_.Bytes(12, part_.bytes());
        }
        break;
    }
    event_.Bytes(4, inner_.bytes());
  }
}

// The packet of the event in event_.
void PacketWriter::Send(int64_t time_ns, uint64_t track, int type) {
  event_.Varint(9, static_cast<uint64_t>(type));
  event_.Varint(11, track);
  packet_.Int(kTimestamp, time_ns - last_ns_);
  last_ns_ = time_ns;
  packet_.Varint(kSequenceId, kSequence);
  packet_.Varint(kSequenceFlags, kNeedsState);
  if (!interned_.bytes().empty()) {
    packet_.Bytes(kInternedData, interned_.bytes());
    interned_.Clear();
  }
  packet_.Bytes(kTrackEvent, event_.bytes());
  Packet();
  event_.Clear();
  if (interned_bytes_ > kMaxInterned) StartSequence(time_ns);
}

void PacketWriter::SendDescriptor(const Track& track, const Encoder& body) {
  if (!started_) StartSequence(last_ns_);
  Encoder descriptor;
  descriptor.Varint(1, track.uuid);
  if (track.parent != 0) descriptor.Varint(5, track.parent);
  // Threads and processes are named by what they are.
  if (!track.name.empty() && track.pid < 0) descriptor.Bytes(2, track.name);
  descriptor.Varint(11, static_cast<uint64_t>(track.order));
  descriptor.Int(12, track.rank);
  if (!track.description.empty()) descriptor.Bytes(14, track.description);
  if (track.pid < 0) descriptor.Varint(15, 2);  // never merge with a namesake
  packet_.Varint(kSequenceId, kSequence);
  packet_.Bytes(kTrackDescriptor, descriptor.bytes() + body.bytes());
  Packet();
}

void PacketWriter::AddProcess(const Track& track) {
  Encoder process;
  process.Int(1, track.pid);
  if (!track.name.empty()) process.Bytes(6, track.name);
  if (!track.label.empty()) process.Bytes(8, track.label);
  Encoder body;
  body.Bytes(3, process.bytes());
  SendDescriptor(track, body);
}

void PacketWriter::AddThread(const Track& track) {
  Encoder thread;
  thread.Int(1, track.pid);
  thread.Int(2, track.tid);
  if (!track.name.empty()) thread.Bytes(5, track.name);
  Encoder body;
  body.Bytes(4, thread.bytes());
  SendDescriptor(track, body);
}

void PacketWriter::AddTrack(const Track& track) { SendDescriptor(track, {}); }

void PacketWriter::AddCounter(const Track& track, std::string_view unit) {
  Encoder counter;
  if (unit == "count") {
    counter.Varint(3, 2);
  } else if (unit == "bytes") {
    counter.Varint(3, 3);
  } else if (!unit.empty()) {
    counter.Bytes(6, unit);
  }
  Encoder body;
  body.Bytes(8, counter.bytes());
  SendDescriptor(track, body);
}

void PacketWriter::Begin(uint64_t track, int64_t time_ns, std::string_view name,
                         std::string_view category, std::span<const Arg> args,
                         std::span<const uint64_t> flows) {
  if (!category.empty()) event_.Varint(3, Intern(kCategories, category));
  event_.Varint(10, Intern(kNames, name));
  AddArgs(args);
  for (const uint64_t flow : flows) event_.Fixed64(47, flow);
  Send(time_ns, track, kBegin);
}

void PacketWriter::End(uint64_t track, int64_t time_ns) {
  Send(time_ns, track, kEnd);
}

void PacketWriter::Instant(uint64_t track, int64_t time_ns,
                           std::string_view name, std::string_view category,
                           std::span<const Arg> args) {
  if (!category.empty()) event_.Varint(3, Intern(kCategories, category));
  event_.Varint(10, Intern(kNames, name));
  AddArgs(args);
  Send(time_ns, track, kInstant);
}

void PacketWriter::Counter(uint64_t track, int64_t time_ns, double value) {
  event_.Double(44, value);
  Send(time_ns, track, kCounter);
}

}  // namespace lamina::emit::perfetto
