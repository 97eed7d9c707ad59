// SPDX-License-Identifier: Apache-2.0
//
// A Python script that rebuilds the arguments of one recorded op and runs it,
// and what belongs to a folder of such scripts. Everything from the trace
// stands in them as one JSON string literal: it is data and never code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::emit {

// An argument of an op.
struct ReplayArgument {
  enum class Kind : uint8_t {
    kNone,  // absent, or not recorded
    kTensor,
    kTensors,  // a list of tensors
    kValue,
  };
  Kind kind = Kind::kNone;
  std::string dtype;  // of torch: "bfloat16"
  std::vector<int64_t> dims;
  std::optional<std::vector<int64_t>> strides;
  std::vector<ReplayArgument> tensors;
  std::string value;  // JSON
};

// A kernel that torch.compile wrote in Triton. Its source is not in a trace: it
// is a file of the compiler's cache that is named by the hash of its text, so
// a script runs nothing but what was recorded.
struct ReplayTriton {
  std::string kernel;         // the function in the file
  std::string hash;           // name of the file without ".py"
  std::vector<int64_t> grid;  // as the caller gave it; empty: the file says it
};

struct ReplayCall {
  std::string op;   // "aten::mm"
  uint32_t id = 0;  // event number of the first such call
  std::vector<ReplayArgument> arguments;
  int64_t count = 0;
  int64_t kernel_time_ns = 0;  // of all calls
  int64_t mean_ns = 0;
  std::optional<double> flops, bytes;
  std::optional<int64_t> roofline_ns;
  std::optional<ReplayTriton> triton;
};

// One product of matrices, as BLAS says it: column-major, D = A * B.
struct ReplayGemm {
  uint32_t id = 0;
  std::string op;
  int64_t m = 0, n = 0, k = 0, batch = 1;
  bool transpose_a = false, transpose_b = false;
  int64_t lda = 0, ldb = 0, ldc = 0;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  bool bias = false;
  std::string dtype;
  int64_t count = 0;
  int64_t mean_ns = 0;
};

// Whether a name is "namespace::op" or "namespace::op.overload" and nothing
// else.
bool IsOpName(std::string_view name);
// Whether a name is one of a function, "triton_poi_fused_add_0", and a text
// such a hash.
bool IsKernelName(std::string_view name);
bool IsSourceHash(std::string_view text);

// The call as JSON: what a script holds, and an entry of the manifest.
std::string ReplayJson(const ReplayCall& call);

// A file name without anything that a name could smuggle in: "001_aten_mm.py".
std::string ScriptName(size_t number, std::string_view op);
std::string ReplayScript(const ReplayCall& call);
// Runs the scripts of a manifest.
std::string BatchScript();

// The product of aten::mm, addmm, bmm or baddbmm; nothing for other ops and
// for operands that BLAS cannot read in place.
std::optional<ReplayGemm> GemmOf(const ReplayCall& call);
// One line of hipblaslt-bench, and one of JSON with the names of cuBLAS.
std::string HipblasltLine(const ReplayGemm& gemm);
std::string GemmJson(const ReplayGemm& gemm);

}  // namespace lamina::emit
