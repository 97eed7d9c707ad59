// SPDX-License-Identifier: Apache-2.0
//
// One side of a comparison: the host call tree reduced to what has device work
// below it, in a form that two sides can be matched in. Entries are steps,
// nn.Module calls, ops, and API calls that no op stands above; everything else
// is transparent. Device work belongs to the nearest entry above its launch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/common/context.h"
#include "base/string_pool.h"

namespace lamina::analysis::diff {

inline constexpr uint32_t kNone = 0xFFFFFFFF;

// Names of both sides in one numbering.
struct Names {
  StringPool pool;

  StringId Of(std::string_view text) { return pool.Intern(text); }
  std::string_view Text(StringId id) const { return pool[id]; }
};

// Addresses out ("0x7f..." is no name), ".py(123)" without its line, and one
// spelling for the API calls of CUDA and HIP.
std::string NormalName(std::string_view name);
std::string NormalApiName(std::string_view name);
std::string NormalKernelName(std::string_view name);

struct Entry {
  NodeId node;  // invalid: a step, or what is outside of steps
  uint32_t parent = kNone;
  uint32_t end = 0;       // one past the last entry below
  StringId label;         // name to match by: of a module its class
  StringId name;          // the same with the number of the module or step
  uint64_t shape = 0;     // label, shapes, and shape of every child
  uint64_t full = 0;      // the same with the kernels
  uint64_t exact = 0;     // as shape, with name instead of label
  bool numbered = false;  // a module or step: `name` says more than `label`
  bool api = false;       // an API call
  bool launches = false;  // an op or API call: device work is its own
  uint32_t work_begin = 0;
  uint32_t work_end = 0;
};

struct SideOptions {
  bool modules = true;  // nn.Module calls are entries
  bool steps = true;
  bool python = false;  // so are all Python frames
};

// Modules and steps are levels of the tree when both sides have them.
SideOptions LevelsOf(const Context& a, const Context& b);

class Side {
 public:
  // The tree of `context` has Python frames when modules or python are set.
  Side(const Context& context, const SideOptions& options, Names& names);

  const Context& context() const { return context_; }
  const trace::Trace& trace() const { return context_.trace; }
  // In preorder. Steps stand at the top, below them each thread's work, the
  // thread that launched first in front.
  const std::vector<Entry>& entries() const { return entries_; }
  const Entry& entry(uint32_t i) const { return entries_[i]; }
  // Device slices of an entry itself, in the order of their launches.
  std::span<const SliceId> Work(uint32_t entry) const {
    return {work_.data() + entries_[entry].work_begin,
            work_.data() + entries_[entry].work_end};
  }
  std::vector<uint32_t> Roots() const;
  std::vector<uint32_t> Children(uint32_t entry) const;

  // Texts of this side in the numbering of both.
  StringId Kernel(SliceId s) const { return kernel_of_[NameOf(s)]; }
  // Shapes and types of an op; invalid when the trace has none.
  StringId Dims(uint32_t entry) const;
  StringId Types(uint32_t entry) const;
  // Path of the module that an entry belongs to; empty if none.
  StringId Module(uint32_t entry) const;
  // What a person calls an entry: an API call with its kernel.
  StringId Title(uint32_t entry) const { return titles_[entry]; }

 private:
  uint32_t NameOf(SliceId s) const {
    return trace().slices.name[s.value].value;
  }
  void Collect(const SideOptions& options, Names& names);
  void Label(Names& names);
  void Arrange(const SideOptions& options, Names& names);
  void Hash();
  StringId Canonical(StringId raw, Names& names);

  const Context& context_;
  std::vector<Entry> entries_;
  std::vector<SliceId> work_;
  std::vector<StringId> kernel_of_;  // by StringId of the trace
  std::vector<StringId> canonical_;  // by StringId of the trace
  std::vector<StringId> modules_;    // by ModulePathId
  std::vector<StringId> titles_;
};

}  // namespace lamina::analysis::diff
