// SPDX-License-Identifier: Apache-2.0
//
// Partners by the longest common subsequence of two sequences of tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compare/cudagraph/align.h"

namespace lamina::cudagraph {

// Fills one match per element of the replay. An element whose partner is the
// same on every optimal alignment is sure; the others take that of the
// alignment with the longest runs. Each side has fewer than 65536 elements.
void MatchByLcs(std::span<const uint32_t> capture,
                std::span<const uint32_t> replay, std::vector<Match>& matches);

}  // namespace lamina::cudagraph
