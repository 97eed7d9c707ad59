// SPDX-License-Identifier: Apache-2.0
//
// Parts the layers of a trace into forward passes and says the stage of each.
#include "analysis/layers/passes.h"

#include <algorithm>
#include <map>
#include <re2/re2.h>
#include <set>

#include "analysis/layers/labels.h"
#include "base/decimal.h"

namespace lamina::analysis::layers {
namespace {

class PassMaker {
 public:
  PassMaker(const Context& context, Labels& labels,
            const std::vector<Lane>& lanes,
            const std::vector<uint32_t>& layer_of, LayerModel& model)
      : context_(context),
        trace_(context.trace),
        labels_(labels),
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
      SetStage(pass);
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

  int64_t FirstStart(const Layer& layer) const {
    return trace_.Start(layer.work.front());
  }

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
    Outside(device, first_pass);
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

  // Slices in no layer go to the pass of their step, else to the pass before
  // or after, parted at the longest idle time between them.
  void Outside(int64_t device, size_t first_pass) {
    std::vector<SliceId> rest;
    for (const SliceId s : trace_.device_slices()) {
      if (layer_of_[s.value] == kNone && DeviceOf(trace_, s) == device)
        rest.push_back(s);
    }
    SortByStart(trace_, rest);
    const size_t count = model_.passes.size() - first_pass;
    if (count == 0) {
      model_.no_pass.insert(model_.no_pass.end(), rest.begin(), rest.end());
      return;
    }
    std::vector<int64_t> begins;
    std::vector<int64_t> ends;
    for (size_t p = first_pass; p < model_.passes.size(); ++p) {
      const Pass& pass = model_.passes[p];
      begins.push_back(FirstStart(model_.layers[pass.layers.front()]));
      int64_t end = begins.back();
      for (const uint32_t l : pass.layers)
        end = std::max(end, trace_.End(model_.layers[l].work.back()));
      ends.push_back(end);
    }
    // The cut before each pass but the first: the start of the slice after the
    // longest idle time between the two.
    std::vector<int64_t> cuts(count, INT64_MIN);
    for (size_t p = 1; p < count; ++p) {
      int64_t reached = ends[p - 1];
      int64_t longest = -1;
      cuts[p] = begins[p];
      const auto from = std::lower_bound(
          rest.begin(), rest.end(), ends[p - 1],
          [&](SliceId s, int64_t t) { return trace_.Start(s) < t; });
      for (auto it = from; it != rest.end(); ++it) {
        const int64_t start = std::min(trace_.Start(*it), begins[p]);
        if (start - reached > longest) {
          longest = start - reached;
          cuts[p] = start;
        }
        if (trace_.Start(*it) >= begins[p]) break;
        reached = std::max(reached, trace_.End(*it));
      }
      if (begins[p] - reached > longest) cuts[p] = begins[p];
    }
    std::map<uint32_t, size_t> pass_of_step;
    for (size_t p = 0; p < count; ++p) {
      const Pass& pass = model_.passes[first_pass + p];
      const uint32_t step = StepOf(model_.layers[pass.layers.front()].work[0]);
      if (step != tree::Steps::kOutside) pass_of_step.try_emplace(step, p);
    }
    for (const SliceId s : rest) {
      const auto known = pass_of_step.find(StepOf(s));
      if (known != pass_of_step.end()) {
        model_.passes[first_pass + known->second].outside.push_back(s);
        continue;
      }
      const auto it =
          std::upper_bound(cuts.begin() + 1, cuts.end(), trace_.Start(s));
      const auto p = static_cast<size_t>(it - cuts.begin()) - 1;
      model_.passes[first_pass + p].outside.push_back(s);
    }
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

  // --- stages ---

  void SetStage(Pass& pass) {
    pass.stage = "none";
    pass.evidence = "-";
    if (FromAnnotation(pass) || FromFrames(pass)) return;
    // Attention kernels that are used in one stage only; else the names that
    // hint at one, in a model that keeps keys and values.
    bool attention = false;
    bool prefill = false;
    bool decode = false;
    bool cache = false;
    size_t votes[3] = {};
    const auto& table = labels_.tables().stage;
    const auto& types = context_.catalog.kernel_table();
    for (const uint32_t l : pass.layers) {
      for (const SliceId s : model_.layers[l].work) {
        const Label& label = labels_.Of(s);
        cache = cache || (label.type_rule != rules::PatternTable::kNone &&
                          types.rule(label.type_rule).part == "kv-cache");
        if (label.stage_rule == rules::PatternTable::kNone) continue;
        attention = true;
        ++votes[static_cast<size_t>(label.kernel.vote)];
        const rules::PatternRule& found = table.rule(label.stage_rule);
        if (found.strength != "strong") continue;
        prefill = prefill || found.value == "prefill";
        decode = decode || found.value == "decode";
      }
    }
    const size_t for_prefill = votes[static_cast<size_t>(Stage::kPrefill)];
    const size_t for_decode = votes[static_cast<size_t>(Stage::kDecode)];
    if (prefill || decode) {
      pass.stage = prefill && decode ? "mixed" : prefill ? "prefill" : "decode";
      pass.evidence = "attention";
    } else if (cache && for_prefill != for_decode) {
      pass.stage = for_prefill > for_decode ? "prefill" : "decode";
      pass.evidence = "votes";
    } else if (attention) {
      pass.stage = "unknown";
    }
  }

  // Python frames of an engine that say the stage, where the first launched
  // kernel was launched inside one.
  bool FromFrames(Pass& pass) {
    if (!frames_known_) FindFrames();
    if (frames_.empty()) return false;
    for (const uint32_t l : pass.layers) {
      for (const SliceId s : model_.layers[l].work) {
        const NodeId launch = context_.tree.launch(s);
        if (!launch.valid()) continue;
        const SliceId call = context_.tree.slice(launch);
        const auto on_track =
            frames_.find(trace_.slices.track[call.value].value);
        if (on_track == frames_.end()) return false;
        const auto after = std::upper_bound(
            on_track->second.begin(), on_track->second.end(),
            trace_.Start(call),
            [&](int64_t t, SliceId frame) { return t < trace_.Start(frame); });
        if (after == on_track->second.begin() ||
            trace_.End(*std::prev(after)) <= trace_.Start(call))
          return false;
        const bool extend =
            trace_.Name(*std::prev(after)).find("forward_extend") !=
            std::string_view::npos;
        pass.stage = extend ? "prefill" : "decode";
        pass.evidence = "frames";
        return true;
      }
    }
    return false;
  }

  void FindFrames() {
    frames_known_ = true;
    std::vector<bool> known(trace_.strings.size());
    bool any = false;
    for (uint32_t i = 0; i < known.size(); ++i) {
      const std::string_view name = trace_.strings[StringId(i)];
      known[i] = name.find(": forward_extend") != std::string_view::npos ||
                 name.find(": forward_decode") != std::string_view::npos;
      any = any || known[i];
    }
    if (!any) return;
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      const SliceId s(i);
      if (trace_.KindOf(s) == trace::Kind::kPython &&
          known[trace_.slices.name[i].value])
        frames_[trace_.slices.track[i].value].push_back(s);
    }
    // The outermost only: a frame inside another says the same.
    for (auto& [track, frames] : frames_) {
      SortByStart(trace_, frames);
      int64_t reached = INT64_MIN;
      std::erase_if(frames, [&](SliceId s) {
        if (trace_.Start(s) < reached) return true;
        reached = trace_.End(s);
        return false;
      });
    }
  }

  static bool FromAnnotation(Pass& pass) {
    if (pass.annotation.empty()) return false;
    const re2::StringPiece text(pass.annotation);
    int64_t context = 0;
    int64_t generation = 0;
    int64_t tokens = 0;
    static const RE2 kVllm(
        R"(^execute_(?:(\d+)_)?context_(\d+)\(.*\)_generation_(\d+)\()");
    static const RE2 kTrtllm(
        R"(^\[Executor\] _forward_step \d+: (\d+) ctx reqs, (\d+) gen reqs)");
    static const RE2 kSglang(R"(^step\[(\w+)(.*)\])");
    static const RE2 kAtom(R"(^(prefill|decode)\[)");
    std::string count;
    std::string mode;
    std::string rest;
    if (RE2::PartialMatch(text, kVllm, &count, &context, &generation)) {
      if (!count.empty()) pass.tokens = ParseInt(count);
    } else if (RE2::PartialMatch(text, kTrtllm, &context, &generation)) {
    } else if (RE2::PartialMatch(text, kSglang, &mode, &rest)) {
      static const RE2 kBatch(R"(\bbs=(\d+))");
      static const RE2 kTokens(R"(\btoks=(\d+))");
      if (RE2::PartialMatch(rest, kBatch, &tokens)) pass.batch = tokens;
      if (RE2::PartialMatch(rest, kTokens, &tokens)) pass.tokens = tokens;
      pass.stage = mode == "EXTEND"   ? "prefill"
                   : mode == "DECODE" ? "decode"
                   : mode == "MIXED"  ? "mixed"
                                      : "unknown";
      pass.evidence = "annotation";
      return true;
    } else if (RE2::PartialMatch(text, kAtom, &mode)) {
      pass.stage = mode;
      pass.evidence = "annotation";
      return true;
    } else {
      return false;
    }
    if (context == 0 && generation == 0) return false;
    pass.batch = context + generation;
    pass.stage = context == 0      ? "decode"
                 : generation == 0 ? "prefill"
                                   : "mixed";
    pass.evidence = "annotation";
    return true;
  }

  const Context& context_;
  const Trace& trace_;
  Labels& labels_;  // by our own tables
  const std::vector<Lane>& lanes_;
  const std::vector<uint32_t>& layer_of_;
  LayerModel& model_;
  std::map<std::pair<uint32_t, StringId>, uint32_t> entries_;
  std::map<uint32_t, uint32_t> runs_;  // by stack
  uint32_t previous_ = 0;
  bool frames_known_ = false;
  std::map<uint32_t, std::vector<SliceId>> frames_;  // by track, disjoint
};

}  // namespace

void SortByStart(const Trace& trace, std::vector<SliceId>& work) {
  std::stable_sort(work.begin(), work.end(), [&](SliceId a, SliceId b) {
    return trace.Start(a) != trace.Start(b) ? trace.Start(a) < trace.Start(b)
                                            : a < b;
  });
}

int64_t DeviceOf(const Trace& trace, SliceId s) {
  const trace::DeviceArgs* args = trace.Device(s);
  return args != nullptr ? args->device : 0;
}

void MakePasses(const Context& context, Labels& labels,
                const std::vector<Lane>& lanes,
                const std::vector<uint32_t>& layer_of, LayerModel& model) {
  PassMaker(context, labels, lanes, layer_of, model).Run();
}

}  // namespace lamina::analysis::layers
