// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/classic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <string>

namespace lamina::analysis::layers {
namespace {

// One letter a kernel: N norm, R all-reduce, A attention, a attention that
// votes for decode, p for prefill, M MLA attention, G linear, E expert, F
// activation of a feed-forward part, o other.
std::vector<ClassicKernel> Kernels(std::string_view letters) {
  std::vector<ClassicKernel> out;
  for (const char c : letters) {
    ClassicKernel kernel;
    switch (c) {
      case 'N':
        kernel.start = true;
        break;
      case 'R':
        kernel.type = ClassicType::kCommunication;
        kernel.all_reduce = true;
        break;
      case 'M':
        kernel.mla = true;
        [[fallthrough]];
      case 'A':
        kernel.type = ClassicType::kAttention;
        break;
      case 'a':
        kernel.type = ClassicType::kAttention;
        kernel.vote = Stage::kDecode;
        break;
      case 'p':
        kernel.type = ClassicType::kAttention;
        kernel.vote = Stage::kPrefill;
        break;
      case 'G':
        kernel.type = ClassicType::kLinear;
        break;
      case 'E':
        kernel.type = ClassicType::kMoe;
        kernel.moe = true;
        break;
      case 'F':
        kernel.fc = true;
        break;
      default:
        break;
    }
    out.push_back(kernel);
  }
  return out;
}

// The layers as letters with their types: "RNGAG/ATTN".
std::vector<std::string> Cut(const std::string& letters,
                             const ClassicOptions& options) {
  std::vector<std::string> out;
  const auto kernels = Kernels(letters);
  for (const ClassicLayer& layer : CutLayers(kernels, options)) {
    out.push_back(letters.substr(layer.begin, layer.end - layer.begin) + "/" +
                  std::string(layer.type()));
  }
  return out;
}

using testing::ElementsAre;
constexpr ClassicOptions kOwn{.need_all_reduce = false};
constexpr ClassicOptions kHalves{.split_half_layers = true};

TEST(Classic, AllReduceAndNormBeginAHalfAndHalvesMerge) {
  EXPECT_THAT(Cut("NGAGRNGFGRNGAGRNGFG", {}),
              ElementsAre("NGAGRNGFG/MHA_FC", "RNGAGRNGFG/MHA_FC"));
  EXPECT_THAT(Cut("NGAGRNGFGRNGAGRNGFG", kHalves),
              ElementsAre("NGAG/ATTN", "RNGFG/FC", "RNGAG/ATTN", "RNGFG/FC"));
}

// What stands before the first norm, and what the last one opens, are layers of
// the original; the all-reduce before a norm is its, but where nothing else
// would be left.
TEST(Classic, BothEndsAreLayersOfTheOriginal) {
  EXPECT_THAT(
      Cut("oRNGAFRNGAFRNG", {}),
      ElementsAre("o/UNKNOWN", "RNGAF/MHA_FC", "RNGAF/MHA_FC", "RNG/UNKNOWN"));
  EXPECT_THAT(Cut("RNGAFRNG", {}),
              ElementsAre("R/UNKNOWN", "NGAF/MHA_FC", "RNG/UNKNOWN"));
  // Its next pass begins behind the head of the one before.
  EXPECT_THAT(
      Cut("RNGAFRNGoRNGAF", {}),
      ElementsAre("R/UNKNOWN", "NGAF/MHA_FC", "RNGo/UNKNOWN", "RNGAF/MHA_FC"));
  EXPECT_THAT(Cut("oRNGAFRNG", kOwn), ElementsAre("NGAF/MHA_FC"));
}

TEST(Classic, WithoutAllReduceTheOriginalSeesOneLayer) {
  const std::string one_gpu = "oNGAGNGFGNGAGNGFGNG";
  EXPECT_THAT(Cut(one_gpu, {}),
              ElementsAre("o/UNKNOWN", "NGAGNGFGNGAGNGFGNG/MHA_FC"));
  EXPECT_THAT(Cut(one_gpu, kOwn),
              ElementsAre("NGAGNGFG/MHA_FC", "NGAGNGFG/MHA_FC"));
}

TEST(Classic, ALinearKernelAfterAnAllReduceBeginsALayerWithoutANorm) {
  EXPECT_THAT(Cut("NGAERoGAE", {}),
              ElementsAre("NGAE/MHA_MOE", "RoGAE/MHA_MOE"));
  // Something between that is neither other nor memory hides it.
  EXPECT_THAT(Cut("NGAERAGAE", {}), ElementsAre("NGAERAGAE/MHA_MOE"));
}

TEST(Classic, TypesAreThoseOfTheTable) {
  EXPECT_THAT(Cut("NGMF", {}), ElementsAre("NGMF/MLA_FC"));
  EXPECT_THAT(Cut("NGME", {}), ElementsAre("NGME/MLA_MOE"));
  EXPECT_THAT(Cut("NE", {}), ElementsAre("NE/MOE"));
  EXPECT_THAT(Cut("NGF", {}), ElementsAre("NGF/FC"));
  EXPECT_THAT(Cut("NGG", {}), ElementsAre("NGG/UNKNOWN"));
  EXPECT_THAT(Cut("NGG", kOwn), ElementsAre());  // the head: an epilogue
}

TEST(Classic, TiesAreUnknownAndStagesFlowOn) {
  const auto layers = CutLayers(Kernels("NapFRNaaFRNApFRNFRNapF"), {});
  ASSERT_EQ(layers.size(), 5U);
  EXPECT_EQ(layers[0].stage, Stage::kUnknown);
  EXPECT_EQ(layers[1].stage, Stage::kDecode);
  EXPECT_EQ(layers[2].stage, Stage::kPrefill);
  EXPECT_EQ(layers[3].stage, Stage::kPrefill);
  EXPECT_EQ(layers[4].stage, Stage::kPrefill);
}

// No kernel is in two layers, whatever the sequence.
TEST(Classic, LayersAreDisjointAndInOrder) {
  std::mt19937 random(4);
  constexpr std::string_view kLetters = "NRAapMGEFoo";
  for (int round = 0; round < 2000; ++round) {
    std::string letters;
    for (uint32_t i = random() % 60; i > 0; --i)
      letters += kLetters[random() % kLetters.size()];
    const auto kernels = Kernels(letters);
    for (const bool need : {true, false}) {
      for (const bool split : {true, false}) {
        uint32_t reached = 0;
        for (const ClassicLayer& layer :
             CutLayers(kernels,
                       {.need_all_reduce = need, .split_half_layers = split})) {
          EXPECT_GE(layer.begin, reached);
          EXPECT_LT(layer.begin, layer.end);
          reached = layer.end;
        }
        EXPECT_LE(reached, kernels.size());
      }
    }
  }
}

}  // namespace
}  // namespace lamina::analysis::layers
