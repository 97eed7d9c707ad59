// SPDX-License-Identifier: Apache-2.0
//
// A rule of data/findings: what to look for in the tables of a trace, what it
// costs, how sure that is, and what to do about it.
//
// All conditions and sums are SQL. `claims` is one SELECT over lamina's tables
// that returns time: idle spans (device, start_ns, dur_ns) or device events
// (uid, dur_ns). The run grants each nanosecond to one rule (see ledger.h) and
// adds up the claims of a group; `totals`, `when`, `gain` and the conditions of
// `confidence` are expressions over those sums, the parameters of the rule and
// the facts of the trace, both written :name.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cost/links.h"
#include "rules/document.h"

namespace lamina::findings {

struct Fix {
  std::string condition;  // SQL over a group; empty: of every finding
  std::string layer;   // model, framework, launcher, kernel, cluster, recording
  std::string effort;  // setting, lines, work
  std::string text;
  std::string todo;  // in place of that of the rule; may be empty
};

// How sure a finding is, the surest first.
enum class Confidence : uint8_t {
  kFact,    // recorded events alone say so
  kLikely,  // names, times or an inferred wait take part
  kHint,    // a pattern without direct evidence
};
std::string_view ConfidenceName(Confidence confidence);
// What a gain counts in the order of findings: close to 1, so that it breaks
// near ties only.
double WeightOf(Confidence confidence);

struct ConfidenceCase {
  std::string condition;  // empty: always
  Confidence is = Confidence::kHint;
  std::string reason;
};

// What this rule, once found, leaves of the confidence of others.
struct Cap {
  std::vector<std::string> rules;  // globs
  std::vector<std::string> needs;  // or of rules that need one of these
  Confidence at = Confidence::kHint;
  std::string reason;
};

// What a trace may lack although it has the tables: an SQL condition over them.
struct Abstention {
  std::string condition;
  std::string reason;
  std::string hint;  // how to record it; may be empty
};

enum class ClaimKind : uint8_t {
  kIdle,  // rows device, start_ns, dur_ns
  kBusy,  // rows uid, start_ns, dur_ns: so much of that event; a row without
          // uid and with device is an idle span
  kNone,  // rows of evidence without time
};

inline constexpr size_t kMostTodo = 32;

struct Rule {
  std::string id;  // host.sync_scalar
  std::string title;
  // What to do, as a command of at most kMostTodo characters ("Use fused
  // attention"): a template (text.h) whose names are shortened to fit. The key
  // `do` of the file.
  std::string todo;
  // What it saves is saved once for each process, not in every step.
  bool once = false;
  std::string category;  // of the id, before the dot
  int version = 1;
  int owner_rank = 90;
  bool over_ranks = false;         // over the tables of job.h, not of one trace
  std::vector<std::string> needs;  // of KnownNeeds()
  bool without_device = false;     // looks at recordings of the host, too
  std::vector<Abstention> abstains;  // asked in turn, before the claims
  std::map<std::string, double> params;
  ClaimKind kind = ClaimKind::kIdle;
  std::string claims;
  // Events whose whole time is claimed take the spacing before them along.
  bool with_gaps = false;
  std::vector<std::string> group, anchor;
  std::vector<std::pair<std::string, std::string>> totals;
  std::string when, gain, low, high;
  std::string gain_kind;  // measured, bound, estimate, none
  // Of a rule without a gain: time that is open to anyone who finds out what it
  // is; empty: none.
  std::string open;
  // What the fix changes, as a question to the path (docs/host.md): what that
  // saves is the high end of the gain, where it is more.
  std::string gain_what_if;
  // The fix also frees what the path keeps, as a call that waits for a copy:
  // the path is no limit of the gain.
  bool past_path = false;
  std::string severity;  // empty: by share
  std::vector<ConfidenceCase> confidence;
  std::vector<Cap> caps;
  std::string what, cannot_tell;
  std::vector<Fix> fixes;
  std::string verify;  // the number that shows that it is gone
  std::vector<std::string> excludes;
  std::string why;  // why the thresholds are what they are
  std::vector<std::string> finds, silent;  // samples or faults, see --check
  bool proven = true;                      // false: of --rules without examples
  std::string file;
  uint32_t line = 0;
};

// What a rule may need, with what it means.
struct Need {
  std::string_view name;
  std::string_view reason;  // why a rule without it abstains
  std::string_view hint;    // how to record it; may be empty
};
std::span<const Need> KnownNeeds();

class RuleSet {
 public:
  // Reads data/findings and the overlay of --rules. Errors name the place.
  static Result<std::shared_ptr<const RuleSet>> Load(
      const rules::DataSet& data);

  // In the order in which time is granted: owner rank, id.
  const std::vector<Rule>& rules() const { return rules_; }
  const Rule* Find(std::string_view id) const;
  // What connects devices of this name; see cost/links.h.
  Result<cost::Links> LinksOf(std::string_view device) const {
    return cost::LinksOf(data_, device);
  }
  // Ids that one of the texts (globs) names, in order. Errors: a text that
  // names none.
  Result<std::set<std::string>> Match(const std::vector<std::string>& globs,
                                      std::string_view option) const;

 private:
  Status AddFile(const rules::DataFile& file, bool own);

  std::vector<Rule> rules_;
  rules::DataSet data_;
};

// Whether a rule, when found, lowers the confidence of another one by this.
bool Caps(const Rule& rule, const Cap& cap, const Rule& other);

// * and ? as in file names.
bool GlobMatches(std::string_view glob, std::string_view text);

}  // namespace lamina::findings
