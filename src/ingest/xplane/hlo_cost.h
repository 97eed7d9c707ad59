// SPDX-License-Identifier: Apache-2.0
//
// What one run of an HLO instruction needs at least: FLOPs of the mathematical
// definition, every operand read once and every result written once.
#pragma once

#include <cstdint>
#include <string_view>

#include "ingest/xplane/hlo.h"

namespace lamina::ingest::xplane {

struct HloCost {
  double flops = -1;           // -1: not known
  double unpadded_flops = -1;  // of a convolution, without taps on padding
  double bytes = -1;
  uint32_t type = 0;    // element type of the products, else of the result
  bool matrix = false;  // the FLOPs are those of matrix products
  bool exact = false;   // false: an estimate
};

// Linear in the instructions that are called from `instruction`.
HloCost CostOf(const HloModule& module, const HloInstruction& instruction);

enum class HloCollective : uint8_t {
  kNone,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kPermute,
  kBroadcast
};

// What a collective moves.
struct HloTransfer {
  HloCollective kind = HloCollective::kNone;
  double in_elements = 0;   // all operands
  double out_elements = 0;  // the result; of a "-start" its second half
  uint32_t type = 0;
  int64_t group_size = 0;
  size_t groups = 0;
};
HloTransfer TransferOf(const HloModule& module,
                       const HloInstruction& instruction);

}  // namespace lamina::ingest::xplane
