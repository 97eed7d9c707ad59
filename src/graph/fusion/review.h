// SPDX-License-Identifier: Apache-2.0
//
// The questions of a review of a fusion, answered from the dumps and logs of a
// run before and a run after the change.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/fusion/census.h"
#include "graph/fusion/kernel_lookup.h"
#include "graph/passes/config.h"
#include "lamina/result.h"

namespace lamina::fusion {

// A run: its dumps and its log.
struct Run {
  std::string folder;
  std::vector<graph::DumpFile> files;
  std::optional<graph::TransformLog> log;
};

struct ReviewInput {
  const graph::Rule* rule = nullptr;
  const graph::RuleSet* rules = nullptr;
  Run before;
  Run after;
  const graph::PipelineConfig* config = nullptr;  // may be null
  std::vector<std::string> overlays;              // files over the config
  const SourceIndex* tree = nullptr;              // may be null
  CensusOptions census;
};

enum class Answer : uint8_t { kPass, kFail, kUnknown };
std::string_view Name(Answer answer);

struct Item {
  std::string id;
  std::string question;
  Answer answer = Answer::kUnknown;
  std::string evidence;
};

struct Review {
  std::vector<Item> items;
  size_t failed = 0;
  std::string note;  // the note of the iteration, as Markdown
};

// Errors: a dump that cannot be read.
Result<Review> ReviewFusion(const ReviewInput& input);

ResultSet ReviewTables(const Review& review);

}  // namespace lamina::fusion
