// SPDX-License-Identifier: Apache-2.0
//
// What the dumps and logs of the two runs of a review say of its rule, and the
// note that is written from the answers.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/fusion/review.h"

namespace lamina::fusion {

// The counts of a dump that the questions ask for.
struct DumpFacts {
  std::map<std::string, size_t> ops;
  size_t matches = 0;
  size_t without_metadata = 0;
  std::map<std::string, size_t> rejected;
};

struct ReviewFacts {
  // One folder given twice, or two with equal dumps.
  bool same_run = false;
  // Of the run after the change: the dump of the transform itself, and the
  // last one in front of it; null where there is none.
  const graph::DumpFile* own = nullptr;
  const graph::DumpFile* in_front = nullptr;
  DumpFacts done;                     // of `own`
  DumpFacts front;                    // of `in_front`
  DumpFacts last_before, last_after;  // of the last dumps of both runs
  const graph::LogEntry* log_before = nullptr;  // null: not in the log
  const graph::LogEntry* log_after = nullptr;
};

// Errors: a dump that cannot be read.
Result<ReviewFacts> ReadFacts(const ReviewInput& input);

// "12 matches", "disabled", "not in the log".
std::string SaidOf(const graph::LogEntry* entry);

// Whether a rule names an op on either side, or the op belongs to any
// replacement.
bool IsNamedBy(const graph::Rule& rule, std::string_view op);

// existing_kernel_path, triton_fallback_path or other: by where the tree (may
// be null) defines the ops that the rule produces.
std::string PathOf(const graph::Rule& rule, const SourceIndex* tree);

// The note of the iteration, as Markdown. `changes` are counts of ops.
std::string ReviewNote(const graph::Rule& rule, const ReviewFacts& facts,
                       const std::vector<Item>& items,
                       const std::string& changes, const std::string& path);

}  // namespace lamina::fusion
