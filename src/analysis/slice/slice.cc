// SPDX-License-Identifier: Apache-2.0
//
// Three rounds. The core is what meets every condition. Around it come
// launches of its device work and, over the host tree, all that encloses a
// kept event, with the ranges that name the calls of modules among it, and the
// same over the forward ops of what autograd runs. Events that stand in no tree
// (ranges, instants, counters) come along where they overlap the core; flows
// where both their ends are kept.
#include "analysis/slice/slice.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <fmt/core.h>
#include <re2/re2.h>

#include "trace/module_frames.h"

namespace lamina::analysis::slice {
namespace {

using trace::FlowKind;
using trace::FlowPhase;
using trace::Kind;
using trace::TrackId;

class Selector {
 public:
  Selector(const Context& context, const Options& options)
      : context_(context), trace_(context.trace), options_(options) {}

  Result<Selection> Run(const layers::Rules& rules) {
    LAMINA_TRY(FindStep());
    LAMINA_TRY(FindNames());
    FindLayers(rules);
    keep_.assign(trace_.slices.size(), false);
    SelectHost();
    SelectDevice();
    if (core_.empty()) {
      return Fail(UsageError("nothing in the trace meets these conditions",
                             "⟨lamina⟩ report TRACE lists steps, kernels and "
                             "streams"));
    }
    FindSpans();
    AddEnclosing();
    AddRangesOfModules();
    AddRanges();
    Settle();
    return std::move(out_);
  }

 private:
  // --- conditions ---
  Status FindStep() {
    if (!options_.step) return {};
    const auto& steps = context_.steps.steps();
    for (uint32_t i = 0; i < steps.size(); ++i) {
      if (steps[i].number != *options_.step) continue;
      step_ = i;
      return {};
    }
    std::string hint = "the trace has no steps";
    if (!steps.empty()) {
      hint =
          fmt::format("its {} steps have numbers from {} to {}", steps.size(),
                      steps.front().number, steps.back().number);
    }
    return Fail(UsageError(fmt::format("there is no step {}", *options_.step),
                           std::move(hint)));
  }

  Status FindNames() {
    if (options_.name.empty()) return {};
    RE2::Options re2;
    re2.set_log_errors(false);
    const RE2 pattern(options_.name, re2);
    if (!pattern.ok())
      return Fail(UsageError("⟨name⟩: " + pattern.error(), "see RE2's syntax"));
    named_.assign(trace_.strings.size(), false);
    for (uint32_t i = 0; i < trace_.strings.size(); ++i) {
      const std::string_view text = trace_.strings[StringId(i)];
      named_[i] = RE2::PartialMatch(re2::StringPiece(text.data(), text.size()),
                                    pattern);
    }
    // Nodes inside one of that name.
    const tree::Tree& tree = context_.tree;
    inside_.assign(tree.size(), false);
    for (uint32_t n = 0; n < tree.size(); ++n) {
      const NodeId above = tree.parent(NodeId(n));
      inside_[n] = Named(tree.slice(NodeId(n))) ||
                   (above.valid() && inside_[above.value]);
    }
    return {};
  }
  bool Named(SliceId s) const {
    return named_[trace_.slices.name[s.value].value];
  }

  void FindLayers(const layers::Rules& rules) {
    if (!options_.layers) return;
    in_layer_.assign(trace_.slices.size(), false);
    const layers::LayerModel model = layers::FindLayers(context_, rules, {});
    for (const layers::Layer& layer : model.layers) {
      if (std::find(options_.layers->begin(), options_.layers->end(),
                    layer.index) == options_.layers->end())
        continue;
      for (const SliceId s : layer.work) in_layer_[s.value] = true;
    }
  }

  bool InTime(SliceId s) const {
    if (!options_.time_ns) return true;
    return trace_.Start(s) - trace_.first_ns < options_.time_ns->end_ns &&
           trace_.End(s) - trace_.first_ns > options_.time_ns->start_ns;
  }

  // --- the core ---
  void Core(SliceId s) {
    core_.push_back(s);
    keep_[s.value] = true;
  }
  void SelectHost() {
    // Only device work has a layer or a stream.
    if (options_.layers || options_.stream || !options_.device.empty()) return;
    const tree::Tree& tree = context_.tree;
    for (uint32_t n = 0; n < tree.size(); ++n) {
      const SliceId s = tree.slice(NodeId(n));
      if (!InTime(s)) continue;
      if (step_ != kNoStep && context_.steps.StepAt(trace_.Start(s)) != step_)
        continue;
      if (!inside_.empty() && !inside_[n]) continue;
      Core(s);
    }
    if (step_ != kNoStep && options_.name.empty()) {
      const SliceId range = context_.steps.steps()[step_].slice;
      if (InTime(range) && !keep_[range.value]) Core(range);
    }
  }
  void SelectDevice() {
    for (const SliceId s : trace_.device_slices()) {
      if (!InTime(s)) continue;
      if (step_ != kNoStep && context_.steps.StepOf(s) != step_) continue;
      if (options_.layers && !in_layer_[s.value]) continue;
      if (!options_.device.empty() && !options_.device[s.value]) continue;
      if (options_.stream && trace_.Device(s)->stream != *options_.stream)
        continue;
      if (!named_.empty() && !Named(s)) {
        const NodeId launch = context_.tree.launch(s);
        if (!launch.valid() || !inside_[launch.value]) continue;
      }
      Core(s);
    }
  }

  // --- around it ---
  // Where the core and its launches are, by track, and the window over all.
  void FindSpans() {
    std::vector<std::vector<Interval>> intervals(trace_.tracks.size());
    window_ = {trace_.Start(core_[0]), trace_.End(core_[0])};
    const auto add = [&](SliceId s) {
      const Interval span{trace_.Start(s), trace_.End(s)};
      window_.start_ns = std::min(window_.start_ns, span.start_ns);
      window_.end_ns = std::max(window_.end_ns, span.end_ns);
      intervals[trace_.slices.track[s.value].value].push_back(span);
    };
    for (const SliceId s : core_) {
      add(s);
      if (!trace::IsDevice(trace_.KindOf(s))) continue;
      const NodeId launch = context_.tree.launch(s);
      if (launch.valid()) add(context_.tree.slice(launch));
    }
    if (options_.time_ns) {
      window_ = {options_.time_ns->start_ns + trace_.first_ns,
                 options_.time_ns->end_ns + trace_.first_ns};
    }
    for (std::vector<Interval>& track : intervals) {
      std::sort(track.begin(), track.end(),
                [](const Interval& a, const Interval& b) {
                  return a.start_ns < b.start_ns;
                });
      spans_.push_back(IntervalSet::Of(std::move(track)));
    }
  }
  bool Overlaps(TrackId track, int64_t start, int64_t end) const {
    const auto spans = spans_[track.value].intervals();
    const auto after = std::upper_bound(
        spans.begin(), spans.end(), start,
        [](int64_t time, const Interval& span) { return time < span.end_ns; });
    return after != spans.end() && (after->start_ns < end ||
                                    (start == end && after->start_ns <= start));
  }

  bool InWindow(int64_t time) const {
    return time >= window_.start_ns && time <= window_.end_ns;
  }

  void AddEnclosing() {
    const tree::Tree& tree = context_.tree;
    for (const SliceId s : core_) {
      NodeId node;
      if (trace::IsDevice(trace_.KindOf(s))) {
        node = tree.launch(s);
      } else if (tree.node(s).valid()) {
        node = tree.parent(tree.node(s));
      }
      KeepUpwards(node);
    }
    // What is above work of the backward pass has a forward op, whose module
    // it belongs to.
    for (uint32_t n = 0; n < tree.size(); ++n) {
      if (keep_[tree.slice(NodeId(n)).value])
        KeepUpwards(tree.forward(NodeId(n)));
    }
  }
  void KeepUpwards(NodeId node) {
    const tree::Tree& tree = context_.tree;
    while (node.valid() && !keep_[tree.slice(node).value]) {
      keep_[tree.slice(node).value] = true;
      node = tree.parent(node);
    }
  }

  // The begin and the end of a call that are ranges of their own enclose
  // nothing, and without them the slice has no such call.
  void AddRangesOfModules() {
    for (uint32_t i = trace::RecordedSlices(trace_); i < keep_.size(); ++i) {
      const SliceId frame(i);
      if (!keep_[i] || !trace::IsRangeFrame(trace_, frame)) continue;
      const SliceId last = trace::LastRangeOfFrame(trace_, frame);
      if (!last.valid()) continue;
      keep_[trace::RangeOfFrame(trace_, frame).value] = true;
      keep_[last.value] = true;
    }
  }

  // Ranges and what else stands in no tree, where they overlap the core; of
  // steps only the one that was asked for.
  void AddRanges() {
    const tree::Tree& tree = context_.tree;
    absl::flat_hash_set<StringId> other_steps;
    if (step_ != kNoStep) {
      const auto& steps = context_.steps.steps();
      for (uint32_t i = 0; i < steps.size(); ++i) {
        if (i != step_)
          other_steps.insert(trace_.slices.name[steps[i].slice.value]);
      }
      other_steps.erase(trace_.slices.name[steps[step_].slice.value]);
    }
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      const SliceId s(i);
      if (keep_[i] || trace::IsDevice(trace_.KindOf(s)) || tree.node(s).valid())
        continue;
      if (!other_steps.empty() && other_steps.contains(trace_.slices.name[i]))
        continue;
      keep_[i] = InTime(s) && Overlaps(trace_.slices.track[i], trace_.Start(s),
                                       trace_.End(s));
    }
  }

  // --- the fate of every event ---
  void Settle() {
    out_.events.assign(trace_.info.events, Fate::kUnknown);
    const uint32_t recorded = trace::RecordedSlices(trace_);
    for (uint32_t i = 0; i < recorded; ++i) {
      const SliceId s(i);
      Selection::Count& count =
          out_.slices[static_cast<size_t>(trace_.KindOf(s))];
      Decide(trace_.Uid(s), keep_[i], count);
    }
    SettleFlows();
    const auto& instants = trace_.instants;
    for (uint32_t i = 0; i < instants.size(); ++i) {
      const int64_t at = instants.time_ns[i];
      Decide(instants.uid[i],
             InWindow(at) && Overlaps(instants.track[i], at, at),
             out_.instants);
    }
    const auto& counters = trace_.counters;
    for (uint32_t i = 0; i < counters.size(); ++i) {
      // Several series of one event.
      if (i > 0 && counters.uid[i] == counters.uid[i - 1]) continue;
      const int64_t at = counters.time_ns[i];
      Decide(counters.uid[i], InWindow(at), out_.counters);
    }
  }
  void Decide(uint32_t uid, bool keep, Selection::Count& count) {
    if (uid >= out_.events.size()) return;
    ++count.all;
    count.kept += keep ? 1 : 0;
    out_.events[uid] = keep ? Fate::kKept : Fate::kDropped;
  }

  // A flow is bound to the slice that it starts with or, for flows of other
  // kinds, lies in. Each start is joined to the next finish of its id.
  void SettleFlows() {
    const trace::Flows& flows = trace_.flows;
    absl::flat_hash_set<std::pair<uint32_t, int64_t>> starts;
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      if (keep_[i])
        starts.emplace(trace_.slices.track[i].value, trace_.slices.start_ns[i]);
    }
    const auto bound = [&](uint32_t i) {
      if (starts.contains({flows.track[i].value, flows.time_ns[i]}))
        return true;
      return flows.kind[i] == FlowKind::kOther &&
             Overlaps(flows.track[i], flows.time_ns[i], flows.time_ns[i]);
    };
    std::vector<bool> is_bound(flows.size());
    absl::flat_hash_set<std::pair<uint8_t, int64_t>> ids;
    for (uint32_t i = 0; i < flows.size(); ++i) {
      is_bound[i] = bound(i);
      if (is_bound[i])
        ids.emplace(static_cast<uint8_t>(flows.kind[i]), flows.id[i]);
    }
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < flows.size(); ++i) {
      if (ids.contains({static_cast<uint8_t>(flows.kind[i]), flows.id[i]}))
        order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return std::tuple(flows.kind[a], flows.id[a], flows.time_ns[a],
                        flows.phase[a],
                        a) < std::tuple(flows.kind[b], flows.id[b],
                                        flows.time_ns[b], flows.phase[b], b);
    });
    std::vector<bool> keep(flows.size());
    for (size_t i = 0; i < order.size();) {
      // One start and what belongs to it.
      size_t end = i + 1;
      while (end < order.size() && SameFlow(order[i], order[end]) &&
             flows.phase[order[end]] != FlowPhase::kStart)
        ++end;
      bool start = false, finish = false;
      for (size_t k = i; k < end; ++k) {
        start |=
            is_bound[order[k]] && flows.phase[order[k]] == FlowPhase::kStart;
        finish |=
            is_bound[order[k]] && flows.phase[order[k]] == FlowPhase::kFinish;
      }
      for (size_t k = i; k < end && start && finish; ++k)
        keep[order[k]] = is_bound[order[k]];
      i = end;
    }
    for (uint32_t i = 0; i < flows.size(); ++i)
      Decide(flows.uid[i], keep[i], out_.flows);
  }
  bool SameFlow(uint32_t a, uint32_t b) const {
    return trace_.flows.kind[a] == trace_.flows.kind[b] &&
           trace_.flows.id[a] == trace_.flows.id[b];
  }

  static constexpr uint32_t kNoStep = tree::Steps::kOutside;

  const Context& context_;
  const Trace& trace_;
  const Options& options_;
  uint32_t step_ = kNoStep;
  std::vector<bool> named_;     // by StringId; empty: no condition
  std::vector<bool> inside_;    // by node
  std::vector<bool> in_layer_;  // by slice
  std::vector<SliceId> core_;
  std::vector<bool> keep_;          // by slice
  Interval window_;                 // of instants and counters
  std::vector<IntervalSet> spans_;  // by track
  Selection out_;
};

}  // namespace

Result<Selection> Select(const Context& context, const layers::Rules& rules,
                         const Options& options) {
  return Selector(context, options).Run(rules);
}

}  // namespace lamina::analysis::slice
