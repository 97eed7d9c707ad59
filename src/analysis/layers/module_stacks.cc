// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/module_stacks.h"

#include <algorithm>

#include "analysis/layers/layers.h"
#include "analysis/layers/repeats.h"

namespace lamina::analysis::layers {
namespace {

using tree::ModulePathId;

// Fewer kernels on average are no layer.
constexpr size_t kMinKernels = 4;
// Kernels of a module that are compared.
constexpr size_t kMaxSequence = 2000;

// Share of a set's members that must be like its typical one, and by how much
// of their kernels they may differ.
constexpr double kAlike = 0.5;
constexpr double kDifference = 0.34;

using IdSequence = std::vector<uint32_t>;

// Whether modules of one class do the same: half of them, at least, have nearly
// the kernels of the one whose kernels are most frequent. Containers of one
// class (the stages of a residual network) do not.
bool SameStructure(const std::vector<uint32_t>& members,
                   const std::vector<IdSequence>& kernels) {
  size_t best = 0;
  const size_t step = std::max<size_t>(1, members.size() / 8);
  for (size_t m = 0; m < members.size(); m += step) {
    const IdSequence& typical = kernels[members[m]];
    size_t like = 0;
    for (const uint32_t other : members) {
      const IdSequence& own = kernels[other];
      const auto limit =
          static_cast<uint32_t>(kDifference * static_cast<double>(std::min(
                                                  typical.size(), own.size())));
      like += !own.empty() && EditDistance(typical, own, limit) <= limit;
    }
    best = std::max(best, like);
  }
  return static_cast<double>(best) >=
         kAlike * static_cast<double>(members.size()) + 0.5;
}

// Whether a path, one above or one below it is taken.
bool Related(const tree::Modules& modules, uint32_t path,
             const std::map<uint32_t, uint32_t>& taken) {
  const auto& paths = modules.paths();
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

// A model of one layer has no other to be like: its class says that it is one,
// and what it is made of.
bool IsOneLayer(const Trace& trace, const tree::Modules& modules,
                uint32_t path) {
  const auto class_of = [&](uint32_t p) {
    return std::string(
        tree::Modules::ClassName(trace.strings[modules.paths()[p].name]));
  };
  const std::string own = class_of(path);
  if (!own.ends_with("Layer") && !own.ends_with("Block")) return false;
  bool norm = false, mixer = false;
  for (uint32_t i = 0; i < modules.paths().size(); ++i) {
    if (modules.paths()[i].parent.value != path ||
        !modules.paths()[i].parent.valid())
      continue;
    const std::string child = class_of(i);
    norm |= child.find("Norm") != child.npos;
    mixer |= child.find("Attention") != child.npos ||
             child.find("Attn") != child.npos ||
             child.find("Mixer") != child.npos;
  }
  return norm && mixer;
}

}  // namespace

ModuleStacks FindModuleStacks(const Context& context, size_t min_layers) {
  ModuleStacks found;
  const Trace& trace = context.trace;
  const tree::Modules& modules = context.modules;
  if (modules.empty()) return found;
  std::vector<int64_t> time(modules.paths().size(), 0);
  for (const SliceId s : context.tree.launched()) {
    const auto owner = modules.OwnerOf(context.tree.launch(s));
    if (owner.path.valid()) time[owner.path.value] += trace.Duration(s);
  }
  // Parents stand before their children.
  for (size_t i = modules.paths().size(); i-- > 0;) {
    const ModulePathId parent = modules.paths()[i].parent;
    if (parent.valid()) time[parent.value] += time[i];
  }
  using Key = std::pair<uint32_t, std::string>;
  std::vector<size_t> kernels(modules.paths().size(), 0);
  for (const SliceId s : context.tree.launched()) {
    const auto owner = modules.OwnerOf(context.tree.launch(s));
    if (owner.path.valid()) ++kernels[owner.path.value];
  }
  for (size_t i = modules.paths().size(); i-- > 0;) {
    const ModulePathId parent = modules.paths()[i].parent;
    if (parent.valid()) kernels[parent.value] += kernels[i];
  }
  std::map<Key, std::vector<uint32_t>> sets;
  for (uint32_t i = 0; i < modules.paths().size(); ++i) {
    const auto& path = modules.paths()[i];
    const std::string_view name = trace.strings[path.name];
    sets[{path.parent.valid() ? path.parent.value : UINT32_MAX,
          std::string(tree::Modules::ClassName(name))}]
        .push_back(i);
  }
  // Kernels of the first call of every path, names in order of their launch.
  std::vector<IdSequence> first(modules.paths().size());
  std::vector<uint32_t> first_call(modules.paths().size(), UINT32_MAX);
  std::vector<bool> convolves(modules.paths().size());
  std::vector<bool> mixes(modules.paths().size());
  for (const SliceId s : context.tree.launched()) {
    const Part part = PartOf(context, s);
    const bool conv =
        context.catalog.family(context.device.family(s)).name == "conv";
    auto call = modules.Enclosing(context.tree.launch(s));
    for (; call.valid(); call = modules.call(call).parent) {
      const uint32_t path = modules.call(call).path.value;
      uint32_t& own = first_call[path];
      if (own == UINT32_MAX) own = call.value;
      if (own == call.value && first[path].size() < kMaxSequence)
        first[path].push_back(trace.slices.name[s.value].value);
      if (conv) convolves[path] = true;
      if (part == Part::kAttention) mixes[path] = true;
    }
  }
  struct Candidate {
    const Key* key;
    const std::vector<uint32_t>* members;
    int64_t time = 0;
  };
  std::vector<Candidate> candidates;
  for (const auto& [key, members] : sets) {
    const bool one = members.size() == 1 &&
                     IsOneLayer(trace, modules, members[0]) &&
                     modules.paths()[members[0]].calls >= min_layers;
    if (members.size() < min_layers && !one) continue;
    Candidate candidate{&key, &members};
    size_t count = 0;
    size_t calls = 0;
    size_t only_convolve = 0;
    for (const uint32_t m : members) {
      only_convolve += convolves[m] && !mixes[m];
      candidate.time += time[m];
      count += kernels[m];
      calls += modules.paths()[m].calls;
    }
    // The blocks of a convolutional network are no layers of a transformer.
    if (2 * only_convolve >= members.size()) continue;
    // A few kernels are a part of a layer, not one.
    if (candidate.time > 0 && count >= kMinKernels * calls &&
        (one || SameStructure(members, first)))
      candidates.push_back(candidate);
  }
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.time > b.time; });
  for (const Candidate& candidate : candidates) {
    const bool free = std::none_of(
        candidate.members->begin(), candidate.members->end(),
        [&](uint32_t m) { return Related(modules, m, found.stack_of); });
    if (!free) continue;
    const auto stack = static_cast<uint32_t>(found.names.size());
    found.names.push_back(candidate.key->second);
    for (const uint32_t m : *candidate.members) found.stack_of[m] = stack;
  }
  return found;
}

}  // namespace lamina::analysis::layers
