// SPDX-License-Identifier: Apache-2.0
//
// Track events and GPU stages as rows of the model.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/common/arg_rows.h"
#include "ingest/pftrace/sequences.h"
#include "ingest/pftrace/tracks.h"
#include "trace/builder.h"

namespace lamina::ingest::pftrace {

// The known arguments of one event.
class EventArgs {
 public:
  struct Value {
    enum class Type : uint8_t { kInt, kReal, kText, kJson, kTriple };
    Type type = Type::kInt;
    int64_t integer = 0;
    double real = 0;
    std::string_view text;
    StringId interned;  // of a text from a table
    std::array<uint32_t, 3> triple{};
  };

  void Clear(trace::LocalNames* names) {
    names_ = names;
    present_ = 0;
  }
  void Set(ArgKey key, const Value& value) {
    present_ |= ArgBit(key);
    values_[static_cast<size_t>(key)] = value;
  }
  const Value& operator[](ArgKey key) const {
    return values_[static_cast<size_t>(key)];
  }

  bool Has(ArgKey key) const { return (present_ & ArgBit(key)) != 0; }
  uint64_t present() const { return present_; }
  int64_t Int(ArgKey key) const;
  std::optional<double> Real(ArgKey key) const;
  StringId Text(ArgKey key);
  StringId List(ArgKey key);
  std::array<uint32_t, 3> Triple(ArgKey key) const;

 private:
  trace::LocalNames* names_ = nullptr;
  uint64_t present_ = 0;
  std::array<Value, trace::kArgKeys> values_;
  absl::flat_hash_map<StringId, StringId> lists_;  // text to canonical JSON
};

class EventReader {
 public:
  EventReader(trace::TraceBuilder* builder, trace::LocalNames* names)
      : builder_(*builder), names_(*names), segment_(names) {}

  Tracks& tracks() { return tracks_; }
  // A TrackEvent at `time_ns`.
  void Event(const protobuf::Field& event, int64_t time_ns,
             const Sequence& sequence, uint64_t offset);
  // A GpuRenderStageEvent.
  void Stage(const protobuf::Field& event, int64_t time_ns,
             const Sequence& sequence, uint64_t offset);
  void Lost(std::string_view reason, std::string_view text, uint64_t offset) {
    segment_.diagnostics.Add(trace::Effect::kLost, reason, text, offset);
  }
  void Info(std::string_view reason, std::string_view text, uint64_t offset) {
    segment_.diagnostics.Add(trace::Effect::kInfo, reason, text, offset);
  }
  // What waits for the end of the file: stages, flows.
  void Finish();

 private:
  struct Raw {
    int type = 0;
    uint64_t track = 0;
    StringId name, category;
    bool has_counter = false;
    double counter = 0;
    int64_t correlation = trace::kNoInt;
    std::vector<uint64_t> flows;
  };
  // A flow id at an event.
  struct FlowEnd {
    uint64_t id;
    int64_t time_ns;
    int64_t correlation;
    trace::TrackId track;
    uint32_t uid;
    trace::Kind kind;
  };
  struct Stage_ {
    int64_t start_ns, dur_ns;
    uint64_t offset;
    StringId name;
    trace::TrackId track;
    trace::DeviceArgs args;
    std::array<uint32_t, 3> grid{}, block{};
    bool configured = false;
  };

  void ReadArg(const protobuf::Field& annotation, const Sequence& sequence);
  EventArgs::Value ReadArray(const protobuf::Field& annotation);
  void AppendJson(const protobuf::Field& annotation, const Sequence& sequence,
                  int depth, std::string& out);
  trace::Kind KindOf(StringId category, StringId name);
  StringId CategoryText(StringId category, trace::Kind kind);
  void CompleteArgs(trace::Kind kind, const Track& track);
  void AddCounter(Track& track, int64_t time_ns, double value);
  void Recording(const protobuf::Field& event, const Sequence& sequence);
  void Next();

  trace::TraceBuilder& builder_;
  trace::LocalNames& names_;
  trace::Segment segment_;
  uint64_t events_ = 0;  // in segments before this one
  Tracks tracks_;
  EventArgs args_;
  Raw raw_;
  std::vector<std::string> json_;  // texts of arrays of the current event
  std::vector<FlowEnd> flows_;
  std::vector<Stage_> stages_;
  bool kernels_ = false;
  // Per category text: kind, and its number.
  absl::flat_hash_map<StringId, trace::Kind> kinds_;
};

}  // namespace lamina::ingest::pftrace
