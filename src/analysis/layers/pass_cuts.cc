// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/pass_cuts.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <map>

namespace lamina::analysis::layers {
namespace {

// Weights; PassCut::kPassWeight decides.
constexpr double kStep = 1.0;
constexpr double kGraph = 1.0;
constexpr double kEdge = 0.8;      // embedding, sampling, loss, optimizer
constexpr double kOnly = 0.5;      // a kernel that stands in gaps only
constexpr double kMoreOnly = 0.3;  // two or more
constexpr double kIdle = 0.4;      // no work for much longer than usual
constexpr double kWaited = 0.4;    // and the host waited for the device
constexpr double kRegular = 0.3;   // the parts are equally long
// Of idle time within one step: eager launches are slow there.
constexpr double kWithinStep = 0.4;

// Names that stand in this share of the gaps of the most frequent one are
// stray.
constexpr double kRare = 0.15;

constexpr int64_t kMinIdleNs = 4'000;
constexpr int64_t kIdleFactor = 6;
// Share of the layers in runs of the most frequent length that is regular.
constexpr double kMostly = 0.6;

class Judge {
 public:
  Judge(const Context& context, const Lane& lane, const LaneView& view,
        const Structure& structure, const std::vector<int64_t>& waits)
      : context_(context),
        trace_(context.trace),
        lane_(lane),
        view_(view),
        layers_(structure.layers),
        waits_(waits),
        cuts_(layers_.size()) {}

  std::vector<PassCut> Run() {
    const size_t n = layers_.size();
    gaps_.resize(n);
    MeasureUnits();
    CountOutside();
    const int64_t usual = UsualIdle();
    for (size_t i = 1; i < n; ++i) gaps_[i] = Measure(i, usual);
    Alone(&Gap::only);
    Alone(&Gap::idle);
    const bool only = Regular(&Gap::only);
    const bool idle = Regular(&Gap::idle);
    for (size_t i = 1; i < n; ++i) Weigh(i, only, idle);
    return std::move(cuts_);
  }

 private:
  struct Gap {
    bool step = false;
    bool graph = false;
    bool edge = false;
    bool only = false;
    bool more = false;  // several kernels that stand in gaps only
    bool same_graph = false;
    bool idle = false;
    bool waited = false;
    bool same_step = false;
  };

  // Kernels by name: all of them, those in no layer, and the places where such
  // stand that are no kernels of a damaged layer under another name: where the
  // layers beside them lack as many.
  void CountOutside() {
    for (const uint32_t id : view_.ids) ++all_[id];
    const auto outside = [&](uint32_t from, uint32_t to, bool damage) {
      absl::flat_hash_set<uint32_t> here;
      for (uint32_t i = from; i < to; ++i) {
        ++outside_[view_.ids[i]];
        if (here.insert(view_.ids[i]).second && !damage)
          ++places_[view_.ids[i]];
      }
    };
    uint32_t at = 0;
    for (size_t l = 0; l < layers_.size(); ++l) {
      const Found& layer = layers_[l];
      outside(at, layer.begin,
              l > 0 && layer.begin - at <=
                           Lacks(layers_[l - 1], true) + Lacks(layer, false));
      at = layer.end;
    }
    outside(at, static_cast<uint32_t>(view_.ids.size()), false);
    // What stands between passes stands between most of them.
    size_t most = 0;
    for (const auto& [id, places] : places_) {
      if (places < 2 || 10 * outside_.at(id) < 7 * all_.at(id)) continue;
      only_.insert(id);
      most = std::max(most, places);
    }
    absl::erase_if(only_, [&](uint32_t id) {
      return static_cast<double>(places_.at(id)) <
             kRare * static_cast<double>(most);
    });
  }

  // An undamaged layer of each kind.
  void MeasureUnits() {
    for (const Found& layer : layers_) {
      if (layer.exact) whole_.try_emplace(layer.unit, &layer);
    }
  }
  // Kernels that a damaged layer lacks at its beginning or end.
  uint32_t Lacks(const Found& layer, bool at_end) const {
    const auto known = whole_.find(layer.unit);
    if (layer.exact || known == whole_.end()) return 0;
    const Found& whole = *known->second;
    const auto id = [&](const Found& of, uint32_t i) {
      return view_.ids[at_end ? of.end - 1 - i : of.begin + i];
    };
    for (uint32_t i = 0; 3 * i < whole.end - whole.begin; ++i) {
      if (id(whole, i) == id(layer, 0)) return i;
    }
    return 0;
  }

  // The time between two kernels of a layer that three of four do not reach.
  int64_t UsualIdle() const {
    std::vector<int64_t> idle;
    const size_t stride = std::max<size_t>(1, layers_.size() / 2000);
    for (size_t l = 0; l < layers_.size(); l += stride) {
      for (uint32_t i = layers_[l].begin + 1; i < layers_[l].end; ++i) {
        idle.push_back(std::max<int64_t>(
            0,
            trace_.Start(lane_.kernels[i]) - trace_.End(lane_.kernels[i - 1])));
      }
    }
    if (idle.empty()) return 0;
    const auto at = idle.begin() + static_cast<ptrdiff_t>(idle.size() * 3 / 4);
    std::ranges::nth_element(idle, at);
    return *at;
  }

  Gap Measure(size_t l, int64_t usual) const {
    const uint32_t from = layers_[l - 1].end;
    const uint32_t to = layers_[l].begin;
    Gap gap;
    uint32_t first_only = UINT32_MAX;
    for (uint32_t i = from; i <= to; ++i) {
      gap.step = gap.step || view_.cuts[i] == CutBy::kStep;
      gap.graph = gap.graph || view_.cuts[i] == CutBy::kGraph;
      const int64_t start = trace_.Start(lane_.kernels[i]);
      const int64_t end = trace_.End(lane_.kernels[i - 1]);
      if (start - end >= std::max(kMinIdleNs, kIdleFactor * usual)) {
        gap.idle = true;
        const auto wait = std::ranges::upper_bound(waits_, end - usual);
        gap.waited = gap.waited || (wait != waits_.end() && *wait <= start);
      }
      if (i == to) break;
      gap.edge = gap.edge || (view_.marks[i] & kEdgeMark) != 0;
      const uint32_t id = view_.ids[i];
      if (!only_.contains(id)) continue;
      gap.more = gap.more || (gap.only && id != first_only);
      if (!gap.only) first_only = id;
      gap.only = true;
    }
    const uint32_t step = context_.steps.StepOf(lane_.kernels[from - 1]);
    gap.same_step = step != tree::Steps::kOutside &&
                    step == context_.steps.StepOf(lane_.kernels[to]);
    gap.same_graph = view_.graphs[from - 1] != 0 &&
                     view_.graphs[from - 1] == view_.graphs[to];
    return gap;
  }

  // What stands before nearly every layer belongs to the layers.
  void Alone(bool Gap::*sign) {
    size_t with = 0;
    size_t hard = 0;
    size_t waited = 0;
    for (size_t i = 1; i < gaps_.size(); ++i) {
      with += gaps_[i].*sign;
      waited += gaps_[i].*sign && gaps_[i].waited;
      hard +=
          gaps_[i].*sign && (gaps_[i].step || gaps_[i].graph || gaps_[i].edge);
    }
    if (5 * (with - hard) < 4 * (gaps_.size() - 1 - hard)) return;
    // A host that waits behind every layer, and inside none, runs a model of
    // one layer.
    if (sign == &Gap::idle && 10 * waited >= 9 * with) return;
    for (Gap& gap : gaps_) gap.*sign = false;
  }

  // Whether the layers between places with a sign, or a hard cut, are mostly
  // equally many.
  bool Regular(bool Gap::*sign) const {
    std::map<size_t, size_t> runs;
    size_t begin = 0;
    for (size_t i = 1; i <= gaps_.size(); ++i) {
      if (i < gaps_.size() && layers_[i].family == layers_[i - 1].family &&
          !(gaps_[i].*sign || gaps_[i].step || gaps_[i].graph || gaps_[i].edge))
        continue;
      runs[i - begin] += i - begin;
      begin = i;
    }
    // Damage makes some runs a little longer or shorter. One run is no rule.
    size_t most = 0;
    for (const auto& [length, layers] : runs) {
      size_t near = 0;
      for (const auto& [other, own] : runs) {
        const size_t away = other > length ? other - length : length - other;
        if (away <= std::max<size_t>(1, length / 10) && away * 4 <= length)
          near += own;
      }
      if (near > length + length / 10 + 1) most = std::max(most, near);
    }
    return static_cast<double>(most) >=
           kMostly * static_cast<double>(gaps_.size());
  }

  void Weigh(size_t i, bool only_regular, bool idle_regular) {
    const Gap& gap = gaps_[i];
    PassCut& cut = cuts_[i];
    const auto add = [&](bool is, double weight, const char* text) {
      if (!is) return;
      cut.weight += weight;
      cut.evidence += (cut.evidence.empty() ? "" : ", ") + std::string(text);
    };
    add(gap.step, kStep, "step");
    add(gap.graph, kGraph, "graph");
    add(gap.edge, kEdge, "edge kernels");
    // One launch of a graph is one pass.
    const double within = gap.same_graph ? kWithinStep : 1.0;
    add(gap.only, (kOnly + (gap.more ? kMoreOnly : 0)) * within,
        "kernels between");
    const double idle = gap.same_step || gap.same_graph ? kWithinStep : 1.0;
    add(gap.idle, kIdle * idle, "idle");
    add(gap.idle && gap.waited, kWaited * idle, "host waited");
    add((gap.only && only_regular) || (gap.idle && idle_regular),
        kRegular * within, "equal parts");
  }

  const Context& context_;
  const Trace& trace_;
  const Lane& lane_;
  const LaneView& view_;
  const std::vector<Found>& layers_;
  const std::vector<int64_t>& waits_;
  std::vector<Gap> gaps_;
  std::vector<PassCut> cuts_;
  absl::flat_hash_map<uint32_t, const Found*> whole_;  // by unit
  absl::flat_hash_map<uint32_t, size_t> all_;
  absl::flat_hash_map<uint32_t, size_t> places_;
  absl::flat_hash_set<uint32_t> only_;  // names that stand in gaps only
  absl::flat_hash_map<uint32_t, size_t> outside_;
};

}  // namespace

std::vector<PassCut> FindPassCuts(const Context& context, const Lane& lane,
                                  const LaneView& view,
                                  const Structure& structure,
                                  const std::vector<int64_t>& waits) {
  return Judge(context, lane, view, structure, waits).Run();
}

}  // namespace lamina::analysis::layers
