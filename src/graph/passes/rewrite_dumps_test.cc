// SPDX-License-Identifier: Apache-2.0
//
// Rewrites the reference dumps and compares with what the pipeline wrote, up to
// names of values, addresses and the order of independent nodes.
#include <absl/hash/hash.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <ostream>

#include "graph/dialects/read.h"
#include "graph/passes/pass.h"
#include "graph/print.h"
#include "graph/types.h"
#include "graph/verify.h"
#include "source_dir.h"

namespace lamina::graph {
namespace {

std::string Dumps() {
  const char* shared = std::getenv("LAMINA_SHARED");
  const std::string folder =
      shared != nullptr ? shared
                        : std::string(LAMINA_SOURCE_DIR) + "/../shared";
  return folder + "/dumps/";
}

std::string FindDump(const std::string& folder, const std::string& number) {
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(Dumps() + folder, error)) {
    if (entry.path().filename().string().starts_with(number + "_"))
      return entry.path().string();
  }
  return {};
}

std::string Canonical(std::string_view result) {
  const ResultText parts = SplitResult(result);
  if (!parts.tuple)
    return CanonicalShape(parts.shape) + ":" + std::string(parts.dtype);
  std::string out;
  for (const std::string_view shape : SplitTuple(parts.shape))
    out += CanonicalShape(shape) + ",";
  return out + std::string(parts.dtype);
}

// One number per node that depends on everything it is computed from, but not
// on names. Sorted.
std::vector<size_t> Fingerprints(const Graph& graph) {
  std::vector<size_t> hash(graph.size());
  std::vector<size_t> out;
  for (const NodeId id : graph.Weights())
    hash[id.value] = absl::HashOf(
        absl::string_view(graph[id].name.data(), graph[id].name.size()));
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph[id];
    const std::string_view op = node.kind == NodeKind::kOp ? graph.op(id)
                                : node.kind == NodeKind::kPlaceholder
                                    ? node.name
                                    : std::string_view("output");
    size_t h = absl::HashOf(std::string(op), Canonical(node.result));
    for (const Operand& operand : graph.Operands(id)) {
      if (operand.IsValue()) {
        h = absl::HashOf(h, hash[operand.value().value]);
      } else if (IsContainer(operand.kind)) {
        h = absl::HashOf(h, operand.extent());
      } else {
        h = absl::HashOf(h, std::string(operand.text()));
      }
    }
    hash[id.value] = h;
    out.push_back(h);
  }
  std::sort(out.begin(), out.end());
  return out;
}

struct Case {
  const char* folder;
  const char* before;
  const char* after;
  std::vector<const char*> transforms;
  size_t matches;  // of the last transform
};

// Without it the name of a test would hold addresses.
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.folder << " " << c.before << " to " << c.after;
}

class RewriteDumps : public testing::TestWithParam<Case> {};

TEST_P(RewriteDumps, GivesTheNextDump) {
  const Case& c = GetParam();
  const std::string before_path = FindDump(c.folder, c.before);
  if (before_path.empty()) GTEST_SKIP() << "no reference dumps";
  const auto set = LoadRuleSet(rules::DataSet());
  ASSERT_TRUE(set) << set.error().ToString();
  const PassRegistry registry(*set);
  PipelineConfig config;
  for (const char* name : c.transforms) {
    const Pass* const pass = registry.Find(name);
    ASSERT_NE(pass, nullptr) << name;
    config.transforms.push_back({});
    config.transforms.back().name = name;
    config.transforms.back().stage = pass->stage;
  }
  auto dump = ReadDump(before_path);
  auto expected = ReadDump(FindDump(c.folder, c.after));
  ASSERT_TRUE(dump && expected);
  EXPECT_NE(Fingerprints(dump->graphs[0]), Fingerprints(expected->graphs[0]));
  const auto reports = RunPasses(*dump, config, registry, {});
  ASSERT_TRUE(reports) << reports.error().ToString();
  EXPECT_EQ(reports->back().entry.matches, static_cast<int64_t>(c.matches));
  for (const auto& [reason, count] : reports->back().left)
    ADD_FAILURE() << count << " left: " << reason;
  EXPECT_TRUE(Verify(dump->graphs[0]).empty());
  EXPECT_TRUE(VerifyAnnotations(dump->graphs[0]).empty());
  EXPECT_EQ(Fingerprints(dump->graphs[0]), Fingerprints(expected->graphs[0]));
  // What is written reads back as the same graph.
  const auto again = ParseDump("again", Print(*dump));
  ASSERT_TRUE(again);
  EXPECT_EQ(Fingerprints(again->graphs[0]), Fingerprints(dump->graphs[0]));
  // A second run finds nothing more, but for transforms of layout, whose
  // result differs from what they look for by a literal.
  const auto twice = RunPasses(*dump, config, registry, {});
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->back().entry.matches, 0);
}

constexpr const char* kMixtral = "mixtral_4l_moe_symbolic";
constexpr const char* kLlama = "llama_32l_gqa_symbolic";

INSTANTIATE_TEST_SUITE_P(
    Reference, RewriteDumps,
    testing::Values(
        Case{kMixtral, "001", "009", {"match_repeat_kv"}, 8},
        Case{kMixtral, "009", "012", {"match_grouped_attention"}, 4},
        Case{kMixtral, "012", "013", {"match_attention_layout"}, 4},
        Case{kMixtral, "013", "014", {"match_rope_pattern"}, 4},
        Case{kMixtral, "014", "015", {"match_rope_layout"}, 4},
        Case{kMixtral, "015", "016", {"match_rmsnorm_pattern"}, 9},
        Case{kMixtral, "016", "018", {"match_moe_routing_pattern"}, 4},
        Case{kMixtral, "018", "019", {"eliminate_redundant_transposes"}, 24},
        Case{kMixtral, "019", "053", {"fuse_moe"}, 4},
        Case{kMixtral, "053", "058", {"fuse_rmsnorm"}, 9},
        Case{kMixtral, "058", "064", {"fuse_add_rms_norm"}, 8},
        Case{kMixtral, "064", "069", {"optimize_rope"}, 4},
        Case{kMixtral,
             "001",
             "069",
             {"match_repeat_kv", "match_grouped_attention",
              "match_attention_layout", "match_rope_pattern",
              "match_rope_layout", "match_rmsnorm_pattern",
              "match_moe_routing_pattern", "eliminate_redundant_transposes",
              "fuse_moe", "fuse_rmsnorm", "fuse_add_rms_norm", "optimize_rope"},
             4},
        Case{kLlama,
             "001",
             "016",
             {"match_repeat_kv", "match_grouped_attention",
              "match_attention_layout", "match_rope_pattern",
              "match_rope_layout", "match_rmsnorm_pattern"},
             65},
        Case{kLlama, "016", "019", {"eliminate_redundant_transposes"}, 192},
        Case{
            kLlama, "019", "058", {"match_swiglu_pattern", "fuse_rmsnorm"}, 65},
        Case{kLlama, "058", "064", {"fuse_swiglu", "fuse_add_rms_norm"}, 64}),
    [](const auto& test) {
      return std::string(test.param.folder == kLlama ? "Llama" : "Mixtral") +
             test.param.before + "To" + test.param.after;
    });

}  // namespace
}  // namespace lamina::graph
