// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "analysis/layers/attach.h"
#include "analysis/layers/classic.h"
#include "analysis/layers/labels.h"
#include "analysis/layers/module_stacks.h"
#include "analysis/layers/passes.h"
#include "analysis/layers/repeats.h"
#include "analysis/layers/stages.h"
#include "trace/module_frames.h"

namespace lamina::analysis::layers {
namespace {

using tree::ModuleCallId;
using tree::ModulePathId;

// One occurrence of a stack: its layers follow each other.
struct Occurrence {
  uint32_t stack = 0;
  std::vector<uint32_t> layers;
};

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
      for (const Lane& lane : lanes_) ByRepeats(lane);
      if (model_.layers.empty() && options_.detector == Detector::kAuto) {
        for (const Lane& lane : lanes_) ByNames(lane);
      }
    }
    SortLayers(trace_, layer_of_, model_);
    AttachOthers(trace_, lanes_, layer_of_, model_);
    MakePasses(context_, lanes_, layer_of_, model_);
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
    std::vector<uint32_t> ids;
    int64_t lane_ns = 0;
    for (const SliceId s : lane.kernels) {
      ids.push_back(trace_.slices.name[s.value].value);
      lane_ns += trace_.Duration(s);
    }
    StackOptions options;
    options.min_layers = options_.min_layers;
    const std::vector<uint8_t> marks = MarksOf(context_, labels_, lane);
    std::vector<Stack> stacks = FindStacks(ids, marks, options);
    AddFaintStacks(ids, marks, options, stacks);
    std::map<uint32_t, uint32_t> stack_of_kind;
    LayerModel::Check check;
    for (const Stack& stack : stacks) {
      Check(lane, stack, check);
      if (options_.detector == Detector::kModule) continue;
      // What the modules leave: a pass whose host side was not recorded.
      std::vector<Piece> free;
      for (const Piece& piece : stack.pieces) {
        if (Free(lane, piece)) free.push_back(piece);
      }
      if (free.size() < options_.min_layers) continue;
      if (LooksLikeLayers(lane, marks, stack, lane_ns) && !AreSteps(lane, free))
        Take(lane, stack, free, stack_of_kind);
    }
    if (check.by_module + check.by_repeat == 0) return;
    check.name = "device " + std::to_string(lane.device);
    check.by_names = CutByNames(lane, names_).size();
    model_.checks.push_back(std::move(check));
  }

  // Counts how well a stack agrees with the layers of modules, where most of it
  // is in such.
  void Check(const Lane& lane, const Stack& stack,
             LayerModel::Check& check) const {
    size_t taken = 0;
    std::set<uint32_t> layers;
    for (uint32_t i = stack.begin(); i < stack.end(); ++i) {
      const uint32_t layer = layer_of_[lane.kernels[i].value];
      if (layer == kNone) continue;
      ++taken;
      layers.insert(layer);
    }
    if (2 * taken <= stack.end() - stack.begin()) return;
    check.by_repeat += stack.pieces.size();
    check.by_module += layers.size();
    for (const Piece& piece : stack.pieces)
      Compare(lane, piece.begin, check.equal, check.near);
  }

  void Take(const Lane& lane, const Stack& stack,
            const std::vector<Piece>& pieces,
            std::map<uint32_t, uint32_t>& stack_of_kind) {
    const auto [it, is_new] = stack_of_kind.try_emplace(
        stack.kind, static_cast<uint32_t>(model_.stacks.size()));
    if (is_new) {
      StackInfo info;
      info.name = "stack" + std::to_string(model_.stacks.size());
      info.period = stack.period;
      info.per_unit = stack.per_unit;
      info.boundary = stack.at_norm ? "norm" : "none";
      model_.stacks.push_back(std::move(info));
    }
    ++runs_;
    for (const Piece& piece : pieces) {
      const auto number = static_cast<uint32_t>(model_.layers.size());
      Layer& layer = model_.layers.emplace_back();
      layer.stack = it->second;
      layer.exact = piece.exact;
      layer.run = runs_;
      for (uint32_t i = piece.begin; i < piece.end; ++i)
        Give(lane.kernels[i], number);
    }
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
      std::vector<uint32_t> sizes;
      for (const ClassicLayer& l : layers) sizes.push_back(l.end - l.begin);
      const auto middle =
          sizes.begin() + static_cast<ptrdiff_t>(sizes.size() / 2);
      std::ranges::nth_element(sizes, middle);
      const uint32_t most = *middle + *middle / 2;
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
    model_.stacks.push_back(std::move(info));
    for (const ClassicLayer& found : layers) {
      const auto number = static_cast<uint32_t>(model_.layers.size());
      Layer layer;
      layer.stack = stack;
      layer.type = found.type();
      if (asked) layer.stage = StageName(found.stage);
      model_.layers.push_back(std::move(layer));
      for (uint32_t i = found.begin; i < found.end; ++i)
        Give(lane.kernels[i], number);
    }
  }

  // A loop without norm and attention that takes little of the time is no
  // stack of layers: three equal convolutions in a row, an optimizer's updates.
  bool LooksLikeLayers(const Lane& lane, const std::vector<uint8_t>& marks,
                       const Stack& stack, int64_t lane_ns) const {
    int64_t inside = 0;
    for (uint32_t i = stack.begin(); i < stack.end(); ++i) {
      if ((marks[i] & (kNormMark | kMaybeNormMark | kAttentionMark)) != 0)
        return true;
      inside += trace_.Duration(lane.kernels[i]);
    }
    return static_cast<double>(inside) >=
           kLoopShare * static_cast<double>(lane_ns);
  }

  // Copies that are steps of their own are iterations, not layers.
  bool AreSteps(const Lane& lane, const std::vector<Piece>& pieces) const {
    size_t changes = 0;
    for (size_t i = 1; i < pieces.size(); ++i) {
      const uint32_t a = StepOf(lane.kernels[pieces[i - 1].begin]);
      const uint32_t b = StepOf(lane.kernels[pieces[i].begin]);
      changes += a != b;
    }
    return 2 * changes >= pieces.size();
  }

  bool Free(const Lane& lane, const Piece& piece) const {
    for (uint32_t i = piece.begin; i < piece.end; ++i) {
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

  // The step that an annotation puts a slice in; kOutside if there is none.
  uint32_t StepOf(SliceId s) const { return context_.steps.StepOf(s); }

  const Context& context_;
  const Trace& trace_;
  Labels& labels_;  // by our own tables
  Labels& names_;   // by those of the profile asked for
  const Options& options_;
  LayerModel model_;
  std::vector<Lane> lanes_;
  std::vector<uint32_t> layer_of_;  // by slice
  uint32_t runs_ = 0;
};

}  // namespace

LayerModel FindLayers(const Context& context, const Rules& rules,
                      const Options& options) {
  Labels labels(context, rules, Profile::kDefault, std::nullopt);
  Labels names(context, rules, options.profile, options.grid_threshold);
  return Finder(context, labels, names, options).Run();
}

}  // namespace lamina::analysis::layers
