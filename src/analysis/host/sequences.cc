// SPDX-License-Identifier: Apache-2.0
//
// Launch-bound runs, and the sequences of kernels in them and in replays. One
// file, because both walk the gaps of a stream in the same way.
#include "analysis/host/sequences.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "analysis/common/stats.h"
#include "base/interval_set.h"
#include "table/row_columns.h"

namespace lamina::analysis::host {
namespace {

constexpr uint32_t kShortest = 2, kLongest = 8;
constexpr size_t kLeastCount = 3;
constexpr size_t kMostShown = 200;  // rows of the table
// Of a replay, from which on spacing is worth removing.
constexpr int64_t kGapShare = 10;

using OptionalText = std::optional<std::string_view>;

// Times in nanoseconds.
struct SequenceRow {
  size_t number;
  std::string_view device;
  int64_t stream, length;
  size_t count;
  int64_t recoverable, exclusive, kernel_time, gap, shortest;
  std::string_view names, ops;
  OptionalText module;
  std::optional<double> layers_percent;
  std::string_view rule;
  int64_t example_uid;
  std::optional<int64_t> on_path, passed_bytes;
};

const RowColumns<SequenceRow>& SequenceColumns() {
  using R = SequenceRow;
  static const RowColumns<R> columns{
      "kernel_sequences",
      "Kernels that follow each other again and again where launching takes "
      "the time: launch-bound runs, and replays with wide spacing. A proposal, "
      "not a claim that they can be fused.",
      {{"sequence", ColumnType::kInt, "Number, for --what-if fuse:NUMBER.",
        &R::number},
       {"names", ColumnType::kText, "Kernels in order, joined by \" + \".",
        &R::names},
       {"count", ColumnType::kInt, "Occurrences that do not overlap.",
        &R::count},
       {"recoverable_us", ColumnType::kTime,
        "Idle time of the device within them that one kernel would not have.",
        &R::recoverable},
       {"exclusive_us", ColumnType::kTime,
        "Of it, what no row above has: these add up.", &R::exclusive},
       {"rule", ColumnType::kText,
        "Fusion rule whose ops these are, in order (docs/fusions.md); new: "
        "none.",
        &R::rule},
       {"length", ColumnType::kInt, "Kernels.", &R::length},
       {"kernel_time_us", ColumnType::kTime, "Sum of their kernels.",
        &R::kernel_time},
       {"inner_gap_us", ColumnType::kTime,
        "Time between their kernels in which the stream has nothing.", &R::gap},
       {"device", ColumnType::kText, "process:device.", &R::device},
       {"stream", ColumnType::kInt, "Stream.", &R::stream},
       {"shortest_kernel_us", ColumnType::kTime, "Shortest of all.",
        &R::shortest},
       {"ops", ColumnType::kText, "Innermost op of each, where known.",
        &R::ops},
       {"module", ColumnType::kText,
        "nn.Module of the first kernel of the first occurrence.", &R::module},
       {"layers_percent", ColumnType::kReal,
        "Layers in which an occurrence begins, of all layers; empty where no "
        "layers are found.",
        &R::layers_percent, Shown::kPercent},
       {"example_uid", ColumnType::kInt,
        "Event number of the first kernel of the first occurrence.",
        &R::example_uid},
       {"on_path_us", ColumnType::kTime,
        "Of kernel_time_us, on the critical path (lamina path).", &R::on_path},
       {"tensors_between_bytes", ColumnType::kInt,
        "What the ops of one occurrence pass on from each to the next, by the "
        "shapes of their inputs; empty: shapes are not recorded or do not fit, "
        "or one op launched two of the kernels.",
        &R::passed_bytes, Shown::kBytes}}};
  return columns;
}

class Finder {
 public:
  Finder(const HostModel& model, const Idle& idle)
      : model_(model),
        trace_(model.trace()),
        idle_(idle),
        gap_after_(trace_.streams.size()) {}

  std::vector<KernelSequence> Run() {
    int64_t sum = 0;
    before_gap_.reserve(idle_.gaps.size() + 1);
    before_gap_.push_back(0);
    for (uint32_t g = 0; g < idle_.gaps.size(); ++g) {
      ForPartsOf(g, [&](const Part& part) { sum += part.length_ns; });
      before_gap_.push_back(sum);
    }
    for (uint32_t i = 0; i < trace_.streams.size(); ++i) Stream(i);
    std::stable_sort(found_.begin(), found_.end(),
                     [](const KernelSequence& a, const KernelSequence& b) {
                       return a.recoverable_ns != b.recoverable_ns
                                  ? a.recoverable_ns > b.recoverable_ns
                                  : a.length > b.length;
                     });
    ShareOut();
    return std::move(found_);
  }

 private:
  using Grams = std::vector<uint32_t>;  // by position; kNone: none begins here

  // Which positions of a stream may stand in a sequence, as numbers of
  // unbroken segments; kNone elsewhere.
  std::vector<uint32_t> SegmentsOf(uint32_t i) {
    const auto& slices = trace_.streams[i].slices;
    std::vector<bool> wanted(slices.size(), false);
    for (const LaunchRun& run : FindLaunchRuns(model_, i)) {
      if (!run.launch_bound()) continue;
      std::fill(wanted.begin() + static_cast<ptrdiff_t>(run.begin),
                wanted.begin() + static_cast<ptrdiff_t>(run.end), true);
    }
    for (size_t k = 0; k < slices.size();) {
      size_t end = k + 1;
      while (end < slices.size() && model_.SameCall(slices[k], slices[end]))
        ++end;
      if (end - k >= kShortest && IsWide(slices, k, end)) {
        std::fill(wanted.begin() + static_cast<ptrdiff_t>(k),
                  wanted.begin() + static_cast<ptrdiff_t>(end), true);
      }
      k = end;
    }
    std::vector<uint32_t> segments(slices.size(), kNone);
    uint32_t number = 0;
    bool open = false;
    for (size_t k = 0; k < slices.size(); ++k) {
      const bool inside =
          wanted[k] && model_.kind(slices[k]) != WorkKind::kCopy;
      if (!inside || !open || !Follows(slices[k - 1], slices[k])) ++number;
      open = inside;
      if (inside) segments[k] = number;
    }
    return segments;
  }

  bool IsWide(const std::vector<SliceId>& slices, size_t begin,
              size_t end) const {
    int64_t reached = trace_.End(slices[begin]), gaps = 0;
    for (size_t k = begin + 1; k < end; ++k) {
      gaps += std::max<int64_t>(0, trace_.Start(slices[k]) - reached);
      reached = std::max(reached, trace_.End(slices[k]));
    }
    return gaps * kGapShare > reached - trace_.Start(slices[begin]);
  }

  // Nothing ended between the two.
  bool Follows(SliceId a, SliceId b) const {
    const auto& steps = model_.context().steps;
    if (steps.StepOf(a) != steps.StepOf(b)) return false;
    const uint32_t from = model_.call(a), to = model_.call(b);
    if (from == to) return true;
    if (from == kNone || to == kNone) return false;
    const Call& first = model_.calls()[from];
    const Call& second = model_.calls()[to];
    if (first.end - first.begin > 1 || second.end - second.begin > 1)
      return false;  // of two graphs, or of a graph and none
    if (first.thread != second.thread) return true;
    // A wait of the thread between the calls.
    const auto& waits = model_.threads()[first.thread].waits;
    const int64_t begin = trace_.Start(first.slice);
    const auto it = std::upper_bound(
        waits.begin(), waits.end(), begin, [&](int64_t t, uint32_t w) {
          return t < trace_.Start(model_.waits()[w].slice);
        });
    for (auto w = it;
         w != waits.end() &&
         trace_.Start(model_.waits()[*w].slice) < trace_.Start(second.slice);
         ++w) {
      if (model_.waits()[*w].target.valid()) return false;
    }
    return true;
  }

  void Stream(uint32_t i) {
    const auto& slices = trace_.streams[i].slices;
    if (slices.size() < kShortest) return;
    const std::vector<uint32_t> segments = SegmentsOf(i);
    if (std::ranges::all_of(segments, [](uint32_t s) { return s == kNone; }))
      return;
    MeasureTimes(i);
    // A gram of q is one of q - 1 and its last kernel, so equal numbers are
    // equal kernels.
    std::array<Grams, kLongest + 2> grams;
    std::array<std::vector<uint32_t>, kLongest + 2> counts;
    grams[1].assign(slices.size(), kNone);
    for (size_t k = 0; k < slices.size(); ++k) {
      if (segments[k] != kNone)
        grams[1][k] = trace_.slices.name[slices[k].value].value;
    }
    for (uint32_t q = kShortest; q <= kLongest; ++q) {
      absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> numbers;
      grams[q].assign(slices.size(), kNone);
      std::vector<size_t> free;  // from where on a gram may be counted again
      for (size_t k = 0; k + q <= slices.size(); ++k) {
        if (segments[k] == kNone || segments[k] != segments[k + q - 1])
          continue;
        const auto [it, is_new] =
            numbers.try_emplace({grams[q - 1][k], grams[1][k + q - 1]},
                                static_cast<uint32_t>(numbers.size()));
        grams[q][k] = it->second;
        if (is_new) {
          counts[q].push_back(0);
          free.push_back(0);
        }
        if (k >= free[it->second]) {
          ++counts[q][it->second];
          free[it->second] = k + q;
        }
      }
    }
    grams[kLongest + 1].assign(slices.size(), kNone);
    for (uint32_t q = kShortest; q <= kLongest; ++q)
      Keep(i, q, grams[q], counts[q], grams[q + 1], counts[q + 1]);
  }

  // Grams that come often enough, unless a longer one comes as often.
  void Keep(uint32_t i, uint32_t q, const Grams& grams,
            const std::vector<uint32_t>& counts, const Grams& longer,
            const std::vector<uint32_t>& longer_counts) {
    std::vector<bool> kept(counts.size());
    for (size_t g = 0; g < counts.size(); ++g)
      kept[g] = counts[g] >= kLeastCount;
    for (size_t k = 0; k < grams.size(); ++k) {
      if (grams[k] == kNone || !kept[grams[k]]) continue;
      for (const size_t at : {k, k - 1}) {
        if (at < longer.size() && longer[at] != kNone &&
            longer_counts[longer[at]] >= counts[grams[k]])
          kept[grams[k]] = false;
      }
    }
    std::vector<KernelSequence> found(counts.size());
    for (size_t k = 0; k < grams.size(); ++k) {
      if (grams[k] == kNone || !kept[grams[k]]) continue;
      KernelSequence& sequence = found[grams[k]];
      if (!sequence.starts.empty() && k < sequence.starts.back() + q) continue;
      sequence.starts.push_back(static_cast<uint32_t>(k));
    }
    for (KernelSequence& sequence : found) {
      if (sequence.starts.empty()) continue;
      sequence.stream = i;
      sequence.length = q;
      Measure(sequence);
      if (sequence.recoverable_ns > 0) found_.push_back(std::move(sequence));
    }
  }

  // Calls f(part) for those of a gap that one kernel in the place of a sequence
  // would not have.
  template <class F>
  void ForPartsOf(uint32_t gap, const F& f) const {
    for (uint32_t p = idle_.first_part[gap]; p < idle_.first_part[gap + 1];
         ++p) {
      const Part& part = idle_.parts[p];
      if (part.cause == Cause::kHostBound ||
          part.cause == Cause::kLaunchOverhead ||
          part.cause == Cause::kKernelWait || part.cause == Cause::kGraph)
        f(part);
    }
  }

  // Gaps of the device of a stream, as positions in Idle::gaps.
  std::pair<uint32_t, uint32_t> GapsOf(uint32_t stream) const {
    const uint32_t device = model_.facts(stream).device;
    const auto [first, last] =
        std::ranges::equal_range(idle_.gaps, device, {}, &Gap::device);
    return {static_cast<uint32_t>(first - idle_.gaps.begin()),
            static_cast<uint32_t>(last - idle_.gaps.begin())};
  }

  // For each position of a stream the time of such parts of the device before
  // its start and its end, and the first gap that ends behind its end. Times
  // hardly fall from one to the next, so a walk finds them, not a search.
  void MeasureTimes(uint32_t i) {
    const auto& slices = trace_.streams[i].slices;
    const auto [first, last] = GapsOf(i);
    const auto walk = [&](uint32_t& gap, int64_t time) {
      while (gap < last && idle_.gaps[gap].interval.end_ns <= time) ++gap;
      while (gap > first && idle_.gaps[gap - 1].interval.end_ns > time) --gap;
    };
    const auto before = [&](uint32_t gap, int64_t time) {
      int64_t ns = before_gap_[gap];
      if (gap == last || idle_.gaps[gap].interval.start_ns >= time) return ns;
      ForPartsOf(gap, [&](const Part& part) {
        ns += std::clamp<int64_t>(time - part.start_ns, 0, part.length_ns);
      });
      return ns;
    };
    before_start_.resize(slices.size());
    before_end_.resize(slices.size());
    gap_after_[i].resize(slices.size());
    uint32_t at_start = first, at_end = first;
    for (size_t k = 0; k < slices.size(); ++k) {
      walk(at_start, trace_.Start(slices[k]));
      before_start_[k] = before(at_start, trace_.Start(slices[k]));
      walk(at_end, trace_.End(slices[k]));
      before_end_[k] = before(at_end, trace_.End(slices[k]));
      gap_after_[i][k] = at_end;
    }
  }

  // Calls f(part, length within the occurrence) for idle time of the device
  // that one kernel in its place would not have.
  template <class F>
  void ForParts(const KernelSequence& sequence, const F& f) const {
    const auto& slices = trace_.streams[sequence.stream].slices;
    const uint32_t last = GapsOf(sequence.stream).second;
    for (const uint32_t start : sequence.starts) {
      const int64_t from = trace_.End(slices[start]);
      const int64_t to = trace_.Start(slices[start + sequence.length - 1]);
      for (uint32_t gap = gap_after_[sequence.stream][start];
           gap < last && idle_.gaps[gap].interval.start_ns < to; ++gap) {
        ForPartsOf(gap, [&](const Part& part) {
          const int64_t length = std::min(to, part.start_ns + part.length_ns) -
                                 std::max(from, part.start_ns);
          if (length > 0)
            f(static_cast<size_t>(&part - idle_.parts.data()), length);
        });
      }
    }
  }

  void Measure(KernelSequence& sequence) const {
    const auto& slices = trace_.streams[sequence.stream].slices;
    sequence.shortest_ns = trace_.Duration(slices[sequence.starts[0]]);
    for (const uint32_t start : sequence.starts) {
      int64_t reached = trace_.Start(slices[start]);
      for (uint32_t k = start; k < start + sequence.length; ++k) {
        sequence.gap_ns +=
            std::max<int64_t>(0, trace_.Start(slices[k]) - reached);
        reached = std::max(reached, trace_.End(slices[k]));
        const int64_t ns = trace_.Duration(slices[k]);
        sequence.kernel_ns += ns;
        sequence.shortest_ns = std::min(sequence.shortest_ns, ns);
      }
      // None where they run beside each other.
      const uint32_t last = start + sequence.length - 1;
      sequence.recoverable_ns +=
          std::max<int64_t>(0, before_start_[last] - before_end_[start]);
    }
  }

  void ShareOut() {
    std::vector<int64_t> left;
    left.reserve(idle_.parts.size());
    for (const Part& part : idle_.parts) left.push_back(part.length_ns);
    for (KernelSequence& sequence :
         std::span(found_).first(std::min(kMostShown, found_.size()))) {
      ForParts(sequence, [&](size_t part, int64_t length) {
        const int64_t taken = std::min(length, left[part]);
        left[part] -= taken;
        sequence.exclusive_ns += taken;
      });
    }
  }

  const HostModel& model_;
  const Trace& trace_;
  const Idle& idle_;
  std::vector<int64_t> before_gap_;  // such time of all gaps before one
  // Of the stream that is looked at, by position.
  std::vector<int64_t> before_start_, before_end_;
  std::vector<std::vector<uint32_t>> gap_after_;  // by stream and position
  std::vector<KernelSequence> found_;
};

}  // namespace

bool IsShort(const HostModel& model, SliceId s) {
  const uint32_t c = model.call(s);
  return c != kNone &&
         model.trace().Duration(s) <
             model.Typical(
                 model.trace().slices.name[model.calls()[c].slice.value]);
}

std::vector<LaunchRun> FindLaunchRuns(const HostModel& model, uint32_t stream) {
  constexpr size_t kLeast = 4;
  constexpr size_t kOneIn = 8;
  const Trace& trace = model.trace();
  const auto& slices = trace.streams[stream].slices;
  std::vector<LaunchRun> runs;
  if (slices.empty()) return runs;
  const auto add = [&](size_t begin, size_t end) {
    LaunchRun run;
    run.stream = stream;
    run.number = static_cast<uint32_t>(runs.size());
    run.begin = begin;
    run.end = end;
    run.first = slices[begin];
    run.start_ns = trace.Start(slices[begin]);
    IntervalSet busy;
    uint32_t last = kNone;
    int64_t first_call = 0, last_call = 0;
    for (size_t k = begin; k < end; ++k) {
      const SliceId s = slices[k];
      busy.AppendSorted({trace.Start(s), trace.End(s)});
      run.end_ns = std::max(run.end_ns, trace.End(s));
      run.work_ns += trace.Duration(s);
      ++run.events;
      if (IsShort(model, s)) ++run.shorter;
      const uint32_t c = model.call(s);
      if (c == kNone || c == last) continue;
      last = c;
      last_call = trace.Start(model.calls()[c].slice);
      if (run.launches++ == 0) first_call = last_call;
    }
    run.busy_ns = busy.length_ns();
    run.host_ns = std::max<int64_t>(0, last_call - first_call);
    run.graph_span_ns =
        run.busy_ns + model.facts(stream).gap_ns * (run.events - 1) +
        (model.call(run.first) == kNone ? 0 : model.Floor(run.first));
    runs.push_back(run);
  };
  int64_t reached = trace.End(slices[0]);
  SliceId last = slices[0];
  size_t begin = slices.size();  // of the open run
  size_t hits_end = 0;           // behind its last hit
  size_t exception = slices.size();
  bool excepted = false;
  const auto close = [&] {
    if (begin < hits_end && hits_end - begin >= kLeast) add(begin, hits_end);
    begin = slices.size();
    excepted = false;
  };
  for (size_t k = 1; k < slices.size(); ++k) {
    const SliceId s = slices[k];
    const bool hit = trace.Start(s) > reached &&
                     HostIsLate(model, {reached, trace.Start(s)}, s, last);
    if (trace.End(s) >= reached) {
      reached = trace.End(s);
      last = s;
    }
    if (hit) {
      if (begin == slices.size()) begin = k;
      hits_end = k + 1;
    } else if (begin < slices.size()) {
      if (excepted && k - exception < kOneIn) {
        close();
      } else {
        excepted = true;
        exception = k;
      }
    }
  }
  close();
  return runs;
}

std::vector<KernelSequence> FindSequences(const HostModel& model,
                                          const Idle& idle) {
  return Finder(model, idle).Run();
}

std::vector<Schema> SequenceSchemas() { return {SequenceColumns().schema()}; }

Table SequenceTable(const HostModel& model,
                    const std::vector<KernelSequence>& sequences,
                    const SequenceFacts& facts) {
  const Trace& trace = model.trace();
  const auto& modules = model.context().modules;
  const tree::Tree& tree = model.context().tree;
  std::vector<uint32_t> layer_of(facts.layers.empty() ? 0 : trace.device.size(),
                                 kNone);
  for (uint32_t l = 0; l < facts.layers.size(); ++l) {
    for (const SliceId s : facts.layers[l])
      layer_of[trace.slices.detail[s.value]] = l;
  }
  // In how many layers occurrences begin.
  const auto layers = [&](const KernelSequence& sequence) {
    std::vector<uint32_t> in;
    for (const uint32_t start : sequence.starts) {
      const SliceId s = trace.streams[sequence.stream].slices[start];
      const uint32_t layer = layer_of[trace.slices.detail[s.value]];
      if (layer != kNone) in.push_back(layer);
    }
    std::sort(in.begin(), in.end());
    return std::unique(in.begin(), in.end()) - in.begin();
  };
  const auto on_path =
      [&](const KernelSequence& sequence) -> std::optional<int64_t> {
    if (facts.path_ns.empty()) return std::nullopt;
    int64_t sum = 0;
    for (const uint32_t start : sequence.starts) {
      for (uint32_t k = start; k < start + sequence.length; ++k) {
        const SliceId s = trace.streams[sequence.stream].slices[k];
        sum += facts.path_ns[trace.slices.detail[s.value]];
      }
    }
    return sum;
  };
  Table table(SequenceColumns().schema());
  for (size_t n = 0; n < std::min(kMostShown, sequences.size()); ++n) {
    const KernelSequence& sequence = sequences[n];
    const auto& slices = trace.streams[sequence.stream].slices;
    std::string names, ops;
    std::vector<NodeId> launchers;
    for (uint32_t k = 0; k < sequence.length; ++k) {
      const SliceId s = slices[sequence.starts[0] + k];
      const NodeId launcher = model.context().device.launcher(s);
      launchers.push_back(launcher);
      if (k > 0) {
        names += " + ";
        ops += " + ";
      }
      names += trace.Name(s);
      ops += launcher.valid() ? tree.name(launcher) : "-";
    }
    std::optional<std::string> module;
    if (launchers[0].valid()) {
      const auto owner = modules.OwnerOf(launchers[0]);
      if (owner.path.valid()) module = modules.PathText(owner.path);
    }
    std::optional<double> layers_percent;
    if (!facts.layers.empty()) {
      layers_percent = PercentOf(layers(sequence),
                                 static_cast<int64_t>(facts.layers.size()));
    }
    const std::string_view rule = facts.rule(launchers);
    SequenceColumns().Add(
        table,
        {.number = n + 1,
         .device = model.devices()[model.facts(sequence.stream).device].name,
         .stream = trace.streams[sequence.stream].stream,
         .length = sequence.length,
         .count = sequence.starts.size(),
         .recoverable = sequence.recoverable_ns,
         .exclusive = sequence.exclusive_ns,
         .kernel_time = sequence.kernel_ns,
         .gap = sequence.gap_ns,
         .shortest = sequence.shortest_ns,
         .names = names,
         .ops = ops,
         .module = module,
         .layers_percent = layers_percent,
         .rule = rule.empty() ? "new" : rule,
         .example_uid = trace.Uid(slices[sequence.starts[0]]),
         .on_path = on_path(sequence),
         .passed_bytes = facts.passed(launchers)});
  }
  return table;
}

}  // namespace lamina::analysis::host
