// SPDX-License-Identifier: Apache-2.0
//
// The kernels of all replays in the order of their streams, and the ops and
// modules over them as spans of time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "compare/cudagraph/annotate.h"

namespace lamina::engine {

class ReplaySpans {
 public:
  struct Work {
    uint32_t replay;
    uint32_t position;  // in Replay::work
    uint32_t stream;
  };
  enum class Track : uint8_t { kOps, kModules };
  struct Span {
    Track track;
    std::string_view name;
    int64_t start_ns;
    int64_t end_ns;
    std::string_view op_path;  // of an op
  };
  struct Levels {
    bool op = true;
    bool module = true;
  };

  ReplaySpans(const trace::Trace& trace,
              const cudagraph::Annotation& annotation, Levels levels);

  const std::vector<Work>& work() const { return work_; }
  trace::SliceId SliceOf(const Work& work) const {
    return annotation_.replays[work.replay].work[work.position];
  }
  // The spans of op and modules that begin with a kernel, outermost module
  // first. None is empty; all end before the next kernel of the stream that is
  // not in them.
  std::vector<Span> StartingAt(size_t index) const;

 private:
  const cudagraph::Tags* TagsOf(const Work& work) const {
    return annotation_.PartnerOf(annotation_.replays[work.replay],
                                 work.position);
  }
  // Whether two kernels stand in one replay on one stream.
  static bool Together(const Work& a, const Work& b) {
    return a.stream == b.stream && a.replay == b.replay;
  }
  template <class F>
  int64_t RunEnd(size_t index, F same) const;

  const trace::Trace& trace_;
  const cudagraph::Annotation& annotation_;
  Levels levels_;
  std::vector<Work> work_;
};

}  // namespace lamina::engine
