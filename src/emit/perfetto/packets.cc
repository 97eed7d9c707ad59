// SPDX-License-Identifier: Apache-2.0
#include "emit/perfetto/packets.h"

#include <nlohmann/json.hpp>

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
// Descriptors of threads would make their thread that of the events behind
// them, which the viewer then shows at every event of another track.
constexpr uint64_t kDescriptors = 2;
constexpr uint64_t kStateCleared = 1;
constexpr uint64_t kNeedsState = 2;
constexpr uint64_t kBootClock = 6;
constexpr uint64_t kDeltaClock = 64;

// Fields of InternedData, by table.
constexpr uint32_t kTableFields[] = {1, 2, 3, 29};

constexpr uint64_t kMaxInterned = uint64_t{64} << 20;

// Shapes of lists of tensors have three.
constexpr int kMaxListDepth = 7;

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
    : sink_(*sink), last_ns_(first_ns) {
  StartSequence(first_ns);
}

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
  lists_.clear();
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

// The items of a list as array_values; false for what has no such form.
bool PacketWriter::AppendItems(const nlohmann::json& list, int depth,
                               Encoder& out) {
  if (depth > kMaxListDepth) return false;
  for (const nlohmann::json& item : list) {
    Encoder value;
    switch (item.type()) {
      case nlohmann::json::value_t::boolean:
        value.Varint(2, item.get<bool>() ? 1 : 0);
        break;
      case nlohmann::json::value_t::number_integer:
      case nlohmann::json::value_t::number_unsigned:
        value.Int(4, item.get<int64_t>());
        break;
      case nlohmann::json::value_t::number_float:
        value.Double(5, item.get<double>());
        break;
      case nlohmann::json::value_t::string:
        value.Varint(17, Intern(kTexts, item.get_ref<const std::string&>()));
        break;
      case nlohmann::json::value_t::array:
        if (!AppendItems(item, depth + 1, value)) return false;
        break;
      default:
        return false;
    }
    out.Bytes(12, value.bytes());
  }
  return true;
}

// Equal lists are encoded once.
const std::string& PacketWriter::ListOf(std::string_view json) {
  const auto it = lists_.find(json);
  if (it != lists_.end()) return it->second;
  Encoder out;
  const auto list =
      nlohmann::json::parse(json.begin(), json.end(), nullptr, false);
  const bool usable = list.is_array() && AppendItems(list, 0, out);
  interned_bytes_ += json.size();
  return lists_.emplace(json, usable ? std::string(out.bytes()) : std::string())
      .first->second;
}

void PacketWriter::AddArgs(std::span<const Arg> args) {
  for (const Arg& arg : args) {
    const uint64_t name = Intern(kArgNames, arg.name);
    const std::string_view list =
        arg.type == Arg::Type::kJson ? ListOf(arg.text) : std::string_view();
    const bool is_text = arg.type == Arg::Type::kText ||
                         (arg.type == Arg::Type::kJson && list.empty());
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
        inner_.Varint(17, text);
        break;
      case Arg::Type::kJson:
        if (is_text) inner_.Varint(17, text);
        break;
      case Arg::Type::kInts:
        for (const int64_t value : arg.list) {
          part_.Clear();
          part_.Int(4, value);
          inner_.Bytes(12, part_.bytes());
        }
        break;
    }
    event_.Bytes(
        4, list.empty() ? inner_.bytes() : inner_.bytes() + std::string(list));
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
  Encoder descriptor;
  descriptor.Varint(1, track.uuid);
  if (track.parent != 0) descriptor.Varint(5, track.parent);
  // Threads and processes are named by what they are.
  if (!track.name.empty() && track.pid < 0) descriptor.Bytes(2, track.name);
  descriptor.Varint(11, static_cast<uint64_t>(track.order));
  descriptor.Int(12, track.rank);
  if (!track.description.empty()) descriptor.Bytes(14, track.description);
  if (track.pid < 0) descriptor.Varint(15, 2);  // never merge with a namesake
  packet_.Varint(kSequenceId, kDescriptors);
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
