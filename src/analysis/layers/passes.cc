// SPDX-License-Identifier: Apache-2.0
//
// Parts the layers of a trace into forward passes.
#include "analysis/layers/passes.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/layers/outside.h"

namespace lamina::analysis::layers {
namespace {

class PassMaker {
 public:
  PassMaker(const Context& context, const std::vector<Lane>& lanes,
            const std::vector<uint32_t>& layer_of, LayerModel& model)
      : context_(context),
        trace_(context.trace),
        lanes_(lanes),
        layer_of_(layer_of),
        model_(model) {}

  void Run() {
    // Layers in time order; a pass ends when a stack that it has begins again
    // or the step changes.
    std::map<int64_t, std::vector<uint32_t>> by_device;
    for (uint32_t i = 0; i < model_.layers.size(); ++i)
      by_device[DeviceOf(trace_, model_.layers[i].work[0])].push_back(i);
    for (const SliceId s : trace_.device_slices())
      by_device[DeviceOf(trace_, s)];
    for (const auto& [device, layers] : by_device) DevicePasses(device, layers);
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

  void DevicePasses(int64_t device, const std::vector<uint32_t>& layers) {
    const size_t first_pass = model_.passes.size();
    CountEntries(layers);
    std::set<uint32_t> closed;  // stacks of this pass that have ended
    uint32_t current = kNone;   // stack that is running
    uint32_t step = kNone;
    std::set<std::string> modules;
    for (const uint32_t l : layers) {
      Layer& layer = model_.layers[l];
      const uint32_t own_step = StepOf(layer.work[0]);
      const bool again =
          (current != layer.stack && closed.contains(layer.stack)) ||
          (!layer.module.empty() && modules.contains(layer.module)) ||
          Apart(current == layer.stack && current != kNone, l);
      if (model_.passes.size() == first_pass || own_step != step || again) {
        Pass pass;
        pass.device = device;
        if (own_step != tree::Steps::kOutside)
          pass.annotation = trace_.Name(context_.steps.steps()[own_step].slice);
        model_.passes.push_back(std::move(pass));
        closed.clear();
        modules.clear();
        current = kNone;
      }
      step = own_step;
      if (current != kNone && current != layer.stack) closed.insert(current);
      current = layer.stack;
      if (!layer.module.empty()) modules.insert(layer.module);
      model_.passes.back().layers.push_back(l);
      layer.pass = static_cast<uint32_t>(model_.passes.size() - 1);
      previous_ = l;
    }
    PlaceOutside(context_, layer_of_, device, first_pass, model_);
  }

  // Layers of one stack found by repeats follow each other without a gap. A gap
  // of half a layer or more begins another pass, and so does a smaller one that
  // ends in the kernel that stands before most runs of the stack.
  bool Apart(bool same_stack, uint32_t l) const {
    if (!same_stack || !model_.layers[l].module.empty() ||
        !model_.layers[previous_].module.empty())
      return false;
    const Layer& before = model_.layers[previous_];
    const Layer& layer = model_.layers[l];
    // Kernels between them, counted on the stream of the layer.
    SliceId last = before.work.back();
    for (const SliceId s : before.work) {
      if (trace_.KindOf(s) == trace::Kind::kKernel) last = s;
    }
    const auto between = Position(layer.work[0]) - Position(last) - 1;
    if (between * 2 >= static_cast<int64_t>(layer.work.size())) return true;
    if (layer.run == before.run || between <= 0) return false;
    const auto entries = entries_.find({layer.stack, EntryOf(layer)});
    return entries != entries_.end() && entries->second >= 2 &&
           2 * entries->second >= runs_.at(layer.stack);
  }

  // Counts the kernels that stand before the runs of every stack.
  void CountEntries(const std::vector<uint32_t>& layers) {
    std::set<uint32_t> seen;
    for (const uint32_t l : layers) {
      const Layer& layer = model_.layers[l];
      if (!layer.module.empty() || !seen.insert(layer.run).second) continue;
      ++entries_[{layer.stack, EntryOf(layer)}];
      ++runs_[layer.stack];
    }
  }

  // Name of the kernel before a layer on its stream.
  StringId EntryOf(const Layer& layer) const {
    const auto at = Position(layer.work[0]);
    if (at == 0) return {};
    return trace_.slices
        .name[LaneOf(layer.work[0])[static_cast<size_t>(at - 1)].value];
  }

  // Place of a kernel on its stream.
  ptrdiff_t Position(SliceId s) const {
    const auto& kernels = LaneOf(s);
    return std::lower_bound(kernels.begin(), kernels.end(), s,
                            [&](SliceId a, SliceId b) {
                              return trace_.Start(a) != trace_.Start(b)
                                         ? trace_.Start(a) < trace_.Start(b)
                                         : a < b;
                            }) -
           kernels.begin();
  }

  const std::vector<SliceId>& LaneOf(SliceId s) const {
    const trace::DeviceArgs* args = trace_.Device(s);
    for (const Lane& lane : lanes_) {
      const trace::DeviceArgs* other = trace_.Device(lane.kernels[0]);
      if (lane.device == DeviceOf(trace_, s) && args != nullptr &&
          other != nullptr && other->lane == args->lane)
        return lane.kernels;
    }
    return lanes_[0].kernels;
  }

  // A first or last pass of a device with fewer layers than the others was
  // cut by the recording.
  void MarkCut() {
    std::map<int64_t, std::vector<Pass*>> by_device;
    for (Pass& pass : model_.passes) by_device[pass.device].push_back(&pass);
    for (const auto& [device, passes] : by_device) {
      size_t most = 0;
      for (const Pass* pass : passes)
        most = std::max(most, pass->layers.size());
      for (Pass* pass : {passes.front(), passes.back()})
        pass->cut = pass->layers.size() < most;
    }
  }

  void Variants() {
    std::map<uint32_t, std::map<std::vector<uint32_t>, uint32_t>> known;
    for (Layer& layer : model_.layers) {
      std::vector<uint32_t> names;
      for (const SliceId s : layer.work) {
        if (trace_.KindOf(s) == trace::Kind::kKernel)
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
  const std::vector<Lane>& lanes_;
  const std::vector<uint32_t>& layer_of_;
  LayerModel& model_;
  std::map<std::pair<uint32_t, StringId>, uint32_t> entries_;
  std::map<uint32_t, uint32_t> runs_;  // by stack
  uint32_t previous_ = 0;
};

}  // namespace

void MakePasses(const Context& context, const std::vector<Lane>& lanes,
                const std::vector<uint32_t>& layer_of, LayerModel& model) {
  PassMaker(context, lanes, layer_of, model).Run();
}

}  // namespace lamina::analysis::layers
