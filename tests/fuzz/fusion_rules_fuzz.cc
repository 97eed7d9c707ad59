// SPDX-License-Identifier: Apache-2.0
//
// A user's file of fusion rules: what is accepted is searched for, nearly and
// exactly, in a small graph and in the examples of the file, and replaced
// there. A replacement leaves lists of users that agree with the operands.
#include "base/status.h"
#include "graph/passes/pass.h"
#include "graph/passes/rule_file.h"
#include "graph/verify.h"

namespace lamina::graph {
namespace {

constexpr std::string_view kGraph =
    "%x : 2x4x8 : torch.bfloat16\n"
    "%y : 2x4x8 : torch.bfloat16\n"
    "%to = aten.to.dtype(%x : 2x4x8 : torch.bfloat16, torch.float32) : 2x4x8 "
    ": torch.float32\n"
    "%pow_1 = aten.pow.Tensor_Scalar(%to : 2x4x8 : torch.float32, 2) : 2x4x8 "
    ": torch.float32\n"
    "%mean = aten.mean.dim(%pow_1 : 2x4x8 : torch.float32, [-1], True) : 2x4x1 "
    ": torch.float32\n"
    "%lin = auto_deploy.torch_linear_simple.default(%x : 2x4x8 : "
    "torch.bfloat16, %w0 : 8x8 : torch.bfloat16, None) : 2x4x8 : "
    "torch.bfloat16\n"
    "%lin_1 = auto_deploy.torch_linear_simple.default(%x : 2x4x8 : "
    "torch.bfloat16, %w1 : 16x8 : torch.bfloat16, None) : 2x4x16 : "
    "torch.bfloat16\n"
    "%silu = aten.silu.default(%lin : 2x4x8 : torch.bfloat16) : 2x4x8 : "
    "torch.bfloat16\n"
    "%mul = aten.mul.Tensor(%silu : 2x4x8 : torch.bfloat16, %y : 2x4x8 : "
    "torch.bfloat16) : 2x4x8 : torch.bfloat16\n"
    "%add = aten.add.Tensor(%mul : 2x4x8 : torch.bfloat16, %mul : 2x4x8 : "
    "torch.bfloat16) : 2x4x8 : torch.bfloat16\n"
    "%cat = aten.cat.default([add, mul], -1) : 2x4x16 : torch.bfloat16\n"
    "%split = aten.split.Tensor(%cat : 2x4x16 : torch.bfloat16, 8, -1) : "
    "(2x4x8, 2x4x8) : (torch.bfloat16, torch.bfloat16)\n"
    "%item = <built-in function getitem>(%split : ? : tuple, 1) : 2x4x8 : "
    "torch.bfloat16\n"
    "output %item, [lin_1], %mean\n";

void Apply(const Rule& rule, std::string_view lines) {
  auto dump = ParseExample("fuzz", lines);
  LAMINA_CHECK(dump.has_value() || lines != kGraph);
  if (!dump) return;
  for (Graph& graph : dump->graphs) {
    FindOptions options;
    options.near_misses = true;
    FindRule(OpIndex(graph), rule, options);
    if (CanRewrite(rule)) ApplyRule(graph, rule, {});
    for (const Violation& violation : Verify(graph))
      LAMINA_CHECK(violation.what.find("the list of users") ==
                   std::string::npos);
  }
}

}  // namespace
}  // namespace lamina::graph

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  const auto file = rules::ParseYaml(
      "fuzz", std::string(reinterpret_cast<const char*>(data), size));
  if (!file) return 0;
  std::vector<std::string> warnings;
  const auto rules = graph::ReadRules(*file, &warnings);
  if (!rules) return 0;
  for (size_t i = 0; i < rules->size() && i < 8; ++i) {
    const graph::Rule& rule = (*rules)[i];
    graph::CheckRuleExamples(rule);
    graph::Apply(rule, graph::kGraph);
    for (size_t e = 0; e < rule.examples.size() && e < 4; ++e)
      graph::Apply(rule, rule.examples[e]);
  }
  return 0;
}
