// SPDX-License-Identifier: Apache-2.0
#include "graph/fusion/traffic.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

#include "base/escape.h"
#include "base/text.h"
#include "graph/pattern/pattern.h"
#include "graph/tables.h"
#include "graph/types.h"

namespace lamina::fusion {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;

constexpr int64_t kReferenceTokens = 128;

// Whether views have put the elements of a value in another order than the op
// that made it, or left some out: only then a copy has something to do.
bool IsOutOfOrder(const Graph& graph, const OpTable& ops, NodeId id) {
  constexpr std::string_view kInOrder[] = {
      "aten.view",         "aten.reshape",   "aten._reshape_alias",
      "aten._unsafe_view", "aten.unsqueeze", "aten.squeeze",
      "aten.detach",       "aten.alias"};
  constexpr int kMostViews = 64;
  for (int hops = 0; hops < kMostViews; ++hops) {
    if (graph[id].kind != NodeKind::kOp) return false;
    const std::string_view op = graph.op(id);
    if (ops.ClassOf(op) != OpClass::kView) return false;
    const std::vector<NodeId> inputs = graph.Inputs(id);
    if (inputs.empty()) return false;
    // One of the results of an op is made in order; a part of a split is not.
    const bool result = graph::MatchesTarget(op, "builtin.getitem") &&
                        (graph[inputs[0]].kind != NodeKind::kOp ||
                         ops.ClassOf(graph.op(inputs[0])) != OpClass::kView);
    const bool in_order = std::any_of(
        std::begin(kInOrder), std::end(kInOrder),
        [&](std::string_view view) { return graph::MatchesTarget(op, view); });
    if (!result && !in_order) return true;
    id = inputs[0];
  }
  return true;
}

// A conversion to the type that the value has already, or a copy of what is
// contiguous already: no kernel.
bool IsFree(const Graph& graph, const OpTable& ops, NodeId id) {
  if (!ops.MayBeFree(graph.op(id))) return false;
  const std::vector<NodeId> inputs = graph.Inputs(id);
  if (inputs.empty()) return false;
  const graph::ResultText before = graph::SplitResult(graph[inputs[0]].result);
  const graph::ResultText after = graph::SplitResult(graph[id].result);
  if (graph::IsCast(graph.op(id)))
    return before.dtype == after.dtype && !before.tuple;
  return !IsOutOfOrder(graph, ops, inputs[0]);
}

// What a kernel reads of a value; through a view perhaps less than all of it.
struct Reading {
  bool heavy = false;
  std::optional<int64_t> bytes;
};

struct Reads {
  int64_t bytes = 0;
  int64_t light_bytes = 0;
};

// No kernel reads more than the value holds: an expanded view repeats it.
Reads Sum(const std::vector<Reading>& readings, int64_t size) {
  Reads out;
  for (const Reading& reading : readings) {
    const int64_t bytes = std::min(size, reading.bytes.value_or(size));
    out.bytes += bytes;
    if (!reading.heavy) out.light_bytes += bytes;
  }
  return out;
}

// Bytes of the rows of a table that `rows` names, one row per element.
std::optional<int64_t> RowBytes(const Graph& graph, NodeId table, NodeId rows,
                                const graph::Bindings& bindings) {
  if (!rows.valid()) return std::nullopt;
  const graph::ResultText text = graph::SplitResult(graph[table].result);
  const auto dims = graph::SplitShape(text.shape);
  const auto bytes = BytesOf(graph, table, bindings);
  const auto asked =
      graph::Elements(graph::SplitResult(graph[rows].result).shape, bindings);
  if (!dims || dims->empty() || !bytes || !asked) return std::nullopt;
  const auto height = graph::EvaluateDim(dims->front(), bindings);
  int64_t out = 0;
  if (!height || *height <= 0 ||
      __builtin_mul_overflow(*bytes / *height, *asked, &out))
    return std::nullopt;
  return out;
}

}  // namespace

bool Launches(const Graph& graph, const OpTable& ops, NodeId id) {
  if (graph[id].kind != NodeKind::kOp) return false;
  const OpClass op_class = ops.ClassOf(graph.op(id));
  if (op_class == OpClass::kView || op_class == OpClass::kHost) return false;
  return !IsFree(graph, ops, id);
}

graph::Bindings ReferenceBindings(const Graph& graph,
                                  const graph::Bindings& given,
                                  std::vector<std::string>* assumed) {
  graph::Bindings out = given;
  bool first = true;
  const auto bind = [&](std::string_view symbol, int64_t value) {
    if (!out.try_emplace(std::string(symbol), value).second) return;
    if (assumed != nullptr)
      assumed->push_back(std::string(symbol) + "=" + std::to_string(value));
  };
  for (const NodeId id : graph.nodes()) {
    const graph::ResultText result = graph::SplitResult(graph[id].result);
    std::vector<std::string_view> shapes = {result.shape};
    if (result.tuple) shapes = graph::SplitTuple(result.shape);
    for (const std::string_view shape : shapes) {
      for (const std::string_view symbol : graph::Symbols(shape)) {
        // The first symbol of the first input is the batch.
        bind(symbol, first ? 1 : kReferenceTokens);
        first = false;
      }
    }
  }
  return out;
}

std::optional<int64_t> BytesOf(const Graph& graph, NodeId id,
                               const graph::Bindings& bindings) {
  // No device holds more: the shape is not to be believed, and sums stay exact.
  constexpr int64_t kMaxBytes = int64_t{1} << 42;
  const auto bytes = graph::ResultBytes(graph[id].result, bindings);
  return bytes && *bytes <= kMaxBytes ? bytes : std::nullopt;
}

std::optional<int64_t> BytesRead(const Graph& graph, const OpTable& ops,
                                 NodeId reader, NodeId value,
                                 const graph::Bindings& bindings) {
  const auto whole = BytesOf(graph, value, bindings);
  const Lookup* const lookup = ops.FindLookup(graph.op(reader));
  if (!whole || lookup == nullptr) return whole;
  const std::vector<graph::OperandId> operands = graph.TopOperands(reader);
  const auto operand = [&](size_t index) {
    return index < operands.size() ? graph.operand(operands[index]).value()
                                   : NodeId();
  };
  if (operand(lookup->table) != value) return whole;
  const auto part =
      lookup->rows ? RowBytes(graph, value, operand(*lookup->rows), bindings)
                   : BytesOf(graph, reader, bindings);
  return std::min(*whole, part.value_or(*whole));
}

Traffic Separate(const Graph& graph, const OpTable& ops,
                 const std::vector<NodeId>& nodes,
                 const graph::Bindings& bindings) {
  Traffic out;
  std::vector<NodeId> inputs;
  for (const NodeId id : nodes) {
    if (!Launches(graph, ops, id)) continue;
    ++out.kernels;
    graph.Inputs(id, inputs);
    for (const NodeId input : inputs) {
      const auto bytes = BytesRead(graph, ops, id, input, bindings);
      out.read_bytes += bytes.value_or(0);
      out.unknown += !bytes;
    }
    const auto bytes = BytesOf(graph, id, bindings);
    out.written_bytes += bytes.value_or(0);
    out.unknown += !bytes;
  }
  return out;
}

Saving SavingOf(const Graph& graph, const OpTable& ops,
                const std::vector<NodeId>& nodes,
                const graph::Bindings& bindings) {
  Saving out;
  const absl::flat_hash_set<NodeId> inside(nodes.begin(), nodes.end());
  // Views carry a value on: the kernels behind them read it.
  absl::flat_hash_map<NodeId, NodeId> source;
  const auto source_of = [&](NodeId id) {
    const auto found = source.find(id);
    return found == source.end() ? id : found->second;
  };
  absl::flat_hash_map<NodeId, std::vector<Reading>> readers;
  std::vector<NodeId> order;  // values read, in order
  absl::flat_hash_set<NodeId> used_outside;
  size_t heavy = 0;
  std::vector<NodeId> inputs;
  for (const NodeId id : nodes) {
    graph.Inputs(id, inputs);
    const bool kernel = Launches(graph, ops, id);
    out.kernels += kernel;
    heavy += kernel && ops.ClassOf(graph.op(id)) == OpClass::kHeavy;
    if (!kernel && !inputs.empty()) source[id] = source_of(inputs[0]);
    if (kernel) {
      for (const NodeId input : inputs) {
        const NodeId value = source_of(input);
        std::vector<Reading>& list = readers[value];
        if (list.empty()) order.push_back(value);
        list.push_back({ops.ClassOf(graph.op(id)) == OpClass::kHeavy,
                        BytesRead(graph, ops, id, input, bindings)});
      }
    }
    bool outside = graph.UseCount(id) == 0;
    graph.ForEachUse(id, [&](graph::OperandId, const graph::Operand& use) {
      outside |= !inside.contains(use.owner());
    });
    if (outside) used_outside.insert(source_of(id));
  }
  if (out.kernels > 0) out.launches = out.kernels - std::max<size_t>(heavy, 1);
  const auto is_heavy = [&](NodeId id) {
    return ops.ClassOf(graph.op(id)) == OpClass::kHeavy;
  };
  for (const NodeId value : order) {
    const auto size = BytesOf(graph, value, bindings);
    if (!size) {
      ++out.unknown;
      continue;
    }
    const Reads reads = Sum(readers[value], *size);
    const bool made = inside.contains(value);
    if (made && !used_outside.contains(value)) {
      // Written by one kernel and read by others today. What one matrix
      // product hands to another stays in memory.
      if (is_heavy(value) && reads.light_bytes == 0) continue;
      out.bytes += *size + reads.bytes;
      continue;
    }
    if (made) {
      out.bytes += reads.light_bytes;
      continue;
    }
    out.remaining_bytes += std::min(*size, reads.bytes);
    out.bytes += reads.light_bytes - std::min(*size, reads.light_bytes);
  }
  for (const NodeId id : nodes) {
    if (used_outside.contains(id))
      out.remaining_bytes += BytesOf(graph, id, bindings).value_or(0);
  }
  return out;
}

std::string Memory::Text() const {
  return fmt::format("{:.4g} TB/s ({})", bytes_per_s / 1e12,
                     device.empty()
                         ? "an H100 SXM is assumed: no device is named"
                         : EscapeTerminal(device));
}

int64_t EstimateNs(int64_t launches, int64_t bytes, const Memory& memory) {
  return launches * kLaunchNs +
         static_cast<int64_t>(std::llround(static_cast<double>(bytes) * 1e9 /
                                           memory.bytes_per_s));
}

}  // namespace lamina::fusion
