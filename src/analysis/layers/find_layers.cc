// SPDX-License-Identifier: Apache-2.0
//
// The order in which evidence is asked for when layers are looked for: modules,
// repeats within lanes, passes; and what is kept where they disagree.
#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "analysis/layers/attach.h"
#include "analysis/layers/classic.h"
#include "analysis/layers/labels.h"
#include "analysis/layers/module_stacks.h"
#include "analysis/layers/passes.h"
#include "analysis/layers/reading.h"
#include "analysis/layers/runs.h"
#include "analysis/layers/stages.h"
#include "base/stop.h"
#include "base/text.h"
#include "trace/module_frames.h"

namespace lamina::analysis::layers {
namespace {

using tree::ModuleCallId;
using tree::ModulePathId;

class Finder {
 public:
  Finder(const Context& context, Labels& labels, Labels& names,
         const Options& options)
      : context_(context),
        trace_(context.trace),
        labels_(labels),
        names_(names),
        options_(options) {}

  LayerModel Run() {
    layer_of_.assign(trace_.slices.size(), kNone);
    // The classic analyzer knows no streams.
    lanes_ = MakeLanes(trace_, options_.detector == Detector::kClassic &&
                                   options_.profile == Profile::kClassic);
    if (options_.detector == Detector::kClassic) {
      for (const Lane& lane : lanes_) ByNames(lane);
    } else {
      if (options_.detector != Detector::kRepeat) ByModules();
      for (const Lane* lane : ByMixers()) {
        LookForStop();
        ByRepeats(*lane);
      }
      if (model_.layers.empty() && options_.detector == Detector::kAuto) {
        for (const Lane& lane : lanes_) ByNames(lane);
      }
    }
    LookForStop();
    SortLayers(trace_, layer_of_, model_);
    AttachOthers(trace_, lanes_, layer_of_, model_);
    LookForStop();
    MakePasses(context_, layer_of_, model_);
    MakeStepPasses(context_, model_);
    FindStages(context_, labels_, model_);
    return std::move(model_);
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Fewer kernels on a stream hold no stack.
  static constexpr size_t kMinLane = 20;
  // Share of a stream's time that makes a plain loop a stack.
  static constexpr double kLoopShare = 0.3;

  // --- modules ---

  void ByModules() {
    const ModuleStacks found = FindModuleStacks(context_, options_.min_layers);
    for (const std::string& name : found.names) {
      StackInfo info;
      info.name = name;
      info.boundary = "module";
      model_.stacks.push_back(std::move(info));
    }
    if (!found.names.empty()) ModuleLayers(found.stack_of);
  }

  void ModuleLayers(const std::map<uint32_t, uint32_t>& stack_of) {
    const tree::Modules& modules = context_.modules;
    std::map<uint32_t, uint32_t> layer_of_call;  // call -> layer
    std::map<uint32_t, uint32_t> last_of_path;   // path -> layer
    for (const SliceId s : trace_.device_slices()) {
      const NodeId launch = context_.tree.launch(s);
      if (!launch.valid()) continue;
      ModuleCallId call = modules.Enclosing(launch);
      if (call.valid() &&
          trace::IsBackwardFrame(trace_, modules.call(call).slice))
        call = ModuleCallId();
      while (call.valid() && !stack_of.contains(modules.call(call).path.value))
        call = modules.call(call).parent;
      if (!call.valid()) {
        // The backward pass of a layer belongs to its last forward pass.
        const auto owner = modules.OwnerOf(launch);
        if (!owner.backward) continue;
        ModulePathId path = owner.path;
        while (path.valid() && !last_of_path.contains(path.value))
          path = modules.path(path).parent;
        if (path.valid()) Give(s, last_of_path.at(path.value));
        continue;
      }
      const ModulePathId path = modules.call(call).path;
      const auto [it, is_new] = layer_of_call.try_emplace(
          call.value, static_cast<uint32_t>(model_.layers.size()));
      if (is_new) {
        Layer layer;
        layer.stack = stack_of.at(path.value);
        layer.exact = true;
        layer.module = modules.PathText(path);
        model_.layers.push_back(std::move(layer));
      }
      last_of_path[path.value] = it->second;
      Give(s, it->second);
    }
  }

  void Give(SliceId s, uint32_t layer) {
    layer_of_[s.value] = layer;
    model_.layers[layer].work.push_back(s);
  }

  // --- repeats ---

  // Layers that repeats find on a stream: held against those of the modules,
  // and taken where the modules have none.
  void ByRepeats(const Lane& lane) {
    if (lane.kernels.size() < kMinLane) return;
    ++lane_;
    const LaneView view = ViewOf(context_, labels_, lane);
    StackOptions options;
    options.min_layers = options_.min_layers;
    const Structure structure =
        FindStructure({view.ids, view.like, view.marks}, options);
    const std::vector<PassCut> cuts =
        FindPassCuts(context_, lane, view, structure, Waits());
    std::vector<StackRun> runs = FindRuns(view, structure, cuts, options);
    LayerModel::Check check;
    for (const StackRun& run : runs) Check(lane, structure, run, check);
    if (options_.detector != Detector::kModule) {
      const std::vector<bool> believed = Believed(lane, view, structure, runs);
      for (const StackRun& run : runs) {
        if (!believed[run.stack]) continue;
        Take(lane, view, structure, cuts, run);
      }
    }
    if (check.by_module + check.by_repeat == 0) return;
    check.name = "device " + std::to_string(lane.device);
    check.by_names = CutByNames(lane, names_).size();
    model_.checks.push_back(std::move(check));
  }

  // The streams, those first that take most time: others may only help them.
  // Where no stream of a device holds both mixers and products, the kernels of
  // its streams are one sequence.
  std::vector<const Lane*> ByMixers() {
    std::map<int64_t, std::vector<const Lane*>> by_device;
    for (const Lane& lane : lanes_) by_device[lane.device].push_back(&lane);
    std::vector<const Lane*> order;
    for (auto& [device, lanes] : by_device) {
      std::map<const Lane*, std::pair<bool, int64_t>> rank;
      bool mixer_somewhere = false;
      bool product_somewhere = false;
      bool both = false;
      for (const Lane* lane : lanes) {
        bool mixer = false;
        bool product = false;
        int64_t ns = 0;
        for (const SliceId s : lane->kernels) {
          const Part part = PartOf(context_, s);
          mixer = mixer || part == Part::kAttention;
          product = product || part == Part::kGemm;
          ns += trace_.Duration(s);
        }
        rank[lane] = {mixer && product, ns};
        mixer_somewhere = mixer_somewhere || mixer;
        product_somewhere = product_somewhere || product;
        both = both || (mixer && product);
      }
      if (!both && mixer_somewhere && product_somewhere && lanes.size() > 1) {
        Lane& all = joined_.emplace_back();
        all.device = device;
        for (const Lane* lane : lanes)
          all.kernels.insert(all.kernels.end(), lane->kernels.begin(),
                             lane->kernels.end());
        SortByStart(trace_, all.kernels);
        order.push_back(&all);
        continue;
      }
      std::ranges::stable_sort(lanes, [&](const Lane* a, const Lane* b) {
        return rank.at(a) > rank.at(b);
      });
      order.insert(order.end(), lanes.begin(), lanes.end());
    }
    return order;
  }

  // Ends of host calls that wait for a device, in order.
  const std::vector<int64_t>& Waits() {
    if (waits_known_) return waits_;
    waits_known_ = true;
    std::vector<int8_t> waits(trace_.strings.size(), -1);
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      if (!trace::IsApiCall(trace_.slices.kind[i])) continue;
      int8_t& is = waits[trace_.slices.name[i].value];
      if (is < 0) {
        const std::string_view name = trace_.Name(SliceId(i));
        is = Contains(name, "Synchronize") || name == "cudaMemcpy" ||
             name == "hipMemcpy" || Contains(name, "hipMemcpyWithStream");
      }
      if (is > 0) waits_.push_back(trace_.End(SliceId(i)));
    }
    std::ranges::sort(waits_);
    return waits_;
  }

  // Counts how well a run agrees with the layers of modules, where most of it
  // is in such.
  void Check(const Lane& lane, const Structure& structure, const StackRun& run,
             LayerModel::Check& check) const {
    size_t taken = 0;
    std::set<uint32_t> layers;
    const uint32_t begin = structure.layers[run.begin].begin;
    const uint32_t end = structure.layers[run.end - 1].end;
    for (uint32_t i = begin; i < end; ++i) {
      const uint32_t layer = layer_of_[lane.kernels[i].value];
      if (layer == kNone) continue;
      ++taken;
      layers.insert(layer);
    }
    if (2 * taken <= end - begin) return;
    check.by_repeat += run.end - run.begin;
    check.by_module += layers.size();
    for (size_t l = run.begin; l < run.end; ++l)
      Compare(lane, structure.layers[l].begin, check.equal, check.near);
  }

  // Which stacks of a stream are layers, by stack.
  std::vector<bool> Believed(const Lane& lane, const LaneView& view,
                             const Structure& structure,
                             const std::vector<StackRun>& runs) const {
    int64_t lane_ns = 0;
    for (const SliceId s : lane.kernels) lane_ns += trace_.Duration(s);
    size_t count = 0;
    for (const StackRun& run : runs)
      count = std::max<size_t>(count, run.stack + 1);
    std::vector<StackFacts> facts(count);
    for (const StackRun& run : runs) {
      StackFacts& f = facts[run.stack];
      ++f.runs;
      f.longest = std::max(f.longest, run.end - run.begin);
      for (size_t l = run.begin; l < run.end; ++l)
        AddFacts(lane, view, structure.layers[l], f);
    }
    std::vector<bool> believed(count);
    for (size_t s = 0; s < count; ++s)
      believed[s] = IsBelieved(facts[s], lane_ns);
    return believed;
  }

  struct StackFacts {
    size_t runs = 0;
    size_t longest = 0;  // layers of a run
    size_t layers = 0;
    size_t mixers = 0;  // layers that hold one
    size_t norms = 0;
    size_t products = 0;
    size_t backward = 0;
    size_t convolutions = 0;
    size_t inside = 0;  // that start during layers of another stream
    size_t free = 0;    // in no layer of a module
    int64_t ns = 0;
  };

  void AddFacts(const Lane& lane, const LaneView& view, const Found& layer,
                StackFacts& f) const {
    uint16_t marks = 0;
    bool free = true;
    for (uint32_t i = layer.begin; i < layer.end; ++i) {
      marks |= view.marks[i];
      f.ns += trace_.Duration(lane.kernels[i]);
      free = free && layer_of_[lane.kernels[i].value] == kNone;
    }
    ++f.layers;
    f.mixers += (marks & kAttentionMark) != 0;
    f.norms += (marks & (kNormMark | kMaybeNormMark)) != 0;
    f.products += (marks & kGemmMark) != 0;
    f.backward += (marks & kBackwardMark) != 0;
    f.convolutions += (marks & kConvMark) != 0;
    f.free += free;
    f.inside +=
        InsideLayers(lane.device, trace_.Start(lane.kernels[layer.begin]));
  }

  // Whether a time lies in a layer that was taken on another stream.
  bool InsideLayers(int64_t device, int64_t time) const {
    const auto spans = taken_.find(device);
    if (spans == taken_.end()) return false;
    const auto after = spans->second.upper_bound(time);
    return after != spans->second.begin() && std::prev(after)->second > time;
  }

  bool IsBelieved(const StackFacts& f, int64_t lane_ns) const {
    if (f.free == 0) return false;
    const bool mixers = 2 * f.mixers >= f.layers;
    // A stream that helps: its work stands in the layers of another.
    if (!mixers && 2 * f.inside >= f.layers) return false;
    // Copies over passes are copies.
    const size_t least = std::min<size_t>(options_.min_layers, 3);
    const bool enough =
        f.longest >= options_.min_layers ||
        (options_.min_layers <= 3 && f.runs >= 2 && f.layers >= least);
    if (!enough) return false;
    if (mixers) return 2 * (f.norms + f.products) >= f.layers || f.longest >= 3;
    if (2 * f.convolutions >= f.layers) return false;
    // One copy in every pass that holds no mixer is a pass.
    if (f.longest < 2) return false;
    if (2 * f.norms >= f.layers && 2 * f.products >= f.layers) return true;
    return static_cast<double>(f.ns) >=
           kLoopShare * static_cast<double>(lane_ns);
  }

  void Take(const Lane& lane, const LaneView& view, const Structure& structure,
            const std::vector<PassCut>& cuts, const StackRun& run) {
    const uint32_t stack = StackOf(view, structure, run);
    ++runs_;
    bool begins = cuts[run.begin].cut() || run.begin == 0;
    for (size_t l = run.begin; l < run.end; ++l) {
      const Found& found = structure.layers[l];
      // What the modules leave: a pass whose host side was not recorded.
      if (!Free(lane, found)) continue;
      const auto number = static_cast<uint32_t>(model_.layers.size());
      Layer& layer = model_.layers.emplace_back();
      layer.stack = stack;
      layer.exact = found.exact;
      layer.run = runs_;
      layer.begins_pass = begins;
      layer.evidence = cuts[run.begin].evidence;
      begins = false;
      // Stray kernels between two layers of a run belong to the first.
      const uint32_t end =
          l + 1 < run.end ? structure.layers[l + 1].begin : found.end;
      for (uint32_t i = found.begin; i < end; ++i) {
        if (layer_of_[lane.kernels[i].value] == kNone)
          Give(lane.kernels[i], number);
      }
      auto& spans = taken_[lane.device];
      const int64_t last = trace_.End(lane.kernels[end - 1]);
      int64_t& until =
          spans.try_emplace(trace_.Start(lane.kernels[found.begin]), last)
              .first->second;
      until = std::max(until, last);
    }
  }

  // The stack of a run: one of another stream or device is the same where its
  // layers are alike and equally many.
  uint32_t StackOf(const LaneView& view, const Structure& structure,
                   const StackRun& run) {
    const std::pair key(lane_, run.stack);
    const auto known = stack_of_run_.find(key);
    if (known != stack_of_run_.end()) return known->second;
    const Found& found = structure.layers[run.typical];
    const std::vector<uint32_t> unit(view.ids.begin() + found.begin,
                                     view.ids.begin() + found.end);
    for (const KnownStack& other : known_stacks_) {
      if (other.lane == lane_ || other.length != run.usual) continue;
      const auto limit = static_cast<uint32_t>(
          kReadTolerance *
          static_cast<double>(std::max(unit.size(), other.unit.size())));
      if (EditDistance(unit, other.unit, limit) > limit) continue;
      stack_of_run_[key] = other.stack;
      return other.stack;
    }
    const auto stack = static_cast<uint32_t>(model_.stacks.size());
    const Structure::Family& family = structure.of_family[found.family];
    StackInfo info;
    info.name = "stack" + std::to_string(stack);
    info.period = family.period;
    info.per_unit = family.per_unit;
    info.boundary = family.at_norm ? "norm" : "none";
    info.by_roles = family.by_roles;
    model_.stacks.push_back(std::move(info));
    stack_of_run_[key] = stack;
    known_stacks_.push_back({lane_, stack, run.usual, unit});
    return stack;
  }

  // --- names ---

  std::vector<ClassicLayer> CutByNames(const Lane& lane, Labels& names) const {
    std::vector<ClassicKernel> kernels;
    kernels.reserve(lane.kernels.size());
    for (const SliceId s : lane.kernels) kernels.push_back(names.Kernel(s));
    ClassicOptions cut;
    cut.need_all_reduce = options_.detector == Detector::kClassic &&
                          options_.profile == Profile::kClassic;
    cut.split_half_layers = options_.split_half_layers;
    return CutLayers(kernels, cut);
  }

  // Kernels of the middle one of the complete layers by length; 0 without any.
  static uint32_t UsualLength(const std::vector<ClassicLayer>& layers) {
    std::vector<uint32_t> sizes;
    for (const ClassicLayer& l : layers) {
      if (l.complete()) sizes.push_back(l.end - l.begin);
    }
    if (sizes.empty()) return 0;
    const auto middle =
        sizes.begin() + static_cast<ptrdiff_t>(sizes.size() / 2);
    std::ranges::nth_element(sizes, middle);
    return *middle;
  }

  // Layers begin at norms. Where nobody asked for it, only what holds
  // attention and a feed-forward part is believed to be one, and the last layer
  // of a pass, which has no norm behind it, only where it is not much longer.
  void ByNames(const Lane& lane) {
    std::vector<ClassicLayer> layers = CutByNames(lane, names_);
    const bool asked = options_.detector == Detector::kClassic;
    if (!asked) {
      std::erase_if(layers, [](const ClassicLayer& l) {
        return !l.attention || !(l.fc || l.moe);
      });
      if (layers.size() < options_.min_layers) return;
      const uint32_t usual = UsualLength(layers);
      const uint32_t most = usual + usual / 2;
      std::erase_if(layers, [&](const ClassicLayer& l) {
        return l.end - l.begin > most;
      });
      if (layers.size() < options_.min_layers) return;
    }
    if (layers.empty()) return;
    const auto stack = static_cast<uint32_t>(model_.stacks.size());
    StackInfo info;
    info.name = "stack" + std::to_string(stack);
    info.boundary = "norm";
    info.by_names = true;
    info.period = UsualLength(layers);
    model_.stacks.push_back(std::move(info));
    const std::vector<PassCut> cuts = CutsByNames(lane, layers);
    bool begins = true;
    for (size_t i = 0; i < layers.size(); ++i) {
      const ClassicLayer& found = layers[i];
      const bool gap = i > 0 && 2 * (found.begin - layers[i - 1].end) >=
                                    found.end - found.begin;
      const auto own = static_cast<uint32_t>(model_.layers.size());
      Layer layer;
      layer.stack = stack;
      layer.begins_pass = begins || gap || cuts[i].cut();
      layer.evidence = cuts[i].evidence;
      begins = false;
      if (layer.begins_pass) ++runs_;
      layer.run = runs_;
      layer.type = found.type();
      if (asked) layer.stage = found.stage;
      model_.layers.push_back(std::move(layer));
      for (uint32_t k = found.begin; k < found.end; ++k)
        Give(lane.kernels[k], own);
    }
  }

  // Where passes begin between layers that norms make. A layer there reaches up
  // to the next one, over the head and the sampling that end a pass; only its
  // part before those is held against them. What is no complete layer begins no
  // pass.
  std::vector<PassCut> CutsByNames(const Lane& lane,
                                   const std::vector<ClassicLayer>& layers) {
    const LaneView view = ViewOf(context_, labels_, lane);
    Structure structure;
    std::vector<size_t> of;
    for (size_t i = 0; i < layers.size(); ++i) {
      if (!layers[i].complete()) continue;
      uint32_t end = layers[i].begin + 1;
      while (end < layers[i].end && (view.marks[end] & kEdgeMark) == 0 &&
             view.cuts[end] == CutBy::kNothing)
        ++end;
      structure.layers.push_back({layers[i].begin, end, 0, 0, true});
      of.push_back(i);
    }
    const std::vector<PassCut> own =
        FindPassCuts(context_, lane, view, structure, Waits());
    std::vector<PassCut> cuts(layers.size());
    // The first complete layer goes on with what stands before it.
    for (size_t i = 1; i < of.size(); ++i) cuts[of[i]] = own[i];
    return cuts;
  }

  bool Free(const Lane& lane, const Found& layer) const {
    for (uint32_t i = layer.begin; i < layer.end; ++i) {
      if (layer_of_[lane.kernels[i].value] != kNone) return false;
    }
    return true;
  }

  // Whether a layer of the modules begins at or near a boundary.
  void Compare(const Lane& lane, uint32_t at, size_t& equal,
               size_t& near) const {
    const auto begins = [&](int64_t i) {
      if (i < 0 || i >= static_cast<int64_t>(lane.kernels.size())) return false;
      const uint32_t own =
          layer_of_[lane.kernels[static_cast<size_t>(i)].value];
      return own != kNone &&
             (i == 0 ||
              layer_of_[lane.kernels[static_cast<size_t>(i - 1)].value] != own);
    };
    if (begins(at)) ++equal;
    for (int64_t away = -2; away <= 2; ++away) {
      if (begins(static_cast<int64_t>(at) + away)) {
        ++near;
        return;
      }
    }
  }

  const Context& context_;
  const Trace& trace_;
  Labels& labels_;  // by our own tables
  Labels& names_;   // by those of the profile asked for
  const Options& options_;
  LayerModel model_;
  std::vector<Lane> lanes_;
  std::deque<Lane> joined_;
  std::vector<uint32_t> layer_of_;  // by slice
  uint32_t runs_ = 0;
  bool waits_known_ = false;
  std::vector<int64_t> waits_;
  // By device: begin and end of the layers taken.
  std::map<int64_t, std::map<int64_t, int64_t>> taken_;
  struct KnownStack {
    uint32_t lane = 0;
    uint32_t stack = 0;
    size_t length = 0;
    std::vector<uint32_t> unit;
  };
  std::vector<KnownStack> known_stacks_;
  // Of a lane, and its stack there.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> stack_of_run_;
  uint32_t lane_ = 0;
};

}  // namespace

Result<LayerModel> LayerModel::Of(const Context& context) {
  LAMINA_ASSIGN(const LayerRules* const known, context.Get<LayerRules>());
  return FindLayers(context, *known->rules, {});
}

LayerModel FindLayers(const Context& context, const Rules& rules,
                      const Options& options) {
  Labels labels(context, rules, Profile::kDefault, std::nullopt);
  Labels names(context, rules, options.profile, options.grid_threshold);
  return Finder(context, labels, names, options).Run();
}

}  // namespace lamina::analysis::layers
