// SPDX-License-Identifier: Apache-2.0
//
// What of an input is in no number: said by every command that opens a trace,
// and asked by the rules of findings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/diagnostics.h"

namespace lamina::trace {

struct Losses {
  uint64_t records = 0;  // that could not be used
  // The input is cut off or cannot be read in places: how many records are
  // missing beside those that were counted is not known.
  bool damaged = false;
  std::string first;  // the sentence of the reason that counts most, or empty
  // The first reasons, damage first: "the last record is cut off (1)".
  std::string reasons;

  // The sentences of FindDoubts() one after the other.
  std::string doubts;

  bool any() const { return records > 0; }
};

Losses FindLosses(const Diagnostics& diagnostics);

// What makes the times or links of a recording doubtful and was mended as far
// as it can be (trace/repair_times.h): said before anything is concluded.
struct Doubt {
  std::string_view reason;  // as in Diagnostics
  std::string text;         // whole sentences
  uint64_t count = 0;
};

// Those that stand in the diagnostics, the worst first.
std::vector<Doubt> FindDoubts(const Diagnostics& diagnostics);

// "3 records of the input could not be used"
std::string LossText(const Losses& losses);

}  // namespace lamina::trace
