// SPDX-License-Identifier: Apache-2.0
#include "compare/cudagraph/layer_number.h"

#include <gtest/gtest.h>
#include <map>
#include <string>

#include "trace/builder.h"
#include "tree/tree.h"

namespace lamina::cudagraph {
namespace {

using Layers = std::map<std::string, int64_t>;

// Modules by their paths, "Model_0/Layer_1", each after the one it is in; the
// layer of each.
Layers LayersOf(const std::vector<std::string>& paths) {
  // Each calls those that follow below it.
  const auto last_below = [&](size_t i) {
    size_t last = i;
    while (last + 1 < paths.size() &&
           paths[last + 1].starts_with(paths[i] + "/"))
      ++last;
    return last;
  };
  trace::LocalNames names;
  trace::Segment segment(&names);
  const trace::TrackId track =
      names.InternTrack(names.Intern("9"), names.Intern("1"));
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string own = paths[i].substr(paths[i].rfind('/') + 1);
    const auto start_ns = static_cast<int64_t>(100 * i);
    const auto end_ns = static_cast<int64_t>(100 * last_below(i) + 50);
    segment.AddSlice(start_ns, end_ns - start_ns,
                     names.Intern("nn.Module: " + own), trace::Kind::kPython,
                     names.InternCategory("python_function"), track, i,
                     segment.AddPython({}));
    ++segment.next_uid;
  }
  segment.Seal();
  trace::TraceBuilder builder;
  builder.Append(segment);
  const trace::Trace trace = builder.Finish(1);
  const tree::Tree tree = tree::Tree::Build(trace, {});
  const tree::Modules modules = tree::Modules::Build(tree);
  const LayerNumbers numbers(trace, modules);
  Layers out;
  for (uint32_t i = 0; i < modules.paths().size(); ++i) {
    const tree::ModulePathId path(i);
    out[modules.PathText(path)] = numbers.Of(path);
  }
  EXPECT_EQ(out.size(), paths.size());
  return out;
}

TEST(LayerNumbers, PartsOfALayerHaveItsNumber) {
  EXPECT_EQ(
      LayersOf({"Model_0", "Model_0/DecoderLayer_2",
                "Model_0/DecoderLayer_2/LayerNorm_8", "Model_0/DecoderLayer_3",
                "Model_0/DecoderLayer_3/Attention_3",
                "Model_0/DecoderLayer_3/Attention_3/LayerScale_7",
                "Model_0/DecoderLayer_3/LayerNorm_12", "Model_0/LayerNorm_13"}),
      (Layers{{"Model_0", -1},
              {"Model_0/DecoderLayer_2", 2},
              {"Model_0/DecoderLayer_2/LayerNorm_8", 2},
              {"Model_0/DecoderLayer_3", 3},
              {"Model_0/DecoderLayer_3/Attention_3", 3},
              {"Model_0/DecoderLayer_3/Attention_3/LayerScale_7", 3},
              {"Model_0/DecoderLayer_3/LayerNorm_12", 3},
              {"Model_0/LayerNorm_13", -1}}));
}

TEST(LayerNumbers, TheContainerIsTheOneThatRepeats) {
  EXPECT_EQ(
      LayersOf({"Block_0", "Block_0/LayerTE_4", "Block_0/LayerTE_4/MlpBlock_8",
                "Block_0/LayerTE_4/MlpBlock_9", "Block_0/LayerTE_5",
                "Block_0/LayerTE_5/MlpBlock_10"}),
      (Layers{{"Block_0", 0},
              {"Block_0/LayerTE_4", 4},
              {"Block_0/LayerTE_4/MlpBlock_8", 4},
              {"Block_0/LayerTE_4/MlpBlock_9", 4},
              {"Block_0/LayerTE_5", 5},
              {"Block_0/LayerTE_5/MlpBlock_10", 5}}));
}

TEST(LayerNumbers, OneLayerAloneIsStillOne) {
  EXPECT_EQ(LayersOf({"model", "model/layers_7", "model/layers_7/mlp_1",
                      "model/h_3", "model/path_4", "model/layer1_0"}),
            (Layers{{"model", -1},
                    {"model/layers_7", 7},
                    {"model/layers_7/mlp_1", 7},
                    {"model/h_3", 3},
                    {"model/path_4", -1},
                    {"model/layer1_0", -1}}));
}

}  // namespace
}  // namespace lamina::cudagraph
