// SPDX-License-Identifier: Apache-2.0
//
// Packets of a Perfetto trace, one writer: a sequence with string tables, a
// clock that counts from event to event, and tracks. A name costs its text
// once; an event with a few arguments takes some forty bytes.
//
// Field numbers are those of Perfetto's public protos.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/byte_sink.h"
#include "base/protobuf/wire.h"
#include "base/string_pool.h"
#include "emit/common/slice_args.h"

namespace lamina::emit::perfetto {

enum class Order : uint8_t { kByName = 1, kByTime = 2, kExplicit = 3 };

struct Track {
  uint64_t uuid = 0;
  uint64_t parent = 0;  // 0: none
  std::string_view name;
  int64_t pid = -1;                // of a process or thread
  int64_t tid = -1;                // of a thread
  std::string_view label;          // of a process
  int64_t rank = 0;                // among the tracks of its parent
  Order order = Order::kExplicit;  // of the tracks below it
  std::string_view description;
};

class PacketWriter {
 public:
  // Times are nanoseconds; none is before `first_ns` >= 0.
  PacketWriter(ByteSink* sink, int64_t first_ns);

  // Descriptors stand before the events of their track.
  void AddProcess(const Track& track);
  void AddThread(const Track& track);
  void AddTrack(const Track& track);
  // `unit` is "bytes", "count" or free text; empty: none.
  void AddCounter(const Track& track, std::string_view unit);

  // Events in order of time over all tracks. Begins and ends of a track pair
  // like brackets.
  void Begin(uint64_t track, int64_t time_ns, std::string_view name,
             std::string_view category, std::span<const Arg> args,
             std::span<const uint64_t> flows);
  void End(uint64_t track, int64_t time_ns);
  void Instant(uint64_t track, int64_t time_ns, std::string_view name,
               std::string_view category, std::span<const Arg> args);
  void Counter(uint64_t track, int64_t time_ns, double value);

  uint64_t packets() const { return packets_; }

 private:
  enum Table : uint8_t { kCategories, kNames, kArgNames, kTexts, kTables };

  void StartSequence(int64_t time_ns);
  uint64_t Intern(Table table, std::string_view text);
  void AddArgs(std::span<const Arg> args);
  bool AppendItems(const nlohmann::json& list, int depth,
                   protobuf::Encoder& out);
  const std::string& ListOf(std::string_view json);
  void Send(int64_t time_ns, uint64_t track, int type);
  void SendDescriptor(const Track& track, const protobuf::Encoder& body);
  void Packet();

  ByteSink& sink_;
  int64_t last_ns_;
  uint64_t packets_ = 0;
  TextMap<uint64_t> tables_[kTables];
  TextMap<std::string> lists_;  // JSON to array_values; empty: is no list
  uint64_t interned_bytes_ = 0;
  protobuf::Encoder packet_, event_, interned_, part_, inner_, frame_;
};

// A track number that is the same in every run: FNV-1a over the parts and their
// lengths, so that "1", "23" is another track than "12", "3"; never 0.
uint64_t TrackUuid(std::initializer_list<std::string_view> parts);

}  // namespace lamina::emit::perfetto
