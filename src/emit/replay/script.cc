// SPDX-License-Identifier: Apache-2.0

#include "emit/replay/script.h"

#include <fmt/core.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/writer.h"
#include "base/text.h"

namespace lamina::emit {

namespace {

constexpr std::string_view kHarness =
#include "replay_harness.inc"
    ;
constexpr std::string_view kBatch =
#include "replay_batch.inc"
    ;

bool IsWord(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (const char c : text) {
    if (!IsWordCharacter(c)) return false;
  }
  return true;
}

using json::Writer;

// The members of an object.
void WriteTensor(Writer& w, const ReplayArgument& tensor) {
  w.Text("dtype", tensor.dtype);
  w.Ints("dims", tensor.dims);
  if (tensor.strides) w.Ints("strides", *tensor.strides);
}

void WriteArgument(Writer& w, const ReplayArgument& argument) {
  w.Object();
  switch (argument.kind) {
    case ReplayArgument::Kind::kNone:
      w.Text("kind", "none");
      break;
    case ReplayArgument::Kind::kTensor:
      w.Text("kind", "tensor");
      WriteTensor(w, argument);
      break;
    case ReplayArgument::Kind::kTensors:
      w.Text("kind", "tensors");
      w.Array("tensors");
      for (const ReplayArgument& tensor : argument.tensors) {
        w.Object();
        WriteTensor(w, tensor);
        w.Close();
      }
      w.Close();
      break;
    case ReplayArgument::Kind::kValue:
      w.Text("kind", "value");
      w.Raw("value", argument.value);
      break;
  }
  w.Close();
}

}  // namespace

bool IsOpName(std::string_view name) {
  const size_t colons = name.find("::");
  if (colons == std::string_view::npos || name.size() > 200) return false;
  const std::string_view op = name.substr(colons + 2);
  const size_t dot = op.find('.');
  return IsWord(name.substr(0, colons)) && IsWord(op.substr(0, dot)) &&
         (dot == std::string_view::npos || IsWord(op.substr(dot + 1)));
}

bool IsKernelName(std::string_view name) {
  return name.size() <= 200 && IsWord(name);
}

bool IsSourceHash(std::string_view text) {
  return text.size() >= 20 && text.size() <= 80 && IsWord(text) &&
         text.find('_') == std::string_view::npos;
}

std::string ReplayJson(const ReplayCall& call) {
  std::string out;
  Writer w(out, Writer::Spaces::kAfter);
  w.Object();
  w.Text("op", call.op);
  w.Int("id", call.id);
  w.Int("count", call.count);
  w.Microseconds("kernel_time_us", call.kernel_time_ns);
  w.Microseconds("trace_us", call.mean_ns);
  if (call.flops) w.Real("flops", *call.flops);
  if (call.bytes) w.Real("bytes", *call.bytes);
  if (call.roofline_ns) w.Microseconds("roofline_us", *call.roofline_ns);
  if (call.triton) {
    w.Object("triton");
    w.Text("kernel", call.triton->kernel);
    w.Text("hash", call.triton->hash);
    w.Ints("grid", call.triton->grid);
    w.Close();
  }
  w.Array("args");
  for (const ReplayArgument& argument : call.arguments)
    WriteArgument(w, argument);
  w.Close();
  w.Close();
  return out;
}

std::string ScriptName(size_t number, std::string_view op) {
  std::string name = fmt::format("{:03}_", number);
  for (const char c : op.substr(0, 80)) {
    if (IsWordCharacter(c)) {
      name += c;
    } else if (!name.ends_with('_')) {
      name += '_';
    }
  }
  return name + ".py";
}

std::string ReplayScript(const ReplayCall& call) {
  std::string out =
      "#!/usr/bin/env python3\n"
      "# One op of a profiler trace, made by lamina replay. Needs PyTorch and "
      "nothing\n# else.\nSPEC = ";
  AppendPythonQuoted(out, ReplayJson(call));
  out += "\n\n";
  out += kHarness;
  return out;
}

std::string BatchScript() { return std::string(kBatch); }

// Products of matrices in the words of BLAS. PyTorch's matrices are row-major:
// a row-major C[M,N] = A[M,K] B[K,N] is, read column by column, the product
// C'[N,M] = B' A' of the transposed ones, so that BLAS's first operand is
// PyTorch's second.

namespace {

// How BLAS reads a row-major [rows, columns] matrix with these strides as a
// column-major [columns, rows] one.
struct Layout {
  bool transpose = false;
  int64_t leading = 0;
};
std::optional<Layout> LayoutOf(int64_t rows, int64_t columns, int64_t row,
                               int64_t column) {
  if (column == 1 && (row >= columns || rows == 1))
    return Layout{false, std::max(row, columns)};
  if (row == 1 && (column >= rows || columns == 1))
    return Layout{true, std::max(column, rows)};
  return std::nullopt;
}

struct TypeNames {
  std::string_view torch, hip, cuda;
};
constexpr TypeNames kTypes[] = {
    {"bfloat16", "bf16_r", "CUDA_R_16BF"},
    {"float16", "f16_r", "CUDA_R_16F"},
    {"float32", "f32_r", "CUDA_R_32F"},
    {"float64", "f64_r", "CUDA_R_64F"},
};
const TypeNames* FindType(std::string_view dtype) {
  for (const TypeNames& type : kTypes) {
    if (type.torch == dtype) return &type;
  }
  return nullptr;
}

}  // namespace

std::optional<ReplayGemm> GemmOf(const ReplayCall& call) {
  const bool bias = call.op == "aten::addmm" || call.op == "aten::baddbmm";
  const bool batched = call.op == "aten::bmm" || call.op == "aten::baddbmm";
  if (!bias && !batched && call.op != "aten::mm") return std::nullopt;
  const size_t first = bias ? 1 : 0;
  if (call.arguments.size() < first + 2) return std::nullopt;
  const ReplayArgument& a = call.arguments[first];
  const ReplayArgument& b = call.arguments[first + 1];
  const size_t rank = batched ? 3 : 2;
  for (const ReplayArgument* x : {&a, &b}) {
    if (x->kind != ReplayArgument::Kind::kTensor || x->dims.size() != rank ||
        (x->strides && x->strides->size() != rank))
      return std::nullopt;
    for (const int64_t size : x->dims) {
      if (size <= 0) return std::nullopt;
    }
  }
  const size_t at = rank - 2;
  ReplayGemm gemm;
  gemm.id = call.id;
  gemm.op = call.op;
  gemm.count = call.count;
  gemm.mean_ns = call.mean_ns;
  gemm.dtype = a.dtype;
  gemm.bias = bias;
  const int64_t rows = a.dims[at];
  gemm.k = a.dims[at + 1];
  const int64_t columns = b.dims[at + 1];
  if (b.dims[at] != gemm.k || a.dtype != b.dtype ||
      FindType(a.dtype) == nullptr || (batched && a.dims[0] != b.dims[0]))
    return std::nullopt;
  const auto strides = [&](const ReplayArgument& x) {
    return x.strides ? *x.strides
           : batched ? std::vector<int64_t>{x.dims[1] * x.dims[2], x.dims[2], 1}
                     : std::vector<int64_t>{x.dims[1], 1};
  };
  const std::vector<int64_t> strides_a = strides(a);
  const std::vector<int64_t> strides_b = strides(b);
  const auto layout_a =
      LayoutOf(rows, gemm.k, strides_a[at], strides_a[at + 1]);
  const auto layout_b =
      LayoutOf(gemm.k, columns, strides_b[at], strides_b[at + 1]);
  if (!layout_a || !layout_b) return std::nullopt;
  gemm.m = columns;
  gemm.n = rows;
  gemm.transpose_a = layout_b->transpose;
  gemm.lda = layout_b->leading;
  gemm.transpose_b = layout_a->transpose;
  gemm.ldb = layout_a->leading;
  gemm.ldc = columns;
  if (batched) {
    gemm.batch = a.dims[0];
    gemm.stride_a = strides_b[0];
    gemm.stride_b = strides_a[0];
    gemm.stride_c = rows * columns;
  }
  return gemm;
}

std::string HipblasltLine(const ReplayGemm& gemm) {
  const std::string_view type = FindType(gemm.dtype)->hip;
  std::string out = fmt::format(
      "hipblaslt-bench --transA {} --transB {} -m {} -n {} -k {} --lda {} "
      "--ldb {} --ldc {} --ldd {} --a_type {} --b_type {} --c_type {} --d_type "
      "{} --compute_type {} --alpha 1 --beta 0",
      gemm.transpose_a ? 'T' : 'N', gemm.transpose_b ? 'T' : 'N', gemm.m,
      gemm.n, gemm.k, gemm.lda, gemm.ldb, gemm.ldc, gemm.ldc, type, type, type,
      type, type == "f64_r" ? "f64_r" : "f32_r");
  if (gemm.batch > 1) {
    out += fmt::format(
        " --batch_count {} --stride_a {} --stride_b {} --stride_c {} "
        "--stride_d {}",
        gemm.batch, gemm.stride_a, gemm.stride_b, gemm.stride_c, gemm.stride_c);
  }
  if (gemm.op == "aten::addmm") out += " --bias_vector";
  return out;
}

std::string GemmJson(const ReplayGemm& gemm) {
  std::string out = "{\"op\": ";
  AppendJsonQuoted(out, gemm.op);
  const TypeNames& type = *FindType(gemm.dtype);
  out += fmt::format(
      ", \"id\": {}, \"transa\": \"{}\", \"transb\": \"{}\", \"m\": {}, \"n\": "
      "{}, \"k\": {}, \"lda\": {}, \"ldb\": {}, \"ldc\": {}, \"batch_count\": "
      "{}, \"stride_a\": {}, \"stride_b\": {}, \"stride_c\": {}, \"a_type\": "
      "\"{}\", \"compute_type\": \"{}\", \"bias\": {}, \"count\": {}, "
      "\"trace_us\": ",
      gemm.id, gemm.transpose_a ? 'T' : 'N', gemm.transpose_b ? 'T' : 'N',
      gemm.m, gemm.n, gemm.k, gemm.lda, gemm.ldb, gemm.ldc, gemm.batch,
      gemm.stride_a, gemm.stride_b, gemm.stride_c, type.cuda,
      type.torch == "float64" ? "CUBLAS_COMPUTE_64F" : "CUBLAS_COMPUTE_32F",
      gemm.bias, gemm.count);
  AppendMicroseconds(out, gemm.mean_ns);
  return out + "}";
}

}  // namespace lamina::emit
