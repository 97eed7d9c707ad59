// SPDX-License-Identifier: Apache-2.0
//
// The events of a stretch become slices of its segment, or wait (pending.h).
#pragma once

#include <absl/container/flat_hash_map.h>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "ingest/common/record_reader.h"
#include "ingest/xplane/cutter.h"
#include "ingest/xplane/pending.h"
#include "ingest/xplane/rows.h"

namespace lamina::ingest::xplane {

class EventParser : public RecordParser {
 public:
  // `pending` is that of this thread.
  EventParser(const EventCutter* cutter, Shared* shared, Pending* pending)
      : cutter_(*cutter),
        shared_(*shared),
        pending_(*pending),
        categories_(names()) {}

  void Claim(const Chunk& chunk) override;
  void Parse(const Chunk& chunk, trace::Segment& segment) override;

 private:
  struct Event {
    int64_t number = 0;  // of its name
    int64_t offset_ps = 0;
    int64_t duration_ps = 0;
    bool aggregate = false;
    uint64_t offset = 0;
    const NameFacts* facts = nullptr;  // null: it names nothing
    std::string_view text;             // its name
    StringId name;                     // of this thread
    int64_t start_ns = 0, end_ns = 0;

    int64_t duration_ns() const { return end_ns - start_ns; }
    StringId shared_name() const {
      return facts == nullptr ? StringPool::kEmpty : facts->id;
    }
  };
  // What an event ran.
  struct Instruction {
    uint32_t number = trace::kNoRow;  // of Programs
    bool is_collective = false;
    trace::CollectiveArgs collective;  // texts are of this thread's names
  };
  struct Config {
    trace::LaunchConfig values;
    uint32_t row = trace::kNoRow;         // of this thread
    uint32_t shared_row = trace::kNoRow;  // of Shared::names
  };

  void BeginLine();
  void NameTrack();
  void ReadEvent(std::string_view bytes, uint64_t offset);
  bool ParseEvent(std::string_view bytes, Event& event);
  bool PlaceInTime(Event& event);
  void FindName(Event& event);

  void HostEvent(const Event& event);
  void MemoryEvent(const Event& event);
  void Handovers(const Event& event);

  void DeviceEvent(const Event& event);
  void TpuEvent(const Event& event);
  const Instruction& InstructionOf(std::string_view op, bool stays,
                                   uint64_t offset);
  Instruction FindInstruction(std::string_view op, uint64_t offset);
  uint32_t CollectiveOf(const Instruction& instruction);
  // Null without details.
  Config* ConfigOfDetails();
  Config ParseConfig();
  uint32_t SharedRow(Config& config);

  void AddSlice(const Event& event, trace::Kind kind, uint8_t category,
                uint32_t detail = trace::kNoRow) {
    segment_->AddSlice(event.start_ns, event.duration_ns(), event.name, kind,
                       category, track_, event.offset, detail);
    ++segment_->next_uid;
  }
  void Lost(std::string_view reason, std::string_view text, uint64_t offset) {
    segment_->diagnostics.Add(trace::Effect::kLost, reason, text, offset);
  }

  const EventCutter& cutter_;
  Shared& shared_;
  Pending& pending_;
  const Categories categories_;
  trace::Segment* segment_ = nullptr;

  std::shared_ptr<const EventPlane> plane_;
  std::shared_ptr<const Line> line_;
  bool first_ = false;    // the stretch is the first of its line
  trace::TrackId track_;  // of this thread
  // By place in the plane's table; set on first use.
  std::vector<StringId> local_names_;
  // By places of the texts of op and module, and the number of the program.
  absl::flat_hash_map<std::tuple<const void*, const void*, int64_t>,
                      Instruction>
      instructions_;
  Instruction instruction_;  // of an event whose texts do not stay
  // By place of the text, and the occupancy beside it.
  absl::flat_hash_map<std::pair<const void*, double>, Config> configs_;
  Config config_;  // of details that do not stay

  // Of the current event.
  Stats stats_;
  std::vector<std::string_view> own_stats_;
  std::deque<std::string> unpacked_;
};

}  // namespace lamina::ingest::xplane
