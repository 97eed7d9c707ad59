// SPDX-License-Identifier: Apache-2.0
//
// nn.Module calls: which module every op and every kernel belongs to. Works
// without Python stacks in the tree; only the frames of modules are read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tree/tree.h"

namespace lamina::tree {

struct ModuleCallTag;
struct ModulePathTag;
using ModuleCallId = Id<ModuleCallTag>;
using ModulePathId = Id<ModulePathTag>;

class Modules {
 public:
  // One call of one module.
  struct Call {
    SliceId slice;
    ModuleCallId parent;  // the call around it on the same thread
    ModulePathId path;
  };
  // A place in the module hierarchy: "Model_0 / DecoderLayer_3 / Linear_21".
  struct Path {
    StringId name;  // as recorded: "nn.Module: Linear_21"
    ModulePathId parent;
    uint32_t depth = 0;
    uint32_t calls = 0;
  };

  static Modules Build(const Tree& tree);

  bool empty() const { return calls_.empty(); }
  const std::vector<Call>& calls() const { return calls_; }
  // Parents stand before their children.
  const std::vector<Path>& paths() const { return paths_; }
  const Path& path(ModulePathId id) const { return paths_[id.value]; }
  // All paths in order of the hierarchy: each before what is below it,
  // siblings by first call. The order of the rows of the table modules.
  std::vector<ModulePathId> Preorder() const;
  const Call& call(ModuleCallId id) const { return calls_[id.value]; }

  // The innermost module call that holds the start of a node on its thread.
  ModuleCallId Enclosing(NodeId node) const { return of_node_[node.value]; }

  // The module of a launch: the enclosing one or, under autograd, the one of
  // the forward op.
  struct Owner {
    ModulePathId path;
    bool backward = false;
  };
  Owner OwnerOf(NodeId node) const;

  // "Linear_21" of "nn.Module: Linear_21".
  static std::string_view ShortName(std::string_view recorded);
  // "Linear" of "nn.Module: Linear_21".
  static std::string_view ClassName(std::string_view recorded);
  // Names from the root, joined with "/".
  std::string PathText(ModulePathId id) const;
  // Of all of paths().
  std::vector<std::string> PathTexts() const;

 private:
  const Tree* tree_ = nullptr;
  std::vector<Call> calls_;
  std::vector<Path> paths_;
  std::vector<ModuleCallId> of_node_;
};

inline constexpr std::string_view kModulePrefix = "nn.Module: ";

}  // namespace lamina::tree
