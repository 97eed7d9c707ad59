// SPDX-License-Identifier: Apache-2.0
//
// The copy of a replay trace with what is known of its replayed kernels.
#pragma once

#include <functional>
#include <string>

#include "analysis/common/compiled_work.h"
#include "base/status.h"
#include "compare/cudagraph/annotate.h"
#include "emit/chrome/filter.h"

namespace lamina::engine {

// Which tags are written.
struct AugmentLevels {
  bool op = true;
  bool module = true;
  bool line = true;
  bool range = true;
};

// Writes the trace `input`, from which `trace` was read, to `output`. Added are
// the tags in the arguments of every replayed kernel, tracks for ops and
// modules of every stream in a process above that of the device, and the start
// of the launch's flow where the profiler left it out. All else stays as it is,
// byte for byte, and memory does not grow with the input. An output that ends
// in .pftrace or .pftrace.gz is written anew as a Perfetto trace instead, from
// an input of any format. Returns what an input that is no JSON throughout
// lost.
Result<emit::CopyLoss> WriteAugmented(const std::string& input,
                                      const std::string& output,
                                      const trace::Trace& trace,
                                      const cudagraph::Annotation& annotation,
                                      const AugmentLevels& levels);

// As the simple method does it: `tags_of(kernel)` in "source_lines", nothing
// where it is empty, and no tracks.
Result<emit::CopyLoss> WriteSourceLines(
    const std::string& input, const std::string& output,
    const trace::Trace& trace, const cudagraph::Annotation& annotation,
    const std::function<std::string(trace::SliceId)>& tags_of);

// Puts what compiled kernels compute into their arguments: lamina_ops,
// lamina_lines, lamina_nodes and lamina_join.
Result<emit::CopyLoss> WriteCompiled(const std::string& input,
                                     const std::string& output,
                                     const trace::Trace& trace,
                                     const analysis::CompiledWork& compiled);

}  // namespace lamina::engine
