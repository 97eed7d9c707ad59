// SPDX-License-Identifier: Apache-2.0
//
// A segment and the names in it, as a thread fills them record by record. For
// readers that go through their input once on one thread it is handed to the
// builder whenever it is full, so that nothing but the model grows with the
// input; table_reader.h has the one for threads.
#pragma once

#include <memory>
#include <string_view>

#include "trace/builder.h"

namespace lamina::ingest {

class Filler {
 public:
  // Without a builder the segment grows until somebody takes it.
  explicit Filler(trace::TraceBuilder* builder);
  ~Filler();
  Filler(const Filler&) = delete;
  Filler& operator=(const Filler&) = delete;

  trace::TraceBuilder& builder() { return *builder_; }
  trace::LocalNames& names() { return names_; }
  trace::Segment& segment() { return segment_; }

  // Text of the input as a name; broken UTF-8 is replaced.
  StringId Intern(std::string_view text);
  // Whether the times of a span can be used; counted when not. Ask before
  // adding argument rows, which must not be without a slice.
  bool Usable(int64_t start_ns, int64_t end_ns,
              uint64_t offset = trace::Diagnostics::kNoOffset);
  void AddInstant(int64_t time_ns, StringId name, trace::TrackId track,
                  uint32_t memory = trace::kNoRow);
  void AddCounter(int64_t time_ns, StringId name, StringId series,
                  trace::TrackId track, double value);
  // A record is done, used or not.
  void Next();
  // Hands over what is there; call when the input ends.
  void Flush();

 private:
  trace::TraceBuilder* builder_;
  trace::LocalNames names_;
  trace::Segment segment_;
};

}  // namespace lamina::ingest
