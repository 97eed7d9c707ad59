// SPDX-License-Identifier: Apache-2.0
//
// The stage of a forward pass (prefill, decode, mixed): by what the engine
// writes beside it, by Python frames, else by its attention kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "analysis/layers/labels.h"

namespace lamina::analysis::layers {

// What the range of an engine says of its pass; nothing: not said.
struct EngineRange {
  Stage stage = Stage::kUnknown;
  std::optional<int64_t> batch, tokens;
  std::optional<int64_t> context_requests, context_tokens;
  std::optional<int64_t> generating;          // requests
  std::optional<int64_t> generating_context;  // sum of theirs, in tokens
};

// By the names of vLLM, SGLang, TensorRT-LLM and ATOM; nothing for others, and
// where a pass has no requests.
std::optional<EngineRange> ReadRange(std::string_view name);

// Fills stage, evidence, batch and tokens of the passes of a model. `labels`
// are those of our own tables.
void FindStages(const Context& context, Labels& labels, LayerModel& model);

// Reads stage, batch and tokens from the text of the step's range; false when
// it says none.
bool ReadStage(Pass& pass);

}  // namespace lamina::analysis::layers
