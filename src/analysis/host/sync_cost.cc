// SPDX-License-Identifier: Apache-2.0
#include "analysis/host/sync_cost.h"

#include <algorithm>
#include <limits>
#include <set>

namespace lamina::analysis::host {
namespace {

// What an op takes on the host that does the same and reads nothing back.
constexpr int64_t kPlainOpNs = 10000;
// With more threads that launch each is moved by its own waits only.
constexpr size_t kMostLaunching = 8;
// Waits add up to no more than this ahead of the device, or the last one of
// them: a longer stop of the host is its own doing, and not that of a wait that
// others would have hidden.
constexpr int64_t kMostAheadNs = 300000;

// The call behind a part in or after a blocking call of its thread: the last
// one that had a target and began before the part ended.
SliceId WaitBefore(const HostModel& model, const Thread& thread,
                   int64_t time_ns) {
  const auto& waits = model.waits();
  auto it = std::partition_point(
      thread.waits.begin(), thread.waits.end(), [&](uint32_t w) {
        return model.trace().Start(waits[w].slice) < time_ns;
      });
  while (it != thread.waits.begin()) {
    --it;
    if (waits[*it].target.valid()) return waits[*it].slice;
  }
  return {};
}

// The outermost of the ops that read back around a call; invalid: none.
NodeId ReadingOp(const tree::Tree& tree, NodeId call) {
  NodeId reads;
  for (NodeId n = call; n.valid(); n = tree.parent(n)) {
    if (!tree.IsOp(n)) {
      if (reads.valid()) break;
      continue;
    }
    if (ReadsBack(tree.name(n)) ||
        (reads.valid() && tree.name(n).starts_with("aten::")))
      reads = n;
    else if (reads.valid())
      break;
  }
  return reads;
}

// How much earlier a thread would come to a time, if spans of it took no time.
class Earlier {
 public:
  explicit Earlier(std::vector<Interval> spans) {
    std::sort(spans.begin(), spans.end(),
              [](const Interval& a, const Interval& b) {
                return a.start_ns < b.start_ns;
              });
    int64_t sum = 0;
    for (Interval span : spans) {
      if (!spans_.empty())
        span.start_ns = std::max(span.start_ns, spans_.back().end_ns);
      if (span.end_ns <= span.start_ns) continue;
      before_.push_back(sum);
      sum += span.length_ns();
      spans_.push_back(span);
    }
  }

  // By all spans so far, and by those of them that are one with the last.
  struct By {
    int64_t all_ns = 0, last_ns = 0;
  };
  By At(int64_t time) const {
    const auto next = std::partition_point(
        spans_.begin(), spans_.end(),
        [&](const Interval& span) { return span.start_ns < time; });
    if (next == spans_.begin()) return {};
    auto i = static_cast<size_t>(next - spans_.begin()) - 1;
    By out;
    out.last_ns = std::min(time, spans_[i].end_ns) - spans_[i].start_ns;
    out.all_ns = before_[i] + out.last_ns;
    // A copy and the wait for it.
    if (i > 0 && spans_[i].start_ns - spans_[i - 1].end_ns <= kNearNs)
      out.last_ns += spans_[i - 1].length_ns();
    return out;
  }

 private:
  std::vector<Interval> spans_;  // apart, by start
  std::vector<int64_t> before_;  // length of all before each
};

// By thread, what it would not spend.
std::vector<std::vector<Interval>> Spared(const HostModel& model) {
  const trace::Trace& trace = model.trace();
  const tree::Tree& tree = model.context().tree;
  std::vector<std::vector<Interval>> out(model.threads().size());
  NodeId last;
  for (const Wait& wait : model.waits()) {
    if (!wait.target.valid() || wait.thread == kNone) continue;
    auto& spans = out[wait.thread];
    spans.push_back({trace.Start(wait.slice), model.EndOf(wait)});
    const NodeId node = tree.node(wait.slice);
    const NodeId op = node.valid() ? ReadingOp(tree, node) : NodeId();
    if (!op.valid() || op == last) continue;
    last = op;
    const SliceId s = tree.slice(op);
    if (trace.Duration(s) > kPlainOpNs)
      spans.push_back({trace.Start(s), trace.End(s) - kPlainOpNs});
  }
  return out;
}

// By thread. A thread that launches nothing while another one of its process
// waits comes after it, as that of a backward pass.
std::vector<Earlier> FindEarlier(const HostModel& model) {
  const size_t threads = model.threads().size();
  std::vector<std::vector<int64_t>> launches(threads);
  for (const Call& call : model.calls()) {
    if (call.thread != kNone)
      launches[call.thread].push_back(model.trace().Start(call.slice));
  }
  std::vector<uint32_t> launching;
  for (uint32_t t = 0; t < threads; ++t) {
    std::sort(launches[t].begin(), launches[t].end());
    if (!launches[t].empty()) launching.push_back(t);
  }
  const auto own = Spared(model);
  auto all = own;
  if (launching.size() <= kMostLaunching) {
    for (const uint32_t t : launching) {
      for (uint32_t other = 0; other < threads; ++other) {
        if (other == t ||
            model.threads()[other].process != model.threads()[t].process)
          continue;
        for (const Interval& span : own[other]) {
          const auto next = std::lower_bound(launches[t].begin(),
                                             launches[t].end(), span.start_ns);
          if (next == launches[t].end() || *next >= span.end_ns)
            all[t].push_back(span);
        }
      }
    }
  }
  std::vector<Earlier> out;
  out.reserve(threads);
  for (auto& spans : all) out.emplace_back(std::move(spans));
  return out;
}

class Blame {
 public:
  Blame(const HostModel& model, const Idle& idle)
      : model_(model),
        idle_(idle),
        earlier_(FindEarlier(model)),
        out_(idle.parts.size()),
        streams_(model.streams()) {}

  std::vector<SliceId> Run() {
    constexpr int64_t kNothing = std::numeric_limits<int64_t>::min();
    uint32_t gap = 0;
    for (uint32_t d = 0; d < model_.devices().size(); ++d) {
      int64_t end = kNothing;  // of all work so far, in the second run
      owed_ns_ = lost_ns_ = 0;
      for (const SliceId s : model_.devices()[d].work) {
        const int64_t start = Again(s);
        if (gap < idle_.gaps.size() && idle_.gaps[gap].device == d &&
            idle_.gaps[gap].next == s) {
          const int64_t left = end == kNothing
                                   ? idle_.gaps[gap].interval.length_ns()
                                   : std::max<int64_t>(0, start - end);
          OfGap(gap, left);
          ++gap;
        }
        end = std::max(end, start + model_.trace().Duration(s));
      }
      while (gap < idle_.gaps.size() && idle_.gaps[gap].device == d) ++gap;
    }
    return std::move(out_);
  }

 private:
  struct Ends {
    bool any = false;
    int64_t then_ns = 0, again_ns = 0;
  };

  // When work starts in the second run.
  int64_t Again(SliceId s) {
    const trace::Trace& trace = model_.trace();
    Ends& ends = streams_[model_.stream(s)];
    const int64_t start = trace.Start(s);
    int64_t due = start, again = start;
    const uint32_t call = model_.call(s);
    if (call != kNone) {
      const Call& launch = model_.calls()[call];
      due = again = model_.Ready(s);
      if (launch.thread != kNone) {
        const auto by = earlier_[launch.thread].At(trace.Start(launch.slice));
        // How much farther ahead of the device the host is.
        const int64_t ahead = by.all_ns - lost_ns_ -
                              (ends.any ? ends.then_ns - ends.again_ns : 0);
        const int64_t most = std::max(kMostAheadNs, by.last_ns);
        lost_ns_ += std::max<int64_t>(0, ahead - most);
        again -= by.all_ns - lost_ns_;
      }
      if (ends.any) {
        const int64_t gap = model_.facts(model_.stream(s)).gap_ns;
        due = std::max(due, ends.then_ns + gap);
        again = std::max(again, ends.again_ns + gap);
      }
    } else if (ends.any) {
      due = ends.then_ns;
      again = ends.again_ns;
    }
    again += start - due;
    const int64_t end = trace.End(s);
    if (!ends.any || end > ends.then_ns) ends.then_ns = end;
    if (!ends.any || again + end - start > ends.again_ns)
      ends.again_ns = again + end - start;
    ends.any = true;
    return again;
  }

  // `left`: what stays of the gap in the second run.
  void OfGap(uint32_t g, int64_t left) {
    const Gap& gap = idle_.gaps[g];
    const int64_t rounded = std::max<int64_t>(0, owed_ns_);
    owed_ns_ += gap.interval.length_ns() - left;
    const uint32_t call = model_.call(gap.next);
    if (owed_ns_ <= 0 || call == kNone) return;
    const Thread& thread = model_.threads()[model_.calls()[call].thread];
    for (uint32_t p = idle_.first_part[g]; p < idle_.first_part[g + 1]; ++p) {
      const Part& part = idle_.parts[p];
      const int64_t end = part.start_ns + part.length_ns;
      const bool in_call =
          (part.cause == Cause::kSync || part.cause == Cause::kMemcpy) &&
          thread.blocked.Over(part.start_ns, end) > 0;
      if (!in_call && part.cause != Cause::kHostBound &&
          part.cause != Cause::kLaunchOverhead)
        continue;
      if (!in_call && !part.after_sync && part.length_ns > kMostAheadNs)
        continue;
      if (2 * owed_ns_ < part.length_ns) return;
      const SliceId wait = WaitBefore(model_, thread, end);
      if (!wait.valid()) continue;
      out_[p] = wait;
      owed_ns_ -= part.length_ns;
    }
    // The rest of the gap is nobody's.
    owed_ns_ = std::min(owed_ns_, rounded);
  }

  const HostModel& model_;
  const Idle& idle_;
  const std::vector<Earlier> earlier_;  // by thread
  std::vector<SliceId> out_;
  std::vector<Ends> streams_;
  int64_t owed_ns_ = 0;  // to the calls of a device
  int64_t lost_ns_ = 0;  // what waits saved that the host would not keep
};

}  // namespace

bool ReadsBack(std::string_view op) {
  static const std::set<std::string_view> kOps = {
      "aten::item",       "aten::_local_scalar_dense",
      "aten::is_nonzero", "aten::tolist",
      "aten::equal",      "aten::allclose",
      "aten::nonzero",    "aten::masked_select",
      "aten::unique_dim", "aten::_unique2",
      "aten::bincount",   "aten::repeat_interleave",
      "aten::_unique",    "aten::unique_consecutive"};
  return kOps.contains(op);
}

std::vector<SliceId> SyncOfParts(const HostModel& model, const Idle& idle) {
  return Blame(model, idle).Run();
}

}  // namespace lamina::analysis::host
