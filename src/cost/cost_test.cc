// SPDX-License-Identifier: Apache-2.0
//
// Formulas, dtypes, arguments and the examples of every cost model.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <set>

#include "cost/dtype.h"
#include "cost/models.h"

namespace lamina::cost {
namespace {

Value Eval(std::string_view text, const Call& call = {},
           const std::vector<std::string>& names = {},
           std::vector<Value> values = {}) {
  const auto formula = Formula::Compile(text, names);
  EXPECT_TRUE(formula) << text << ": " << formula.error().what;
  if (!formula) return {};
  Scope scope;
  scope.call = &call;
  scope.variables = std::move(values);
  return formula->Evaluate(scope);
}

double Number(std::string_view text) {
  const Value value = Eval(text);
  EXPECT_TRUE(value.is_number()) << text;
  return value.number();
}

TEST(Formula, Precedence) {
  EXPECT_EQ(Number("1 + 2 * 3"), 7);
  EXPECT_EQ(Number("(1 + 2) * 3"), 9);
  EXPECT_EQ(Number("10 - 4 - 3"), 3);
  EXPECT_EQ(Number("-2 * 3"), -6);
  EXPECT_EQ(Number("7 % 4 + 8 / 4"), 5);
  EXPECT_EQ(Number("1 + 1 == 2 and not 3 < 2 or 0"), 1);
  EXPECT_EQ(Number("2 >= 2 and 2 > 1 and 1 != 2"), 1);
  EXPECT_EQ(Number("if(0, 1, if(1, 5, 6))"), 5);
}

TEST(Formula, Lists) {
  EXPECT_EQ(Number("[4, 5, 6][1]"), 5);
  EXPECT_EQ(Number("[4, 5, 6][-1]"), 6);
  EXPECT_EQ(Number("prod([4, 5, 6][1:])"), 30);
  EXPECT_EQ(Number("sum([4, 5, 6][:2])"), 9);
  EXPECT_EQ(Number("len([4, 5, 6][5:])"), 0);
  EXPECT_FALSE(Eval("[4, 5][2]").known());
  EXPECT_FALSE(Eval("[4, 5][-3]").known());
  EXPECT_EQ(Number("max([4, 5], 9)"), 9);
}

TEST(Formula, TheUnknownSpreadsAndIsCaught) {
  EXPECT_FALSE(Eval("unknown() + 1").known());
  EXPECT_FALSE(Eval("if(unknown(), 1, 2)").known());
  EXPECT_FALSE(Eval("1 / 0").known());
  EXPECT_EQ(Number("first(unknown(), 3)"), 3);
  EXPECT_EQ(Number("given(unknown())"), 0);
  EXPECT_EQ(Number("0 and unknown()"), 0);
  EXPECT_EQ(Number("1 or unknown()"), 1);
  EXPECT_FALSE(Eval("1 and unknown()").known());
}

TEST(Formula, ErrorsPointAtTheirPlace) {
  const auto error = [](std::string_view text) {
    const auto formula = Formula::Compile(text, {"M", "hidden"});
    EXPECT_FALSE(formula) << text;
    return formula ? Formula::SyntaxError{} : formula.error();
  };
  EXPECT_EQ(error("2 * hiden").offset, 4U);
  EXPECT_EQ(error("2 * hiden").hint, "did you mean 'hidden'?");
  EXPECT_EQ(error("2 * ").what, "the formula ends too early");
  EXPECT_EQ(error("prd(M)").hint, "did you mean 'prod'?");
  EXPECT_EQ(error("prod(M, M)").what, "'prod' takes 1 arguments, not 2");
  EXPECT_EQ(error("M M").what, "expected an operator");
  EXPECT_EQ(error("M[1").what, "expected ']' or ':'");
  EXPECT_EQ(error("(M").what, "expected ')'");
  // Deep nesting ends with an error and not with the stack.
  EXPECT_FALSE(Formula::Compile(std::string(100000, '('), {}));
  EXPECT_FALSE(Formula::Compile(std::string(100000, '-') + "1", {}));
}

// Twins that count pair by pair.
TEST(Functions, CausalPairs) {
  for (int q = 1; q < 9; ++q) {
    for (int k = 1; k < 9; ++k) {
      double top = 0;
      double bottom = 0;
      for (int i = 0; i < q; ++i) {
        for (int j = 0; j < k; ++j) {
          top += j <= i;
          bottom += j <= i + k - q;
        }
      }
      if (q == k) top = bottom = q * q / 2.0;
      const std::string pair =
          std::to_string(q) + ", " + std::to_string(k) + ", ";
      EXPECT_EQ(Number("causal_pairs(" + pair + "0)"), top) << pair;
      EXPECT_EQ(Number("causal_pairs(" + pair + "1)"), bottom) << pair;
    }
  }
}

TEST(Functions, ShapesOfResults) {
  EXPECT_EQ(Number("prod(broadcast([8, 1, 4], [3, 1]))"), 96);
  EXPECT_FALSE(Eval("broadcast([8], [7])").known());
  EXPECT_EQ(Number("prod(convolution_shape([4, 3, 224, 224], [768, 3, 16, "
                   "16], [16, 16], [0], 1, 0, 0, 1))"),
            4 * 768 * 14 * 14);
  EXPECT_FALSE(
      Eval("convolution_shape([4, 3, 8], [4, 3, 8, 8], 1, 0, 1, 0, 0, 1)")
          .known());
  EXPECT_EQ(Number("reduced([2, 3, 4], [-1, 0])"), 3);
  EXPECT_EQ(Number("reduced([2, 3, 4], unknown())"), 1);
  EXPECT_FALSE(Eval("reduced([2, 3], 5)").known());
}

TEST(DTypes, AreComplete) {
  const auto size = [](std::string_view text) {
    const auto type = FindDType(text);
    return type ? type->bytes : -1;
  };
  EXPECT_EQ(size("c10::complex<double>"), 16);
  EXPECT_EQ(size("double"), 8);
  EXPECT_EQ(size("c10::BFloat16"), 2);
  EXPECT_EQ(size("Float"), 4);
  EXPECT_EQ(size("c10::Float8_e5m2fnuz"), 1);
  EXPECT_EQ(size("bool"), 1);
  EXPECT_EQ(size("short int"), 2);
  EXPECT_EQ(size("pred"), 1);
  EXPECT_EQ(size("ScalarList"), -1);
  EXPECT_EQ(size(""), -1);
  EXPECT_FALSE(IsTensorType("Scalar"));
  EXPECT_EQ(Precision(*FindDType("c10::Float8_e5m2"), "matrix"), "fp8");
  EXPECT_EQ(Precision(*FindDType("signed char"), "matrix"), "int8");
  EXPECT_EQ(Precision(*FindDType("signed char"), "vector"), "");
  EXPECT_EQ(Precision(*FindDType("unsigned char"), "matrix"), "fp8");
}

TEST(Arguments, HostileTextHasNoCost) {
  EXPECT_FALSE(ParseCall("op", "[[1, -2]]", "", ""));
  EXPECT_FALSE(ParseCall("op", "[[1, \"s0\"]]", "", ""));
  EXPECT_FALSE(ParseCall("op", "[[1e300]]", "", ""));
  EXPECT_FALSE(ParseCall("op", "{\"a\": 1}", "", ""));
  EXPECT_FALSE(ParseCall("op", "[[1, 2", "", ""));
  EXPECT_FALSE(ParseCall("op", std::string(200000, '['), "", ""));
  const auto call = ParseCall("op", "[[2, 3], [[1], [2, 2]]]",
                              "[\"float\", \"TensorList\"]", "[\"\", \"\"]");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->arguments[1].list.size(), 2U);
}

std::shared_ptr<const ModelSet> Models() {
  const auto models = ModelSet::Load(rules::DataSet());
  EXPECT_TRUE(models) << models.error().ToString();
  return models ? *models : nullptr;
}

// Every model has an example, and every example the numbers it states.
TEST(Models, Examples) {
  const auto set = Models();
  ASSERT_NE(set, nullptr);
  for (const auto& model : set->models())
    EXPECT_FALSE(model->examples.empty()) << model->name;
  for (const std::string& problem : CheckExamples(*set))
    ADD_FAILURE() << problem;
}

TEST(Models, BackwardOfAForwardOp) {
  const auto set = Models();
  ASSERT_NE(set, nullptr);
  const OpModel* op = set->Find("aten::_scaled_dot_product_flash_attention");
  ASSERT_NE(op, nullptr);
  ASSERT_TRUE(set->HasBackward(*op));
  const auto call = ParseCall(
      "aten::_scaled_dot_product_flash_attention",
      "[[1, 8, 128, 64], [1, 2, 128, 64], [1, 2, 128, 64], [], []]",
      "[\"c10::Half\", \"c10::Half\", \"c10::Half\", \"Scalar\", \"Scalar\"]",
      "[\"\", \"\", \"\", \"0.\", \"True\"]");
  const auto cost = set->Evaluate(*op, *call, true);
  ASSERT_TRUE(cost);
  const double pairs = 128 * 128 / 2.0;
  // Four products of forward size and one of QK^T, and the sum over groups.
  EXPECT_EQ(cost->flops, 8 * pairs * (4 * 128 + 2 * 64) + 128 * 128 * (4 - 1));
  EXPECT_EQ(cost->bytes, 2 * 2 * (128 * 8 * 128 + 128 * 2 * 128));
  EXPECT_EQ(cost->Spec(), "matrix_fp16");
}

TEST(Models, WrappersOfProfilersHaveNumbers) {
  EXPECT_EQ(WithoutInstance("sglang_profiler::attention_7"),
            "sglang_profiler::attention");
  EXPECT_EQ(WithoutInstance("sglang_profiler::rmsnorm2d"),
            "sglang_profiler::rmsnorm2d");
  EXPECT_EQ(WithoutInstance("aten::add_7"), "aten::add_7");
  const auto set = Models();
  ASSERT_NE(set, nullptr);
  EXPECT_NE(set->Find("sglang_profiler::attention_paged_attention_ragged_12"),
            nullptr);
}

TEST(Models, CompiledTritonKernels) {
  const auto set = Models();
  ASSERT_NE(set, nullptr);
  const std::string name = "triton_red_fused_abs_amax_transpose_view_32";
  const OpModel* op = set->Find(name);
  ASSERT_NE(op, nullptr);
  const auto call =
      ParseCall(name, "[[18432, 128], [18432], [], []]",
                "[\"c10::BFloat16\", \"float\", \"Scalar\", \"Scalar\"]",
                "[\"\", \"\", \"18432\", \"128\"]");
  const auto cost = set->Evaluate(*op, *call);
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->flops, 2359296);
  EXPECT_EQ(cost->bytes, 18432 * 128 * 2 + 18432 * 4);
  EXPECT_EQ(set->Find("triton_tem_fused_mm_1"), nullptr);
}

TEST(Formula, LongChainsAreRefused) {
  std::string sum = "1";
  std::string index = "[1]";
  for (int i = 0; i < 100000; ++i) {
    sum += "+1";
    index += "[0]";
  }
  for (const std::string& text : {sum, index}) {
    const auto formula = Formula::Compile(text, {});
    ASSERT_FALSE(formula);
    EXPECT_EQ(formula.error().what, "a formula has at most 4096 characters");
  }
  // The longest chain that is taken can be evaluated.
  EXPECT_EQ(Number(sum.substr(0, 4095)), 2048);
}

TEST(Models, AnErrorInAFileNamesItsPlace) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "lamina_cost_test";
  fs::create_directories(folder / "costs");
  const auto message = [&](const std::string& text) {
    std::ofstream(folder / "costs" / "mine.yaml") << text;
    const auto set = ModelSet::Load(rules::DataSet(folder.string()));
    EXPECT_FALSE(set);
    return set ? std::string() : set.error().ToString();
  };
  EXPECT_NE(message("formulas:\n  - model: x\n    flops: 2 * nn(0)\n"
                    "    bytes: 1\n")
                .find("mine.yaml:3:16: there is no function 'nn'"),
            std::string::npos);
  EXPECT_NE(message("formulas:\n  - model: x\n    flops: 1\n")
                .find("a model needs 'flops' and 'bytes'"),
            std::string::npos);
  EXPECT_NE(message("models:\n  - model: mmm\n    family: gemm\n"
                    "    ops: [a::b]\n")
                .find("there is no model 'mmm'; did you mean"),
            std::string::npos);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace lamina::cost
