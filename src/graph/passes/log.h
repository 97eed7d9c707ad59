// SPDX-License-Identifier: Apache-2.0
//
// The log of a pipeline: one entry per transform. Two generations of lines are
// read, with or without a logger's prefix and ANSI colours:
//
//   [stage=S, transform=T] [SUMMARY] matches=N | time: 0.104s (pre=..., ...)
//   [stage=S, transform=T] [SUMMARY] skipped | time: 0.004s
//   [stage=S, transform=T] [SUMMARY] disabled
//
//   [stage=S, transform=T] enabled=True, num_matches=N, is_clean=True, ...
//   [stage=S, transform=T] enabled=True, skipped=True, is_clean=True, ...
//   [stage=S, transform=T] elapsed time: total=0.104s, pre_cleanup=..., ...
//
// Everything else in a log is passed over, except for messages that explain a
// count (failed, skipping, falling back).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace lamina::graph {

enum class TransformStatus : uint8_t {
  kApplied,
  kSkipped,  // ran without a match, or its precondition failed
  kDisabled,
  kFailed,
};
std::string_view Name(TransformStatus status);

struct LogEntry {
  std::string stage;
  std::string transform;
  // How many entries with the same stage and transform came before: a draft
  // model runs every transform again.
  uint32_t occurrence = 0;
  TransformStatus status = TransformStatus::kApplied;
  // 0 when skipped; nothing when disabled or failed.
  std::optional<int64_t> matches;
  std::optional<int64_t> total_ns;
  // As the older generation says; nothing in the newer one.
  std::optional<bool> has_valid_shapes;
  std::string message;  // why it failed or was skipped, when the log says so
  uint32_t line = 0;    // 1-based
};

struct TransformLog {
  std::string name;
  std::vector<LogEntry> entries;
  // Entries of other ranks than the first one: the same transforms again.
  size_t other_ranks = 0;

  const LogEntry* Find(std::string_view transform,
                       uint32_t occurrence = 0) const;
};

// Errors: no entry at all.
Result<TransformLog> ParseTransformLog(std::string name, std::string_view text);
Result<TransformLog> ReadTransformLog(const std::string& path);

// The line of the newer generation, without its end. `parts_ns` is the time
// before, in and after the transform.
struct PassTime {
  int64_t pre_ns = 0;
  int64_t apply_ns = 0;
  int64_t post_ns = 0;
};
std::string SummaryLine(const LogEntry& entry, const PassTime& time);

}  // namespace lamina::graph
