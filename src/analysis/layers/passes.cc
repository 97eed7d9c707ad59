// SPDX-License-Identifier: Apache-2.0
//
// Parts the layers of a trace into forward passes.
#include "analysis/layers/passes.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/layers/outside.h"
#include "analysis/layers/stages.h"

namespace lamina::analysis::layers {
namespace {

// Share of the time of a stack below which a stream is beside it.
constexpr double kBeside = 0.05;

class PassMaker {
 public:
  PassMaker(const Context& context, const std::vector<uint32_t>& layer_of,
            LayerModel& model)
      : context_(context),
        trace_(context.trace),
        layer_of_(layer_of),
        model_(model) {}

  void Run() {
    // Layers in time order; a pass ends where there is evidence, when a stack
    // that it has begins again, or when the step changes. What two streams do
    // at the same time are passes of their own.
    using Group = std::pair<int64_t, uint32_t>;  // device, stream
    std::map<Group, std::vector<uint32_t>> groups;
    for (uint32_t i = 0; i < model_.layers.size(); ++i) {
      const SliceId first = model_.layers[i].work[0];
      groups[{DeviceOf(trace_, first), StreamOf(model_.layers[i])}].push_back(
          i);
    }
    for (const SliceId s : trace_.device_slices()) {
      const int64_t device = DeviceOf(trace_, s);
      const auto it = groups.lower_bound({device, 0});
      if (it == groups.end() || it->first.first != device) groups[{device, 0}];
    }
    std::map<int64_t, std::vector<std::vector<uint32_t>>> by_device;
    for (auto& [group, layers] : groups)
      by_device[group.first].push_back(std::move(layers));
    for (auto& [device, lists] : by_device) {
      JoinApart(lists);
      const size_t first_pass = model_.passes.size();
      for (const auto& layers : lists) GroupPasses(device, layers);
      std::stable_sort(
          model_.passes.begin() + static_cast<ptrdiff_t>(first_pass),
          model_.passes.end(), [&](const Pass& a, const Pass& b) {
            return StartOf(a.layers[0]) < StartOf(b.layers[0]);
          });
      for (size_t p = first_pass; p < model_.passes.size(); ++p) {
        for (const uint32_t l : model_.passes[p].layers)
          model_.layers[l].pass = static_cast<uint32_t>(p);
      }
      PlaceOutside(context_, layer_of_, device, first_pass, model_);
    }
    for (Pass& pass : model_.passes) {
      std::map<uint32_t, uint32_t> next;
      for (const uint32_t l : pass.layers)
        model_.layers[l].index = next[model_.layers[l].stack]++;
    }
    MarkCut();
    Variants();
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Where a slice belongs by annotation; kOutside if there is none.
  uint32_t StepOf(SliceId s) const { return context_.steps.StepOf(s); }
  int64_t StartOf(uint32_t layer) const {
    return trace_.Start(model_.layers[layer].work[0]);
  }
  int64_t EndOf(uint32_t layer) const {
    return trace_.End(model_.layers[layer].work.back());
  }

  // The stream of a layer that a repeat found; 0 for those of modules, which
  // may use several.
  uint32_t StreamOf(const Layer& layer) const {
    if (!layer.module.empty()) return 0;
    for (const SliceId s : layer.work) {
      const trace::DeviceArgs* args = trace_.Device(s);
      if (trace_.KindOf(s) == trace::Kind::kKernel && args != nullptr)
        return args->lane.value + 1;
    }
    return 0;
  }

  // Streams that hardly work at the same time do one thing after the other:
  // their layers are one list.
  void JoinApart(std::vector<std::vector<uint32_t>>& lists) const {
    for (size_t a = 0; a < lists.size(); ++a) {
      for (size_t b = a + 1; b < lists.size();) {
        size_t both = 0;
        size_t i = 0;
        size_t j = 0;
        while (i < lists[a].size() && j < lists[b].size()) {
          const bool first = EndOf(lists[a][i]) < EndOf(lists[b][j]);
          both += std::max(StartOf(lists[a][i]), StartOf(lists[b][j])) <
                  std::min(EndOf(lists[a][i]), EndOf(lists[b][j]));
          (first ? i : j) += 1;
        }
        if (5 * both >= std::min(lists[a].size(), lists[b].size()) &&
            !lists[a].empty() && !lists[b].empty()) {
          ++b;
          continue;
        }
        lists[a].insert(lists[a].end(), lists[b].begin(), lists[b].end());
        std::ranges::sort(lists[a]);  // layers are numbered by start
        lists.erase(lists.begin() + static_cast<ptrdiff_t>(b));
      }
    }
  }

  void GroupPasses(int64_t device, const std::vector<uint32_t>& layers) {
    std::set<uint32_t> closed;  // stacks of this pass that have ended
    uint32_t current = kNone;   // stack that is running
    uint32_t run = kNone;
    uint32_t step = kNone;
    std::set<std::string> modules;
    bool first = true;
    for (const uint32_t l : layers) {
      Layer& layer = model_.layers[l];
      const uint32_t own_step = StepOf(layer.work[0]);
      const bool by_module =
          !layer.module.empty() && modules.contains(layer.module);
      // A stack that the pass has, in another run of layers.
      const bool by_stack =
          (current != layer.stack && closed.contains(layer.stack)) ||
          (current == layer.stack && layer.module.empty() && run != layer.run);
      const bool by_step = own_step != step;
      const bool by_cut = layer.begins_pass && current == layer.stack;
      if (first || by_step || by_module || by_stack || by_cut ||
          (layer.begins_pass && HardCut(layer))) {
        Pass pass;
        pass.device = device;
        if (own_step != tree::Steps::kOutside)
          pass.annotation = trace_.Name(context_.steps.steps()[own_step].slice);
        if (first) {
          pass.begins = "-";
        } else {
          pass.begins = layer.evidence;
          const auto also = [&](bool is, std::string_view what) {
            if (!is || pass.begins.find(what) != std::string::npos) return;
            pass.begins = pass.begins.empty()
                              ? std::string(what)
                              : std::string(what) + ", " + pass.begins;
          };
          also(by_stack, "stack");
          also(by_module, "module");
          also(by_step, "step");
        }
        model_.passes.push_back(std::move(pass));
        closed.clear();
        modules.clear();
        current = kNone;
      }
      first = false;
      step = own_step;
      if (current != kNone && current != layer.stack) closed.insert(current);
      current = layer.stack;
      run = layer.run;
      if (!layer.module.empty()) modules.insert(layer.module);
      model_.passes.back().layers.push_back(l);
    }
  }

  // Another graph launch begins a pass whatever stack it holds; other evidence
  // may stand between two stacks of one pass: an encoder and its decoder.
  static bool HardCut(const Layer& layer) {
    return layer.evidence.find("graph") != std::string::npos;
  }

  // A first or last pass of a device with fewer layers of a stack than other
  // passes have was cut by the recording.
  void MarkCut() {
    std::map<uint32_t, size_t> most;  // by stack
    std::vector<std::map<uint32_t, size_t>> own(model_.passes.size());
    for (size_t p = 0; p < own.size(); ++p) {
      for (const uint32_t l : model_.passes[p].layers)
        ++own[p][model_.layers[l].stack];
      for (const auto& [stack, layers] : own[p])
        most[stack] = std::max(most[stack], layers);
    }
    std::map<int64_t, std::pair<size_t, size_t>> ends;
    for (size_t p = 0; p < own.size(); ++p) {
      ends.try_emplace(model_.passes[p].device, p, p).first->second.second = p;
    }
    for (const auto& [device, range] : ends) {
      for (const size_t p : {range.first, range.second}) {
        model_.passes[p].cut = std::ranges::any_of(
            own[p], [&](const auto& s) { return s.second < most.at(s.first); });
      }
    }
  }

  // Streams, by stack, that have little of the time of its layers: what runs
  // there beside them stands now in one layer, now in the next, and makes no
  // kind of layer.
  std::set<std::pair<uint32_t, uint32_t>> StreamsBeside() const {
    std::map<uint32_t, std::map<uint32_t, int64_t>> times;
    for (const Layer& layer : model_.layers) {
      for (const SliceId s : layer.work)
        times[layer.stack][StreamOf(s)] += trace_.Duration(s);
    }
    std::set<std::pair<uint32_t, uint32_t>> beside;
    for (const auto& [stack, streams] : times) {
      int64_t all = 0;
      for (const auto& [stream, ns] : streams) all += ns;
      for (const auto& [stream, ns] : streams) {
        if (static_cast<double>(ns) < kBeside * static_cast<double>(all))
          beside.emplace(stack, stream);
      }
    }
    return beside;
  }
  uint32_t StreamOf(SliceId s) const {
    const trace::DeviceArgs* const args = trace_.Device(s);
    return args == nullptr ? UINT32_MAX : args->lane.value;
  }

  void Variants() {
    const auto beside = StreamsBeside();
    std::map<uint32_t, std::map<std::vector<uint32_t>, uint32_t>> known;
    for (Layer& layer : model_.layers) {
      std::vector<uint32_t> names;
      for (const SliceId s : layer.work) {
        if (trace_.KindOf(s) == trace::Kind::kKernel &&
            !beside.contains({layer.stack, StreamOf(s)}))
          names.push_back(trace_.slices.name[s.value].value);
      }
      auto& variants = known[layer.stack];
      const auto [it, is_new] =
          variants.try_emplace(names, static_cast<uint32_t>(variants.size()));
      layer.variant = it->second;
      StackInfo& info = model_.stacks[layer.stack];
      if (info.period == 0) info.period = static_cast<uint32_t>(names.size());
    }
  }

  const Context& context_;
  const Trace& trace_;
  const std::vector<uint32_t>& layer_of_;
  LayerModel& model_;
};

}  // namespace

SliceId FirstOf(const LayerModel& model, const Pass& pass) {
  return pass.layers.empty() ? pass.outside.front()
                             : model.layers[pass.layers.front()].work[0];
}

SliceId LastOf(const LayerModel& model, const Pass& pass) {
  return pass.layers.empty() ? pass.outside.back()
                             : model.layers[pass.layers.back()].work[0];
}

void MakeStepPasses(const Context& context, LayerModel& model) {
  if (!model.layers.empty()) return;
  std::map<std::pair<int64_t, uint32_t>, Pass> passes;  // device, step
  std::vector<SliceId> no_pass;
  bool any = false;
  for (const SliceId s : context.trace.device_slices()) {
    const uint32_t step = context.steps.StepOf(s);
    if (step == tree::Steps::kOutside) {
      no_pass.push_back(s);
      continue;
    }
    const int64_t device = DeviceOf(context.trace, s);
    const auto [it, is_new] = passes.try_emplace({device, step});
    Pass& pass = it->second;
    if (is_new) {
      pass.device = device;
      pass.annotation = context.trace.Name(context.steps.steps()[step].slice);
      pass.begins = "step";
      Pass said = pass;
      any |= ReadStage(said);
    }
    pass.outside.push_back(s);
  }
  // Steps that say no stage are no passes of a model.
  if (!any) return;
  model.no_pass = std::move(no_pass);
  model.passes.clear();
  for (auto& [key, pass] : passes) model.passes.push_back(std::move(pass));
  std::stable_sort(model.passes.begin(), model.passes.end(),
                   [&](const Pass& a, const Pass& b) {
                     return context.trace.Start(a.outside[0]) <
                            context.trace.Start(b.outside[0]);
                   });
}

void MakePasses(const Context& context, const std::vector<uint32_t>& layer_of,
                LayerModel& model) {
  PassMaker(context, layer_of, model).Run();
}

}  // namespace lamina::analysis::layers
