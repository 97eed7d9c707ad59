// SPDX-License-Identifier: Apache-2.0
//
// Tables with a row per rank, step or file.
#include <algorithm>
#include <map>
#include <optional>

#include "dist/pictures.h"
#include "dist/tables.h"
#include "table/row_columns.h"

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

struct FileRow {
  std::optional<int64_t> rank, world_size;
  std::optional<size_t> events;
  std::optional<int64_t> input_bytes;
  std::optional<size_t> groups;
  std::optional<int64_t> collectives;
  std::string_view file, error;
};

void AddFiles(const Job& job, ResultSet& result) {
  const RowColumns<FileRow> columns{
      "ranks",
      "One row per input.",
      {{"rank", ColumnType::kInt, "Rank; empty if unusable.", &FileRow::rank},
       {"world_size", ColumnType::kInt, "Ranks of the job.",
        &FileRow::world_size, Shown::kHidden},
       {"events", ColumnType::kInt, "Records of the trace.", &FileRow::events},
       {"input_bytes", ColumnType::kInt, "Size after unpacking.",
        &FileRow::input_bytes, Shown::kBytes},
       {"groups", ColumnType::kInt, "Process groups.", &FileRow::groups},
       {"collectives", ColumnType::kInt, "Communication kernels.",
        &FileRow::collectives},
       {"file", ColumnType::kText, "Input.", &FileRow::file},
       {"error", ColumnType::kText, "Why it is left out.", &FileRow::error}}};
  Table table(columns.schema());
  for (const RankSummary& rank : job.ranks) {
    if (!rank.error.empty()) {
      columns.Add(table, {.rank = std::nullopt,
                          .world_size = std::nullopt,
                          .events = std::nullopt,
                          .input_bytes = std::nullopt,
                          .groups = std::nullopt,
                          .collectives = std::nullopt,
                          .file = rank.file,
                          .error = rank.error});
      continue;
    }
    uint64_t calls = 0;
    for (const GroupName& group : rank.groups) calls += group.calls;
    columns.Add(table, {.rank = rank.rank,
                        .world_size = Number(rank.world_size),
                        .events = rank.events,
                        .input_bytes = rank.input_bytes,
                        .groups = rank.groups.size(),
                        .collectives = calls,
                        .file = rank.file,
                        .error = ""});
  }
  result.tables.push_back(std::move(table));
}

struct OffsetRow {
  int64_t rank, reference_rank;
  std::optional<int64_t> offset, uncertainty;
  std::optional<double> drift_ppm, drift_error_ppm;
  std::optional<int64_t> spread, calls, via_rank;
  bool applied;
};

void AddOffsets(const Job& job, ResultSet& result) {
  const RowColumns<OffsetRow> columns{
      "clock_offsets",
      "Clock of each rank minus that of its reference, from the ends "
      "of collectives.",
      {{"rank", ColumnType::kInt, "Rank.", &OffsetRow::rank},
       {"reference_rank", ColumnType::kInt,
        "Rank whose clock is 0; of its own: joined to no other.",
        &OffsetRow::reference_rank},
       {"offset_us", ColumnType::kTime,
        "At the first event of the rank; empty if unknown.",
        &OffsetRow::offset},
       {"uncertainty_us", ColumnType::kTime, "Standard error of the offset.",
        &OffsetRow::uncertainty},
       {"drift_ppm", ColumnType::kReal,
        "How much faster the clock runs, in parts per million; empty "
        "with fewer than 8 collectives.",
        &OffsetRow::drift_ppm},
       {"drift_error_ppm", ColumnType::kReal, "Standard error of the drift.",
        &OffsetRow::drift_error_ppm},
       {"spread_us", ColumnType::kTime,
        "Median deviation of single collectives from the fit.",
        &OffsetRow::spread},
       {"calls", ColumnType::kInt, "Collectives of the fit.",
        &OffsetRow::calls},
       {"via_rank", ColumnType::kInt, "Rank that it was fitted to.",
        &OffsetRow::via_rank, Shown::kHidden},
       {"applied", ColumnType::kBool,
        "The offset is taken off all times of this result.",
        &OffsetRow::applied}}};
  Table table(columns.schema());
  for (const RankClock& clock : job.clocks.ranks()) {
    const bool own = clock.reference == clock.rank;
    const auto when = [&](int64_t value) {
      return clock.known ? std::optional(value) : std::nullopt;
    };
    columns.Add(
        table,
        {.rank = clock.rank,
         .reference_rank = clock.reference,
         .offset = when(clock.offset_ns),
         .uncertainty =
             own ? std::nullopt : when(std::llround(clock.uncertainty_ns)),
         .drift_ppm = own ? std::optional(0.0)
                      : clock.calls < kCallsForDrift
                          ? std::nullopt
                          : std::optional(clock.drift * 1e6),
         .drift_error_ppm = own || clock.calls < kCallsForDrift
                                ? std::nullopt
                                : std::optional(clock.drift_error * 1e6),
         .spread = own ? std::nullopt : when(std::llround(clock.spread_ns)),
         .calls = own ? std::nullopt : when(clock.calls),
         .via_rank = own ? std::nullopt : when(clock.via),
         .applied = clock.applied && !job.clocks.raw()});
  }
  result.tables.push_back(std::move(table));
}

struct StragglerRow {
  int64_t rank, blamed_wait;
  std::string_view cause;
  std::string cause_name;
  std::optional<int64_t> cause_time;
  int64_t caused_wait, total_wait, mean_wait, times_last, times_first,
      collectives;
};

struct CauseRow {
  int64_t rank;
  std::string_view cause, cause_name;
  int64_t blamed_wait, cause_time, collectives;
};

void AddStragglers(const std::vector<RankBlame>& blame, ResultSet& result) {
  const RowColumns<StragglerRow> columns{
      "stragglers",
      "Which ranks made the others wait, the worst first.",
      {{"rank", ColumnType::kInt, "Rank.", &StragglerRow::rank},
       {"blamed_wait_us", ColumnType::kTime,
        "Wait of all ranks that leads back to it, also through other ranks.",
        &StragglerRow::blamed_wait},
       {"cause", ColumnType::kText,
        "What held it up most: compute, launch or previous.",
        &StragglerRow::cause},
       {"cause_name", ColumnType::kText, "Op with the largest excess.",
        &StragglerRow::cause_name},
       {"cause_us", ColumnType::kTime,
        "That excess over the other ranks, summed.", &StragglerRow::cause_time},
       {"caused_wait_us", ColumnType::kTime,
        "Wait of the others where it was the last to start.",
        &StragglerRow::caused_wait},
       {"total_wait_us", ColumnType::kTime,
        "Its own wait; least for a straggler.", &StragglerRow::total_wait},
       {"mean_wait_us", ColumnType::kTime, "Per collective.",
        &StragglerRow::mean_wait, Shown::kHidden},
       {"times_last", ColumnType::kInt, "Collectives it came last to.",
        &StragglerRow::times_last},
       {"times_first", ColumnType::kInt, "And first.",
        &StragglerRow::times_first},
       {"collectives", ColumnType::kInt, "That it took part in.",
        &StragglerRow::collectives, Shown::kHidden}}};
  Table table(columns.schema());
  const RowColumns<CauseRow> cause_columns{
      "straggler_causes",
      "All causes of waits, by rank.",
      {{"rank", ColumnType::kInt, "Rank.", &CauseRow::rank},
       {"cause", ColumnType::kText, "compute, launch or previous.",
        &CauseRow::cause},
       {"cause_name", ColumnType::kText, "Op.", &CauseRow::cause_name},
       {"blamed_wait_us", ColumnType::kTime, "Wait of all ranks.",
        &CauseRow::blamed_wait},
       {"cause_us", ColumnType::kTime,
        "Time more than the median of the other ranks, summed.",
        &CauseRow::cause_time},
       {"collectives", ColumnType::kInt, "To which it came late for it.",
        &CauseRow::collectives}}};
  Table causes(cause_columns.schema());
  for (const RankBlame& b : blame) {
    const CauseSum* worst = b.causes.empty() ? nullptr : &b.causes.front();
    columns.Add(table,
                {.rank = b.rank,
                 .blamed_wait = b.blamed_ns,
                 .cause = worst != nullptr ? CauseName(worst->cause) : "",
                 .cause_name = worst != nullptr ? worst->name : "",
                 .cause_time = worst != nullptr ? std::optional(worst->delay_ns)
                                                : std::nullopt,
                 .caused_wait = b.caused_ns,
                 .total_wait = b.wait_ns,
                 .mean_wait = b.wait_ns / std::max<int64_t>(b.calls, 1),
                 .times_last = b.times_last,
                 .times_first = b.times_first,
                 .collectives = b.calls});
    for (const CauseSum& cause : b.causes) {
      cause_columns.Add(causes, {.rank = b.rank,
                                 .cause = CauseName(cause.cause),
                                 .cause_name = cause.name,
                                 .blamed_wait = cause.wait_ns,
                                 .cause_time = cause.delay_ns,
                                 .collectives = cause.calls});
    }
  }
  result.tables.push_back(std::move(table));
  result.tables.push_back(std::move(causes));
}

struct StepRow {
  int64_t rank;
  std::optional<int64_t> step;
  int64_t device, busy, idle, compute, comm, exposed_comm, wait;
  std::optional<double> overlap_pct;
};

void AddSteps(const Job& job, ResultSet& result) {
  const RowColumns<StepRow> columns{
      "rank_steps",
      "Device time of every rank and step.",
      {{"rank", ColumnType::kInt, "Rank.", &StepRow::rank},
       {"step", ColumnType::kInt, "Step; empty: outside of all steps.",
        &StepRow::step},
       {"device_us", ColumnType::kTime, "From the first start to the last end.",
        &StepRow::device},
       {"busy_us", ColumnType::kTime, "Something ran.", &StepRow::busy},
       {"idle_us", ColumnType::kTime, "Nothing ran.", &StepRow::idle},
       {"compute_us", ColumnType::kTime, "Something was computed.",
        &StepRow::compute},
       {"comm_us", ColumnType::kTime, "Something was communicated.",
        &StepRow::comm},
       {"exposed_comm_us", ColumnType::kTime,
        "Communication while nothing was computed.", &StepRow::exposed_comm},
       {"wait_us", ColumnType::kTime,
        "Of the communication: waiting for later ranks.", &StepRow::wait},
       {"overlap_pct", ColumnType::kReal,
        "Share of the communication that computation hides.",
        &StepRow::overlap_pct, Shown::kPercent}}};
  Table table(columns.schema());
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
      columns.Add(table,
                  {.rank = rank->rank,
                   .step = Number(step.number),
                   .device = step.device_ns,
                   .busy = step.busy_ns,
                   .idle = step.device_ns - step.busy_ns,
                   .compute = step.compute_ns,
                   .comm = step.comm_ns,
                   .exposed_comm = step.exposed_comm_ns,
                   .wait = wait != waits.end() ? wait->second : 0,
                   .overlap_pct = Percent(step.comm_ns - step.exposed_comm_ns,
                                          step.comm_ns)});
    }
  }
  result.tables.push_back(std::move(table));
}

struct BubbleRow {
  int64_t rank;
  std::optional<int64_t> step;
  int64_t window, head, exposed_peer, tail, bubble;
  std::optional<double> bubble_pct;
};

// A pipeline is a job whose ranks send and receive within a step. Its bubbles
// are the times in which a stage has nothing to compute yet, waits for its
// neighbours, or has nothing left.
void AddBubbles(const Job& job, ResultSet& result) {
  const RowColumns<BubbleRow> columns{
      "pipeline_bubbles",
      "Time of pipeline stages without work, by rank and step.",
      {{"rank", ColumnType::kInt, "Rank.", &BubbleRow::rank},
       {"step", ColumnType::kInt, "Step.", &BubbleRow::step},
       {"window_us", ColumnType::kTime,
        "Of the step, over all ranks that send or receive in it.",
        &BubbleRow::window},
       {"head_us", ColumnType::kTime, "Until it first computes.",
        &BubbleRow::head},
       {"exposed_peer_us", ColumnType::kTime,
        "In sends and receives while nothing was computed.",
        &BubbleRow::exposed_peer},
       {"tail_us", ColumnType::kTime, "After it last computed.",
        &BubbleRow::tail},
       {"bubble_us", ColumnType::kTime, "Sum of the three.",
        &BubbleRow::bubble},
       {"bubble_pct", ColumnType::kReal, "Of the window.",
        &BubbleRow::bubble_pct, Shown::kBar}}};
  Table table(columns.schema());
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
    columns.Add(table, {.rank = rank.rank,
                        .step = Number(step.number),
                        .window = whole,
                        .head = head,
                        .exposed_peer = step.peer_exposed_ns,
                        .tail = tail,
                        .bubble = bubble,
                        .bubble_pct = Percent(bubble, whole)});
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
