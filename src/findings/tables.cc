// SPDX-License-Identifier: Apache-2.0
//
// A diagnosis as tables and sentences.
#include <algorithm>
#include <fmt/core.h>

#include "base/counted.h"
#include "base/decimal.h"
#include "findings/findings.h"

namespace lamina::findings {
namespace {

Schema FindingsSchema() {
  return {"findings",
          "What to change, by the time that it would save.",
          {{"rank", ColumnType::kInt, "Position."},
           {"finding", ColumnType::kText, "Title of the rule."},
           {"gain_us", ColumnType::kTime,
            "Time of the window that would be saved, if this alone were "
            "fixed; a mean over devices."},
           {"share_percent", ColumnType::kReal, "Of the window.", Shown::kBar},
           {"gain_kind", ColumnType::kText,
            "measured: deletion of recorded time; bound: no more is possible; "
            "estimate: a model; none: no time."},
           {"confidence", ColumnType::kText, "fact, likely or hint."},
           {"id", ColumnType::kText, "Stable: rule@anchor."},
           {"rule", ColumnType::kText, "Rule.", Shown::kHidden},
           {"category", ColumnType::kText, "Of the rule.", Shown::kHidden},
           {"severity", ColumnType::kText,
            "blocker, high, medium, low or info.", Shown::kHidden},
           {"gain_low_us", ColumnType::kTime, "Low end.", Shown::kHidden},
           {"gain_high_us", ColumnType::kTime,
            "High end; of a kernel what it would save if nothing else held "
            "the device up.",
            Shown::kHidden},
           {"gain_after_us", ColumnType::kTime,
            "What it saves when those above are fixed.", Shown::kHidden},
           {"owned_us", ColumnType::kTime,
            "Time that belongs to this finding alone, of all devices.",
            Shown::kHidden},
           {"claims", ColumnType::kInt, "Rows that say so.", Shown::kHidden},
           {"what", ColumnType::kText, "In one sentence.", Shown::kHidden},
           {"reason", ColumnType::kText, "Of the confidence.", Shown::kHidden},
           {"fix", ColumnType::kText, "The one to begin with.", Shown::kHidden},
           {"verify", ColumnType::kText, "What shows that it is gone.",
            Shown::kHidden},
           {"cannot_tell", ColumnType::kText, "What would raise confidence.",
            Shown::kHidden},
           {"suppressed", ColumnType::kBool, "By the suppression file.",
            Shown::kHidden}}};
}

Schema EvidenceSchema() {
  return {
      "finding_evidence",
      "The largest claims of each finding.",
      {{"id", ColumnType::kText, "Finding."},
       {"uid", ColumnType::kInt, "Event number; empty: a span of idle time."},
       {"device", ColumnType::kText, "process:device."},
       {"start_us", ColumnType::kTime, "From the first event."},
       {"owned_us", ColumnType::kTime, "Time that it owns of it."}}};
}

Schema RangesSchema() {
  return {"finding_ranges",
          "All time that findings own.",
          {{"id", ColumnType::kText, "Finding."},
           {"device", ColumnType::kText, "process:device."},
           {"start_us", ColumnType::kTime, "From the first event."},
           {"dur_us", ColumnType::kTime, "Length of the claim."},
           {"owned_us", ColumnType::kTime, "Owned of it."},
           {"uid", ColumnType::kInt, "Event; empty: idle time."}}};
}

Schema OverlapsSchema() {
  return {"finding_overlaps",
          "Time that a rule claimed and another one owns.",
          {{"winner", ColumnType::kText, "Rule that owns it."},
           {"loser", ColumnType::kText, "Rule that claimed it, too."},
           {"time_us", ColumnType::kTime, "Sum."}}};
}

Schema RunsSchema() {
  return {
      "rules_run",
      "Every rule, and how it ended.",
      {{"rule", ColumnType::kText, "Rule."},
       {"state", ColumnType::kText,
        "found; silent: looked, nothing there; abstained: could not look; "
        "suppressed; failed."},
       {"reason", ColumnType::kText,
        "Why it could not look, or what it measured."},
       {"could_tell_with", ColumnType::kText, "How to record what it lacks."},
       {"owned_us", ColumnType::kTime, "Time that it owns."}}};
}

std::string KindSums(const Diagnosis& d) {
  std::map<std::string, int64_t> sums;
  for (const Finding& f : d.findings) {
    if (!f.small && !f.suppressed && f.gain_ns > 0)
      sums[std::string(f.gain_kind())] += f.gain_ns;
  }
  std::string text;
  for (const char* kind : {"measured", "bound", "estimate"}) {
    if (sums[kind] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kind,
                        HumanTime(sums[kind]));
  }
  return text;
}

// One list of all that could be won, whoever found it: the places of those
// notes are kept, and the largest comes first.
void SortByWorth(std::vector<Note>& notes) {
  std::vector<Note> sorted;
  for (Note& note : notes) {
    if (note.severity == Severity::kOpportunity)
      sorted.push_back(std::move(note));
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Note& a, const Note& b) {
                     return a.worth_ns.value_or(-1) > b.worth_ns.value_or(-1);
                   });
  auto next = sorted.begin();
  for (Note& note : notes) {
    if (note.severity == Severity::kOpportunity) note = std::move(*next++);
  }
}

// Rules without an answer, and why; empty: there are none.
std::string FailedText(const Diagnosis& d) {
  size_t failed = 0;
  std::string first;
  for (const RuleRun& run : d.runs) {
    if (run.state != State::kFailed) continue;
    if (failed++ == 0) first = run.rule->id + ": " + run.reason;
  }
  return failed == 0
             ? std::string()
             : fmt::format(
                   "{} could not finish, and what would be "
                   "found is missing here ({}{}).",
                   Counted(failed, "rule"), first, failed > 1 ? "; ..." : "");
}

}  // namespace

std::string Headline(const Diagnosis& d) {
  const auto shown = static_cast<uint64_t>(
      std::count_if(d.findings.begin(), d.findings.end(), [](const Finding& f) {
        return !f.small && !f.suppressed && f.open_ns == 0;
      }));
  const auto open = static_cast<uint64_t>(
      std::count_if(d.findings.begin(), d.findings.end(), [](const Finding& f) {
        return !f.small && !f.suppressed && f.open_ns > 0;
      }));
  const size_t looked = static_cast<size_t>(
      std::count_if(d.runs.begin(), d.runs.end(), [](const RuleRun& run) {
        return run.state != State::kAbstained && run.state != State::kFailed;
      }));
  if (looked == 0) {
    return "No rule could look at this recording: nothing is known of its "
           "problems.";
  }
  if (shown == 0 && open > 0) {
    return fmt::format(
        "{} looked and found no cause of which the gain is known; {} without "
        "one, of a window of {}.",
        Counted(looked, "rule"), Counted(open, "line"), HumanTime(d.window_ns));
  }
  if (shown == 0) {
    return fmt::format("{} looked and found nothing above 1 % of {}.",
                       Counted(looked, "rule"), HumanTime(d.window_ns));
  }
  const std::string sums = KindSums(d);
  if (sums.empty()) {
    return fmt::format("{} without a gain in time, of a window of {}.",
                       Counted(shown, "finding"), HumanTime(d.window_ns));
  }
  // What gains overlap in is not found here, and a gain may be more.
  const bool most =
      std::all_of(d.findings.begin(), d.findings.end(), [](const Finding& f) {
        return f.small || f.suppressed ||
               std::max(f.gain_high_ns, f.gain_after_ns) <= f.gain_ns;
      });
  return fmt::format("{}, together {} {} of {} ({:.0f} %): {}.",
                     Counted(shown, "finding"), most ? "at most" : "about",
                     HumanTime(d.together_ns), HumanTime(d.window_ns),
                     100.0 * static_cast<double>(d.together_ns) /
                         static_cast<double>(std::max<int64_t>(1, d.window_ns)),
                     sums);
}

std::string LookedText(const Diagnosis& d) {
  size_t looked = 0, blind = 0, failed = 0;
  std::map<std::string, size_t> hints;
  for (const RuleRun& run : d.runs) {
    if (run.state == State::kFailed) {
      ++failed;
    } else if (run.state != State::kAbstained) {
      ++looked;
    } else {
      ++blind;
      ++hints[run.reason + (run.hint.empty() ? "" : ": " + run.hint)];
    }
  }
  std::string text =
      fmt::format("{} checked, {} skipped", Counted(looked, "rule"), blind);
  std::vector<std::pair<std::string, size_t>> sorted(hints.begin(),
                                                     hints.end());
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string list;
  for (const auto& [hint, count] : sorted)
    list += fmt::format("{}{} {}", list.empty() ? "" : "; ", count, hint);
  if (!list.empty()) text += " for missing data (" + list + ")";
  if (failed > 0) text += fmt::format("; failed: {}", failed);
  return text + ".";
}

ResultSet Tables(const Diagnosis& d) {
  ResultSet out;
  Table findings(FindingsSchema()), evidence(EvidenceSchema()),
      ranges(RangesSchema()), overlaps(OverlapsSchema()), runs(RunsSchema());
  int64_t rank = 0;
  const auto device = [&](const Finding& f, const Claim& claim) -> Value {
    // Numbers of events of several traces need their rank.
    if (f.rule->kind == ClaimKind::kBusy && !f.rule->over_ranks) return {};
    return claim.device < d.device_names.size()
               ? Value(d.device_names[claim.device])
               : Value();
  };
  for (const Finding& f : d.findings) {
    findings.Add(++rank, f.rule->title, f.gain_ns, 100 * f.share, f.gain_kind(),
                 ConfidenceName(f.confidence), f.id, f.rule->id,
                 f.rule->category, f.severity, f.gain_low_ns, f.gain_high_ns,
                 f.gain_after_ns, f.owned_ns, f.claims, f.what, f.reason,
                 f.fixes[0]->layer + ": " + f.fixes[0]->text, f.rule->verify,
                 f.cannot_tell, f.suppressed);
    const auto uid = [](const Claim& claim) {
      return claim.uid >= 0 ? Value(claim.uid) : Value();
    };
    for (const Claim& claim : f.top)
      evidence.Add(f.id, uid(claim), device(f, claim), claim.start_ns,
                   claim.owned_ns);
    for (const Claim& claim : f.spans)
      ranges.Add(f.id, device(f, claim), claim.start_ns, claim.dur_ns,
                 claim.owned_ns, uid(claim));
  }
  for (const auto& [pair, ns] : d.overlaps)
    overlaps.Add(pair.first, pair.second, ns);
  for (const RuleRun& run : d.runs)
    runs.Add(run.rule->id, StateName(run.state), run.reason, run.hint,
             run.owned_ns);
  out.notes.push_back(MakeNote(Severity::kVerdict, "findings", Headline(d),
                               {{"findings", "", "", {}}}));
  if (const std::string failed = FailedText(d); !failed.empty()) {
    out.notes.push_back(MakeNote(Severity::kWarning, "rules_failed", failed,
                                 {{"rules_run", "state", "failed", {}}}));
  }
  for (const Finding& f : d.findings) {
    if (f.small || f.suppressed) continue;
    Note note = MakeNote(
        f.gain_kind() == "none" && f.open_ns == 0 ? Severity::kWarning
                                                  : Severity::kOpportunity,
        f.rule->id,
        f.open_ns > 0
            ? f.what
            : f.what + " Fix (" + f.fixes[0]->layer + "): " + f.fixes[0]->text,
        {{"findings", "id", f.id, f.events}});
    if (note.severity == Severity::kOpportunity) {
      note.worth_ns = f.worth_ns();
      note.claim = f.open_ns == 0 ? std::string(f.gain_kind())
                   : f.rule->kind == ClaimKind::kNone ? "bound"
                                                      : "measured";
    }
    out.notes.push_back(std::move(note));
  }
  SortByWorth(out.notes);
  out.notes.push_back(MakeNote(Severity::kInfo, "rules_run", LookedText(d),
                               {{"rules_run", "", "", {}}}));
  if (d.small > 0 || d.suppressed > 0) {
    std::string text;
    if (d.small > 0)
      text = Counted(d.small, "finding") + " below the least share";
    if (d.suppressed > 0) {
      text += (text.empty() ? "" : ", ") + Counted(d.suppressed, "finding") +
              " suppressed";
    }
    out.notes.push_back(MakeNote(Severity::kInfo, "not_shown",
                                 text + ": ⟨all⟩ lists them.",
                                 {{"findings", "", "", {}}}));
  }
  out.tables.push_back(std::move(findings));
  out.tables.push_back(std::move(evidence));
  out.tables.push_back(std::move(ranges));
  out.tables.push_back(std::move(overlaps));
  out.tables.push_back(std::move(runs));
  return out;
}

bool IsReportTable(std::string_view name) {
  return name == "findings" || name == "finding_evidence" ||
         name == "rules_run";
}

void AddToReport(const Diagnosis& d, size_t most, Document& report) {
  // Sentences of a report, and a rule that says more of the same.
  static constexpr std::pair<std::string_view, std::string_view> kSame[] = {
      {"device_idle", "device.idle_rest"},
      {"exposed_communication", "comm.exposed_rest"},
      {"exposed_copies", "copy.exposed_rest"},
      {"short_kernels", "host.launch_bound"},
      {"above_roofline", "kernel.headroom"}};
  const auto looked = [&](std::string_view rule) {
    return std::any_of(d.runs.begin(), d.runs.end(), [&](const RuleRun& run) {
      return run.rule->id == rule && run.state != State::kAbstained &&
             run.state != State::kFailed;
    });
  };
  ResultSet found = Tables(d);
  std::vector<Note> shown;
  size_t left = 0;
  for (Note& note : found.notes) {
    if (note.severity == Severity::kVerdict || note.severity == Severity::kInfo)
      continue;
    if (shown.size() < most) {
      shown.push_back(std::move(note));
    } else {
      ++left;
    }
  }
  auto& notes = report.result.notes;
  std::erase_if(notes, [&](const Note& note) {
    return note.severity == Severity::kOpportunity &&
           std::any_of(std::begin(kSame), std::end(kSame), [&](const auto& s) {
             return s.first == note.id && looked(s.second);
           });
  });
  // Findings that are shown and say the same of what is missing, and more.
  static constexpr std::pair<std::string_view, std::string_view> kMissing[] = {
      {"trace.damaged", "lost_records"},
      {"trace.impossible_durations", "impossible_duration"},
      {"trace.time_outliers", "time_outlier"},
      {"trace.clocks", "clocks_disagree"},
      {"trace.clocks", "clocks_drift"},
      {"trace.lost_device_records", "lost_device_records"},
      {"trace.missing_device_records", "device_records_missing"}};
  for (const auto& [finding, sentence] : kMissing) {
    if (std::ranges::find(shown, finding, &Note::id) != shown.end())
      std::erase_if(notes,
                    [&](const Note& note) { return note.id == sentence; });
  }
  // What voids the rest stands before it, what only has no gain behind it.
  const auto behind =
      std::stable_partition(shown.begin(), shown.end(), [&](const Note& note) {
        return note.severity == Severity::kOpportunity ||
               std::any_of(
                   d.findings.begin(), d.findings.end(), [&](const Finding& f) {
                     return f.rule->id == note.id && f.severity == "blocker";
                   });
      });
  const std::vector<Note> rest(std::make_move_iterator(behind),
                               std::make_move_iterator(shown.end()));
  shown.erase(behind, shown.end());
  auto at = std::find_if(notes.begin(), notes.end(), [](const Note& note) {
    return note.severity != Severity::kVerdict;
  });
  notes.insert(at, std::make_move_iterator(shown.begin()),
               std::make_move_iterator(shown.end()));
  SortByWorth(notes);
  const auto last = std::find_if(
      notes.rbegin(), notes.rend(),
      [](const Note& n) { return n.severity == Severity::kOpportunity; });
  notes.insert(last == notes.rend() ? notes.end() : last.base(), rest.begin(),
               rest.end());
  const auto blind = static_cast<uint64_t>(std::count_if(
      d.runs.begin(), d.runs.end(),
      [](const RuleRun& run) { return run.state == State::kAbstained; }));
  std::string text = Headline(d);
  if (left > 0) text += fmt::format(" {} more by ⟨diagnose()⟩.", left);
  if (blind > 0)
    text += " " + Counted(blind, "rule") +
            " could not look; ⟨diagnose()⟩ says why.";
  notes.push_back(MakeNote(Severity::kInfo, "findings", std::move(text),
                           {{"rules_run", "", "", {}}}));
  for (Table& table : found.tables) {
    if (IsReportTable(table.name()))
      report.result.tables.push_back(std::move(table));
  }
}

}  // namespace lamina::findings
