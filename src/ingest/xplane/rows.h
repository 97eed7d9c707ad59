// SPDX-License-Identifier: Apache-2.0
//
// What the events of a file become: rows that stand at once, and those that
// wait until all of the file is known. A launch call, the op that it belongs
// to and the scopes around that op must come in this order in the trace, but
// the op is known from the device's events, on other planes.
#pragma once

#include <cstdint>
#include <vector>

#include "ingest/xplane/programs.h"
#include "trace/builder.h"

namespace lamina::ingest::xplane {

// A host call with a correlation.
struct Call {
  int64_t correlation = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint64_t offset = 0;
  StringId name;
  trace::TrackId track;
  trace::Kind kind = trace::Kind::kRuntime;
};

// A kernel that names no instruction.
struct NamelessKernel {
  trace::DeviceArgs args;
  int64_t start_ns = 0;
  int64_t dur_ns = 0;
  uint64_t offset = 0;
  StringId name;
  trace::TrackId track;
  uint32_t instruction = trace::kNoRow;  // found by name
};

// One device event that ran an instruction.
struct Launch {
  int64_t correlation = 0;
  int64_t start_ns = 0;
  int64_t device = 0;
  uint32_t instruction = trace::kNoRow;  // of Programs
  uint32_t nameless = trace::kNoRow;     // row of Pending::nameless
  StringId kernel;
};

// One run of an instruction: an op of the trace.
struct Run {
  trace::TrackId track;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t device = 0;
  uint32_t instruction = trace::kNoRow;
  int64_t external_id = trace::kNoInt;  // of device events that no call links
  uint32_t execution = trace::kNoRow;   // of its program
};

// A range of the host in which a program runs.
struct Execution {
  trace::TrackId track;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

struct Pending {
  std::vector<Call> calls;
  std::vector<NamelessKernel> nameless;
  std::vector<Launch> launches;
  std::vector<Run> runs;  // of devices without launches (TPU)
  std::vector<Execution> thunks, modules;
  int64_t next_external_id = 1;
};

// The rows of one file, on their way to the builder.
class Rows {
 public:
  Rows(trace::TraceBuilder* builder, trace::LocalNames* names)
      : kernel(names->InternCategory(names->Intern("kernel"))),
        memcpy(names->InternCategory(names->Intern("gpu_memcpy"))),
        memset(names->InternCategory(names->Intern("gpu_memset"))),
        python(names->InternCategory(names->Intern("python_function"))),
        annotation(names->InternCategory(names->Intern("user_annotation"))),
        step(names->InternCategory(names->Intern(trace::kStepCategory))),
        builder_(builder),
        names_(names),
        segment_(names) {}

  // Numbers of categories.
  const uint8_t kernel, memcpy, memset, python, annotation, step;

  trace::Segment& segment() { return segment_; }
  trace::LocalNames& names() { return *names_; }
  uint8_t Category(std::string_view text) {
    return names_->InternCategory(names_->Intern(text));
  }
  trace::TrackId Track(std::string_view pid, std::string_view tid) {
    return names_->InternTrack(names_->Intern(pid), names_->Intern(tid));
  }
  void Name(trace::TrackId track, trace::TrackFact::What what,
            std::string_view text) {
    segment_.facts.push_back({track, what, names_->Intern(text), 0});
  }
  void AddSlice(int64_t start_ns, int64_t dur_ns, StringId name,
                trace::Kind kind, uint8_t category, trace::TrackId track,
                uint64_t offset, uint32_t detail = trace::kNoRow) {
    segment_.AddSlice(start_ns, dur_ns, name, kind, category, track, offset,
                      detail);
    ++segment_.next_uid;
    if (segment_.next_uid >= kSegment) Flush();
  }
  void Flush() {
    segment_.Seal();
    builder_->Append(segment_);
    segment_.Clear();
  }

 private:
  static constexpr uint32_t kSegment = 1 << 16;
  trace::TraceBuilder* builder_;
  trace::LocalNames* names_;
  trace::Segment segment_;
};

// Joins launches to runs of instructions and emits what waits: scopes, ops,
// calls and nameless kernels, in this order. The pending rows are spent.
// Near-linear.
void EmitPending(Pending& pending, Programs& programs, Rows& rows);

}  // namespace lamina::ingest::xplane
