// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compare/diff/diff.h"
#include "questions/answer.h"
#include "questions/asker.h"

namespace lamina::questions {

struct DiffParams {
  std::vector<std::string> traces;  // others are compared with the first
  std::string fail_above;
  std::string unit = "auto";
  std::string measure = "unit";
  std::string run_noise;
  std::string unknown = "pass";
  std::vector<std::string> captures_a, captures_b;  // beside those of both
  std::string layout = "native";
  analysis::diff::Options diff;
  bool findings = false;
};

// Whether a folder holds several traces: it may also be one.
bool HoldsRanks(const std::string& folder);
// Traces of one folder by the numbers of their ranks. Errors: two of one rank.
Result<std::map<int64_t, std::shared_ptr<engine::Session>>> OpenRanks(
    const std::string& folder, const engine::OpenOptions& open, Asker& asker,
    std::vector<std::string>& inputs);

// A share of 1 of "3%" or "3"; nothing for an empty text. `name`: of the
// parameter, for messages.
Result<std::optional<double>> ParsePercent(const char* name, std::string text);

Result<Answer> AskDiff(const DiffParams& options, Asker& asker);

}  // namespace lamina::questions
