// SPDX-License-Identifier: Apache-2.0
//
// Who made the others wait, and why.
//
// A rank that comes late to a collective may itself have been held up by the
// one before, and that one by a rank of another group. So the wait is followed
// back, from a late rank to the collective before it and to the rank that came
// last there, and put down to the largest delay on that way that is its rank's
// own. What is put down to ranks adds up to all waiting.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dist/measure.h"

namespace lamina::dist {

// Delays of one rank with one cause.
struct CauseSum {
  Cause cause = Cause::kNone;
  std::string name;
  int64_t wait_ns = 0;   // of the others
  int64_t delay_ns = 0;  // more than the median of the others
  int64_t calls = 0;     // in which it came late for it
};

struct RankBlame {
  int64_t rank = 0;
  int64_t wait_ns = 0;  // its own, for others
  int64_t calls = 0;    // in which it could wait
  int64_t times_last = 0;
  int64_t times_first = 0;
  int64_t caused_ns = 0;         // wait of the others where it was last
  int64_t blamed_ns = 0;         // wait that leads back to it
  std::vector<CauseSum> causes;  // by wait, largest first
};

// A call that ranks waited in, put down to the rank whose delay was behind it.
// One that several kept waiting is there once for each.
struct BlamedCall {
  size_t call = 0;       // of Measured::calls
  size_t late = 0;       // of MeasuredCall::late: who came late to it
  size_t root = 0;       // the call in which the delay happened
  size_t root_late = 0;  // of MeasuredCall::late, there
  int64_t rank = 0;
  int64_t wait_ns = 0;  // of the others for it
};
std::vector<BlamedCall> BlameCalls(const Measured& measured);

// One per rank, by blamed wait, largest first; ranks without calls are left
// out.
std::vector<RankBlame> FindBlame(const Measured& measured);

}  // namespace lamina::dist
