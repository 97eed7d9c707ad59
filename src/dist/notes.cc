// SPDX-License-Identifier: Apache-2.0
//
// What `lamina ranks` says in sentences: verdict, straggler, losses, clocks.
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <set>

#include "analysis/common/stats.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "dist/tables.h"

namespace lamina::dist {
namespace {

using analysis::CollectiveKindName;

void Say(ResultSet& result, Severity severity, std::string id, std::string text,
         std::vector<Evidence> evidence = {}) {
  result.notes.push_back(
      MakeNote(severity, std::move(id), std::move(text), std::move(evidence)));
}

std::string Because(const CauseSum& cause) {
  switch (cause.cause) {
    case Cause::kCompute:
      return fmt::format(
          "{} takes longer there, by {} over {}", cause.name,
          HumanTime(cause.delay_ns),
          Counted(static_cast<uint64_t>(cause.calls), "collective"));
    case Cause::kLaunch:
      return fmt::format("its host launches late, by {}{}",
                         HumanTime(cause.delay_ns),
                         cause.name.empty() ? "" : ", in " + cause.name);
    case Cause::kPrevious:
      return fmt::format("its earlier collectives end late, by {}",
                         HumanTime(cause.delay_ns));
    case Cause::kNone:
      break;
  }
  return "no cause stands out";
}

int64_t CommunicationTime(const Job& job) {
  int64_t comm = 0;
  for (const RankSummary& rank : job.ranks) {
    for (const StepTimes& step : rank.steps) comm += step.comm_ns;
  }
  return comm;
}

void SayVerdict(const Job& job, ResultSet& result) {
  uint64_t readable = 0;
  for (const RankSummary& rank : job.ranks) readable += rank.error.empty();
  uint64_t joined = 0;
  int64_t wait = 0;
  for (const MeasuredCall& call : job.measured.calls) {
    joined += call.comparable();
    for (const MeasuredMember& m : call.members)
      wait += call.waited() ? m.wait_ns : 0;
  }
  if (joined == 0) {
    Say(result, Severity::kVerdict, "verdict",
        fmt::format("{}, none of them joined to another by a collective.",
                    Counted(readable, "rank")));
    return;
  }
  const int64_t comm = CommunicationTime(job);
  std::string text = fmt::format("{} joined by {}", Counted(readable, "rank"),
                                 Counted(joined, "collective"));
  if (comm > 0) {
    text +=
        fmt::format("; {:.1f} % of {} communication is waiting for late ranks",
                    100.0 * static_cast<double>(std::min(wait, comm)) /
                        static_cast<double>(comm),
                    HumanTime(comm));
  }
  Say(result, Severity::kVerdict, "verdict", text + ".");
}

// Where next to nobody waits there is nothing to win, whoever comes last.
bool WaitingMatters(const Job& job, const std::vector<RankBlame>& blame) {
  int64_t all = 0;
  for (const RankBlame& b : blame) all += b.blamed_ns;
  return all >= CommunicationTime(job) / 100;
}

// Even shares are noise: a straggler has a quarter of all waiting at least, and
// more than half as much again as its share (of two ranks three quarters).
bool IsStraggler(int64_t part, int64_t all, size_t ranks) {
  const double share = static_cast<double>(part) / static_cast<double>(all);
  const double even = 1.0 / static_cast<double>(ranks);
  return share >= std::max(0.25, std::min(0.75, 1.6 * even));
}

// How much more a rank of a pipeline computes than the others, by rank; empty
// where nobody sends or receives.
std::map<int64_t, int64_t> MoreComputed(const Job& job) {
  std::map<int64_t, int64_t> computed, more;
  int64_t peers = 0;
  for (const RankSummary& rank : job.ranks) {
    if (!rank.error.empty()) continue;
    for (const StepTimes& step : rank.steps) {
      computed[rank.rank] += step.compute_ns;
      peers += step.peer_ns;
    }
  }
  if (peers == 0) return more;
  for (const auto& [rank, ns] : computed) {
    std::vector<int64_t> others;
    for (const auto& [other, their] : computed) {
      if (other != rank) others.push_back(their);
    }
    more[rank] = ns - analysis::MiddleOf(std::move(others));
  }
  return more;
}

// Whether its order among the stages of a pipeline makes a rank come late, and
// nothing of its own: its sends and receives before end late, or its
// computation is no longer than that of the others in all.
bool IsStage(const RankBlame& rank, const std::map<int64_t, int64_t>& more) {
  const CauseSum& cause = rank.causes.front();
  if (cause.cause == Cause::kPrevious) return true;
  const auto it = more.find(rank.rank);
  return cause.cause == Cause::kCompute && it != more.end() &&
         4 * it->second < cause.delay_ns;
}

// The ranks that are to blame for a large part of all waiting.
void SayStraggler(const Job& job, const std::vector<RankBlame>& ranks,
                  ResultSet& result) {
  const std::map<int64_t, int64_t> more = MoreComputed(job);
  int64_t all = 0;
  std::vector<RankBlame> blame;
  for (const RankBlame& b : ranks) {
    all += b.blamed_ns;
    if (!b.causes.empty() && !IsStage(b, more)) blame.push_back(b);
  }
  if (ranks.size() < 2 || blame.empty()) return;
  const RankBlame& worst = blame.front();
  if (all == 0 || !IsStraggler(worst.blamed_ns, all, ranks.size())) return;
  Note note;
  note.severity = Severity::kOpportunity;
  note.id = "straggler";
  const auto percent = [&](const RankBlame& b) {
    return 100.0 * static_cast<double>(b.blamed_ns) / static_cast<double>(all);
  };
  note.text =
      fmt::format("rank {} is behind {:.0f} % of all waiting: {}", worst.rank,
                  percent(worst), Because(worst.causes.front()));
  int64_t blamed_ns = worst.blamed_ns;
  for (size_t i = 1; i < blame.size(); ++i) {
    const RankBlame& other = blame[i];
    if (!IsStraggler(other.blamed_ns, all, ranks.size())) break;
    note.text += fmt::format("; rank {} behind {:.0f} %: {}", other.rank,
                             percent(other), Because(other.causes.front()));
    blamed_ns += other.blamed_ns;
  }
  note.text += ".";
  note.worth_ns = blamed_ns / static_cast<int64_t>(ranks.size());
  note.claim = "mean per rank, estimate";
  note.evidence = {{"stragglers", "rank", std::to_string(worst.rank), {}}};
  result.notes.push_back(std::move(note));
}

void SayLosses(const Job& job, ResultSet& result) {
  std::map<int64_t, uint64_t> inside;
  uint64_t edge = 0;
  for (const MeasuredLoss& lost : job.measured.lost) {
    if (lost.inside) {
      ++inside[lost.rank];
    } else {
      ++edge;
    }
  }
  if (!inside.empty()) {
    std::string ranks;
    size_t named = 0;
    uint64_t total = 0;
    for (const auto& [rank, count] : inside) {
      total += count;
      if (++named <= 8)
        ranks += fmt::format("{}{} ({})", named > 1 ? ", " : "", rank, count);
    }
    if (named > 8) ranks += fmt::format(" and {} more", named - 8);
    Say(result, Severity::kWarning, "lost_calls",
        fmt::format("{} lost on rank {}; the others are matched around them.",
                    Counted(total, "collective"), ranks),
        {{"lost_calls", "place", "inside", {}}});
  }
  if (edge > 0) {
    Say(result, Severity::kInfo, "edge_calls",
        fmt::format("{} at the beginning or end of a recording {} missing on "
                    "some ranks.",
                    Counted(edge, "collective"), edge == 1 ? "is" : "are"),
        {{"lost_calls", "place", "edge", {}}});
  }
}

void SayMatching(const Job& job, ResultSet& result) {
  uint64_t doubtful = 0;
  uint64_t alone = 0;
  bool unknown = false;
  for (const MeasuredCall& call : job.measured.calls) {
    doubtful += !call.doubt.empty();
    alone += call.by == MatchedBy::kUnmatched;
    unknown = unknown || (call.by == MatchedBy::kOrder &&
                          job.measured.groups[call.group].name == "unknown");
  }
  if (unknown) {
    Say(result, Severity::kWarning, "unknown_group",
        "Some collectives say neither group nor sequence; group 'unknown' "
        "joins them by kernel name and order alone.");
  }
  if (doubtful > 0) {
    Say(result, Severity::kWarning, "doubtful_matches",
        fmt::format("{} matched by order or number but {} not fit together; "
                    "no times are given for {}.",
                    Counted(doubtful, "collective"),
                    doubtful == 1 ? "does" : "do",
                    doubtful == 1 ? "it" : "them"));
  }
  if (alone > 0) {
    Say(result, Severity::kWarning, "unmatched_calls",
        fmt::format("{} of group 'unknown' stand{} alone: the lists of the "
                    "ranks differ.",
                    Counted(alone, "kernel"), alone == 1 ? "s" : ""));
  }
}

void SayClocks(const Job& job, ResultSet& result) {
  std::set<int64_t> references;
  uint64_t unknown = 0;
  const RankClock* largest = nullptr;
  double uncertainty = 0;
  double spread = 0;
  int64_t first_ns = INT64_MAX;
  int64_t last_ns = INT64_MIN;
  for (const MeasuredCall& call : job.measured.calls) {
    first_ns = std::min(first_ns, call.start_ns);
    last_ns = std::max(last_ns, call.start_ns);
  }
  const double span_ns = last_ns > first_ns ? static_cast<double>(last_ns) -
                                                  static_cast<double>(first_ns)
                                            : 0;
  for (const RankClock& clock : job.clocks.ranks()) {
    unknown += !clock.known;
    if (!clock.known) continue;
    references.insert(clock.reference);
    if (!clock.applied) continue;
    // The error of the offset, and what that of the drift adds by the end.
    uncertainty =
        std::max(uncertainty,
                 std::hypot(clock.uncertainty_ns, clock.drift_error * span_ns));
    spread = std::max(spread, clock.spread_ns);
    if (largest == nullptr ||
        std::abs(clock.offset_ns) > std::abs(largest->offset_ns))
      largest = &clock;
  }
  if (largest != nullptr) {
    Say(result, Severity::kInfo, "clocks",
        fmt::format("Clocks differ by up to {} (rank {}, drift {:+.2f} ppm); "
                    "{}: the fit has a standard error of {} at most, ends of "
                    "one collective lie {} from it in the median.",
                    HumanTime(std::abs(largest->offset_ns)), largest->rank,
                    largest->drift * 1e6,
                    job.clocks.raw() ? "times are left as recorded"
                                     : "times are aligned",
                    HumanTime(std::llround(uncertainty)),
                    HumanTime(std::llround(spread))));
  }
  if (unknown > 0 && job.clocks.ranks().size() > 1) {
    Say(result, Severity::kInfo, "unaligned_clocks",
        fmt::format("{} share{} no synchronising collective with another: "
                    "their clocks are taken as recorded.",
                    Counted(unknown, "rank"), unknown == 1 ? "s" : ""));
  }
  if (references.size() > 1) {
    Say(result, Severity::kWarning, "separate_clocks",
        fmt::format("No collective joins all ranks: there are {} parts whose "
                    "clocks do not compare.",
                    references.size()));
  }
}

void SayInputs(const Job& job, ResultSet& result) {
  std::vector<const RankSummary*> bad;
  for (const RankSummary& rank : job.ranks) {
    if (!rank.error.empty()) bad.push_back(&rank);
  }
  for (size_t i = 0; i < bad.size() && i < 5; ++i) {
    Say(result, Severity::kWarning, "unusable_input",
        bad[i]->file + " is left out: " + bad[i]->error + ".",
        {{"ranks", "file", bad[i]->file, {}}});
  }
  if (bad.size() > 5) {
    Say(result, Severity::kWarning, "unusable_input",
        fmt::format("{} more are left out; the table ranks says why.",
                    Counted(bad.size() - 5, "input")));
  }
  int64_t world = 0;
  uint64_t readable = 0;
  for (const RankSummary& rank : job.ranks) {
    readable += rank.error.empty();
    world = std::max(world, rank.world_size);
  }
  if (world > static_cast<int64_t>(readable)) {
    Say(result, Severity::kInfo, "missing_ranks",
        fmt::format("{} of {} ranks are here: transfer times are upper bounds "
                    "where the last to start is not among them.",
                    readable, world));
  }
}

}  // namespace

void AddClockNotes(const Job& job, ResultSet& result) {
  SayClocks(job, result);
}

void AddNotes(const Job& job, const std::vector<RankBlame>& blame,
              ResultSet& result) {
  SayVerdict(job, result);
  if (WaitingMatters(job, blame)) {
    SayStraggler(job, blame, result);
    if (auto note = LatenessNote(job)) result.notes.push_back(std::move(*note));
  }
  SayInputs(job, result);
  SayLosses(job, result);
  SayMatching(job, result);
  SayClocks(job, result);
}

}  // namespace lamina::dist
