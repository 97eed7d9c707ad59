// SPDX-License-Identifier: Apache-2.0
#include "memory/stack_tree.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <fmt/format.h>

namespace lamina::memory {
namespace {

std::string FrameName(const Snapshot& snapshot, const Frame& frame) {
  const std::string_view file = snapshot.strings[frame.file];
  const std::string_view name = snapshot.strings[frame.name];
  if (!IsPython(file)) return std::string(name);
  return fmt::format("{}:{} {}", file.substr(file.rfind('/') + 1), frame.line,
                     name);
}

// Names of the nodes from below the root to the leaf.
std::vector<std::string> PathOf(const Device& device,
                                const Attribution& attribution,
                                const Allocation& a, bool native) {
  std::vector<std::string> path;
  const StackFacts& facts = attribution.Of(a);
  if (a.stack == 0) {
    path = {"(no stack)", a.before()          ? "before"
                          : a.autograd_thread ? "(backward)"
                                              : "recorded"};
    return path;
  }
  const Snapshot& snapshot = device.snapshot();
  const auto frames = snapshot.stacks.Of(a.stack);
  std::string last;
  size_t times = 1;
  const auto flush = [&] {
    if (!last.empty())
      path.push_back(times > 1 ? fmt::format("{} x{}", last, times) : last);
  };
  for (size_t i = frames.size(); i-- > 0;) {
    const Frame& frame = snapshot.stacks.frame(frames[i]);
    const FrameText text{snapshot.strings[frame.name],
                         snapshot.strings[frame.file]};
    const bool python = IsPython(text.file);
    if (python ? attribution.rules().IsHop(text.name)
               : !native || attribution.rules().IsNoise(text))
      continue;
    std::string name = FrameName(snapshot, frame);
    if (name == last) {
      ++times;
      continue;
    }
    flush();
    last = std::move(name);
    times = 1;
  }
  flush();
  if (facts.op.starts_with("aten::")) path.push_back(facts.op);
  if (path.empty()) path.push_back(facts.line);
  return path;
}

}  // namespace

StackTree MakeStackTree(const Device& device, const Attribution& attribution,
                        const std::vector<uint32_t>& allocations, bool native) {
  struct Node {
    std::string name;
    int64_t bytes = 0, self = 0;
    size_t blocks = 0;
    std::vector<size_t> children;
  };
  std::vector<Node> nodes(1);
  nodes[0].name = "all";
  absl::flat_hash_map<std::pair<size_t, std::string>, size_t> index;
  // The path of a stack is found once.
  absl::flat_hash_map<uint64_t, std::vector<size_t>> known;
  for (const uint32_t id : allocations) {
    const Allocation& a = device.allocations()[id];
    const uint64_t key = uint64_t{a.stack} << 2 | uint64_t{a.before()} << 1 |
                         uint64_t{a.autograd_thread};
    std::vector<size_t>& path = known[key];
    if (path.empty()) {
      path.push_back(0);
      for (std::string& name : PathOf(device, attribution, a, native)) {
        const size_t parent = path.back();
        const auto [it, added] =
            index.try_emplace({parent, name}, nodes.size());
        path.push_back(it->second);
        if (!added) continue;
        nodes[parent].children.push_back(nodes.size());
        nodes.emplace_back().name = std::move(name);
      }
    }
    for (const size_t node : path) {
      nodes[node].bytes += a.bytes;
      ++nodes[node].blocks;
    }
    nodes[path.back()].self += a.bytes;
  }
  StackTree out;
  std::vector<std::pair<size_t, size_t>> todo = {{0, 0}};  // node, depth
  while (!todo.empty()) {
    const auto [at, depth] = todo.back();
    todo.pop_back();
    Node& node = nodes[at];
    out.rows.push_back({depth, node.name, node.bytes, node.self, node.blocks});
    // The largest is to come first: it is pushed last.
    std::sort(node.children.begin(), node.children.end(),
              [&](size_t a, size_t b) {
                return nodes[a].bytes != nodes[b].bytes
                           ? nodes[a].bytes < nodes[b].bytes
                           : nodes[a].name > nodes[b].name;
              });
    for (const size_t child : node.children)
      todo.emplace_back(child, depth + 1);
  }
  return out;
}

std::string StackText(const Device& device, const Allocation& a) {
  if (a.stack == 0) {
    return a.before()          ? "(no stack)/before"
           : a.autograd_thread ? "(no stack)/(backward)"
                               : "(no stack)/recorded";
  }
  const Snapshot& snapshot = device.snapshot();
  const auto frames = snapshot.stacks.Of(a.stack);
  std::string out;
  for (size_t i = frames.size(); i-- > 0;) {
    if (!out.empty()) out += " > ";
    out += FrameName(snapshot, snapshot.stacks.frame(frames[i]));
  }
  return out;
}

}  // namespace lamina::memory
