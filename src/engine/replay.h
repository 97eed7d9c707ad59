// SPDX-License-Identifier: Apache-2.0
//
// Which ops of a trace can be run again on their own, with the arguments that
// were recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emit/replay/script.h"
#include "engine/session.h"

namespace lamina::engine {

struct ReplayOptions {
  std::string op;              // name, with or without its namespace
  std::string shape;           // JSON: only calls whose shapes hold this text
  std::optional<uint32_t> id;  // event number of an op or of its device work
  bool outer = false;          // also ops that launch through ops inside them
  size_t top = 10;             // calls by device time; 0: all
};

// Calls of one op with the same arguments.
struct ReplayRow {
  emit::ReplayCall call;
  std::string shapes;  // JSON as recorded
  std::string reason;  // why it cannot be rebuilt; empty: it can
};

struct ReplayPlan {
  std::vector<ReplayRow> rows;  // by device time
  std::string device;
};

// `context` has cost models. Without `op`, `id` and `outer`: ops that launch
// device work themselves. Errors: kUsage when nothing is chosen.
Result<ReplayPlan> PlanReplay(const analysis::Context& context,
                              const ReplayOptions& options);

}  // namespace lamina::engine
