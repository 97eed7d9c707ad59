// SPDX-License-Identifier: Apache-2.0
#pragma once

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

Result<Answer> AskDiff(const DiffParams& options, Asker& asker);

}  // namespace lamina::questions
