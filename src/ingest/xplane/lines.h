// SPDX-License-Identifier: Apache-2.0
//
// The second pass over a file: the events of every line become rows.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/protobuf/stream.h"
#include "ingest/common/format.h"
#include "ingest/xplane/pending.h"
#include "ingest/xplane/programs.h"
#include "ingest/xplane/rows.h"
#include "ingest/xplane/xspace.h"

namespace lamina::ingest::xplane {

enum class PlaneKind : uint8_t {
  kGpu,       // streams
  kTpu,       // lines by purpose
  kHost,      // threads
  kCustom,    // ranges on a device, no kernels
  kMetadata,  // programs and settings
  kSkipped,
};
PlaneKind PlaneKindOf(std::string_view name);

// N of "/device:GPU:N"; 0 where there is none.
int64_t DeviceNumber(std::string_view plane);

class LineReader {
 public:
  LineReader(Rows* rows, Programs* programs, Pending* pending,
             trace::Diagnostics* diagnostics, int64_t profile_start_ns)
      : rows_(*rows),
        programs_(*programs),
        pending_(*pending),
        diagnostics_(*diagnostics),
        profile_start_ns_(profile_start_ns) {}

  // The open message of `stream` is a plane, `plane` what the first pass
  // knows of it. Damage ends the line, or the plane when no length says where
  // the line ends.
  void ReadPlane(protobuf::Stream& stream, const Plane& plane);

  uint64_t events() const { return events_; }

 private:
  struct Line {
    const Plane* plane = nullptr;
    PlaneKind kind = PlaneKind::kSkipped;
    int64_t device = 0;
    uint32_t device_row = 0;  // of Pending::devices
    int64_t id = 0;
    std::string name, display_name;
    int64_t origin_ns = 0;
    trace::TrackId track;
    bool begun = false;  // an event was seen
    enum class Tpu : uint8_t { kOps, kSteps, kModules, kSkipped } tpu = {};
  };
  struct Event {
    int64_t metadata = 0;
    int64_t offset_ps = 0;
    int64_t duration_ps = 0;
    bool aggregate = false;
    uint64_t offset = 0;
    const EventName* name = nullptr;
    std::string_view text;  // its name
    int64_t start_ns = 0, end_ns = 0;
  };
  // An event of an "XLA Ops" line, until the line is read.
  struct TpuOp {
    int64_t start_ns, end_ns;
    uint64_t offset;
    uint32_t instruction;
    StringId name;
  };

  void ReadLine(protobuf::Stream& stream, Line& line);
  void Begin(Line& line);
  static std::string_view ProcessOf(const Line& line);
  void ReadEvent(std::string_view bytes, uint64_t offset, Line& line);
  bool ParseEvent(std::string_view bytes, uint64_t offset, const Line& line,
                  Event& event);
  void DeviceEvent(const Line& line, const Event& event);
  void HostEvent(const Line& line, const Event& event);
  void MemoryEvent(const Line& line, const Event& event);
  void TpuEvent(const Line& line, const Event& event);
  void EmitTpuOps(const Line& line);
  void Handovers(const Line& line, const Event& event);
  StringId NameOf(const Event& event);
  uint32_t InstructionOf(std::string_view op);
  uint32_t FindInstruction(std::string_view op);
  uint32_t CollectiveOf(uint32_t instruction);
  void Lost(std::string_view reason, std::string_view text, uint64_t offset) {
    diagnostics_.Add(trace::Effect::kLost, reason, text, offset);
  }

  Rows& rows_;
  Programs& programs_;
  Pending& pending_;
  trace::Diagnostics& diagnostics_;
  int64_t profile_start_ns_;
  uint64_t events_ = 0;
  Stats stats_;
  std::deque<std::string> unpacked_;
  std::vector<TpuOp> tpu_ops_;
  // By place of the op's name and program.
  absl::flat_hash_map<std::pair<const void*, int64_t>, uint32_t> instructions_;
};

}  // namespace lamina::ingest::xplane
