// SPDX-License-Identifier: Apache-2.0
//
// What every reader's fuzzer does with a trace it was given: the host call tree
// is built, every slice of it can be named, and each piece of device work has
// one launch or none. Analyses run in report_fuzz.h; they would take most of
// the time of a reader's fuzzer.
#pragma once

#include <cstdlib>
#include <vector>

#include "trace/trace.h"
#include "tree/tree.h"

namespace lamina::fuzz {

inline void CheckTrace(const trace::Trace& trace) {
  // Reads every byte: a name that lies elsewhere is found by the sanitizer.
  [[maybe_unused]] volatile char read = 0;
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    for (const char c : trace.Name(trace::SliceId(i))) read = c;
  }
  for (const tree::LinkMode mode :
       {tree::LinkMode::kAuto, tree::LinkMode::kFlow}) {
    tree::Options options;
    options.link = mode;
    const tree::Tree tree = tree::Tree::Build(trace, options);
    std::vector<bool> seen(trace.slices.size());
    for (const trace::SliceId slice : tree.launched()) {
      if (seen[slice.value] || !tree.launch(slice).valid()) std::abort();
      seen[slice.value] = true;
    }
    for (uint32_t n = 0; n < tree.size(); ++n) {
      const tree::NodeId node(n);
      const tree::NodeId parent = tree.parent(node);
      if (parent.valid() && tree.end(parent).value < tree.end(node).value)
        std::abort();
    }
  }
}

}  // namespace lamina::fuzz
