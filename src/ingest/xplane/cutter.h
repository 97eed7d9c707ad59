// SPDX-License-Identifier: Apache-2.0
//
// Cuts the events of a file into stretches of one line, for threads to parse.
#pragma once

#include <memory>

#include "base/chunk.h"
#include "base/protobuf/stream.h"
#include "ingest/xplane/lines.h"
#include "ingest/xplane/pending.h"

namespace lamina::ingest::xplane {

// An event in the text of a chunk: this, and behind it so many bytes.
struct EventHead {
  uint64_t offset;  // in the unpacked input
  uint64_t size;
};

class EventCutter {
 public:
  // The names of a plane stand behind its events: `ahead`, the same bytes as
  // `source`, runs a plane ahead and fetches them, so that only the planes
  // whose events are being parsed are in memory.
  EventCutter(ByteSource& ahead, ByteSource& source, Shared* shared,
              Pending* pending, int64_t profile_start_ns);

  // Some events of one line; false when there are none left.
  Result<bool> Next(Chunk& chunk);
  // Of the last stretch: its line, and whether it is the first of it.
  std::shared_ptr<const Line> line() const { return line_; }
  bool first() const { return first_; }

  // Damage ends a line, or a plane when no length says where the line ends.
  const trace::Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  bool EnterPlane();
  bool LeavePlane();
  bool EnterLine();
  void LeaveLine();
  void TakeEvents(Chunk& chunk);
  void TakeEvent(Chunk& chunk);
  void TakeTime();
  void Begin();
  void BeginTpu();
  void Lost(std::string_view reason, std::string_view text, uint64_t offset) {
    diagnostics_.Add(trace::Effect::kLost, reason, text, offset);
  }

  trace::Diagnostics counted_;  // by the first pass
  PlaneReader planes_;
  protobuf::Stream stream_;
  Shared& shared_;
  Pending& pending_;
  const int64_t profile_start_ns_;
  trace::Diagnostics diagnostics_;
  std::shared_ptr<const EventPlane> plane_;  // null: in none
  std::shared_ptr<Line> line_;
  bool in_line_ = false;
  bool begun_ = false;  // an event of the line was seen
  int64_t time_ = 0;    // of the line, as it stands
  bool first_ = false;
  bool ended_ = false;
  uint64_t stretches_ = 0;
};

}  // namespace lamina::ingest::xplane
