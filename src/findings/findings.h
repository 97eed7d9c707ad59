// SPDX-License-Identifier: Apache-2.0
//
// What to change next: the rules of data/findings run over the tables of a
// trace, each nanosecond given to one of them, and what is left of each rule
// ranked by the time that it would save.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/timer.h"
#include "engine/session.h"
#include "findings/ledger.h"
#include "findings/rule.h"
#include "lamina/result.h"

namespace lamina::findings {

struct Finding;

struct Suppression {
  std::string rule;    // glob of rules, or an id of a finding
  std::string anchor;  // glob; empty: any
  double max_share = 1;
  std::string reason;

  bool Names(const Finding& finding) const;
};

struct Options {
  std::set<std::string> only;  // rules that speak; empty: all
  double min_share = 0.01;     // below it a finding is only counted
  bool all = false;            // those below and suppressed ones, too
  std::map<std::string, std::map<std::string, double>> params;
  std::vector<Suppression> suppressions;
  Ledger::EventTimes taken;  // of events: what findings over ranks own
  // A smaller recording is answered before another thread has its connection.
  size_t slices_for_threads = 100'000;
  StageTimes* times = nullptr;  // what each rule took
};

enum class State : uint8_t {
  kFound,
  kSilent,
  kAbstained,
  kSuppressed,
  kFailed,
};
std::string_view StateName(State state);

struct Finding {
  const Rule* rule = nullptr;
  std::vector<const Fix*> fixes;  // of the rule, the one to begin with first
  std::string id;                 // rule@anchor8
  std::string anchor;             // what the id is made of
  std::string todo;               // what to do, in a few words
  std::string what, cannot_tell;
  // Per device on average: time of the window that would be saved.
  int64_t gain_ns = 0, gain_low_ns = 0, gain_high_ns = 0;
  // If what is ranked above were fixed first.
  int64_t gain_after_ns = 0;
  // Without a gain: time of the window that this does not explain away, per
  // device on average.
  int64_t open_ns = 0;
  // What the formula says, whatever else bounds the time.
  int64_t unbound_ns = 0;
  int64_t owned_ns = 0;  // over all devices
  double share = 0;      // gain / window
  Confidence confidence = Confidence::kHint;
  std::string reason, severity;
  bool suppressed = false;
  bool small = false;  // below min_share
  size_t claims = 0;
  std::vector<Claim> top;  // the largest, at most 20
  // Event numbers of those: of idle time the work that ended it.
  std::vector<uint32_t> events;
  std::vector<Claim> spans;  // all with time, by start
  std::vector<std::pair<std::string, std::string>> values;  // of the group

  // That of the rule; but what the trace leaves open to a tenth is not
  // measured.
  std::string_view gain_kind() const;
  // What it stands for in a list: its gain, or the time that is open.
  int64_t worth_ns() const { return std::max(gain_ns, open_ns); }
};

// The order of every list of findings: what makes other numbers void first,
// then by gain; of those without one what is no small matter, then what is open
// or gained once those before it are mended.
bool Before(const Finding& a, const Finding& b);

struct RuleRun {
  const Rule* rule = nullptr;
  State state = State::kSilent;
  std::string reason;  // why it abstained or failed; else what was measured
  std::string hint;    // how to record what it lacks
  int64_t owned_ns = 0;
};

struct Diagnosis {
  std::shared_ptr<const RuleSet> rules;
  std::vector<std::string> device_names;
  int64_t window_ns = 0;
  int64_t idle_ns = 0, owned_idle_ns = 0, busy_ns = 0;
  std::vector<Finding> findings;  // ranked
  std::vector<RuleRun> runs;      // in the order of the rules
  std::vector<std::pair<std::pair<std::string, std::string>, int64_t>> overlaps;
  // Of what is shown: saved together at most.
  int64_t together_ns = 0;
  size_t small = 0, suppressed = 0;
};

// Errors: a trace that cannot be read. A rule that fails is a row of `runs`.
Result<Diagnosis> Diagnose(std::shared_ptr<engine::Session> session,
                           std::shared_ptr<const RuleSet> rules,
                           const Options& options);

// False: another kind of device (NPU, MTIA) ran the work, as the categories of
// its calls say.
bool IsOfGpu(const trace::Trace& trace);

// Lowers the confidence of findings whose numbers a rule that was found says to
// be less sure (Rule::caps).
void CapConfidence(const std::vector<RuleRun>& runs,
                   std::vector<Finding>& findings);

// "3 findings, together at most 41 ms of 120 ms (34 %)."
std::string Headline(const Diagnosis& diagnosis);
// "looked: 41 rules; could not look: 14 (9: record_shapes=True ...)".
std::string LookedText(const Diagnosis& diagnosis);

// findings, finding_evidence, finding_ranges, finding_overlaps, rules_run, and
// the sentences as notes.
ResultSet Tables(const Diagnosis& diagnosis);

// Puts the `most` first findings at the head of a report, where they take the
// place of the sentences about what could be saved of which their rules know
// more, and adds the tables of findings to its own.
void AddToReport(const Diagnosis& diagnosis, size_t most, Document& report);
bool IsReportTable(std::string_view name);  // of those that it adds

}  // namespace lamina::findings
