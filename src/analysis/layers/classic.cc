// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/classic.h"

#include <algorithm>
#include <optional>

namespace lamina::analysis::layers {
namespace {

// How far back an all-reduce may stand before the norm that it belongs to.
constexpr uint32_t kLookBack = 15;

// The nearest all-reduce before position `at` with nothing but other and memory
// kernels between, at most `most` kernels back and not before `begin`.
std::optional<uint32_t> AllReduceBefore(std::span<const ClassicKernel> kernels,
                                        uint32_t begin, uint32_t at,
                                        uint32_t most) {
  const uint32_t first = at - begin > most ? at - most : begin;
  for (uint32_t i = at; i > first; --i) {
    const ClassicKernel& kernel = kernels[i - 1];
    if (kernel.all_reduce) return i - 1;
    if (kernel.type != ClassicType::kOther &&
        kernel.type != ClassicType::kMemory)
      return std::nullopt;
  }
  return std::nullopt;
}

// Where the layers of the original begin. It keeps the all-reduce before a norm
// in two layers; here it is the second's, unless the first would be empty. What
// stands before the first norm and behind the last layer is a layer there.
std::vector<uint32_t> OriginalBegins(std::span<const ClassicKernel> kernels) {
  const auto count = static_cast<uint32_t>(kernels.size());
  std::vector<uint32_t> begins;
  if (count > 0) begins.push_back(0);
  uint32_t held = 0;  // first kernel of the layer that the original has open
  bool open = false;  // a norm was seen
  uint32_t last_start = 0;  // one past the last layer-start kernel
  for (uint32_t k = 0; k < count; ++k) {
    const ClassicKernel& kernel = kernels[k];
    const auto near = AllReduceBefore(kernels, held, k, kLookBack);
    const bool begin = kernel.start ? !open || near
                                    : kernel.type == ClassicType::kLinear &&
                                          near && last_start <= *near;
    if (kernel.start) last_start = k + 1;
    if (!begin) continue;
    open = true;
    held = AllReduceBefore(kernels, held, k, count).value_or(k);
    if (k == 0) continue;
    begins.push_back(held > begins.back() ? held : k);
  }
  return begins;
}

// Where layers begin that need no all-reduce before their norm.
std::vector<uint32_t> OwnBegins(std::span<const ClassicKernel> kernels) {
  const auto count = static_cast<uint32_t>(kernels.size());
  std::vector<uint32_t> begins;
  uint32_t last_start = 0;
  for (uint32_t k = 0; k < count; ++k) {
    const ClassicKernel& kernel = kernels[k];
    const bool open = !begins.empty();
    const auto from =
        open ? AllReduceBefore(kernels, begins.back(), k, kLookBack)
             : std::optional<uint32_t>();
    if (kernel.start) {
      if (!open || !from)
        begins.push_back(k);
      else if (*from > begins.back())
        begins.push_back(*from);
      last_start = k + 1;
    } else if (kernel.type == ClassicType::kLinear && from &&
               *from > begins.back() && last_start <= *from) {
      // The norm has a name that the tables do not know, or none at all.
      begins.push_back(*from);
    }
  }
  return begins;
}

void Count(std::span<const ClassicKernel> kernels, ClassicLayer& layer) {
  layer.prefill_votes = layer.decode_votes = 0;
  for (uint32_t i = layer.begin; i < layer.end; ++i) {
    const ClassicKernel& kernel = kernels[i];
    layer.attention |= kernel.type == ClassicType::kAttention;
    layer.moe |= kernel.moe;
    layer.fc |= kernel.fc;
    layer.mla |= kernel.mla;
    layer.gdn |= kernel.gdn;
    layer.prefill_votes += kernel.vote == Stage::kPrefill;
    layer.decode_votes += kernel.vote == Stage::kDecode;
  }
  layer.stage = layer.prefill_votes > layer.decode_votes   ? Stage::kPrefill
                : layer.decode_votes > layer.prefill_votes ? Stage::kDecode
                                                           : Stage::kUnknown;
}

// An attention half directly followed by its feed-forward half is one layer.
std::vector<ClassicLayer> MergeHalves(std::span<const ClassicKernel> kernels,
                                      const std::vector<ClassicLayer>& halves) {
  std::vector<ClassicLayer> layers;
  for (size_t i = 0; i < halves.size(); ++i) {
    layers.push_back(halves[i]);
    if (i + 1 == halves.size() || halves[i].type() != "ATTN" ||
        halves[i].end != halves[i + 1].begin)
      continue;
    const std::string_view next = halves[i + 1].type();
    if (next != "MOE" && next != "FC") continue;
    ClassicLayer& whole = layers.back();
    whole.end = halves[++i].end;
    Count(kernels, whole);
  }
  return layers;
}

}  // namespace

std::string_view ClassicTypeName(ClassicType type) {
  constexpr std::string_view kNames[] = {
      "moe",    "attention", "quantization", "communication",
      "linear", "memory",    "other"};
  return kNames[static_cast<size_t>(type)];
}

std::string_view StageName(Stage stage) {
  constexpr std::string_view kNames[kStages] = {"decode", "mixed", "none",
                                                "prefill", "unknown"};
  return kNames[static_cast<size_t>(stage)];
}

Stage StageOfName(std::string_view name) {
  for (size_t i = 0; i < kStages; ++i) {
    if (name == StageName(static_cast<Stage>(i))) return static_cast<Stage>(i);
  }
  return Stage::kUnknown;
}

std::string_view ClassicLayer::type() const {
  if (!attention) return moe ? "MOE" : fc ? "FC" : "UNKNOWN";
  if (moe) return mla ? "MLA_MOE" : gdn ? "GDN_MOE" : "MHA_MOE";
  if (fc) return mla ? "MLA_FC" : gdn ? "GDN_FC" : "MHA_FC";
  return "ATTN";
}

std::vector<ClassicLayer> CutLayers(std::span<const ClassicKernel> kernels,
                                    const ClassicOptions& options) {
  const auto count = static_cast<uint32_t>(kernels.size());
  const std::vector<uint32_t> begins =
      options.need_all_reduce ? OriginalBegins(kernels) : OwnBegins(kernels);
  std::vector<ClassicLayer> layers;
  for (size_t i = 0; i < begins.size(); ++i) {
    ClassicLayer layer;
    layer.begin = begins[i];
    layer.end = i + 1 < begins.size() ? begins[i + 1] : count;
    Count(kernels, layer);
    layers.push_back(layer);
  }
  // What the final norm opens holds the head and the sampling.
  if (!options.need_all_reduce)
    std::erase_if(layers, [](const ClassicLayer& l) { return !l.complete(); });
  if (!options.split_half_layers) layers = MergeHalves(kernels, layers);
  // Stages flow along a chain of layers.
  for (size_t i = 1; i < layers.size(); ++i) {
    if (layers[i].stage == Stage::kUnknown)
      layers[i].stage = layers[i - 1].stage;
  }
  return layers;
}

}  // namespace lamina::analysis::layers
