// SPDX-License-Identifier: Apache-2.0
//
// Where two traces of the same work are laid over each other.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "analysis/common/context.h"
#include "analysis/layers/layers.h"

namespace lamina::page {

struct Alignment {
  // The moment in each trace, since its first event.
  std::array<int64_t, 2> at_ns{};
  std::string at;  // what happens then, as the end of a sentence
};

// The first device work of the first step that both have; else of the first
// step of each; else the first pass of a stage that both have; else the first
// device work at all.
Alignment AlignTraces(const analysis::Context& a, const analysis::Context& b,
                      const analysis::layers::Rules& rules);

}  // namespace lamina::page
