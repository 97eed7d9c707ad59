// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "emit/replay/script.h"

namespace lamina::emit {
namespace {

ReplayArgument Tensor(std::vector<int64_t> dims, std::vector<int64_t> strides) {
  ReplayArgument tensor;
  tensor.kind = ReplayArgument::Kind::kTensor;
  tensor.dtype = "bfloat16";
  tensor.dims = std::move(dims);
  tensor.strides = std::move(strides);
  return tensor;
}

TEST(Replay, NamesOfOps) {
  for (const char* good : {"aten::mm", "aten::add.Tensor", "c10d::allreduce_",
                           "_C::f", "my_lib2::op"})
    EXPECT_TRUE(IsOpName(good)) << good;
  for (const char* bad :
       {"", "::", "aten::", "::mm", "mm", "aten::m m", "aten::mm;x",
        "aten::mm::x", "aten::mm.", "aten::.mm", "a\"b::c", "aten::mm\n",
        "2a::b", "aten::mm('x')", "aten:: __import__", "../x::y"})
    EXPECT_FALSE(IsOpName(bad)) << bad;
}

TEST(Replay, FileNamesAreWords) {
  EXPECT_EQ(ScriptName(1, "aten::mm"), "001_aten_mm.py");
  EXPECT_EQ(ScriptName(12, "../../x y;'\n"), "012_x_y_.py");
}

TEST(Replay, JsonHoldsTheCall) {
  ReplayCall call;
  call.op = "aten::\"x\\'\n</script>";
  call.id = 7;
  call.arguments = {Tensor({2, 3}, {3, 1})};
  call.arguments.emplace_back();
  ReplayArgument value;
  value.kind = ReplayArgument::Kind::kValue;
  value.value = "[1, true]";
  call.arguments.push_back(value);
  call.mean_ns = 1500;
  call.flops = 12;
  const auto json = nlohmann::json::parse(ReplayJson(call));
  EXPECT_EQ(json["op"], call.op);
  EXPECT_EQ(json["trace_us"], 1.5);
  EXPECT_EQ(json["args"][0]["strides"], (std::vector<int>{3, 1}));
  EXPECT_EQ(json["args"][1]["kind"], "none");
  EXPECT_EQ(json["args"][2]["value"][1], true);
  // One line of data, whatever the name holds.
  const std::string script = ReplayScript(call);
  const size_t begin = script.find("SPEC = ");
  ASSERT_NE(begin, std::string::npos);
  const std::string line =
      script.substr(begin, script.find('\n', begin) - begin);
  EXPECT_NE(line.find("</script>"), std::string::npos);
  EXPECT_TRUE(line.ends_with('\'') || line.ends_with('"'));
}

TEST(Replay, ProductsInTheWordsOfBlas) {
  ReplayCall call;
  call.op = "aten::mm";
  call.arguments = {Tensor({8, 4}, {4, 1}), Tensor({4, 6}, {6, 1})};
  auto gemm = GemmOf(call);
  ASSERT_TRUE(gemm);
  EXPECT_EQ(HipblasltLine(*gemm),
            "hipblaslt-bench --transA N --transB N -m 6 -n 8 -k 4 --lda 6 "
            "--ldb 4 --ldc 6 --ldd 6 --a_type bf16_r --b_type bf16_r --c_type "
            "bf16_r --d_type bf16_r --compute_type f32_r --alpha 1 --beta 0");
  // A weight [6, 4] read as its transpose, and a transposed left side.
  call.arguments = {Tensor({8, 4}, {1, 8}), Tensor({4, 6}, {1, 4})};
  gemm = GemmOf(call);
  ASSERT_TRUE(gemm);
  EXPECT_TRUE(gemm->transpose_a);
  EXPECT_TRUE(gemm->transpose_b);
  EXPECT_EQ(gemm->lda, 4);
  EXPECT_EQ(gemm->ldb, 8);
  // Columns of a wider matrix.
  call.arguments = {Tensor({8, 4}, {10, 1}), Tensor({4, 6}, {6, 1})};
  EXPECT_EQ(GemmOf(call)->ldb, 10);
  // No stride of 1: BLAS cannot read it.
  call.arguments = {Tensor({8, 4}, {8, 2}), Tensor({4, 6}, {6, 1})};
  EXPECT_FALSE(GemmOf(call));
  call.op = "aten::baddbmm";
  call.arguments = {Tensor({2, 8, 6}, {48, 6, 1}),
                    Tensor({2, 8, 4}, {32, 4, 1}),
                    Tensor({2, 4, 6}, {24, 6, 1})};
  gemm = GemmOf(call);
  ASSERT_TRUE(gemm);
  EXPECT_NE(HipblasltLine(*gemm).find("--batch_count 2 --stride_a 24 "
                                      "--stride_b 32 --stride_c 48"),
            std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(GemmJson(*gemm))["m"], 6);
  call.op = "aten::add";
  EXPECT_FALSE(GemmOf(call));
  call.op = "aten::mm";
  call.arguments = {Tensor({8, 4}, {4, 1})};
  EXPECT_FALSE(GemmOf(call));
}

}  // namespace
}  // namespace lamina::emit
