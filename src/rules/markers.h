// SPDX-License-Identifier: Apache-2.0
//
// Which ranges of the host name a module, by the rules of data/modules: the
// texts that profilers' users, frameworks and engines give to NVTX, roctx and
// record_function ranges.
#pragma once

#include <memory>
#include <optional>
#include <re2/re2.h>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "rules/document.h"

namespace lamina::rules {

// What a range is of the call that its text names.
enum class MarkerPhase : uint8_t {
  kForward,      // the whole call
  kBackward,     // the whole of its backward pass
  kPreForward,   // the begin of the call, up to kPostForward of the same path
  kPostForward,  // its end
  kPreBackward,
  kPostBackward,
};

struct Marker {
  // From the outermost: "model", "layers_7", "self_attn". Never empty.
  std::vector<std::string> path;
  MarkerPhase phase = MarkerPhase::kForward;
};

struct MarkerRule {
  struct Example {
    std::string text;
    std::string module;  // the path, joined with '/'
  };
  std::string id;
  std::string field;  // of a dictionary; empty: the text itself
  std::string match;  // RE2
  std::string why;
  MarkerPhase phase = MarkerPhase::kForward;
  std::vector<Example> examples;
  std::vector<std::string> counter_examples;
  std::string file;
  uint32_t line = 0;
};

// Thread safe.
class MarkerTable {
 public:
  static constexpr int kNone = -1;

  static Result<std::shared_ptr<const MarkerTable>> Load(const DataSet& data);
  // Of some files, each with the keys table, wrappers and rules; those of other
  // tables are left out.
  static Result<std::shared_ptr<const MarkerTable>> Make(
      const std::vector<std::shared_ptr<const DataFile>>& files);

  const std::vector<MarkerRule>& rules() const { return rules_; }
  // The first rule that matches a text and names a module, kNone if none does.
  int Find(std::string_view text) const;
  // What the text of a range names; nothing for other ranges.
  std::optional<Marker> Read(std::string_view text) const;

  // Holds every rule against its examples and counter-examples; one sentence
  // for each that does not hold.
  std::vector<std::string> CheckExamples() const;

 private:
  Status AddFile(const DataFile& file);
  int Match(std::string_view text, Marker* marker) const;
  std::vector<std::string> PathOf(std::string_view dotted) const;

  std::vector<MarkerRule> rules_;
  std::vector<std::unique_ptr<RE2>> patterns_;
  std::vector<std::string> wrappers_;
};

// "backward", "pre_forward" ..., as in the files.
std::string_view PhaseName(MarkerPhase phase);

}  // namespace lamina::rules
