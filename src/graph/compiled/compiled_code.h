// SPDX-License-Identifier: Apache-2.0
//
// The programs that Inductor wrote: their kernels in the order of the calls,
// with the nodes and ops that each computes, by the comments above them, and
// the lines of the model that these come from, by the graphs beside them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace lamina::graph {

// What one kernel or one call of a library computes.
struct CompiledKernel {
  enum class Kind : uint8_t {
    kTriton,  // a kernel of its own name
    kExtern,  // extern_kernels.mm: the kernel is the library's
    kOp,      // torch.ops.ns.op(...), aten.op.out(...)
  };
  Kind kind = Kind::kTriton;
  // "triton_poi_fused_add_0" as profiles show it, "mm", "aten.randint".
  std::string name;
  std::vector<std::string> ops;    // "aten.addmm", as the comments list them
  std::vector<std::string> nodes;  // of the graph that was compiled
  std::vector<std::string> lines;  // "model.py:12 in forward, code: ..."
};

struct CompiledProgram {
  std::string name;                     // "0/0", "0/0 #2", or the file
  std::string frame;                    // compile id "0/0"; empty: not known
  std::vector<CompiledKernel> kernels;  // as they are defined
  std::vector<uint32_t> calls;          // of `kernels`, in order
  bool cut = false;                     // the text ends inside
};

// The programs of a file or a folder: output code, logs (TORCH_LOGS with
// output_code), structured traces (TORCH_TRACE), folders of tlparse and of
// TORCH_COMPILE_DEBUG. Errors: cannot be read; no output code in it.
Result<std::vector<CompiledProgram>> ReadCompiledPrograms(
    const std::string& path);

// The program of one text, without lines of the model; for tests.
CompiledProgram ParseOutputCode(std::string_view text);

std::string_view Name(CompiledKernel::Kind kind);

}  // namespace lamina::graph
