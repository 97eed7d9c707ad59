// SPDX-License-Identifier: Apache-2.0
//
// What the events of a file become: rows that stand at once, and those that
// wait until all of the file is known. A launch call, the op that it belongs
// to and the scopes around that op must come in this order in the trace, but
// the op is known from the device's events, on other planes.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <vector>

#include "base/pod_vector.h"
#include "ingest/xplane/programs.h"
#include "trace/builder.h"

namespace lamina::ingest::xplane {

// Rows that are taken off the end, whose memory goes back meanwhile: what they
// turn into takes its place.
template <class T>
class Waiting : public PodVector<T> {
 public:
  void Pop() {
    constexpr size_t kPiece = size_t{1} << 16;
    PodVector<T>::pop_back();
    if (this->size() % kPiece == 0) this->shrink_to_fit();
  }
};

// A host call with a correlation.
struct Call {
  int64_t correlation = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint64_t offset = 0;
  StringId name;
  trace::TrackId track;
  uint32_t device = trace::kNoRow;  // of the run that it launched
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
  uint32_t device = 0;  // row of Pending::devices
};

// One device event that ran an instruction.
struct Launch {
  int64_t correlation = 0;
  int64_t start_ns = 0;
  uint32_t device = 0;                   // row of Pending::devices
  uint32_t instruction = trace::kNoRow;  // of Programs
  uint32_t nameless = trace::kNoRow;     // row of Pending::nameless
  StringId kernel;
};

// One run of an instruction: an op of the trace.
struct Run {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t external_id = trace::kNoInt;  // of device events that no call links
  trace::TrackId track;
  uint32_t device = 0;  // row of Pending::devices
  uint32_t instruction = trace::kNoRow;
  uint32_t execution = trace::kNoRow;  // of its program
  uint32_t number = 0;                 // in order of device and launch
};

// A range of the host in which a program runs.
struct Execution {
  trace::TrackId track;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

struct Pending {
  Waiting<Call> calls;
  Waiting<NamelessKernel> nameless;
  Waiting<Launch> launches;
  Waiting<Run> runs;  // of devices without launches (TPU)
  PodVector<Execution> thunks, modules;
  std::vector<int64_t> devices;  // numbers of the devices, as they come
  int64_t next_external_id = 1;

  uint32_t Device(int64_t number) {
    const auto [it, is_new] =
        device_rows_.try_emplace(number, static_cast<uint32_t>(devices.size()));
    if (is_new) devices.push_back(number);
    return it->second;
  }

 private:
  absl::flat_hash_map<int64_t, uint32_t> device_rows_;
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
        op(names->InternCategory(names->Intern("cpu_op"))),
        runtime(names->InternCategory(names->Intern("cuda_runtime"))),
        driver(names->InternCategory(names->Intern("cuda_driver"))),
        builder_(builder),
        names_(names),
        segment_(names) {}

  // Numbers of categories.
  const uint8_t kernel, memcpy, memset, python, annotation, step, op, runtime,
      driver;

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
