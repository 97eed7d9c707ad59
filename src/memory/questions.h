// SPDX-License-Identifier: Apache-2.0
//
// What is asked of the memory of one device: steps, leaks, free space, why an
// allocation failed and what would have made room, what would lower the peak.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "memory/attribution.h"
#include "memory/model.h"

namespace lamina::memory {

// --- steps and leaks ---

struct Step {
  std::string name;
  Moment end = 0;
};
struct Steps {
  std::vector<Step> steps;
  std::string source;  // what told of them; empty: nothing did
};
// `pattern` (RE2) is searched in names of annotations; empty: what is usual.
Result<Steps> FindSteps(const Device& device, const Attribution& attribution,
                        const std::string& pattern);

struct Leak {
  uint32_t stack = 0;
  uint32_t allocation = 0;  // one of them
  int64_t first_bytes = 0;
  int64_t last_bytes = 0;
  double bytes_per_step = 0;
  int64_t blocks_per_step = 0;
  size_t grown_steps = 0;
  size_t steps = 0;
  Confidence confidence = Confidence::kLow;
  bool expected = false;  // grows, and is meant to
};
// Stacks whose bytes at the ends of steps never fall and mostly grow, by bytes.
std::vector<Leak> FindLeaks(const Device& device, const Steps& steps,
                            size_t least_steps);

// --- free space ---

struct FreeRange {
  int64_t address = 0;
  int64_t size = 0;
};
struct SegmentState {
  Range range;
  int64_t active = 0;
  int64_t requested = 0;
  int64_t free = 0;
  int64_t largest_free = 0;
  int64_t stuck = 0;  // free and not to be given back
  int64_t unsplit = 0;
  std::vector<uint32_t> blocks;  // allocations by address
  std::vector<FreeRange> holes;
};
struct FreeTotals {
  int64_t reserved = 0;
  int64_t active = 0;
  int64_t free = 0;
  size_t ranges = 0;
  int64_t largest = 0;
  int64_t whole = 0;
  int64_t stuck = 0;
  int64_t rounding = 0;
  int64_t unsplit = 0;
  double squares = 0;  // of the free ranges

  void Add(const SegmentState& segment);
  double fragmentation_percent() const;
};
// Segments by address.
std::vector<SegmentState> StateAt(const Device& device, Moment moment);
FreeTotals TotalsOf(const std::vector<SegmentState>& segments);

// --- out of memory ---

struct Room {
  std::string change;
  std::vector<uint32_t> blocks;
  int64_t bytes_freed = 0;
  int64_t range_bytes = 0;
};
struct OutOfMemory {
  Moment event = 0;
  int64_t asked = 0;
  int64_t segment = 0;
  int64_t device_free = 0;
  bool device_free_known = false;
  FreeTotals of_class;
  FreeTotals all;
  int64_t capacity = 0;
  int64_t resident = 0;
  std::string cause;
  std::string text;  // the cause as a sentence
  std::vector<Room> room;
};
std::vector<OutOfMemory> FindOutOfMemory(const Device& device,
                                         const Attribution& attribution,
                                         const std::vector<Leak>& leaks,
                                         std::optional<int64_t> capacity);

// --- what would lower the peak ---

struct Saving {
  std::string change;
  std::string where;
  Measure of = Measure::kActive;  // whose peak it lowers
  int64_t saves = 0;
  int64_t new_peak = 0;
  std::optional<int64_t> recompute_bytes;
  size_t blocks = 0;
  std::string bound;
  Confidence confidence = Confidence::kLow;
  bool information = false;  // never a note
};
// At the peak of active. By bytes.
std::vector<Saving> FindSavings(const Device& device,
                                const Attribution& attribution,
                                const std::vector<Leak>& leaks);

// Highest active without these allocations.
int64_t PeakWithout(const Device& device,
                    const std::vector<uint32_t>& allocations);

// Allocations that are active at a moment, by number.
std::vector<uint32_t> ActiveAt(const Device& device, Moment moment);

}  // namespace lamina::memory
