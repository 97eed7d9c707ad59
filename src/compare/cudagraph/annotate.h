// SPDX-License-Identifier: Apache-2.0
//
// Replayed kernels of CUDA and HIP graphs with the op, module and source line
// that they were captured from.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/context.h"
#include "compare/cudagraph/align.h"
#include "lamina/result.h"

namespace lamina::cudagraph {

// What a captured launch, or one of an eager trace, was called from.
struct Tags {
  std::string op;                // innermost
  uint32_t op_uid = UINT32_MAX;  // its event, which tells calls apart
  std::string op_path;           // outermost to innermost, " > " between
  std::string module;            // path
  std::string line;              // innermost frame that is not of a framework
  std::string ranges;  // record_function ranges that the tag pattern matches
  std::string dims, types;  // of the op, JSON
  std::string name;         // token as text
  int64_t layer = -1;       // of the module; -1: in none
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
  // By start; where all of it has numbers of nodes in the order of these, which
  // is that of the capture.
  std::vector<trace::SliceId> work;
  bool by_node = false;
  int64_t graph_id = trace::kNoInt;
  int64_t batch = -1;
  uint32_t step = 0;       // of the host, or Steps::kOutside
  int32_t segment = -1;    // that was chosen; -1: none
  uint32_t alignment = 0;  // of Annotation::alignments
};

struct Annotation {
  std::vector<Segment> segments;
  std::vector<Replay> replays;
  // One match per kernel. Replays with the same kernels share theirs.
  std::vector<std::vector<Match>> alignments;

  // By token; only where the name is all that is known of some kernel.
  static constexpr size_t kMaxListed = 8;
  std::map<std::string, std::vector<std::string>> ops_by_name;

  // Ops of the launches of a kernel's name, in order of first use.
  std::vector<std::string> OpsByName(const trace::Trace& trace,
                                     trace::SliceId kernel) const;
  const std::vector<Match>& MatchesOf(const Replay& replay) const {
    return alignments[replay.alignment];
  }
  // Those of the launch that a replayed kernel comes from; null if unknown.
  const Tags* PartnerOf(const Replay& replay, size_t position) const;
  // The tags of one replayed kernel as the output may state them: of the
  // partner, or for kScope what the neighbours have in common.
  Tags TagsOf(const Replay& replay, size_t position) const;
  double FactShare() const;  // of all replayed kernels, 0..1
};

class NodeTags;

struct AnnotateOptions {
  // In place of what the steps of the replay say.
  std::optional<int64_t> batch;
  // Kernels below are left without a tag.
  Level least = Level::kNone;
  // What is known by node id; stated before what alignment finds. May be null.
  const NodeTags* node_tags = nullptr;
};

Annotation Annotate(const analysis::Context& replay,
                    std::vector<Segment> segments,
                    const AnnotateOptions& options = {});

// Tables annotate_replays, annotate_levels, annotate_kernels, annotate_ops and
// annotate_modules.
ResultSet AnnotationTables(const analysis::Context& replay,
                           const Annotation& annotation);

}  // namespace lamina::cudagraph
