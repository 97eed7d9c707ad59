// SPDX-License-Identifier: Apache-2.0
#include "ingest/pftrace/sequences.h"

#include <array>

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

}  // namespace lamina::ingest::pftrace
