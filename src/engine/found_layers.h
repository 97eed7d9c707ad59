// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "analysis/layers/layers.h"
#include "engine/session.h"

namespace lamina::engine {

// The layers of a trace by the rules of its session.
struct FoundLayers {
  std::shared_ptr<const analysis::layers::Rules> rules;
  analysis::layers::LayerModel model;
  ResultSet tables;
};
Result<FoundLayers> FindLayers(const Session& session,
                               const analysis::Context& context,
                               const analysis::layers::Options& options = {});

}  // namespace lamina::engine
