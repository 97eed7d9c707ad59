// SPDX-License-Identifier: Apache-2.0
//
// What a graph costs at least: kernels to launch, bytes to read and write. The
// difference of two graphs is what a rewrite saves; without measured times it
// is an estimate and says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/fusion/op_table.h"
#include "graph/graph.h"
#include "graph/types.h"

namespace lamina::fusion {

// Sizes of symbolic dimensions that a dump leaves open: batch 1, 128 tokens,
// unless the user binds them. `assumed` gets the symbols that were set so.
graph::Bindings ReferenceBindings(const graph::Graph& graph,
                                  const graph::Bindings& given,
                                  std::vector<std::string>* assumed);

struct Traffic {
  size_t kernels = 0;
  int64_t read_bytes = 0;
  int64_t written_bytes = 0;
  size_t unknown = 0;  // values without a size

  int64_t bytes() const { return read_bytes + written_bytes; }
};

// Bytes of a value; nothing when it has no size.
std::optional<int64_t> BytesOf(const graph::Graph& graph, graph::NodeId id,
                               const graph::Bindings& bindings);

// Bytes that a node reads of one of its inputs: the whole value, but of the
// table of a lookup only the rows that it is asked for. Nothing when the value
// has no size.
std::optional<int64_t> BytesRead(const graph::Graph& graph, const OpTable& ops,
                                 graph::NodeId reader, graph::NodeId value,
                                 const graph::Bindings& bindings);

// Whether a node launches a kernel for sure: views, sizes, conversions to the
// type that a value has already and copies of what lies in order do not.
bool Launches(const graph::Graph& graph, const OpTable& ops, graph::NodeId id);

// What the nodes cost one by one.
Traffic Separate(const graph::Graph& graph, const OpTable& ops,
                 const std::vector<graph::NodeId>& nodes,
                 const graph::Bindings& bindings);
// What nodes save when one kernel computes what is light among them.
struct Saving {
  size_t kernels = 0;           // today
  size_t launches = 0;          // fewer launches
  int64_t bytes = 0;            // fewer bytes: values that need not be written
                                // and read, inputs that are read once
  int64_t remaining_bytes = 0;  // inputs and outputs, each once
  size_t unknown = 0;           // values without a size
};
Saving SavingOf(const graph::Graph& graph, const OpTable& ops,
                const std::vector<graph::NodeId>& nodes,
                const graph::Bindings& bindings);

// The estimate of time where nothing is measured.
inline constexpr int64_t kLaunchNs = 2500;

// The device that bytes are moved on.
struct Memory {
  double bytes_per_s = 3.35e12;  // H100 SXM
  std::string device;            // its title; empty: assumed

  // "3.35 TB/s (NVIDIA H100 SXM)", or that it is an assumption.
  std::string Text() const;
};

int64_t EstimateNs(int64_t launches, int64_t bytes, const Memory& memory);

}  // namespace lamina::fusion
