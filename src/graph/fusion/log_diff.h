// SPDX-License-Identifier: Apache-2.0
//
// Two logs of a pipeline: which transforms lost matches.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "graph/passes/log.h"
#include "lamina/result.h"

namespace lamina::fusion {

struct LogDiffOptions {
  // Losing up to this share of the matches is no regression.
  double max_drop_percent = 0;
  // Layers of the model; 0: guessed from the first log.
  int64_t layers = 0;
  // Why a transform finds less in the second run, from its dumps; empty when
  // they say nothing.
  std::function<std::string(std::string_view transform)> reason;
};

struct LogDiff {
  ResultSet result;  // table `log_diff`, a note per regression
  size_t regressions = 0;
};

LogDiff CompareLogs(const graph::TransformLog& a, const graph::TransformLog& b,
                    const LogDiffOptions& options);

// Layers of the model that a log speaks of: the count of the transform that
// inserts the KV cache, else the most frequent count above 1; 0 if unknown.
int64_t GuessLayers(const graph::TransformLog& log);

}  // namespace lamina::fusion
