// SPDX-License-Identifier: Apache-2.0
//
// Trouble with single records: counted by reason, with the places of the
// first offenders, never silent and never the end of the run. The table
// trace_health shows all of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::trace {

enum class Effect : uint8_t {
  kInfo,      // a fact about the input
  kOddity,    // kept, but a number may mislead
  kRepaired,  // kept after a repair
  kLost,      // not in the numbers
};

std::string_view EffectName(Effect effect);

struct Diagnostic {
  std::string reason;  // stable, snake_case
  Effect effect = Effect::kInfo;
  std::string text;  // one sentence: what it means, what to do
  uint64_t count = 0;
  uint64_t bytes = 0;                   // of input, where it is known
  std::vector<uint64_t> first_offsets;  // at most kMaxOffsets
};

class Diagnostics {
 public:
  static constexpr size_t kMaxOffsets = 5;
  static constexpr uint64_t kNoOffset = ~uint64_t{0};

  void Add(Effect effect, std::string_view reason, std::string_view text,
           uint64_t offset = kNoOffset, uint64_t count = 1, uint64_t bytes = 0);
  // Adds what `other` counted; first offsets keep the smallest.
  void Merge(const Diagnostics& other);

  // In order of effect (lost first), then reason.
  std::vector<Diagnostic> Sorted() const;
  uint64_t Count(std::string_view reason) const;
  uint64_t lost() const;
  bool empty() const { return entries_.empty(); }

 private:
  std::vector<Diagnostic> entries_;
};

}  // namespace lamina::trace
