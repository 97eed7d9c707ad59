// SPDX-License-Identifier: Apache-2.0

#include "ingest/xplane/xspace.h"

#include <cmath>

#include "base/byte_source.h"
#include "base/decimal.h"
#include "base/text.h"
#include "trace/trace.h"

namespace lamina::ingest::xplane {

PlaneKind PlaneKindOf(std::string_view name) {
  if (name.starts_with("/host:metadata") || name == "Task Environment")
    return PlaneKind::kMetadata;
  if (name.starts_with("/host:")) return PlaneKind::kHost;
  if (Contains(name, "/stream:")) return PlaneKind::kSkipped;
  if (name.starts_with("/device:GPU:")) return PlaneKind::kGpu;
  if (name.starts_with("/device:TPU:")) {
    return Contains(name, "SparseCore") ? PlaneKind::kSkipped : PlaneKind::kTpu;
  }
  if (name.starts_with("/device:")) return PlaneKind::kCustom;
  return PlaneKind::kSkipped;
}

int64_t DeviceNumber(std::string_view plane) {
  const size_t at = plane.rfind(':');
  if (at != std::string_view::npos) plane.remove_prefix(at + 1);
  return ParseInt(plane).value_or(0);
}

using protobuf::Field;
using protobuf::Stream;
using protobuf::Walker;

namespace {

// Longest packed text that is worth unpacking.
constexpr size_t kMaxText = size_t{1} << 20;

const TextMap<StatKey>& StatKeys() {
  static const TextMap<StatKey> keys = {
#define LAMINA_STAT_ROW(id, text) {text, StatKey::id},
      LAMINA_XPLANE_STATS(LAMINA_STAT_ROW)
#undef LAMINA_STAT_ROW
      // CUDA writes it with a capital.
      {"Memset_details", StatKey::kMemsetDetails},
      {"cuda_graph_id", StatKey::kGraphId},
  };
  return keys;
}

std::string Gunzip(std::string_view bytes) {
  auto source = OpenMemory("text", bytes);
  if (!source) return {};
  std::string out(kMaxText, '\0');
  size_t size = 0;
  while (size < out.size()) {
    const auto got = (*source)->Read(out.data() + size, out.size() - size);
    if (!got || *got == 0) break;
    size += *got;
  }
  out.resize(size);
  return out;
}

void AppendMessage(std::string& to, uint32_t number, std::string_view bytes) {
  protobuf::Encoder encoder;
  encoder.Bytes(number, bytes);
  to += encoder.bytes();
}

// A map entry {1 key, 2 value}.
std::pair<int64_t, std::string_view> MapEntry(const Field& field) {
  std::pair<int64_t, std::string_view> out{0, {}};
  for (Walker walk(field); walk.Next();) {
    if (walk->number == 1) out.first = walk->Int();
    if (walk->number == 2) out.second = walk->bytes;
  }
  return out;
}

void ReadEventName(const Field& field, Plane& plane) {
  const auto [key, bytes] = MapEntry(field);
  EventName name;
  name.number = key;
  for (Walker walk(bytes); walk.Next();) {
    if (walk->number == 2) name.name = walk->bytes;
    if (walk->number == 4) name.display_name = walk->bytes;
    if (walk->number == 5) AppendMessage(name.stats, 1, walk->bytes);
  }
  plane.event_names.Add(key, std::move(name));
}

void ReadStatName(const Field& field, Plane& plane) {
  const auto [key, bytes] = MapEntry(field);
  StatName stat;
  for (Walker walk(bytes); walk.Next();) {
    if (walk->number == 2) stat.name = walk->bytes;
  }
  const auto known = StatKeys().find(stat.name);
  if (known != StatKeys().end()) stat.key = known->second;
  plane.stat_names.Add(key, std::move(stat));
}

}  // namespace

int64_t Stats::Int(StatKey key) const {
  if (!Has(key)) return trace::kNoInt;
  const Stat& stat = (*this)[key];
  if (stat.is_text) return trace::kNoInt;
  if (!stat.is_real) return stat.integer;
  return std::abs(stat.real) < 9e15 ? static_cast<int64_t>(stat.real)
                                    : trace::kNoInt;
}

std::vector<std::pair<StatKey, Stat>> Stats::List() const {
  std::vector<std::pair<StatKey, Stat>> list;
  for (size_t i = 0; i < static_cast<size_t>(StatKey::kCount); ++i) {
    const auto key = static_cast<StatKey>(i);
    if (Has(key)) list.emplace_back(key, (*this)[key]);
  }
  return list;
}

void Plane::AddStat(std::string_view message, Stats& target,
                    std::deque<std::string>& arena) const {
  StatKey key = StatKey::kCount;
  Stat stat;
  for (Walker walk(message); walk.Next();) {
    switch (walk->number) {
      case 1: {
        const StatName* known = stat_names.Find(walk->Int());
        if (known == nullptr || known->key == StatKey::kCount) return;
        key = known->key;
        break;
      }
      case 2:
        stat.is_real = true;
        stat.real = walk->Double();
        break;
      case 3:
      case 4:
        stat.integer = walk->Int();
        break;
      case 5:
      case 6:
        stat.is_text = true;
        stat.text = walk->bytes;
        break;
      case 7: {
        stat.is_text = true;
        if (const StatName* known = stat_names.Find(walk->Int())) {
          stat.text = known->name;
          stat.by_reference = true;
        }
        break;
      }
      case 8:
        stat.is_text = true;
        arena.push_back(Gunzip(walk->bytes));
        stat.text = arena.back();
        break;
      default:
        break;
    }
  }
  if (key != StatKey::kCount) target.Set(key, stat);
}

void Plane::AddStats(std::string_view messages, Stats& target,
                     std::deque<std::string>& arena) const {
  for (Walker walk(messages); walk.Next();) AddStat(walk->bytes, target, arena);
}

void PlaneReader::Lost(const protobuf::Damage& damage) {
  diagnostics_.Add(
      trace::Effect::kLost, "plane_damaged",
      std::string("A plane is not read to its end: ") + damage.what + ".",
      damage.offset);
}

void PlaneReader::ReadPlane(Plane& plane) {
  Tables wanted = Tables::kAll;
  while (stream_.Next()) {
    Field field = stream_.field();
    if (!field.IsBytes()) {
      if (field.number == 1) plane.id = field.Int();
      continue;
    }
    switch (field.number) {
      case 2:
        if (!stream_.Take(kMaxText)) break;
        plane.name = stream_.bytes();
        wanted = wanted_(plane.name);
        break;
      case 3:
        ++plane.lines;
        break;
      case 4:
        if (wanted != Tables::kAll || !stream_.Take()) break;
        field.bytes = stream_.bytes();
        ReadEventName(field, plane);
        break;
      case 5:
        if (wanted == Tables::kNone || !stream_.Take()) break;
        field.bytes = stream_.bytes();
        ReadStatName(field, plane);
        break;
      case 6:
        if (wanted == Tables::kNone || !stream_.Take()) break;
        AppendMessage(plane.stats, 1, stream_.bytes());
        break;
      default:
        break;
    }
  }
}

void PlaneReader::ReadMessage(uint32_t number) {
  constexpr size_t kMostHosts = 1000;
  if (number == 4) {
    if (hosts_.size() < kMostHosts && stream_.Take(kMaxText))
      hosts_.emplace_back(stream_.bytes());
    return;
  }
  ++(number == 2 ? errors_ : warnings_);
  if (number == 2 && errors_ == 1 && stream_.Take(kMaxText))
    first_error_ = stream_.bytes();
}

bool PlaneReader::Next(Plane& plane) {
  plane = Plane();
  while (whole_ && stream_.Next()) {
    const Field field = stream_.field();
    if (!field.IsBytes()) continue;
    if (field.number >= 2 && field.number <= 4) ReadMessage(field.number);
    if (field.number != 1) continue;
    plane.offset = field.offset;
    stream_.Enter();
    ReadPlane(plane);
    plane.event_names.Finish();
    plane.stat_names.Finish();
    if (stream_.damage()) {
      Lost(stream_.damage());
      whole_ = stream_.Recover();
    }
    stream_.Leave();
    return true;
  }
  if (whole_ && stream_.damage()) Lost(stream_.damage());
  whole_ = false;
  return false;
}

}  // namespace lamina::ingest::xplane
