// SPDX-License-Identifier: Apache-2.0
//
// The rows of a file, on their way to the builder.
#pragma once

#include <cstdint>
#include <string_view>

#include "trace/builder.h"

namespace lamina::ingest::xplane {

// Numbers of categories.
struct Categories {
  explicit Categories(trace::LocalNames* names)
      : kernel(names->InternCategory("kernel")),
        memcpy(names->InternCategory("gpu_memcpy")),
        memset(names->InternCategory("gpu_memset")),
        python(names->InternCategory("python_function")),
        annotation(names->InternCategory("user_annotation")),
        gpu_annotation(names->InternCategory("gpu_user_annotation")),
        step(names->InternCategory(trace::kStepCategory)),
        op(names->InternCategory("cpu_op")),
        runtime(names->InternCategory("cuda_runtime")),
        driver(names->InternCategory("cuda_driver")) {}

  const uint8_t kernel, memcpy, memset, python, annotation, gpu_annotation,
      step, op, runtime, driver;
};

// What is emitted when all of the file is known.
class Rows {
 public:
  Rows(trace::TraceBuilder* builder, trace::LocalNames* names)
      : categories(names), builder_(builder), names_(names), segment_(names) {}

  const Categories categories;

  trace::Segment& segment() { return segment_; }
  trace::LocalNames& names() { return *names_; }
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
