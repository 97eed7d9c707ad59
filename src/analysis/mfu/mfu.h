// SPDX-License-Identifier: Apache-2.0
//
// mfu_steps, mfu_run and mfu_modules with what an analysis of the trace alone
// does not have.
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/common/context.h"
#include "analysis/layers/layers.h"

namespace lamina::analysis::mfu {

struct Options {
  // Of one step on one device, instead of what embeddings show.
  std::optional<int64_t> tokens;
  // mfu_modules has rows of layers; null: none.
  const layers::LayerModel* layers = nullptr;
};

// Nothing for a context without costs.
ResultSet MakeTables(const Context& context, const Options& options);

}  // namespace lamina::analysis::mfu
