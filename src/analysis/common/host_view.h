// SPDX-License-Identifier: Apache-2.0
//
// What the host did: its ops with self and total times, its threads. Made from
// the slices of the trace, with or without device work.
//
// A host op is a slice of Kind::kOp. Its parent is the innermost op of its
// thread that holds its start; annotations and Python frames between are
// passed through. A child that ends behind its parent is cut there for sums
// and counted in `not_nested`. So the self times of a thread add up to the
// union of its ops.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "analysis/common/context.h"
#include "base/interval_set.h"

namespace lamina::analysis {

// What is asked of the names of slices: each name is looked at once.
template <class Ask>
class OfNames {
 public:
  OfNames(const Trace& trace, Ask ask)
      : trace_(trace), ask_(std::move(ask)), known_(trace.strings.size()) {}
  auto operator()(SliceId s) {
    const StringId name = trace_.slices.name[s.value];
    if (!name.valid()) return ask_({});
    auto& known = known_[name.value];
    if (!known) known = ask_(trace_.Text(name));
    return *known;
  }

 private:
  const Trace& trace_;
  Ask ask_;
  std::vector<std::optional<std::invoke_result_t<Ask, std::string_view>>>
      known_;
};

struct HostOp {
  SliceId slice;
  int64_t end_ns = 0;     // cut at the end of the parent
  int64_t self_ns = 0;    // without the ops below
  int64_t api_ns = 0;     // part of self inside calls of a runtime or driver
  bool outermost = true;  // no op of its name is open above it
};

enum class ThreadRole : uint8_t { kMain, kBackward, kLoader, kComm, kOther };
std::string_view ThreadRoleName(ThreadRole role);

struct HostThread {
  trace::TrackId track;
  ThreadRole role = ThreadRole::kOther;
  size_t calls = 0;     // ops
  size_t events = 0;    // all that it did
  size_t names = 0;     // of ops
  int64_t self_ns = 0;  // union of its ops
  int64_t busy_ns = 0;  // union of all its events
  int64_t first_ns = 0;
  int64_t last_ns = 0;
  std::vector<HostOp> ops;  // by start, parents first
};

struct HostView {
  Interval window;      // first start to last end of host events
  IntervalSet ops;      // union over threads
  IntervalSet events;   // of all host events but Python frames
  int64_t self_ns = 0;  // sum over threads
  size_t not_nested = 0;
  // No framework recorded ops: ranges and calls stand in their place.
  bool without_ops = false;
  std::vector<HostThread> threads;  // in the order of tracks
  // Longest share of the window that one annotation or op covers.
  double longest_share = 0;
  // Name of the op with most self time; invalid without ops.
  StringId top;
  int64_t top_self_ns = 0;

  static HostView Build(const Context& context);
};

// Device work that lamina sees but does not read: complete events of unknown
// categories on tracks of a device, by category or process.
struct UnreadEvents {
  std::string source;  // category, else process
  std::string category;
  std::string process;
  bool device = false;
  size_t events = 0;
  int64_t time_ns = 0;
  int64_t busy_ns = 0;
  SliceId first;
  std::string reason;
};

// Longest first, device before host.
std::vector<UnreadEvents> FindUnread(const Trace& trace);

}  // namespace lamina::analysis
