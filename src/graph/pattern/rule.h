// SPDX-License-Identifier: Apache-2.0
//
// A fusion rule: what it looks for, under which conditions, and what it puts
// in its place. Where rules come from is not known here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/pattern/guard.h"
#include "graph/pattern/match.h"
#include "graph/pattern/pattern.h"

namespace lamina::graph {

// What the number of matches counts.
enum class Counting : uint8_t {
  kAnchor,      // places where the last line stands
  kGroup,       // values that two or more of the lines consume
  kFixedPoint,  // replacements until none is left
};

// Whether AutoDeploy runs the transform when nothing is configured.
enum class DefaultState : uint8_t { kOn, kOff, kVaries };
std::string_view Name(DefaultState state);

struct Alternative {
  Pattern pattern;
  // Lines to put in place of a match; empty: cannot be rewritten.
  std::vector<Statement> after;
  std::string text;  // the pattern as it was written
};

struct CounterExample {
  std::string why;   // name of a Miss; empty: just no match
  std::string text;  // lines of a dump
};

struct Rule {
  std::string name;
  std::string stage;
  DefaultState default_state = DefaultState::kOn;
  std::string title;  // what it does, in a few words
  // None: a region of variable size that no pattern describes.
  std::vector<Alternative> alternatives;
  // Longer patterns that a replacement needs; empty: the alternatives.
  std::vector<Alternative> rewrites;
  std::vector<Guard> guards;
  Counting counting = Counting::kAnchor;
  // May join nodes of two layers (residual addition and the next norm).
  bool boundary = false;
  // Moves data flow into metadata that a dump does not show.
  bool hides_data_flow = false;
  // Native pass that replaces matches; empty: the lines of `after`.
  std::string native;
  // Ops that a replacement leaves behind.
  std::vector<std::string> produces;
  std::string effect;  // what happens, where `after` cannot say it
  std::string limits;  // what a dump does not show
  std::string saves;
  std::string source;
  std::string confidence;
  std::vector<std::string> examples;
  std::vector<CounterExample> counter_examples;
  std::string file;
  uint32_t line = 0;

  // Guards that a dump cannot answer, as "id (why)".
  std::vector<std::string> HiddenGuards() const;
};

struct RuleMatch {
  size_t alternative = 0;
  Match match;
  // A guard is hidden, or metadata is missing for one that is not.
  bool possible = false;
  // For Counting::kGroup: the value that the members share.
  NodeId shared;
};

struct RuleMatches {
  std::vector<RuleMatch> matches;
  std::vector<RuleMatch> near_misses;  // each with one or two deviations
  // Anchors whose search was given up.
  size_t given_up = 0;
};

struct FindOptions {
  bool near_misses = false;
  OptionOf option;
  // Layer of each node by id, negative for none; empty: layers do not count.
  std::vector<int32_t> layers;
  // Linears of other compilers match those of rules; for graphs that are not
  // rewritten.
  bool linears = false;
};

// What the guards of a rule say of one match.
struct GuardSummary {
  std::vector<Deviation> failed;
  std::vector<const Guard*> unknown;
};
GuardSummary CheckGuards(const Rule& rule, const Graph& graph,
                         const Pattern& pattern, const Match& match,
                         const OptionOf& option);

// All matches in order of their anchors. Places with the same set of nodes are
// one match; a near miss that shares a node with a match is none.
RuleMatches FindRule(const OpIndex& index, const Rule& rule,
                     const FindOptions& options);

}  // namespace lamina::graph
