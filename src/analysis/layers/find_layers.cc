// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <re2/re2.h>
#include <set>

#include "analysis/layers/layers.h"
#include "analysis/layers/repeats.h"
#include "analysis/layers/rule_of_name.h"
#include "base/decimal.h"

namespace lamina::analysis::layers {
namespace {

using tree::ModuleCallId;
using tree::ModulePathId;

// One occurrence of a stack: its layers follow each other.
struct Occurrence {
  uint32_t stack = 0;
  std::vector<uint32_t> layers;
};

// Kernels of one stream by start.
struct Lane {
  int64_t device = 0;
  std::vector<SliceId> kernels;
};

class Finder {
 public:
  Finder(const Context& context, const Rules& rules, const Options& options)
      : context_(context),
        trace_(context.trace),
        rules_(rules),
        stage_(rules.stage, trace_),
        layer_start_(rules.layer_start, trace_),
        options_(options) {}

  LayerModel Run() {
    layer_of_.assign(trace_.slices.size(), kNone);
    Lanes();
    if (options_.detector != Detector::kRepeat) ByModules();
    for (const Lane& lane : lanes_) ByRepeats(lane);
    SortLayers();
    Attach();
    MakePasses();
    return std::move(model_);
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Fewer kernels on a stream hold no stack.
  static constexpr size_t kMinLane = 20;
  // Share of a stream's time that makes a plain loop a stack.
  static constexpr double kLoopShare = 0.3;
  // Fewer kernels on average are no layer.
  static constexpr size_t kMinKernels = 4;

  void Lanes() {
    std::map<std::pair<int64_t, uint32_t>, Lane> lanes;
    for (const SliceId s : trace_.device_slices()) {
      if (trace_.KindOf(s) != trace::Kind::kKernel) continue;
      const trace::DeviceArgs* args = trace_.Device(s);
      const int64_t device = args != nullptr ? args->device : 0;
      Lane& lane = lanes[{device, args != nullptr ? args->lane.value : 0}];
      lane.device = device;
      lane.kernels.push_back(s);
    }
    for (auto& [key, lane] : lanes) {
      std::stable_sort(lane.kernels.begin(), lane.kernels.end(),
                       [&](SliceId a, SliceId b) {
                         return trace_.Start(a) != trace_.Start(b)
                                    ? trace_.Start(a) < trace_.Start(b)
                                    : a < b;
                       });
      lanes_.push_back(std::move(lane));
    }
  }

  // --- modules ---

  // Sets of modules of one class below one parent, three or more, that hold
  // the most kernel time and do not hold each other.
  void ByModules() {
    const tree::Modules& modules = context_.modules;
    if (modules.empty()) return;
    std::vector<int64_t> time(modules.paths().size(), 0);
    for (const SliceId s : context_.tree.launched()) {
      const auto owner = modules.OwnerOf(context_.tree.launch(s));
      if (owner.path.valid()) time[owner.path.value] += trace_.Duration(s);
    }
    // Parents stand before their children.
    for (size_t i = modules.paths().size(); i-- > 0;) {
      const ModulePathId parent = modules.paths()[i].parent;
      if (parent.valid()) time[parent.value] += time[i];
    }
    using Key = std::pair<uint32_t, std::string>;
    std::vector<size_t> kernels(modules.paths().size(), 0);
    for (const SliceId s : context_.tree.launched()) {
      const auto owner = modules.OwnerOf(context_.tree.launch(s));
      if (owner.path.valid()) ++kernels[owner.path.value];
    }
    for (size_t i = modules.paths().size(); i-- > 0;) {
      const ModulePathId parent = modules.paths()[i].parent;
      if (parent.valid()) kernels[parent.value] += kernels[i];
    }
    std::map<Key, std::vector<uint32_t>> sets;
    for (uint32_t i = 0; i < modules.paths().size(); ++i) {
      const auto& path = modules.paths()[i];
      const std::string_view name = trace_.strings[path.name];
      sets[{path.parent.valid() ? path.parent.value : kNone,
            std::string(tree::Modules::ClassName(name))}]
          .push_back(i);
    }
    struct Candidate {
      const Key* key;
      const std::vector<uint32_t>* members;
      int64_t time = 0;
    };
    std::vector<Candidate> candidates;
    for (const auto& [key, members] : sets) {
      if (members.size() < options_.min_layers) continue;
      Candidate candidate{&key, &members};
      size_t count = 0;
      size_t calls = 0;
      for (const uint32_t m : members) {
        candidate.time += time[m];
        count += kernels[m];
        calls += modules.paths()[m].calls;
      }
      // A few kernels are a part of a layer, not one.
      if (candidate.time > 0 && count >= kMinKernels * calls)
        candidates.push_back(candidate);
    }
    std::stable_sort(
        candidates.begin(), candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.time > b.time; });
    std::map<uint32_t, uint32_t> stack_of;  // path -> stack
    for (const Candidate& candidate : candidates) {
      const bool free =
          std::none_of(candidate.members->begin(), candidate.members->end(),
                       [&](uint32_t m) { return Related(m, stack_of); });
      if (!free) continue;
      const auto stack = static_cast<uint32_t>(model_.stacks.size());
      StackInfo info;
      info.name = candidate.key->second;
      info.boundary = "module";
      model_.stacks.push_back(std::move(info));
      for (const uint32_t m : *candidate.members) stack_of[m] = stack;
    }
    if (!stack_of.empty()) ModuleLayers(stack_of);
  }

  // Whether a path, one above or one below it is taken.
  bool Related(uint32_t path, const std::map<uint32_t, uint32_t>& taken) {
    const auto& paths = context_.modules.paths();
    for (uint32_t up = path;;) {
      if (taken.contains(up)) return true;
      if (!paths[up].parent.valid()) break;
      up = paths[up].parent.value;
    }
    for (const auto& [other, stack] : taken) {
      for (uint32_t up = other; paths[up].parent.valid();) {
        up = paths[up].parent.value;
        if (up == path) return true;
      }
    }
    return false;
  }

  void ModuleLayers(const std::map<uint32_t, uint32_t>& stack_of) {
    const tree::Modules& modules = context_.modules;
    std::map<uint32_t, uint32_t> layer_of_call;  // call -> layer
    std::map<uint32_t, uint32_t> last_of_path;   // path -> layer
    std::vector<SliceId> backward;
    for (const SliceId s : trace_.device_slices()) {
      const NodeId launch = context_.tree.launch(s);
      if (!launch.valid()) continue;
      ModuleCallId call = modules.Enclosing(launch);
      while (call.valid() && !stack_of.contains(modules.call(call).path.value))
        call = modules.call(call).parent;
      if (!call.valid()) {
        if (modules.OwnerOf(launch).backward) backward.push_back(s);
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
    // The backward pass of a layer belongs to it.
    for (const SliceId s : backward) {
      ModulePathId path = modules.OwnerOf(context_.tree.launch(s)).path;
      while (path.valid() && !last_of_path.contains(path.value))
        path = modules.path(path).parent;
      if (path.valid()) Give(s, last_of_path.at(path.value));
    }
  }

  void Give(SliceId s, uint32_t layer) {
    layer_of_[s.value] = layer;
    model_.layers[layer].work.push_back(s);
  }

  // --- repeats ---

  // Norms, attention and products of a stream.
  std::vector<uint8_t> MarksOf(const Lane& lane) {
    std::vector<uint8_t> marks;
    for (const SliceId s : lane.kernels) {
      const Part part =
          PartOf(context_.catalog.family(context_.device.family(s)).name);
      uint8_t mark = kNoMark;
      if (layer_start_(s) != rules::PatternTable::kNone) mark |= kNormMark;
      if (part == Part::kNorm) mark |= kMaybeNormMark;
      if (part == Part::kAttention) mark |= kAttentionMark;
      if (part == Part::kGemm) mark |= kGemmMark;
      marks.push_back(mark);
    }
    uint32_t step = kNone;
    for (size_t i = 0; i < marks.size(); ++i) {
      const uint32_t own = StepOf(lane.kernels[i]);
      if (i > 0 && own != step) marks[i] |= kCutMark;
      step = own;
    }
    // A norm written out in elementwise kernels begins at its square, or at
    // the cast before that.
    for (size_t i = 0; i < marks.size(); ++i) {
      if (!Has(lane, i, "rsqrt_kernel_cuda")) continue;
      for (size_t back = 1; back <= 5 && back <= i; ++back) {
        if (!Has(lane, i - back, "pow_tensor")) continue;
        size_t start = i - back;
        if (start > 0 && Has(lane, start - 1, "copy")) --start;
        marks[i] &= static_cast<uint8_t>(~kNormMark);
        marks[start] |= kNormMark;
        break;
      }
    }
    return marks;
  }

  bool Has(const Lane& lane, size_t i, std::string_view word) const {
    return trace_.Name(lane.kernels[i]).find(word) != std::string_view::npos;
  }

  void ByRepeats(const Lane& lane) {
    if (lane.kernels.size() < kMinLane) return;
    std::vector<uint32_t> ids;
    for (const SliceId s : lane.kernels)
      ids.push_back(trace_.slices.name[s.value].value);
    StackOptions options;
    options.min_layers = options_.min_layers;
    const std::vector<uint8_t> marks = MarksOf(lane);
    const std::vector<Stack> stacks = FindStacks(ids, marks, options);
    int64_t lane_ns = 0;
    for (const SliceId s : lane.kernels) lane_ns += trace_.Duration(s);
    std::map<uint32_t, uint32_t> stack_of_kind;
    size_t by_repeat = 0;
    size_t equal = 0;
    size_t near = 0;
    size_t by_module = 0;
    for (const Stack& stack : stacks) {
      size_t taken = 0;
      for (uint32_t i = stack.begin(); i < stack.end(); ++i)
        taken += layer_of_[lane.kernels[i].value] != kNone;
      if (2 * taken > stack.end() - stack.begin()) {
        // Modules say the same: count how well the two agree.
        by_repeat += stack.pieces.size();
        for (const Piece& piece : stack.pieces)
          Compare(lane, piece.begin, equal, near);
        std::set<uint32_t> layers;
        for (uint32_t i = stack.begin(); i < stack.end(); ++i)
          layers.insert(layer_of_[lane.kernels[i].value]);
        layers.erase(kNone);
        by_module += layers.size();
      }
      if (options_.detector == Detector::kModule) continue;
      // What the modules leave: a pass whose host side was not recorded.
      std::vector<Piece> free;
      for (const Piece& piece : stack.pieces) {
        if (Free(lane, piece)) free.push_back(piece);
      }
      if (free.size() < options_.min_layers) continue;
      if (!LooksLikeLayers(lane, lane_ns, marks, stack) || AreSteps(lane, free))
        continue;
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
      for (const Piece& piece : free) {
        const auto layer = static_cast<uint32_t>(model_.layers.size());
        model_.layers.emplace_back();
        model_.layers.back().stack = it->second;
        model_.layers.back().exact = piece.exact;
        for (uint32_t i = piece.begin; i < piece.end; ++i)
          Give(lane.kernels[i], layer);
      }
    }
    if (by_module + by_repeat > 0)
      model_.checks.push_back({"device " + std::to_string(lane.device),
                               by_module, by_repeat, equal, near});
  }

  // A loop without norm and attention that takes little of the time is no
  // stack of layers: three equal convolutions in a row, an optimizer's updates.
  // `lane_ns` is the time of all kernels of the lane.
  bool LooksLikeLayers(const Lane& lane, int64_t lane_ns,
                       const std::vector<uint8_t>& marks,
                       const Stack& stack) const {
    int64_t inside = 0;
    for (size_t i = stack.begin(); i < stack.end(); ++i) {
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
  void Compare(const Lane& lane, uint32_t at, size_t& equal, size_t& near) {
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

  // --- order ---

  int64_t FirstStart(const Layer& layer) const {
    return trace_.Start(layer.work.front());
  }

  void SortLayers() {
    for (Layer& layer : model_.layers) SortWork(layer.work);
    std::vector<uint32_t> order(model_.layers.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return FirstStart(model_.layers[a]) < FirstStart(model_.layers[b]);
    });
    std::vector<Layer> sorted;
    std::vector<uint32_t> place(order.size());
    for (uint32_t i = 0; i < order.size(); ++i) {
      place[order[i]] = i;
      sorted.push_back(std::move(model_.layers[order[i]]));
    }
    model_.layers = std::move(sorted);
    for (uint32_t& layer : layer_of_) {
      if (layer != kNone) layer = place[layer];
    }
  }

  void SortWork(std::vector<SliceId>& work) const {
    std::stable_sort(work.begin(), work.end(), [&](SliceId a, SliceId b) {
      return trace_.Start(a) != trace_.Start(b)
                 ? trace_.Start(a) < trace_.Start(b)
                 : a < b;
    });
  }

  // Copies, fills and kernels of other streams join the layer during which
  // they start.
  void Attach() {
    struct Span {
      int64_t device, start, end;
      uint32_t layer;
    };
    std::vector<Span> spans;
    for (uint32_t i = 0; i < model_.layers.size(); ++i) {
      const Layer& layer = model_.layers[i];
      int64_t end = 0;
      for (const SliceId s : layer.work) end = std::max(end, trace_.End(s));
      spans.push_back({DeviceOf(layer.work[0]), FirstStart(layer), end, i});
    }
    std::stable_sort(
        spans.begin(), spans.end(), [](const Span& a, const Span& b) {
          return std::pair(a.device, a.start) < std::pair(b.device, b.start);
        });
    std::vector<std::pair<SliceId, uint32_t>> joined;
    for (const SliceId s : trace_.device_slices()) {
      if (layer_of_[s.value] != kNone) continue;
      const std::pair key(DeviceOf(s), trace_.Start(s));
      auto it = std::upper_bound(
          spans.begin(), spans.end(), key, [](const auto& k, const Span& span) {
            return k < std::pair(span.device, span.start);
          });
      if (it == spans.begin()) continue;
      --it;
      if (it->device == key.first && key.second < it->end)
        joined.emplace_back(s, it->layer);
    }
    std::set<uint32_t> changed;
    for (const auto& [s, layer] : joined) {
      Give(s, layer);
      changed.insert(layer);
    }
    for (const uint32_t layer : changed) SortWork(model_.layers[layer].work);
  }

  int64_t DeviceOf(SliceId s) const {
    const trace::DeviceArgs* args = trace_.Device(s);
    return args != nullptr ? args->device : 0;
  }

  // --- passes ---

  // Where a slice belongs by annotation; kOutside if there is none.
  uint32_t StepOf(SliceId s) const { return context_.steps.StepOf(s); }

  void MakePasses() {
    // Layers in time order; a pass ends when a stack that it has begins again
    // or the step changes.
    std::map<int64_t, std::vector<uint32_t>> by_device;
    for (uint32_t i = 0; i < model_.layers.size(); ++i)
      by_device[DeviceOf(model_.layers[i].work[0])].push_back(i);
    for (const SliceId s : trace_.device_slices()) by_device[DeviceOf(s)];
    for (const auto& [device, layers] : by_device) DevicePasses(device, layers);
    for (Pass& pass : model_.passes) {
      SetStage(pass);
      std::map<uint32_t, uint32_t> next;
      for (const uint32_t l : pass.layers)
        model_.layers[l].index = next[model_.layers[l].stack]++;
    }
    Variants();
  }

  void DevicePasses(int64_t device, const std::vector<uint32_t>& layers) {
    const size_t first_pass = model_.passes.size();
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

  // Layers of one stack found by repeats follow each other without a gap; a
  // gap of half a layer or more begins another occurrence.
  bool Apart(bool same_stack, uint32_t l) const {
    if (!same_stack || !model_.layers[l].module.empty() ||
        !model_.layers[previous_].module.empty())
      return false;
    const Layer& before = model_.layers[previous_];
    const Layer& layer = model_.layers[l];
    // Kernels between them, counted on the stream of the layer.
    const auto& kernels = LaneOf(layer.work[0]);
    const auto position = [&](SliceId s) {
      return std::lower_bound(kernels.begin(), kernels.end(), s,
                              [&](SliceId a, SliceId b) {
                                return trace_.Start(a) != trace_.Start(b)
                                           ? trace_.Start(a) < trace_.Start(b)
                                           : a < b;
                              }) -
             kernels.begin();
    };
    SliceId last = before.work.back();
    for (const SliceId s : before.work) {
      if (trace_.KindOf(s) == trace::Kind::kKernel) last = s;
    }
    const auto between = position(layer.work[0]) - position(last) - 1;
    return between * 2 > static_cast<int64_t>(layer.work.size());
  }

  const std::vector<SliceId>& LaneOf(SliceId s) const {
    const trace::DeviceArgs* args = trace_.Device(s);
    for (const Lane& lane : lanes_) {
      const trace::DeviceArgs* other = trace_.Device(lane.kernels[0]);
      if (lane.device == DeviceOf(s) && args != nullptr && other != nullptr &&
          other->lane == args->lane)
        return lane.kernels;
    }
    return lanes_[0].kernels;
  }

  // Slices in no layer go to the pass of their step, else to the pass before
  // or after, parted at the longest idle time between them.
  void Outside(int64_t device, size_t first_pass) {
    std::vector<SliceId> rest;
    for (const SliceId s : trace_.device_slices()) {
      if (layer_of_[s.value] == kNone && DeviceOf(s) == device)
        rest.push_back(s);
    }
    SortWork(rest);
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
    if (FromAnnotation(pass)) return;
    // Attention kernels that are used in one stage only.
    bool attention = false;
    bool prefill = false;
    bool decode = false;
    for (const uint32_t l : pass.layers) {
      for (const SliceId s : model_.layers[l].work) {
        const int rule = stage_(s);
        if (rule == rules::PatternTable::kNone) continue;
        attention = true;
        const rules::PatternRule& found = rules_.stage.rule(rule);
        if (found.strength != "strong") continue;
        prefill = prefill || found.value == "prefill";
        decode = decode || found.value == "decode";
      }
    }
    if (prefill || decode) {
      pass.stage = prefill && decode ? "mixed" : prefill ? "prefill" : "decode";
      pass.evidence = "attention";
    } else if (attention) {
      pass.stage = "unknown";
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
  const Rules& rules_;
  RuleOfName stage_, layer_start_;
  const Options& options_;
  LayerModel model_;
  std::vector<Lane> lanes_;
  std::vector<uint32_t> layer_of_;  // by slice
  uint32_t previous_ = 0;
};

}  // namespace

LayerModel FindLayers(const Context& context, const Rules& rules,
                      const Options& options) {
  return Finder(context, rules, options).Run();
}

}  // namespace lamina::analysis::layers
