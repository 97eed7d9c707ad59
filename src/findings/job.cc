// SPDX-License-Identifier: Apache-2.0
//
// Why it is longer than 250 lines: one class reads the ranks and writes the
// three tables that only rules read.
#include "findings/job.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>
#include <numeric>

#include "analysis/common/stats.h"
#include "base/decimal.h"
#include "base/interval_set.h"
#include "dist/blame.h"
#include "dist/job.h"
#include "dist/tables.h"
#include "findings/world.h"
#include "trace/trace.h"

namespace lamina::findings {
namespace {

using analysis::Bucket;
using dist::CollectiveKind;
using dist::MeasuredCall;
using dist::MeasuredMember;

// More work than this is of a damaged trace: a week.
constexpr double kMostMoreNs = 7 * 86400e9;

// Of the variance of work, what elements have to explain.
constexpr double kLeastExplained = 0.3;

// A call is a start of the recording when it lasts so many times the median of
// its like.
constexpr int64_t kSkewFactor = 10;

// What is kept of a rank beside its summary.
struct RankFacts {
  struct Collective {
    int64_t uid = 0;
    int64_t start_ns = 0, end_ns = 0;  // of the trace
    // Within it: computation, and calls that began before it.
    IntervalSet hidden;
  };
  std::vector<Collective> calls;  // by number
  int64_t kernels = 0;
  int64_t elements = 0;
  int64_t h2d_bytes = 0, d2h_bytes = 0;
  int64_t compute_ns = 0;
  int64_t idle_ns = 0;  // of the window: nothing ran
  int64_t window_ns = 0;
};

// The product of each list of dimensions, added up: "[[2, 3], [], [4]]" is 11.
int64_t ElementsOf(std::string_view dims) {
  double sum = 0, product = 1;
  bool any = false;
  for (size_t i = 0; i < dims.size();) {
    const char c = dims[i];
    if (c >= '0' && c <= '9') {
      double number = 0;
      for (; i < dims.size() && dims[i] >= '0' && dims[i] <= '9'; ++i)
        number = number * 10 + (dims[i] - '0');
      product *= number;
      any = true;
      continue;
    }
    if (c == ']') {
      if (any) sum += product;
      product = 1;
      any = false;
    }
    ++i;
  }
  return sum < 1e15 ? static_cast<int64_t>(sum) : 0;
}

RankFacts FactsOf(const analysis::Context& context, const dist::Lanes& lanes) {
  const auto& trace = context.trace;
  RankFacts out;
  IntervalSet compute, busy;
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (const trace::SliceId s : trace.device_slices()) {
    if (!lanes[trace.Device(s)->lane.value]) continue;
    first = std::min(first, trace.Start(s));
    last = std::max(last, trace.End(s));
    busy.AppendSorted({trace.Start(s), trace.End(s)});
    const Bucket bucket = context.device.bucket(s);
    if (bucket == Bucket::kCompute) {
      compute.AppendSorted({trace.Start(s), trace.End(s)});
      ++out.kernels;
    }
    const std::string_view name = trace.Name(s);
    const int64_t bytes = std::max<int64_t>(0, trace.Device(s)->bytes);
    if (name.find("HtoD") != name.npos) out.h2d_bytes += bytes;
    if (name.find("DtoH") != name.npos) out.d2h_bytes += bytes;
  }
  out.window_ns = std::max<int64_t>(0, last - first);
  out.compute_ns = compute.length_ns();
  out.idle_ns = out.window_ns - busy.length_ns();
  absl::flat_hash_map<uint32_t, int64_t> known;
  for (const trace::OpArgs& op : trace.ops) {
    if (!op.dims.valid()) continue;
    const auto [it, is_new] = known.try_emplace(op.dims.value);
    if (is_new) it->second = ElementsOf(trace.Text(op.dims));
    out.elements += it->second;
  }
  const auto all = compute.intervals();
  int64_t until = INT64_MIN;
  for (const analysis::Collective& c : dist::CollectivesOf(context, lanes)) {
    RankFacts::Collective call;
    call.uid = trace.Uid(c.slice);
    call.start_ns = trace.Start(c.slice);
    call.end_ns = trace.End(c.slice);
    // A moment with several calls belongs to the one that began first.
    const int64_t from = std::clamp(until, call.start_ns, call.end_ns);
    if (from > call.start_ns) call.hidden.AppendSorted({call.start_ns, from});
    until = std::max(until, call.end_ns);
    auto it = std::partition_point(
        all.begin(), all.end(), [&](Interval i) { return i.end_ns <= from; });
    for (; it != all.end() && it->start_ns < call.end_ns; ++it) {
      call.hidden.AppendSorted(
          {std::max(it->start_ns, from), std::min(it->end_ns, call.end_ns)});
    }
    out.calls.push_back(std::move(call));
  }
  return out;
}

// Of the first `ns` of a call, what nothing hides.
int64_t ExposedOf(const RankFacts::Collective& call, int64_t ns) {
  const int64_t end = std::min(call.end_ns, call.start_ns + ns);
  int64_t hidden = 0;
  for (const Interval& i : call.hidden.intervals()) {
    if (i.start_ns >= end) break;
    hidden += std::min(i.end_ns, end) - i.start_ns;
  }
  return std::max<int64_t>(0, end - call.start_ns - hidden);
}

double ImbalanceOf(const MeasuredCall& call) {
  double worst = 0;
  for (const auto member :
       {&MeasuredMember::in_elements, &MeasuredMember::out_elements}) {
    double sum = 0, most = 0;
    bool known = call.members.size() > 1;
    for (const MeasuredMember& m : call.members) {
      known = known && m.*member >= 0;
      sum += static_cast<double>(m.*member);
      most = std::max(most, static_cast<double>(m.*member));
    }
    if (known && sum > 0) {
      worst = std::max(worst,
                       most * static_cast<double>(call.members.size()) / sum);
    }
  }
  return worst;
}

// "[3, 0, 5]"; empty: something else.
std::vector<int64_t> SplitsOf(std::string_view text) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < text.size();) {
    if (text[i] < '0' || text[i] > '9') {
      ++i;
      continue;
    }
    const size_t begin = i;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
    out.push_back(ParseInt(text.substr(begin, i - begin)).value_or(0));
  }
  return out;
}

// What each member of an exchange gets, by its rank: what is recorded of it, or
// what the others say that they send to it. Empty: not known.
std::map<int64_t, int64_t> LoadsOf(const MeasuredCall& call) {
  std::map<int64_t, int64_t> loads, sent;
  if (call.kind != CollectiveKind::kAllToAll) return loads;
  bool even = true, known = true;
  for (const MeasuredMember& m : call.members) {
    loads[m.rank] = m.out_elements;
    sent[m.rank] = 0;
    known = known && m.out_elements >= 0;
    even = even && m.out_elements == call.members[0].out_elements;
  }
  if (known && !even) return loads;
  for (const MeasuredMember& m : call.members) {
    const std::vector<int64_t> splits = SplitsOf(m.in_split);
    if (splits.size() != sent.size() ||
        static_cast<int64_t>(splits.size()) != call.ranks)
      return known ? loads : std::map<int64_t, int64_t>();
    auto to = sent.begin();
    for (const int64_t part : splits) (to++)->second += part;
  }
  return sent;
}

double LargestOverMean(const std::map<int64_t, int64_t>& loads) {
  double sum = 0, most = 0;
  for (const auto& [rank, load] : loads) {
    sum += static_cast<double>(load);
    most = std::max(most, static_cast<double>(load));
  }
  return sum > 0 ? most * static_cast<double>(loads.size()) / sum : 0;
}

class JobTables {
 public:
  using Facts = std::map<std::pair<uint64_t, uint64_t>, RankFacts>;

  JobTables(const dist::Job& job, const Facts& facts) : job_(job) {
    for (const dist::RankSummary& rank : job.ranks) {
      if (!rank.error.empty()) continue;
      const auto it = facts.find({rank.file_number, rank.part});
      if (it == facts.end()) continue;
      facts_.emplace(rank.rank, &it->second);
      file_.emplace(rank.rank, rank.file_number);
    }
  }

  World Make() {
    World world;
    world.tables = dist::MakeResult(job_, false);
    int64_t window = 0;
    for (const auto& [rank, facts] : facts_) {
      world.device_names.push_back("rank " + std::to_string(rank));
      window += facts->window_ns;
      world.busy_ns += facts->compute_ns;
    }
    const auto ranks = static_cast<int64_t>(facts_.size());
    world.window_ns = ranks == 0 ? 0 : window / ranks;
    AddCalls(world);
    AddWaits(world);
    AddWork(world);
    AddPipeline(world);
    world.facts["ranks"] = std::to_string(ranks);
    return world;
  }

  // Numbers of rows become events and ranks.
  void NameEvents(Diagnosis& diagnosis) const {
    std::map<int64_t, uint32_t> place;
    for (const auto& [rank, facts] : facts_)
      place.emplace(rank, static_cast<uint32_t>(place.size()));
    for (Finding& f : diagnosis.findings) {
      for (auto* claims : {&f.spans, &f.top}) {
        for (Claim& claim : *claims) {
          if (!Known(claim)) continue;
          const auto& [rank, uid] = events_[static_cast<size_t>(claim.uid)];
          claim.device = place.at(rank);
          claim.uid = uid;
        }
      }
    }
  }

  // What findings own, by file.
  std::vector<Ledger::EventTimes> Taken(const Diagnosis& diagnosis,
                                        size_t files) const {
    std::vector<Ledger::EventTimes> out(files);
    for (const Finding& f : diagnosis.findings) {
      if (f.small || f.suppressed) continue;
      for (const Claim& claim : f.spans) {
        if (!Known(claim)) continue;
        const auto& [rank, uid] = events_[static_cast<size_t>(claim.uid)];
        out[file_.at(rank)][uid] += claim.owned_ns;
      }
    }
    return out;
  }

 private:
  void AddCalls(World& world) {
    Table table({"rank_calls",
                 "",
                 {{"uid", ColumnType::kInt, ""},
                  {"call", ColumnType::kInt, ""},
                  {"rank", ColumnType::kInt, ""},
                  {"kind", ColumnType::kText, ""},
                  {"process_group", ColumnType::kText, ""},
                  {"ranks", ColumnType::kInt, ""},
                  {"bytes", ColumnType::kInt, ""},
                  {"step", ColumnType::kInt, ""},
                  {"start_ns", ColumnType::kInt, ""},
                  {"dur_ns", ColumnType::kInt, ""},
                  {"exposed_ns", ColumnType::kInt, ""},
                  {"imbalance", ColumnType::kReal, ""},
                  {"start_skew", ColumnType::kInt, ""}}});
    const auto& calls = job_.measured.calls;
    FindSkew();
    imbalance_.reserve(calls.size());
    for (size_t c = 0; c < calls.size(); ++c) {
      const MeasuredCall& call = calls[c];
      loads_.push_back(LoadsOf(call));
      for (const MeasuredMember& m : call.members)
        call_at_[{m.rank, m.call}] = c;
      imbalance_.push_back(
          std::max(ImbalanceOf(call), LargestOverMean(loads_.back())));
      for (const MeasuredMember& m : call.members) {
        const auto* own = CallOf(m);
        if (own == nullptr) continue;
        const auto uid = static_cast<int64_t>(events_.size());
        uid_[{c, m.rank}] = uid;
        events_.emplace_back(m.rank, own->uid);
        const int64_t exposed = ExposedOf(*own, own->end_ns - own->start_ns);
        world.own_ns[uid] = exposed;
        table.Add(uid, c, m.rank, CollectiveKindName(call.kind),
                  job_.measured.groups[call.group].name, call.ranks,
                  call.bytes < 0 ? Value() : Value(call.bytes),
                  m.step == dist::kNoIndex ? Value() : Value(m.step),
                  own->start_ns, m.dur_ns, exposed, imbalance_[c],
                  skewed_[c] ? 1 : 0);
      }
    }
    world.tables.tables.push_back(std::move(table));
  }

  const RankFacts::Collective* CallOf(const MeasuredMember& m) const {
    const auto it = facts_.find(m.rank);
    return it == facts_.end() || m.call >= it->second->calls.size()
               ? nullptr
               : &it->second->calls[m.call];
  }

  // Rules of users may claim any number.
  bool Known(const Claim& claim) const {
    return claim.uid >= 0 && static_cast<size_t>(claim.uid) < events_.size();
  }

  // The first call of each group, where profilers began at different times.
  void FindSkew() {
    const auto& calls = job_.measured.calls;
    skewed_.assign(calls.size(), false);
    std::map<uint64_t, std::vector<size_t>> groups;
    for (size_t c = 0; c < calls.size(); ++c)
      groups[calls[c].group].push_back(c);
    const auto longest = [](const MeasuredCall& call) {
      int64_t most = 0;
      for (const MeasuredMember& m : call.members)
        most = std::max(most, m.dur_ns);
      return most;
    };
    for (const auto& [group, own] : groups) {
      const size_t c =
          *std::min_element(own.begin(), own.end(), [&](size_t a, size_t b) {
            return calls[a].start_ns < calls[b].start_ns;
          });
      std::vector<int64_t> like, any;
      for (const size_t o : own) {
        if (o == c) continue;
        any.push_back(longest(calls[o]));
        if (calls[o].kind == calls[c].kind && calls[o].bytes == calls[c].bytes)
          like.push_back(any.back());
      }
      const auto& usual = like.empty() ? any : like;
      skewed_[c] = usual.size() >= 2 &&
                   longest(calls[c]) > kSkewFactor * analysis::MiddleOf(usual);
    }
  }

  void AddWaits(World& world) {
    Table table({"rank_waits",
                 "",
                 {{"uid", ColumnType::kInt, ""},
                  {"call", ColumnType::kInt, ""},
                  {"rank", ColumnType::kInt, ""},
                  {"kind", ColumnType::kText, ""},
                  {"start_ns", ColumnType::kInt, ""},
                  {"wait_ns", ColumnType::kInt, ""},
                  {"exposed_ns", ColumnType::kInt, ""},
                  {"saved_ns", ColumnType::kInt, ""},
                  {"even_saved_ns", ColumnType::kInt, ""},
                  {"imbalance", ColumnType::kReal, ""},
                  {"start_skew", ColumnType::kInt, ""},
                  {"late_rank", ColumnType::kInt, ""},
                  {"cause", ColumnType::kText, ""},
                  {"cause_name", ColumnType::kText, ""}}});
    const auto& calls = job_.measured.calls;
    int64_t all = 0;
    for (const dist::BlamedCall& blamed : dist::BlameCalls(job_.measured)) {
      const MeasuredCall& call = calls[blamed.call];
      if (call.wait_ns <= 0) continue;
      const dist::LateRank& late = calls[blamed.root].late[blamed.root_late];
      const double share = static_cast<double>(blamed.wait_ns) /
                           static_cast<double>(call.wait_ns);
      const Lateness lateness = LatenessOf(call, blamed.late);
      const Work work = WorkBefore(call);
      const int64_t even_saved_ns = EvenSavedOf(call, work);
      for (const MeasuredMember& m : call.members) {
        const auto uid = uid_.find({blamed.call, m.rank});
        if (uid == uid_.end() || m.wait_ns <= 0) continue;
        const auto* own = CallOf(m);
        const auto part = [&](int64_t ns) {
          return static_cast<int64_t>(static_cast<double>(ns) * share);
        };
        if (!skewed_[blamed.call]) all += part(m.wait_ns);
        const bool next = m.rank == lateness.next_rank;
        const int64_t exposed = ExposedForWaiting(m, lateness.own_exposed_ns);
        table.Add(uid->second, blamed.call, m.rank,
                  CollectiveKindName(call.kind), own->start_ns, part(m.wait_ns),
                  part(exposed), next ? lateness.saved_ns : 0,
                  next ? even_saved_ns : 0,
                  std::max(imbalance_[blamed.call], work.imbalance),
                  skewed_[blamed.call] ? 1 : 0, blamed.rank,
                  CauseName(late.cause), late.cause_name);
      }
    }
    world.facts["wait_ns"] = std::to_string(all);
    world.tables.tables.push_back(std::move(table));
  }

  // Who else would be the last, and what it gains then.
  struct Lateness {
    int64_t own_exposed_ns = 0;  // of the rank that is late
    int64_t next_rank = -1;      // that waits least
    int64_t saved_ns = 0;
  };

  // Without the lateness of one rank a call begins with the one before it.
  Lateness LatenessOf(const MeasuredCall& call, size_t number) const {
    Lateness out;
    const int64_t rank = call.late[number].rank;
    const MeasuredMember* next = nullptr;
    for (const MeasuredMember& m : call.members) {
      const auto* own = CallOf(m);
      if (own == nullptr) continue;
      if (m.rank == rank) {
        out.own_exposed_ns = ExposedOf(*own, own->end_ns - own->start_ns);
      } else if (next == nullptr || m.wait_ns < next->wait_ns) {
        next = &m;
      }
    }
    if (next == nullptr) return out;
    out.next_rank = next->rank;
    if (number == 0)  // the others were late for nobody
      out.saved_ns = ExposedForWaiting(*next, out.own_exposed_ns);
    return out;
  }

  // What a call has exposed on a rank that waited more than on the one it
  // waited for: the wait, and the transfer where work of the late rank hides
  // its own.
  int64_t ExposedForWaiting(const MeasuredMember& m, int64_t late_ns) const {
    const auto* own = CallOf(m);
    return std::max(ExposedOf(*own, m.wait_ns),
                    ExposedOf(*own, own->end_ns - own->start_ns) - late_ns);
  }

  // What the ranks got in the exchange before a call, which is what they worked
  // on since.
  struct Work {
    const std::map<int64_t, int64_t>* loads = nullptr;
    double imbalance = 0;
  };
  Work WorkBefore(const MeasuredCall& call) const {
    Work out;
    std::optional<size_t> before;
    for (const MeasuredMember& m : call.members) {
      const auto it = call_at_.find({m.rank, m.previous});
      if (m.previous == dist::kNoIndex || it == call_at_.end() ||
          (before && *before != it->second))
        return {};
      before = it->second;
    }
    if (!before || loads_[*before].empty() ||
        job_.measured.calls[*before].group != call.group)
      return {};
    out.loads = &loads_[*before];
    out.imbalance = LargestOverMean(*out.loads);
    return out;
  }

  // What the call ends earlier if what the ranks put in, or got before, were
  // even.
  int64_t EvenSavedOf(const MeasuredCall& call, const Work& work) const {
    const bool got = work.imbalance > 1.01;
    std::vector<Arrival> arrivals;
    int64_t exposed = 0;
    for (const MeasuredMember& m : call.members) {
      const auto* own = CallOf(m);
      if (own == nullptr || m.previous == dist::kNoIndex) return 0;
      const auto& calls = facts_.at(m.rank)->calls;
      int64_t elements = m.in_elements;
      if (got) elements = work.loads->at(m.rank);
      if (m.previous >= calls.size() || elements < 0) return 0;
      arrivals.push_back(
          {m.start_ns, own->start_ns - calls[m.previous].end_ns, elements});
      exposed = std::max(exposed, ExposedOf(*own, m.wait_ns));
    }
    // The call ends so much earlier for all, as far as the one that waits
    // longest has nothing else to do meanwhile.
    return std::min(EvenSaved(arrivals), exposed);
  }

  // The middle of a number over the other ranks.
  int64_t OfOthers(int64_t rank, int64_t RankFacts::*number) const {
    std::vector<int64_t> values;
    for (const auto& [other, facts] : facts_) {
      if (other != rank) values.push_back(facts->*number);
    }
    return values.empty() ? 0 : analysis::MiddleOf(std::move(values));
  }

  double Times(int64_t rank, int64_t RankFacts::*number) const {
    return static_cast<double>(facts_.at(rank)->*number) /
           static_cast<double>(std::max<int64_t>(1, OfOthers(rank, number)));
  }

  void AddWork(World& world) {
    Table table({"rank_work",
                 "",
                 {{"rank", ColumnType::kInt, ""},
                  {"kernels", ColumnType::kInt, ""},
                  {"elements", ColumnType::kInt, ""},
                  {"h2d_bytes", ColumnType::kInt, ""},
                  {"d2h_bytes", ColumnType::kInt, ""},
                  {"compute_ns", ColumnType::kInt, ""},
                  {"idle_ns", ColumnType::kInt, ""},
                  {"window_ns", ColumnType::kInt, ""},
                  {"more_compute_ns", ColumnType::kInt, ""},
                  {"more_idle_ns", ColumnType::kInt, ""},
                  {"times_compute", ColumnType::kReal, ""},
                  {"times_work", ColumnType::kReal, ""}}});
    for (const auto& [rank, f] : facts_) {
      const auto more = [&, r = rank](int64_t RankFacts::*number) {
        return facts_.at(r)->*number - OfOthers(r, number);
      };
      table.Add(rank, f->kernels, f->elements, f->h2d_bytes, f->d2h_bytes,
                f->compute_ns, f->idle_ns, f->window_ns,
                more(&RankFacts::compute_ns), more(&RankFacts::idle_ns),
                Times(rank, &RankFacts::compute_ns),
                std::max(Times(rank, &RankFacts::kernels),
                         Times(rank, &RankFacts::elements)));
    }
    world.tables.tables.push_back(std::move(table));
  }

  // The longest chain of ranks that send to each other, and how often a step
  // has them do so.
  void AddPipeline(World& world) {
    std::map<int64_t, int64_t> above;
    const std::function<int64_t(int64_t)> top = [&](int64_t rank) {
      const auto it = above.find(rank);
      return it == above.end() || it->second == rank ? rank : top(it->second);
    };
    std::map<std::pair<int64_t, int64_t>, int64_t> sends;
    for (const MeasuredCall& call : job_.measured.calls) {
      if (call.kind != CollectiveKind::kSendRecv || call.source < 0 ||
          call.destination < 0 || call.source == call.destination)
        continue;
      ++sends[{call.source, call.destination}];
      above.try_emplace(call.source, call.source);
      above.try_emplace(call.destination, call.destination);
      above[top(call.source)] = top(call.destination);
    }
    std::map<int64_t, int64_t> size;
    int64_t stages = 0, most = 0, steps = 1;
    for (const auto& [rank, to] : above)
      stages = std::max(stages, ++size[top(rank)]);
    for (const auto& [edge, count] : sends) most = std::max(most, count);
    for (const dist::RankSummary& rank : job_.ranks) {
      const auto of_rank = std::count_if(
          rank.steps.begin(), rank.steps.end(), [](const dist::StepTimes& s) {
            return s.number != dist::kNoInt && s.peer_ns > 0;
          });
      steps = std::max<int64_t>(steps, of_rank);
    }
    world.facts["pipeline_stages"] = std::to_string(stages);
    world.facts["micro_batches"] =
        FormatDouble(static_cast<double>(most) / static_cast<double>(steps));
  }

  const dist::Job& job_;
  std::map<int64_t, const RankFacts*> facts_;  // by rank
  std::map<int64_t, uint64_t> file_;
  std::vector<bool> skewed_;                       // by call
  std::vector<double> imbalance_;                  // by call
  std::vector<std::map<int64_t, int64_t>> loads_;  // by call, of ranks
  // By rank and number of a call on it.
  std::map<std::pair<int64_t, uint32_t>, size_t> call_at_;
  std::map<std::pair<size_t, int64_t>, int64_t> uid_;  // of call and rank
  std::vector<std::pair<int64_t, int64_t>> events_;    // rank, event; by uid
};

}  // namespace

int64_t EvenSaved(std::span<const Arrival> arrivals) {
  if (arrivals.size() < 2) return 0;
  const auto n = static_cast<double>(arrivals.size());
  double mean_elements = 0, mean_work = 0;
  for (const Arrival& a : arrivals) {
    mean_elements += static_cast<double>(a.elements) / n;
    mean_work += static_cast<double>(a.work_ns) / n;
  }
  double both = 0, squares = 0, all = 0;
  for (const Arrival& a : arrivals) {
    const double more = static_cast<double>(a.elements) - mean_elements;
    const double longer = static_cast<double>(a.work_ns) - mean_work;
    both += more * longer;
    squares += more * more;
    all += longer * longer;
  }
  const double per_element = squares > 0 ? both / squares : 0;
  // Where elements explain little of the work they do not cause it.
  if (per_element <= 0 || per_element * both < kLeastExplained * all) return 0;
  int64_t last = INT64_MIN, even_last = INT64_MIN;
  for (const Arrival& a : arrivals) {
    const double more = static_cast<double>(a.elements) - mean_elements;
    // No rank has less than no work.
    const double less =
        std::clamp(std::min(per_element * more, static_cast<double>(a.work_ns)),
                   -kMostMoreNs, kMostMoreNs);
    last = std::max(last, a.start_ns);
    even_last = std::max<int64_t>(even_last, a.start_ns - std::llround(less));
  }
  return std::max<int64_t>(0, last - even_last);
}

JobDiagnosis DiagnoseJob(const std::vector<std::string>& files,
                         const dist::LoadOptions& load,
                         std::shared_ptr<const RuleSet> rules,
                         const Options& options) {
  dist::JobOptions settings;
  settings.load = load;
  JobTables::Facts facts;
  std::mutex mutex;
  settings.load.inspect = [&](const analysis::Context& context,
                              const dist::Lanes& lanes, uint64_t file,
                              uint64_t part) {
    RankFacts one = FactsOf(context, lanes);
    const std::lock_guard lock(mutex);
    facts.emplace(std::pair(file, part), std::move(one));
  };
  const auto channel = dist::MakeLocalChannel();
  const std::optional<dist::Job> job = dist::RunJob(*channel, files, settings);
  JobDiagnosis out;
  JobTables tables(*job, facts);
  const World world = tables.Make();
  out.ranks = world.device_names.size();
  out.diagnosis = DiagnoseWorld(world, std::move(rules), options);
  out.taken = tables.Taken(out.diagnosis, files.size());
  tables.NameEvents(out.diagnosis);
  return out;
}

}  // namespace lamina::findings
