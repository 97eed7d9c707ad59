// SPDX-License-Identifier: Apache-2.0

#include "dist/rank_events.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <map>
#include <utility>

#include "base/decimal.h"
#include "base/escape.h"
#include "dist/job.h"
#include "dist/tables.h"
#include "page/device.h"
#include "page/host.h"
#include "render/html/page.h"

namespace lamina::dist {

namespace {

using trace::SliceId;
using trace::Trace;

// Bytes per event after compression, measured on generated jobs; the choice of
// events must not depend on how well they compress.
constexpr uint64_t kEventBytes = 10;

class EventTexts {
 public:
  explicit EventTexts(std::vector<std::string>& texts) : texts_(texts) {}
  uint32_t operator()(std::string_view text) {
    const auto [it, is_new] =
        ids_.try_emplace(std::string(text), texts_.size());
    if (is_new) texts_.emplace_back(text);
    return static_cast<uint32_t>(it->second);
  }

 private:
  std::vector<std::string>& texts_;
  absl::flat_hash_map<std::string, size_t> ids_;
};

// Longest first, alike ones by number.
struct Length {
  int64_t dur_ns = 0;
  uint32_t uid = 0;
  friend bool operator<(const Length& a, const Length& b) {
    return std::pair(-a.dur_ns, a.uid) < std::pair(-b.dur_ns, b.uid);
  }
};

// The last of the `most` first; what comes behind it is left out.
Length LastOf(std::vector<Length> lengths, uint64_t most) {
  if (lengths.size() <= most) return {-1, 0};
  if (most == 0) return {INT64_MAX, 0};
  const auto last = lengths.begin() + static_cast<ptrdiff_t>(most) - 1;
  std::nth_element(lengths.begin(), last, lengths.end());
  return *last;
}

}  // namespace

uint64_t OthersThatFit(size_t files, uint64_t max_bytes) {
  // Half of the page is for the tables of the collectives.
  return std::min<uint64_t>(
      kMostOthers, max_bytes / 2 / kEventBytes / std::max<size_t>(1, files));
}

RankEvents FindEvents(const analysis::Context& context, const Lanes& lanes,
                      uint64_t most_others) {
  const Trace& trace = context.trace;
  const int64_t base = BaseOf(trace);
  RankEvents out;
  EventTexts texts(out.texts);
  std::vector<uint32_t> call_of(trace.device.size(), kNoIndex);
  const auto calls = CollectivesOf(context, lanes);
  for (uint32_t i = 0; i < calls.size(); ++i)
    call_of[trace.slices.detail[calls[i].slice.value]] = i;
  const auto call = [&](SliceId s) {
    return call_of[trace.slices.detail[s.value]];
  };
  const auto length = [&](SliceId s) {
    return Length{trace.Duration(s), trace.Uid(s)};
  };
  std::vector<Length> others;
  for (const SliceId s : trace.device_slices()) {
    if (lanes[trace.Device(s)->lane.value] && call(s) == kNoIndex)
      others.push_back(length(s));
  }
  out.others = others.size();
  out.kept = std::min<uint64_t>(out.others, most_others);
  const Length last = LastOf(std::move(others), most_others);
  for (size_t l = 0; l < trace.streams.size(); ++l) {
    if (!lanes[l]) continue;
    const trace::Stream& stream = trace.streams[l];
    RankEvents::Lane& lane = out.lanes.emplace_back();
    lane.process = trace.Text(stream.pid);
    lane.device = stream.device;
    lane.stream = stream.stream;
    for (const SliceId s : stream.slices) {
      if (call(s) == kNoIndex && last < length(s)) continue;
      lane.events.push_back(
          {base + trace.Start(s), trace.Duration(s), texts(trace.Name(s)),
           texts(page::LauncherName(context, s)),
           texts(context.catalog.family(context.device.family(s)).name),
           trace.Uid(s), call(s), StepIndex(context, s)});
    }
  }
  out.end_of_uids = page::EndOfUids(trace);
  return out;
}

void KeepLongest(RankEvents& events, uint64_t most) {
  if (events.kept <= most) return;
  std::vector<Length> others;
  for (const RankEvents::Lane& lane : events.lanes) {
    for (const RankEvents::Event& e : lane.events)
      if (e.call == kNoIndex) others.push_back({e.dur_ns, e.uid});
  }
  const Length last = LastOf(std::move(others), most);
  for (RankEvents::Lane& lane : events.lanes) {
    std::erase_if(lane.events, [&](const RankEvents::Event& e) {
      return e.call == kNoIndex && last < Length{e.dur_ns, e.uid};
    });
  }
  events.kept = most;
}

namespace {

// The columns of all ranks, in the order of the job.
class Columns {
 public:
  Columns(const Job& job, const rules::Catalog& catalog,
          const Document& document)
      : job_(job), catalog_(catalog), origin_(OriginOf(job)) {
    const auto calls = CallsByStart(job.measured);
    for (size_t i = 0; i < calls.size(); ++i) {
      for (const MeasuredMember& m : calls[i]->members)
        call_rows_.try_emplace(std::pair(m.rank, m.call),
                               static_cast<int64_t>(i) + 1);
    }
    const Table* const steps = document.result.Find("rank_steps");
    for (size_t row = 0; steps != nullptr && row < steps->rows(); ++row) {
      const Value step = steps->At(row, "step");
      step_rows_.emplace(std::pair(steps->At(row, "rank").integer(),
                                   step.null() ? kNoInt : step.integer()),
                         static_cast<int64_t>(row) + 1);
    }
  }

  void Add(const RankSummary& summary, const RankEvents& rank) {
    const char* comma = traces_.size() > 1 ? "," : "";
    traces_ += fmt::format(
        "{}{{\"name\":\"rank {}\",\"input\":{},\"first_uid\":{},"
        "\"shift_ns\":0}}",
        comma, summary.rank, JsonQuote(summary.file), first_uid_);
    for (const RankEvents::Lane& lane : rank.lanes)
      AddLane(summary, rank, lane);
    first_uid_ += rank.end_of_uids;
    ++index_;
  }

  Table TakeKernels() const { return kernels_.Take(); }

  void AddTo(render::Page& page) const {
    page.facts.emplace_back("traces", traces_ + "]");
    page.facts.emplace_back("lanes", lanes_ + "]");
    device_.AddTo(page);
  }

 private:
  void AddLane(const RankSummary& summary, const RankEvents& rank,
               const RankEvents::Lane& lane) {
    const size_t begin = device_.rows();
    for (const RankEvents::Event& e : lane.events) {
      const std::string& family = rank.texts[e.family];
      device_.Add(
          {.start_ns = job_.clocks.Align(summary.rank, e.start_ns) - origin_,
           .dur_ns = e.dur_ns,
           .family = catalog_.FamilyIndex(family),
           .uid = first_uid_ + e.uid,
           .kernel = kernels_.RowOf("", rank.texts[e.kernel], rank.texts[e.op],
                                    family, e.dur_ns)});
      device_.Set("collective", RowOf(call_rows_, summary.rank, e.call));
      const int64_t step =
          e.step < summary.steps.size() ? summary.steps[e.step].number : kNoInt;
      device_.Set("rankstep", RowOf(step_rows_, summary.rank, step));
    }
    page::AppendLane({index_, lane.process, lane.device, lane.stream}, begin,
                     device_.rows(), lanes_);
  }

  template <typename Key>
  static int64_t RowOf(
      const absl::flat_hash_map<std::pair<int64_t, Key>, int64_t>& rows,
      int64_t rank, Key key) {
    const auto it = rows.find(std::pair(rank, key));
    return it == rows.end() ? 0 : it->second;
  }

  const Job& job_;
  const rules::Catalog& catalog_;
  int64_t origin_;
  // Row + 1 by rank and call, and by rank and number of the step.
  absl::flat_hash_map<std::pair<int64_t, uint32_t>, int64_t> call_rows_;
  absl::flat_hash_map<std::pair<int64_t, int64_t>, int64_t> step_rows_;
  page::DeviceColumns device_;
  page::PageKernels kernels_;
  std::string traces_ = "[", lanes_ = "[";
  int64_t first_uid_ = 0;
  uint32_t index_ = 0;
};

}  // namespace

Status WriteRanksPage(const Job& job, const rules::Catalog& catalog,
                      Document document, const PageOptions& options) {
  std::vector<const RankSummary*> order;
  for (const RankSummary& rank : job.ranks) {
    if (rank.error.empty()) order.push_back(&rank);
  }
  std::sort(order.begin(), order.end(),
            [](const auto* a, const auto* b) { return a->rank < b->rank; });
  Columns columns(job, catalog, document);
  uint64_t others = 0, kept = 0;
  for (const RankSummary* summary : order) {
    const RankEvents& rank =
        job.events.at({summary->file_number, summary->part});
    columns.Add(*summary, rank);
    others += rank.others;
    kept += rank.kept;
  }
  if (kept < others) {
    document.result.notes.push_back(MakeNote(
        Severity::kInfo, "page_left_out",
        fmt::format("Of the ranks this page holds all collectives and the "
                    "longest {} of {} other device events, to stay below {}; "
                    "--html-max-mb changes that.",
                    GroupDigits(static_cast<int64_t>(kept)),
                    GroupDigits(static_cast<int64_t>(others)),
                    HumanBytes(static_cast<double>(options.max_bytes)))));
  }
  std::vector<std::string> own = render::TableNames(document.result);
  document.result.tables.push_back(columns.TakeKernels());
  render::Page page(document);
  page.redact = options.redact;
  page.facts.emplace_back("families", page::FamiliesJson(catalog));
  if (!options.words.empty())
    page.commands = {{document.command, options.words, std::move(own), {}}};
  columns.AddTo(page);
  return render::WritePageFile(page, options.output, options.threads);
}

Result<analysis::host::RankTimesOf> TimesAmongRanks(
    const analysis::Context& context, const std::string& file,
    const std::vector<std::string>& others, const LoadOptions& load) {
  std::vector<std::string> files = {file};
  for (const std::string& other : others) {
    std::error_code error;
    if (!std::filesystem::equivalent(file, other, error))
      files.push_back(other);
  }
  JobOptions options;
  options.load = load;
  const auto channel = MakeLocalChannel();
  const std::optional<Job> job = RunJob(*channel, files, options);
  std::map<int64_t, std::vector<analysis::Collective>> own;  // by rank
  const std::vector<Lanes> lanes = FindRanks(context);
  for (const RankSummary& rank : job->ranks) {
    if (!rank.error.empty()) return Fail(InputError(rank.file, rank.error));
    if (rank.file_number == 0 && rank.part < lanes.size())
      own[rank.rank] = CollectivesOf(context, lanes[rank.part]);
  }
  if (job->ranks.size() < 2) {
    return Fail(UsageError(
        "⟨ranks⟩: there is no rank beside that of " + EscapeTerminal(file),
        "give traces of other ranks of its job, or their folder"));
  }
  analysis::host::RankTimesOf out;
  for (const MeasuredCall& call : job->measured.calls) {
    if (!call.comparable()) continue;
    for (const MeasuredMember& member : call.members) {
      const auto calls = own.find(member.rank);
      if (calls == own.end() || member.call >= calls->second.size()) continue;
      const analysis::Collective& mine = calls->second[member.call];
      // Of a rank that is not there nobody knows whether it came last.
      if (mine.args != nullptr &&
          mine.args->group_size > static_cast<int64_t>(call.members.size()))
        continue;
      out[mine.slice] = {member.wait_ns, call.transfer_ns};
    }
  }
  return out;
}

}  // namespace lamina::dist
