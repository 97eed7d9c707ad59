// SPDX-License-Identifier: Apache-2.0
//
// What kernels of a compiler compute, joined to the trace from its output code
// (graph/compiled); analyses read it and know nothing of code.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/result.h"
#include "trace/trace.h"

namespace lamina::analysis {

// How sure a join is.
enum class Join : uint8_t {
  kExact,   // full name, as many launches as calls
  kSure,    // a library's kernel between two exact ones
  kLikely,  // the name fits, the counts do not
};
inline std::string_view Name(Join join) {
  return join == Join::kExact  ? "exact"
         : join == Join::kSure ? "sure"
                               : "likely";
}

struct CompiledWork {
  struct Kernel {
    std::string program;  // "0/0"
    std::string name;     // "triton_poi_fused_add_0", "mm"
    std::string kind;     // triton, extern or op
    std::string ops;      // "aten.addmm, aten.relu"
    std::string nodes;    // of the compiled graph
    std::string lines;    // "/w/model.py:12 in forward, code: ...; ..."
    std::string where;    // the same in short: "model.py:12, 13"
    size_t calls = 0;     // in one run of the program
  };
  struct Use {
    uint32_t kernel = 0;
    Join join = Join::kExact;
  };

  std::vector<Kernel> kernels;                    // as the programs define them
  absl::flat_hash_map<trace::SliceId, Use> uses;  // of device slices
  std::vector<Note> notes;

  // Null for work of which nothing is known.
  const Kernel* Of(trace::SliceId s) const {
    const auto found = uses.find(s);
    return found == uses.end() ? nullptr : &kernels[found->second.kernel];
  }
};

}  // namespace lamina::analysis
