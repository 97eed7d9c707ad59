// SPDX-License-Identifier: Apache-2.0
//
// Tables with a row per rank, step or file.
#include <algorithm>
#include <map>
#include <optional>

#include "dist/pictures.h"
#include "dist/tables.h"

namespace lamina::dist {
namespace {

std::optional<double> Percent(int64_t part, int64_t whole) {
  if (whole <= 0) return std::nullopt;
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// Readable ranks by number.
std::vector<const RankSummary*> ByRank(const Job& job) {
  std::vector<const RankSummary*> ranks;
  for (const RankSummary& rank : job.ranks) {
    if (rank.error.empty()) ranks.push_back(&rank);
  }
  std::sort(ranks.begin(), ranks.end(),
            [](const auto* a, const auto* b) { return a->rank < b->rank; });
  return ranks;
}

void AddFiles(const Job& job, ResultSet& result) {
  Table table(
      {"ranks",
       "One row per input.",
       {{"rank", ColumnType::kInt, "Rank; empty if unusable."},
        {"world_size", ColumnType::kInt, "Ranks of the job.", Shown::kHidden},
        {"events", ColumnType::kInt, "Records of the trace."},
        {"input_bytes", ColumnType::kInt, "Size after unpacking.",
         Shown::kBytes},
        {"groups", ColumnType::kInt, "Process groups."},
        {"collectives", ColumnType::kInt, "Communication kernels."},
        {"file", ColumnType::kText, "Input."},
        {"error", ColumnType::kText, "Why it is left out."}}});
  for (const RankSummary& rank : job.ranks) {
    if (!rank.error.empty()) {
      table.Add(Value(), Value(), Value(), Value(), Value(), Value(), rank.file,
                rank.error);
      continue;
    }
    uint64_t calls = 0;
    for (const GroupName& group : rank.groups) calls += group.calls;
    table.Add(rank.rank, Number(rank.world_size), rank.events, rank.input_bytes,
              rank.groups.size(), calls, rank.file, "");
  }
  result.tables.push_back(std::move(table));
}

void AddOffsets(const Job& job, ResultSet& result) {
  Table table(
      {"clock_offsets",
       "Clock of each rank minus that of its reference, from the ends "
       "of collectives.",
       {{"rank", ColumnType::kInt, "Rank."},
        {"reference_rank", ColumnType::kInt,
         "Rank whose clock is 0; of its own: joined to no other."},
        {"offset_us", ColumnType::kTime,
         "At the first event of the rank; empty if unknown."},
        {"uncertainty_us", ColumnType::kTime, "Standard error of the offset."},
        {"drift_ppm", ColumnType::kReal,
         "How much faster the clock runs, in parts per million; empty "
         "with fewer than 8 collectives."},
        {"drift_error_ppm", ColumnType::kReal, "Standard error of the drift."},
        {"spread_us", ColumnType::kTime,
         "Median deviation of single collectives from the fit."},
        {"calls", ColumnType::kInt, "Collectives of the fit."},
        {"via_rank", ColumnType::kInt, "Rank that it was fitted to.",
         Shown::kHidden},
        {"applied", ColumnType::kBool,
         "The offset is taken off all times of this result."}}});
  for (const RankClock& clock : job.clocks.ranks()) {
    const bool own = clock.reference == clock.rank;
    const auto when = [&](const Value& value) {
      return clock.known ? value : Value();
    };
    table.Add(
        clock.rank, clock.reference, when(clock.offset_ns),
        own ? Value() : when(std::llround(clock.uncertainty_ns)),
        own                            ? Value(0.0)
        : clock.calls < kCallsForDrift ? Value()
                                       : Value(clock.drift * 1e6),
        own || clock.calls < kCallsForDrift ? Value()
                                            : Value(clock.drift_error * 1e6),
        own ? Value() : when(std::llround(clock.spread_ns)),
        own ? Value() : when(clock.calls), own ? Value() : when(clock.via),
        clock.applied && !job.clocks.raw());
  }
  result.tables.push_back(std::move(table));
}

void AddStragglers(const std::vector<RankBlame>& blame, ResultSet& result) {
  Table table(
      {"stragglers",
       "Which ranks made the others wait, the worst first.",
       {{"rank", ColumnType::kInt, "Rank."},
        {"blamed_wait_us", ColumnType::kTime,
         "Wait of all ranks that leads back to it, also through other ranks."},
        {"cause", ColumnType::kText,
         "What held it up most: compute, launch or previous."},
        {"cause_name", ColumnType::kText, "Op with the largest excess."},
        {"cause_us", ColumnType::kTime,
         "That excess over the other ranks, summed."},
        {"caused_wait_us", ColumnType::kTime,
         "Wait of the others where it was the last to start."},
        {"total_wait_us", ColumnType::kTime,
         "Its own wait; least for a straggler."},
        {"mean_wait_us", ColumnType::kTime, "Per collective.", Shown::kHidden},
        {"times_last", ColumnType::kInt, "Collectives it came last to."},
        {"times_first", ColumnType::kInt, "And first."},
        {"collectives", ColumnType::kInt, "That it took part in.",
         Shown::kHidden}}});
  Table causes(
      {"straggler_causes",
       "All causes of waits, by rank.",
       {{"rank", ColumnType::kInt, "Rank."},
        {"cause", ColumnType::kText, "compute, launch or previous."},
        {"cause_name", ColumnType::kText, "Op."},
        {"blamed_wait_us", ColumnType::kTime, "Wait of all ranks."},
        {"cause_us", ColumnType::kTime,
         "Time more than the median of the other ranks, summed."},
        {"collectives", ColumnType::kInt, "To which it came late for it."}}});
  for (const RankBlame& b : blame) {
    const CauseSum* worst = b.causes.empty() ? nullptr : &b.causes.front();
    table.Add(b.rank, b.blamed_ns,
              worst != nullptr ? CauseName(worst->cause) : "",
              worst != nullptr ? worst->name : "",
              worst != nullptr ? Value(worst->delay_ns) : Value(), b.caused_ns,
              b.wait_ns, b.wait_ns / std::max<int64_t>(b.calls, 1),
              b.times_last, b.times_first, b.calls);
    for (const CauseSum& cause : b.causes) {
      causes.Add(b.rank, CauseName(cause.cause), cause.name, cause.wait_ns,
                 cause.delay_ns, cause.calls);
    }
  }
  result.tables.push_back(std::move(table));
  result.tables.push_back(std::move(causes));
}

void AddSteps(const Job& job, ResultSet& result) {
  Table table(
      {"rank_steps",
       "Device time of every rank and step.",
       {{"rank", ColumnType::kInt, "Rank."},
        {"step", ColumnType::kInt, "Step; empty: outside of all steps."},
        {"device_us", ColumnType::kTime,
         "From the first start to the last end."},
        {"busy_us", ColumnType::kTime, "Something ran."},
        {"idle_us", ColumnType::kTime, "Nothing ran."},
        {"compute_us", ColumnType::kTime, "Something was computed."},
        {"comm_us", ColumnType::kTime, "Something was communicated."},
        {"exposed_comm_us", ColumnType::kTime,
         "Communication while nothing was computed."},
        {"wait_us", ColumnType::kTime,
         "Of the communication: waiting for later ranks."},
        {"overlap_pct", ColumnType::kReal,
         "Share of the communication that computation hides.",
         Shown::kPercent}}});
  std::map<std::pair<int64_t, uint32_t>, int64_t> waits;
  for (const MeasuredCall& call : job.measured.calls) {
    if (!call.waited()) continue;
    for (const MeasuredMember& m : call.members)
      waits[{m.rank, m.step}] += m.wait_ns;
  }
  for (const RankSummary* rank : ByRank(job)) {
    for (uint32_t s = 0; s < rank->steps.size(); ++s) {
      const StepTimes& step = rank->steps[s];
      if (step.device_ns == 0) continue;
      const auto wait = waits.find({rank->rank, s});
      table.Add(rank->rank, Number(step.number), step.device_ns, step.busy_ns,
                step.device_ns - step.busy_ns, step.compute_ns, step.comm_ns,
                step.exposed_comm_ns, wait != waits.end() ? wait->second : 0,
                Percent(step.comm_ns - step.exposed_comm_ns, step.comm_ns));
    }
  }
  result.tables.push_back(std::move(table));
}

// A pipeline is a job whose ranks send and receive within a step. Its bubbles
// are the times in which a stage has nothing to compute yet, waits for its
// neighbours, or has nothing left.
void AddBubbles(const Job& job, ResultSet& result) {
  Table table(
      {"pipeline_bubbles",
       "Time of pipeline stages without work, by rank and step.",
       {{"rank", ColumnType::kInt, "Rank."},
        {"step", ColumnType::kInt, "Step."},
        {"window_us", ColumnType::kTime,
         "Of the step, over all ranks that send or receive in it."},
        {"head_us", ColumnType::kTime, "Until it first computes."},
        {"exposed_peer_us", ColumnType::kTime,
         "In sends and receives while nothing was computed."},
        {"tail_us", ColumnType::kTime, "After it last computed."},
        {"bubble_us", ColumnType::kTime, "Sum of the three."},
        {"bubble_pct", ColumnType::kReal, "Of the window.", Shown::kBar}}});
  struct Window {
    int64_t start_ns = INT64_MAX;
    int64_t end_ns = INT64_MIN;
  };
  std::map<int64_t, Window> windows;
  const auto ranks = ByRank(job);
  const auto each = [&](const auto& use) {
    for (const RankSummary* rank : ranks) {
      for (const StepTimes& step : rank->steps) {
        if (step.peer_ns == 0 || step.compute_ns == 0) continue;
        const auto align = [&](int64_t t) {
          return job.clocks.Align(rank->rank, t);
        };
        use(*rank, step, align(step.first_compute_ns),
            align(step.last_compute_ns), windows[step.number]);
      }
    }
  };
  each([](const RankSummary&, const StepTimes&, int64_t first, int64_t last,
          Window& window) {
    window.start_ns = std::min(window.start_ns, first);
    window.end_ns = std::max(window.end_ns, last);
  });
  each([&](const RankSummary& rank, const StepTimes& step, int64_t first,
           int64_t last, const Window& window) {
    const int64_t head = first - window.start_ns;
    const int64_t tail = window.end_ns - last;
    const int64_t whole = window.end_ns - window.start_ns;
    const int64_t bubble = head + step.peer_exposed_ns + tail;
    table.Add(rank.rank, Number(step.number), whole, head, step.peer_exposed_ns,
              tail, bubble, Percent(bubble, whole));
  });
  result.tables.push_back(std::move(table));
}

}  // namespace

int64_t OriginOf(const Job& job) {
  int64_t origin = INT64_MAX;
  for (const RankSummary& rank : job.ranks) {
    if (rank.error.empty() && rank.events > 0)
      origin = std::min(origin, job.clocks.Align(rank.rank, rank.first_ns));
  }
  return origin == INT64_MAX ? 0 : origin;
}

void AddRankTables(const Job& job, const std::vector<RankBlame>& blame,
                   ResultSet& result) {
  AddStragglers(blame, result);
  AddOffsets(job, result);
  AddSteps(job, result);
  AddBubbles(job, result);
  AddFiles(job, result);
}

ResultSet MakeResult(const Job& job, bool pictures) {
  const auto blame = FindBlame(job.measured);
  const auto links = FindLinks(job.measured);
  ResultSet result;
  AddNotes(job, blame, result);
  AddRankTables(job, blame, result);
  AddCallTables(job, result);
  AddLinkTable(links, result);
  if (pictures) result.diagrams = DrawPictures(result, blame, links);
  return result;
}

}  // namespace lamina::dist
