// SPDX-License-Identifier: Apache-2.0
#include "dist/rank_events.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <fmt/core.h>

#include "base/byte_sink.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "dist/tables.h"
#include "engine/page_host.h"
#include "engine/page_kernels.h"

namespace lamina::dist {
namespace {

using trace::SliceId;
using trace::Trace;

// Bytes per event after compression, measured on generated jobs; the choice of
// events must not depend on how well they compress.
constexpr uint64_t kEventBytes = 10;
// More of one rank are not looked at; 8 ranks stay below 1 MB.
constexpr uint64_t kMostOthers = 8000;

class Texts {
 public:
  explicit Texts(std::vector<std::string>& texts) : texts_(texts) {}
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

// The `most` longest of some slices.
std::vector<bool> LongestOf(const Trace& trace, std::vector<SliceId> slices,
                            uint64_t most) {
  std::vector<bool> out(trace.device.size());
  if (slices.size() > most) {
    std::nth_element(slices.begin(),
                     slices.begin() + static_cast<ptrdiff_t>(most),
                     slices.end(), [&](SliceId a, SliceId b) {
                       return std::pair(-trace.Duration(a), a.value) <
                              std::pair(-trace.Duration(b), b.value);
                     });
    slices.resize(most);
  }
  for (const SliceId s : slices) out[trace.slices.detail[s.value]] = true;
  return out;
}

}  // namespace

RankEvents::RankEvents(std::shared_ptr<const rules::Catalog> catalog,
                       size_t files, uint64_t max_bytes)
    : catalog_(std::move(catalog)),
      // Half of the page is for the tables of the collectives.
      most_others_(std::min<uint64_t>(
          kMostOthers,
          max_bytes / 2 / kEventBytes / std::max<size_t>(1, files))) {}

void RankEvents::Keep(const analysis::Context& context, const Lanes& lanes,
                      uint64_t file_number, uint64_t part) {
  const Trace& trace = context.trace;
  const int64_t base = BaseOf(trace);
  Rank rank;
  Texts texts(rank.texts);
  std::vector<uint32_t> call_of(trace.device.size(), kNoIndex);
  const auto calls = CollectivesOf(context, lanes);
  for (uint32_t i = 0; i < calls.size(); ++i)
    call_of[trace.slices.detail[calls[i].slice.value]] = i;
  std::vector<SliceId> others;
  for (const SliceId s : trace.device_slices()) {
    if (lanes[trace.Device(s)->lane.value] &&
        call_of[trace.slices.detail[s.value]] == kNoIndex)
      others.push_back(s);
  }
  rank.others = others.size();
  rank.kept = std::min<uint64_t>(rank.others, most_others_);
  const auto longest = LongestOf(trace, std::move(others), most_others_);
  for (size_t l = 0; l < trace.streams.size(); ++l) {
    if (!lanes[l]) continue;
    const trace::Stream& stream = trace.streams[l];
    Lane& lane = rank.lanes.emplace_back();
    lane.process = trace.Text(stream.pid);
    lane.device = stream.device;
    lane.stream = stream.stream;
    for (const SliceId s : stream.slices) {
      const uint32_t detail = trace.slices.detail[s.value];
      if (call_of[detail] == kNoIndex && !longest[detail]) continue;
      lane.events.push_back({base + trace.Start(s), trace.Duration(s),
                             texts(trace.Name(s)),
                             texts(engine::LauncherName(context, s)),
                             static_cast<uint32_t>(context.device.family(s)),
                             trace.Uid(s), call_of[detail]});
    }
  }
  rank.end_of_uids = engine::EndOfUids(trace);
  const std::lock_guard lock(mutex_);
  ranks_[{file_number, part}] = std::move(rank);
}

// The columns of all ranks, in the order of the job.
class RankEvents::Columns {
 public:
  Columns(const Job& job, const rules::Catalog& catalog)
      : job_(job), catalog_(catalog), origin_(OriginOf(job)) {
    const auto calls = CallsByStart(job.measured);
    for (size_t i = 0; i < calls.size(); ++i) {
      for (const MeasuredMember& m : calls[i]->members)
        row_of_.try_emplace(std::pair(m.rank, m.call),
                            static_cast<int64_t>(i) + 1);
    }
  }

  void Add(const RankSummary& summary, const Rank& rank) {
    const char* comma = traces_.size() > 1 ? "," : "";
    traces_ += fmt::format(
        "{}{{\"name\":\"rank {}\",\"input\":{},\"first_uid\":{},"
        "\"shift_ns\":0}}",
        comma, summary.rank, JsonQuote(summary.file), first_uid_);
    for (const Lane& lane : rank.lanes) AddLane(summary.rank, rank, lane);
    first_uid_ += rank.end_of_uids;
    ++index_;
  }

  Table TakeKernels() const { return kernels_.Take(); }

  void AddTo(render::Page& page) const {
    page.facts.emplace_back("traces", traces_ + "]");
    page.facts.emplace_back("lanes", lanes_ + "]");
    render::Block block("device", start_.size());
    block.Add("start", start_, true);
    block.Add("dur", dur_);
    block.Add("kernel", kernel_);
    block.Add("family", family_);
    block.Add("uid", uid_, true);
    block.Add("collective", collective_);
    page.blocks.push_back(std::move(block));
  }

 private:
  void AddLane(int64_t number, const Rank& rank, const Lane& lane) {
    const size_t begin = start_.size();
    for (const Event& e : lane.events) {
      start_.push_back(job_.clocks.Align(number, e.start_ns) - origin_);
      dur_.push_back(e.dur_ns);
      kernel_.push_back(
          kernels_.RowOf("", rank.texts[e.kernel], rank.texts[e.op],
                         catalog_.family(e.family).name, e.dur_ns));
      family_.push_back(e.family);
      uid_.push_back(first_uid_ + e.uid);
      const auto it = row_of_.find(std::pair(number, e.call));
      collective_.push_back(
          e.call == kNoIndex || it == row_of_.end() ? 0 : it->second);
    }
    engine::AppendLane({index_, lane.process, lane.device, lane.stream}, begin,
                       start_.size(), lanes_);
  }

  const Job& job_;
  const rules::Catalog& catalog_;
  int64_t origin_;
  absl::flat_hash_map<std::pair<int64_t, uint32_t>, int64_t> row_of_;
  std::vector<int64_t> start_, dur_, kernel_, family_, uid_, collective_;
  engine::PageKernels kernels_;
  std::string traces_ = "[", lanes_ = "[";
  int64_t first_uid_ = 0;
  uint32_t index_ = 0;
};

Status RankEvents::Write(const Job& job, Document document,
                         const PageOptions& options) const {
  std::vector<const RankSummary*> order;
  for (const RankSummary& rank : job.ranks) {
    if (rank.error.empty() && ranks_.contains({rank.file_number, rank.part}))
      order.push_back(&rank);
  }
  std::sort(order.begin(), order.end(),
            [](const auto* a, const auto* b) { return a->rank < b->rank; });
  Columns columns(job, *catalog_);
  uint64_t others = 0, kept = 0;
  for (const RankSummary* summary : order) {
    const Rank& rank = ranks_.at({summary->file_number, summary->part});
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
  document.result.tables.push_back(columns.TakeKernels());
  render::Page page(document);
  page.facts.emplace_back("families", engine::FamiliesJson(*catalog_));
  columns.AddTo(page);
  LAMINA_ASSIGN(const auto sink, CreateFileSink(options.output));
  LAMINA_TRY(render::WritePage(page, *sink, options.threads));
  return sink->Close();
}

}  // namespace lamina::dist
