// SPDX-License-Identifier: Apache-2.0
//
// What the tables about layers add up: times and type of a layer, and what a
// stack is over all its layers.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/layers/labels.h"

namespace lamina::analysis::layers {

struct LayerSum {
  int64_t wall_ns = 0, kernel_ns = 0, busy_ns = 0;
  std::array<int64_t, kParts> parts = {};  // by Part
  std::string type;  // that of the layer, else by what is in it
  const char* type_by =
      "kernel";  // module, op or kernel: what the type is from
};
LayerSum SumOfLayer(const Context& context, Labels& labels, const Layer& layer);

struct StackSum {
  size_t layers = 0;
  size_t passes = 0;
  std::string per_pass;  // "24" or "24, 10"
  std::string pattern;   // variants of the first pass: "A3 B58"
  int64_t ns = 0;
  double exactness = 0;
  const char* confidence = "low";
};
// `layers` are the sums of all layers of the model.
StackSum SumOfStack(const LayerModel& model, std::span<const LayerSum> layers,
                    uint32_t stack);

// By stack: path of the module above its layers, which tells stacks of one
// class apart; empty where layers are known without modules.
std::vector<std::string> ModulesAbove(const LayerModel& model);

// From the first start to the last end of work that is sorted by start.
int64_t WallOf(const Trace& trace, const std::vector<SliceId>& work);

// 0: "A", 25: "Z", 26: "AA".
std::string VariantLetter(uint32_t variant);

}  // namespace lamina::analysis::layers
