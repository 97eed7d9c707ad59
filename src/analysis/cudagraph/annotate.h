// SPDX-License-Identifier: Apache-2.0
//
// Replayed kernels of CUDA and HIP graphs with the op, module and source line
// that they were captured from.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/cudagraph/align.h"
#include "lamina/result.h"

namespace lamina::cudagraph {

// What a captured launch, or one of an eager trace, was called from.
struct Tags {
  std::string op;       // innermost
  std::string op_path;  // outermost to innermost, " > " between
  std::string module;   // path
  std::string line;     // innermost frame that is not of a framework
  std::string ranges;   // record_function ranges that the tag pattern matches
  std::string dims, types;  // of the op, JSON
  std::string name;         // token as text
  int64_t layer = -1;       // last number in the module path
};

// Launches in program order that one graph may hold.
struct Segment {
  // `file` of what the trace with the replays itself recorded.
  static constexpr uint32_t kOwnTrace = UINT32_MAX;
  uint32_t file = 0;    // index of the trace
  uint32_t number = 0;  // in the file
  int64_t batch = -1;   // from the annotation around it; -1: not known
  bool names = true;    // launches have kernel names
  std::vector<Tags> launches;
  std::vector<tree::NodeId> calls;  // of the launches, in the trace's own tree
  // Of a captured segment: the nodes between the two calls. Invalid for one of
  // an eager trace, which begins at `begin_ns`.
  tree::NodeId begin, end;
  int64_t begin_ns = std::numeric_limits<int64_t>::min();
};

// Segments of a capture trace (between *StreamBeginCapture and
// *StreamEndCapture of a thread) or, when it has none, the launches of every
// step of an eager trace. `context` must hold Python frames. `tags` is RE2.
Result<std::vector<Segment>> CollectSegments(const analysis::Context& context,
                                             uint32_t file,
                                             const std::string& tags);

// One launch of a graph.
struct Replay {
  uint32_t number = 0;
  trace::SliceId launch;  // host event, invalid when not in the trace
  std::vector<trace::SliceId> work;  // by start
  int64_t batch = -1;
  uint32_t in_step = 0;  // which launch of its step
  int32_t segment = -1;  // that was chosen; -1: none
  std::vector<Match> matches;
};

struct Annotation {
  std::vector<Segment> segments;
  std::vector<Replay> replays;
  size_t templates = 0;  // alignments that were computed
  // The tags of one replayed kernel as the output may state them: of the
  // partner, or for kScope what the neighbours have in common.
  Tags TagsOf(const Replay& replay, size_t position) const;
  double FactShare() const;  // of all replayed kernels, 0..1
};

Annotation Annotate(const analysis::Context& replay,
                    std::vector<Segment> segments);

// Tables annotate_replays, annotate_levels, annotate_kernels, annotate_ops and
// annotate_modules.
ResultSet AnnotationTables(const analysis::Context& replay,
                           const Annotation& annotation);

}  // namespace lamina::cudagraph
