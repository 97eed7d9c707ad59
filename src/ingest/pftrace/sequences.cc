// SPDX-License-Identifier: Apache-2.0

#include "ingest/pftrace/sequences.h"

#include <array>

#include "base/decimal.h"

namespace lamina::ingest::pftrace {

using protobuf::Field;
using protobuf::Walker;
using trace::ArgKey;

void Clocks::Snapshot(uint64_t sequence, const Field& snapshot) {
  struct Reading {
    uint64_t id = 0, time = 0, multiplier = 1;
    bool incremental = false;
    int64_t ns() const {
      const auto ns = static_cast<__int128>(time) * multiplier;
      return ns > trace::kMaxTimeNs ? trace::kMaxTimeNs
                                    : static_cast<int64_t>(ns);
    }
  };
  std::vector<Reading> readings;
  for (Walker walk(snapshot); walk.Next();) {
    if (walk->number != 1 || !walk->IsBytes()) continue;
    Reading reading;
    for (Walker clock(walk.field()); clock.Next();) {
      if (clock->number == 1) reading.id = clock->value;
      if (clock->number == 2) reading.time = clock->value;
      if (clock->number == 3) reading.incremental = clock->value != 0;
      if (clock->number == 4 && clock->value > 0)
        reading.multiplier = clock->value;
    }
    readings.push_back(reading);
  }
  const Reading* boot = nullptr;
  for (const Reading& reading : readings) {
    if (reading.id == kBoot) boot = &reading;
  }
  // Without BOOTTIME, by another clock of the snapshot that is known.
  std::optional<int64_t> boot_ns;
  if (boot != nullptr) {
    boot_ns = boot->ns();
  } else {
    for (const Reading& reading : readings) {
      const auto it = clocks_.find(Key(sequence, reading.id));
      if (it == clocks_.end() || !it->second.known || it->second.incremental)
        continue;
      boot_ns = reading.ns() + it->second.to_boot_ns;
      break;
    }
  }
  if (!boot_ns && !readings.empty()) boot_ns = readings[0].ns();
  for (const Reading& reading : readings) {
    if (reading.id == kBoot) continue;
    Clock& clock = clocks_[Key(sequence, reading.id)];
    clock.known = true;
    clock.incremental = reading.incremental;
    clock.multiplier = reading.multiplier;
    clock.last_ns = reading.ns();
    clock.to_boot_ns = *boot_ns - reading.ns();
  }
}

std::optional<int64_t> Clocks::ToBoot(uint64_t sequence, uint64_t clock,
                                      uint64_t timestamp) {
  if (clock == kBoot) {
    if (timestamp > static_cast<uint64_t>(trace::kMaxTimeNs))
      return std::nullopt;
    return static_cast<int64_t>(timestamp);
  }
  const auto it = clocks_.find(Key(sequence, clock));
  if (it == clocks_.end() || !it->second.known) return std::nullopt;
  Clock& known = it->second;
  const __int128 ns = static_cast<__int128>(timestamp) * known.multiplier +
                      (known.incremental ? known.last_ns : 0);
  if (ns > trace::kMaxTimeNs) return std::nullopt;
  if (known.incremental) known.last_ns = static_cast<int64_t>(ns);
  const __int128 boot = ns + known.to_boot_ns;
  if (boot > trace::kMaxTimeNs || boot < 0) return std::nullopt;
  return static_cast<int64_t>(boot);
}

trace::ArgKey KeyOfName(std::string_view name) {
  // Names of rocprofv3.
  struct Alias {
    std::string_view name;
    ArgKey key;
  };
  static constexpr std::array<Alias, 5> kAliases = {
      {{"corr_id", ArgKey::kCorrelation},
       {"copy_bytes", ArgKey::kBytes},
       {"agent", ArgKey::kDevice},
       {"grid_size", ArgKey::kGrid},
       {"workgroup_size", ArgKey::kBlock}}};
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return alias.key;
  }
  constexpr size_t kReadable = trace::kArgIndex.kReadable;
  if (name.size() > kReadable) return ArgKey::kCount;
  std::array<char, kReadable> padded{};
  std::copy(name.begin(), name.end(), padded.begin());
  return trace::FindArgKey({padded.data(), name.size()});
}

void Sequence::Intern(const Field& data, trace::LocalNames& pool) {
  for (Walker table(data); table.Next();) {
    if (!table->IsBytes()) continue;
    const uint32_t which = table->number;
    if (which != 1 && which != 2 && which != 3 && which != 24 && which != 29)
      continue;
    uint64_t iid = 0;
    std::string_view text;
    for (Walker entry(table.field()); entry.Next();) {
      if (entry->number == 1) iid = entry->value;
      if (entry->number == 2) text = entry->bytes;
    }
    const StringId id = pool.Intern(text);
    switch (which) {
      case 1:
        categories.Set(iid, id);
        break;
      case 2:
        names.Set(iid, id);
        break;
      case 3:
        arg_names.Set(iid, {id, KeyOfName(text)});
        break;
      case 24:
        specifications.Set(iid, id);
        break;
      default:
        texts.Set(iid, id);
    }
  }
}

using protobuf::Field;
using protobuf::Walker;
using trace::kNoInt;

namespace {

// The number in brackets behind `word`: "AGENT [2]".
int64_t Bracketed(std::string_view name, std::string_view word) {
  const size_t at = name.find(word);
  if (at == std::string_view::npos) return kNoInt;
  std::string_view rest = name.substr(at + word.size());
  if (!rest.starts_with(" [")) return kNoInt;
  rest.remove_prefix(2);
  return ParseInt(rest.substr(0, rest.find(']'))).value_or(kNoInt);
}

// Lanes of rocprofv3 ("COMPUTE AGENT [2] STREAM [5] (GPU)") and of this
// program ("GPU 0 stream 7").
void ReadLaneName(Track& track) {
  const std::string_view name = track.name;
  if (name.starts_with("COMPUTE ") || name.starts_with("COPY ")) {
    track.device = Bracketed(name, "AGENT");
    track.stream = Bracketed(name, "STREAM");
    track.queue = Bracketed(name, "QUEUE");
    if (track.stream == kNoInt) track.stream = track.queue;
    return;
  }
  const size_t stream = name.find(" stream ");
  if (!name.starts_with("GPU ") || stream == std::string_view::npos) return;
  track.device = ParseInt(name.substr(4, stream - 4)).value_or(kNoInt);
  const std::string_view rest = name.substr(stream + 8);
  track.stream = ParseInt(rest.substr(0, rest.find(' '))).value_or(kNoInt);
}

// "1229" of "THREAD 1 (1229)".
std::string_view ThreadNumber(std::string_view name) {
  if (!name.starts_with("THREAD ") || !name.ends_with(')')) return {};
  const size_t open = name.rfind('(');
  if (open == std::string_view::npos) return {};
  return name.substr(open + 1, name.size() - open - 2);
}

}  // namespace

void Tracks::Describe(const Field& descriptor) {
  Track found;
  found.described = true;
  uint64_t uuid = 0;
  for (Walker walk(descriptor); walk.Next();) {
    switch (walk->number) {
      case 1:
        uuid = walk->value;
        break;
      case 2:
      case 10:
      case 13:
        if (walk->IsBytes()) found.name = walk->bytes;
        break;
      case 3:
        found.process = true;
        for (Walker inner(walk.field()); inner.Next();) {
          if (inner->number == 1) found.pid = inner->Int();
          if (inner->number == 6) found.process_name = inner->bytes;
          if (inner->number == 8) found.label = inner->bytes;
        }
        break;
      case 4:
        found.thread = true;
        for (Walker inner(walk.field()); inner.Next();) {
          if (inner->number == 1) found.pid = inner->Int();
          if (inner->number == 2) found.tid = inner->Int();
          if (inner->number == 5) found.name = inner->bytes;
        }
        break;
      case 5:
        found.parent = walk->value;
        break;
      case 8:
        found.counter = true;
        for (Walker inner(walk.field()); inner.Next();) {
          if (inner->number == 4)
            found.multiplier = static_cast<double>(inner->Int());
          if (inner->number == 5) found.incremental = inner->value != 0;
        }
        break;
      case 12:
        found.rank = walk->Int();
        break;
      default:
        break;
    }
  }
  ReadLaneName(found);
  if (found.process && found.pid != kNoInt) {
    if (!found.process_name.empty())
      process_names_[found.pid] = found.process_name;
    if (!found.label.empty()) process_labels_[found.pid] = found.label;
  }
  auto& slot = tracks_[uuid];
  if (slot == nullptr) {
    slot = std::make_unique<Track>(std::move(found));
    return;
  }
  // Repeated, or late: what the events already use stays.
  const trace::TrackId id = slot->id;
  const double last = slot->last_value;
  *slot = std::move(found);
  slot->id = id;
  slot->last_value = last;
}

void Tracks::DescribeProcess(const Field& process) {
  int64_t pid = kNoInt;
  std::string_view name;
  for (Walker walk(process); walk.Next();) {
    if (walk->number == 1) pid = walk->Int();
    if (walk->number == 6) name = walk->bytes;
  }
  if (pid != kNoInt && !name.empty())
    process_names_.try_emplace(pid, std::string(name));
}

uint64_t Tracks::DescribeThread(const Field& thread) {
  Track found;
  found.described = found.thread = true;
  for (Walker walk(thread); walk.Next();) {
    if (walk->number == 1) found.pid = walk->Int();
    if (walk->number == 2) found.tid = walk->Int();
    if (walk->number == 5) found.name = walk->bytes;
  }
  // A number that no writer gives: they are random or small.
  const uint64_t uuid = (uint64_t{0x7EAD} << 48) ^
                        (static_cast<uint64_t>(found.pid) << 24) ^
                        static_cast<uint64_t>(found.tid);
  auto& slot = tracks_[uuid];
  if (slot == nullptr) slot = std::make_unique<Track>(std::move(found));
  return uuid;
}

const Track* Tracks::ProcessOf(const Track& track) const {
  const Track* at = &track;
  for (int depth = 0; depth < 64; ++depth) {
    if (at->pid != kNoInt) return at;
    const auto it = tracks_.find(at->parent);
    if (at->parent == 0 || it == tracks_.end()) return at;
    at = it->second.get();
  }
  return at;
}

void Tracks::Place(uint64_t uuid, Track& track, trace::Segment& segment) {
  using What = trace::TrackFact::What;
  trace::LocalNames& names = *segment.names;
  const Track* root = ProcessOf(track);
  std::string pid;
  if (root->pid != kNoInt) {
    AppendInt(pid, root->pid);
  } else if (root != &track) {
    pid = root->name;
  }
  std::string tid;
  if (track.thread && track.tid != kNoInt) {
    AppendInt(tid, track.tid);
  } else if (!ThreadNumber(track.name).empty()) {
    tid = ThreadNumber(track.name);
  } else {
    tid = track.name;
  }
  if (tid.empty()) {
    tid = "track ";
    AppendInt(tid, static_cast<int64_t>(uuid));
  }
  // Begins and ends pair per track: namesakes are told apart.
  const std::string plain = tid;
  if (!taken_.emplace(pid, tid).second) {
    // Counted on, so that many namesakes are not tried one by one.
    int& n = namesakes_.try_emplace(std::pair(pid, plain), 2).first->second;
    do {
      tid = plain + " #" + std::to_string(n++);
    } while (!taken_.emplace(pid, tid).second);
  }
  track.id = names.InternTrack(names.Intern(pid), names.Intern(tid));
  const auto fact = [&](What what, std::string_view text) {
    if (!text.empty())
      segment.facts.push_back({track.id, what, names.Intern(text), 0});
  };
  fact(What::kThreadName, track.name);
  if (root->pid != kNoInt) {
    const auto name = process_names_.find(root->pid);
    if (name != process_names_.end()) fact(What::kProcessName, name->second);
    const auto label = process_labels_.find(root->pid);
    if (label != process_labels_.end())
      fact(What::kProcessLabels, label->second);
  } else if (root != &track) {
    fact(What::kProcessName, root->name);
  }
  if (track.rank != kNoInt) {
    segment.facts.push_back(
        {track.id, What::kThreadSort, StringId(), track.rank});
  }
}

Track& Tracks::Use(uint64_t uuid, trace::Segment& segment) {
  if (last_ != nullptr && last_uuid_ == uuid) return *last_;
  auto& slot = tracks_[uuid];
  if (slot == nullptr) {
    slot = std::make_unique<Track>();
    if (uuid != 0) ++undescribed_;
  }
  if (!slot->id.valid()) Place(uuid, *slot, segment);
  last_uuid_ = uuid;
  last_ = slot.get();
  return *slot;
}

}  // namespace lamina::ingest::pftrace
