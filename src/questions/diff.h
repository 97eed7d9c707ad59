// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compare/diff/diff.h"
#include "compare/runs/compare.h"
#include "questions/answer.h"
#include "questions/asker.h"
#include "runstore/store.h"

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
  // Further recordings of B, where A has several, too; or its ranks.
  std::vector<std::string> against;
  std::string store;  // of runs; empty: none is asked
  analysis::diff::Options diff;
  bool findings = false;
};

// Whether a folder holds several traces: it may also be one.
bool HoldsRanks(const std::string& folder);
// Traces of one folder by the numbers of their ranks. Errors: two of one rank.
Result<std::map<int64_t, std::shared_ptr<engine::Session>>> OpenRanks(
    const std::string& folder, const engine::OpenOptions& open, Asker& asker,
    std::vector<std::string>& inputs);

// What a store of runs knows of two recordings.
struct KnownPair {
  // What recordings of the program of the first differ by: one standard
  // deviation of a logarithm.
  std::optional<double> run_noise;
  std::optional<runstore::Decision> decision;
};
Result<KnownPair> KnownPairOf(const DiffParams& options, Asker& asker);
// Says what was decided about a pair; true: a gate passes for it.
bool SayDecision(const runstore::Decision& decision, ResultSet& result);

// Whether an input is a run of a store: "run:NAME" or "baseline:NAME".
bool IsKeptRun(const std::string& input);
// Two inputs of which one at least is a run of a store.
Result<Answer> CompareWithKept(const DiffParams& options, runs::Options units,
                               Asker& asker);
// How a trace is opened, the first one or another: with the captures of both
// sides and with its own.
engine::OpenOptions OpenSide(const DiffParams& options, size_t side,
                             Asker& asker);

// A share of 1 of "3%" or "3"; nothing for an empty text. `name`: of the
// parameter, for messages.
Result<std::optional<double>> ParsePercent(const char* name, std::string text);

Result<Answer> AskDiff(const DiffParams& options, Asker& asker);

}  // namespace lamina::questions
