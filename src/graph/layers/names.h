// SPDX-License-Identifier: Apache-2.0
//
// Layer numbers in names of weights: "model_layers_5_mlp_gate_proj_weight".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lamina::graph {

struct LayerName {
  std::string_view stack;  // "model"
  uint32_t index = 0;      // 5
  std::string_view rest;   // "mlp_gate_proj_weight"
};

// The first layers_N_, layer_N_, blocks_N_, block_N_ or h_N_ as whole words,
// with underscores or dots. Nothing for other numbers: those at the end of
// fused weights and of caches count matches of a pass, not layers.
std::optional<LayerName> ParseLayerName(std::string_view name);

}  // namespace lamina::graph
