// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices in the words of BLAS. PyTorch's matrices are row-major:
// a row-major C[M,N] = A[M,K] B[K,N] is, read column by column, the product
// C'[N,M] = B' A' of the transposed ones, so that BLAS's first operand is
// PyTorch's second.
#include <fmt/core.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "emit/replay/script.h"

namespace lamina::emit {
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
