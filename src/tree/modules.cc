// SPDX-License-Identifier: Apache-2.0
#include "tree/modules.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>

#include "base/run_sort.h"
#include "trace/module_frames.h"

namespace lamina::tree {
namespace {

static_assert(kModulePrefix == trace::kModulePrefix);

struct Frame {
  uint32_t track;
  int64_t start_ns;
  uint32_t uid;
  SliceId slice;
};

}  // namespace

Modules Modules::Build(const Tree& tree) {
  const Trace& trace = tree.trace();
  Modules modules;
  modules.tree_ = &tree;
  modules.of_node_.resize(tree.size());

  // Which names are modules is asked once per distinct name.
  std::vector<int8_t> is_module(trace.strings.size(), -1);
  std::vector<Frame> frames;
  const trace::Slices& slices = trace.slices;
  const trace::Captured& captured = trace.captured;
  const auto is_module_frame = [&](uint32_t i) {
    if (slices.kind[i] != trace::Kind::kPython) return false;
    int8_t& known = is_module[slices.name[i].value];
    if (known < 0)
      known = trace.strings[slices.name[i]].starts_with(kModulePrefix);
    return known > 0;
  };
  const auto recorded =
      static_cast<uint32_t>(slices.size() - captured.parents.size());
  for (uint32_t i = 0; i < recorded; ++i) {
    if (is_module_frame(i))
      frames.push_back({slices.track[i].value, slices.start_ns[i],
                        slices.uid[i], SliceId(i)});
  }
  if (frames.empty() && captured.parents.empty()) return modules;
  RunSort(frames, tree.options().threads, [](const Frame& a, const Frame& b) {
    if (a.track != b.track) return a.track < b.track;
    if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
    return a.uid < b.uid;
  });

  // Nodes of a thread are in order of start, so one sweep per thread over
  // both lists keeps the stack of open modules.
  absl::flat_hash_map<std::pair<uint32_t, StringId>, uint32_t> path_ids;
  std::vector<ModuleCallId> stack;
  size_t f = 0;
  const auto add_call = [&](SliceId slice, ModuleCallId parent) {
    const ModulePathId parent_path =
        parent.valid() ? modules.calls_[parent.value].path : ModulePathId();
    const StringId name = slices.name[slice.value];
    const auto [it, is_new] =
        path_ids.try_emplace(std::pair(parent_path.value, name),
                             static_cast<uint32_t>(modules.paths_.size()));
    if (is_new) {
      const uint32_t depth =
          parent_path.valid() ? modules.path(parent_path).depth + 1 : 0;
      modules.paths_.push_back({name, parent_path, depth, 0});
    }
    // A backward pass is no further call.
    if (!trace::IsBackwardFrame(trace, slice))
      ++modules.paths_[it->second].calls;
    modules.calls_.push_back({slice, parent, ModulePathId(it->second)});
    return ModuleCallId(static_cast<uint32_t>(modules.calls_.size() - 1));
  };
  // Whether a frame that ends after the open one in which it begins is called
  // beside it: by the ids of their callers, else by where most of it lies.
  const auto is_sibling = [&](const Frame& frame, SliceId open) {
    const int64_t end = trace.End(frame.slice);
    if (end <= trace.End(open)) return false;
    const trace::PythonArgs* const own = trace.Python(frame.slice);
    const trace::PythonArgs* const other = trace.Python(open);
    if (own != nullptr && other != nullptr && own->parent_id >= 0 &&
        other->parent_id >= 0)
      return own->parent_id == other->parent_id;
    return 2 * (trace.End(open) - frame.start_ns) < end - frame.start_ns;
  };
  const auto enter = [&](const Frame& frame) {
    while (!stack.empty() &&
           is_sibling(frame, modules.calls_[stack.back().value].slice))
      stack.pop_back();
    stack.push_back(
        add_call(frame.slice, stack.empty() ? ModuleCallId() : stack.back()));
  };
  const auto leave_until = [&](int64_t time_ns) {
    while (!stack.empty() &&
           time_ns >= trace.End(modules.calls_[stack.back().value].slice))
      stack.pop_back();
  };
  uint32_t n = 0;
  const auto track_of_node = [&](uint32_t node) {
    return slices.track[tree.slice(NodeId(node)).value].value;
  };
  std::vector<uint32_t> tracks;
  for (const Frame& frame : frames) {
    if (tracks.empty() || tracks.back() != frame.track)
      tracks.push_back(frame.track);
  }
  // First node of each track.
  absl::flat_hash_map<uint32_t, uint32_t> first_node;
  for (const NodeId root : tree.roots())
    first_node.try_emplace(track_of_node(root.value), root.value);
  for (const uint32_t track : tracks) {
    stack.clear();
    const auto it = first_node.find(track);
    n = it == first_node.end() ? static_cast<uint32_t>(tree.size())
                               : it->second;
    while (true) {
      const bool has_frame = f < frames.size() && frames[f].track == track;
      const bool has_node = n < tree.size() && track_of_node(n) == track;
      if (!has_frame && !has_node) break;
      const int64_t node_start =
          has_node ? trace.Start(tree.slice(NodeId(n))) : 0;
      if (has_frame && (!has_node || frames[f].start_ns <= node_start)) {
        leave_until(frames[f].start_ns);
        enter(frames[f]);
        ++f;
      } else {
        leave_until(node_start);
        if (!stack.empty()) modules.of_node_[n] = stack.back();
        ++n;
      }
    }
  }
  // Captured slices have no times of their own; their nesting is given. The
  // sweep left them in the module of their launch.
  std::vector<ModuleCallId> of_captured(captured.parents.size());
  for (uint32_t i = 0; i < of_captured.size(); ++i) {
    const SliceId slice(captured.first + i);
    const SliceId up = captured.parents[i];
    ModuleCallId call;
    if (captured.Has(up)) {
      call = of_captured[up.value - captured.first];
    } else if (const NodeId launch = tree.node(up); launch.valid()) {
      call = modules.of_node_[launch.value];
    }
    if (is_module_frame(slice.value)) call = add_call(slice, call);
    of_captured[i] = call;
    const NodeId node = tree.node(slice);
    if (node.valid()) modules.of_node_[node.value] = call;
  }
  return modules;
}

Modules::Owner Modules::OwnerOf(NodeId node) const {
  if (empty()) return {};
  // The forward op of a backward one tells more than a range around the
  // backward pass of a module.
  const ModuleCallId call = of_node_[node.value];
  if (call.valid() &&
      !trace::IsBackwardFrame(tree_->trace(), calls_[call.value].slice))
    return {calls_[call.value].path, false};
  for (NodeId n = node; n.valid(); n = tree_->parent(n)) {
    const NodeId forward = tree_->forward(n);
    if (!forward.valid()) continue;
    const ModuleCallId owner = of_node_[forward.value];
    if (owner.valid()) return {calls_[owner.value].path, true};
  }
  if (call.valid()) return {calls_[call.value].path, true};
  return {};
}

std::string_view Modules::ShortName(std::string_view recorded) {
  if (recorded.starts_with(kModulePrefix))
    recorded.remove_prefix(kModulePrefix.size());
  return recorded;
}

std::string_view Modules::ClassName(std::string_view recorded) {
  std::string_view name = ShortName(recorded);
  const size_t last = name.find_last_not_of("0123456789");
  if (last != std::string_view::npos && last + 1 < name.size() &&
      name[last] == '_')
    name = name.substr(0, last);
  return name;
}

std::vector<ModulePathId> Modules::Preorder() const {
  std::vector<std::vector<uint32_t>> children(paths_.size());
  std::vector<uint32_t> stack;
  for (uint32_t i = 0; i < paths_.size(); ++i) {
    if (paths_[i].parent.valid()) {
      children[paths_[i].parent.value].push_back(i);
    } else {
      stack.push_back(i);
    }
  }
  // paths_ is in order of first call, and so are children.
  std::reverse(stack.begin(), stack.end());
  std::vector<ModulePathId> order;
  order.reserve(paths_.size());
  while (!stack.empty()) {
    const uint32_t i = stack.back();
    stack.pop_back();
    order.emplace_back(i);
    stack.insert(stack.end(), children[i].rbegin(), children[i].rend());
  }
  return order;
}

std::string Modules::PathText(ModulePathId id) const {
  std::vector<std::string_view> names;
  for (; id.valid(); id = paths_[id.value].parent)
    names.push_back(ShortName(tree_->trace().Text(paths_[id.value].name)));
  std::string out;
  for (auto it = names.rbegin(); it != names.rend(); ++it) {
    if (!out.empty()) out += '/';
    out += *it;
  }
  return out;
}

std::vector<std::string> Modules::PathTexts() const {
  std::vector<std::string> texts;
  texts.reserve(paths_.size());
  for (uint32_t i = 0; i < paths_.size(); ++i)
    texts.push_back(PathText(ModulePathId(i)));
  return texts;
}

}  // namespace lamina::tree
