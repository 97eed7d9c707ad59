// SPDX-License-Identifier: Apache-2.0
//
// The rows of a file, on their way to the builder.
#pragma once

#include <cstdint>
#include <string_view>

#include "trace/builder.h"

namespace lamina::ingest::xplane {

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

}  // namespace lamina::ingest::xplane
