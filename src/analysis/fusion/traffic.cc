// SPDX-License-Identifier: Apache-2.0
#include "analysis/fusion/traffic.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/escape.h"
#include "base/text.h"
#include "graph/pattern/pattern.h"
#include "graph/tables.h"
#include "graph/target.h"

namespace lamina::fusion {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;

constexpr int64_t kReferenceTokens = 128;

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
  // A copy is needed behind a view that changes the order only.
  return graph[inputs[0]].kind != NodeKind::kOp ||
         ops.ClassOf(graph.op(inputs[0])) != OpClass::kView ||
         graph::MatchesTarget(graph.op(inputs[0]), "aten.view");
}

bool HasKernel(const Graph& graph, const OpTable& ops, NodeId id) {
  if (graph[id].kind != NodeKind::kOp) return false;
  const OpClass op_class = ops.ClassOf(graph.op(id));
  if (op_class == OpClass::kView || op_class == OpClass::kHost) return false;
  return !IsFree(graph, ops, id);
}

}  // namespace

std::string_view Name(OpClass op_class) {
  switch (op_class) {
    case OpClass::kHeavy:
      return "heavy";
    case OpClass::kLight:
      return "light";
    case OpClass::kView:
      return "view";
    case OpClass::kHost:
      return "host";
    case OpClass::kOther:
      return "other";
  }
  return {};
}

Result<std::shared_ptr<const OpTable>> OpTable::Load(
    const rules::DataSet& data) {
  constexpr std::string_view kKeys[] = {"classes", "maybe_free", "tokens",
                                        "ops"};
  constexpr std::string_view kClassKeys[] = {"class", "ops", "containing"};
  constexpr std::string_view kOpKeys[] = {"op", "kind", "source", "evidence"};
  constexpr std::pair<std::string_view, OpClass> kClasses[] = {
      {"heavy", OpClass::kHeavy}, {"light", OpClass::kLight},
      {"view", OpClass::kView},   {"host", OpClass::kHost},
      {"other", OpClass::kOther},
  };
  auto out = std::make_shared<OpTable>();
  LAMINA_ASSIGN(const auto files, data.Load("autodeploy"));
  for (const auto& file : files) {
    LAMINA_ASSIGN(const rules::Members members,
                  rules::Members::Of(*file, file->root, kKeys));
    LAMINA_ASSIGN(const auto free, members.Texts("maybe_free"));
    out->maybe_free_.insert(out->maybe_free_.end(), free.begin(), free.end());
    if (const rules::Node* const classes = members.Find("classes")) {
      for (const rules::Node& node : classes->items) {
        LAMINA_ASSIGN(const rules::Members one,
                      rules::Members::Of(*file, node, kClassKeys));
        LAMINA_ASSIGN(const std::string name, one.Text("class"));
        const auto* const found =
            std::find_if(std::begin(kClasses), std::end(kClasses),
                         [&](const auto& c) { return c.first == name; });
        if (found == std::end(kClasses)) {
          return Fail(file->ErrorAt(*one.Find("class"),
                                    "expected heavy, light, view, host or "
                                    "other"));
        }
        LAMINA_ASSIGN(const auto exact, one.Texts("ops"));
        LAMINA_ASSIGN(const auto words, one.Texts("containing"));
        for (const std::string& op : exact)
          out->prefixes_.push_back({op, found->second, false});
        for (const std::string& word : words)
          out->prefixes_.push_back({word, found->second, true});
      }
    }
    if (const rules::Node* const tokens = members.Find("tokens")) {
      for (size_t i = 0; i < tokens->keys.size(); ++i)
        out->tokens_.emplace_back(tokens->keys[i].text, tokens->items[i].text);
    }
    if (const rules::Node* const ops = members.Find("ops")) {
      for (const rules::Node& node : ops->items) {
        LAMINA_ASSIGN(const rules::Members one,
                      rules::Members::Of(*file, node, kOpKeys));
        KnownOp op;
        LAMINA_ASSIGN(op.op, one.Text("op"));
        op.kind = one.TextOr("kind", "");
        op.source = one.TextOr("source", "");
        op.evidence = one.TextOr("evidence", "inferred");
        out->ops_.push_back(std::move(op));
      }
    }
  }
  return out;
}

OpClass OpTable::ClassOf(std::string_view op) const {
  for (const Prefix& prefix : prefixes_) {
    if (prefix.anywhere ? Contains(op, prefix.text)
                        : graph::MatchesTarget(op, prefix.text))
      return prefix.op_class;
  }
  return OpClass::kOther;
}

bool OpTable::MayBeFree(std::string_view op) const {
  return std::any_of(maybe_free_.begin(), maybe_free_.end(),
                     [&](const std::string& prefix) {
                       return graph::MatchesTarget(op, prefix);
                     });
}

const KnownOp* OpTable::Find(std::string_view op) const {
  for (const KnownOp& known : ops_) {
    if (graph::MatchesTarget(op, known.op)) return &known;
  }
  return nullptr;
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
  return graph::ResultBytes(graph[id].result, bindings);
}

Traffic Separate(const Graph& graph, const OpTable& ops,
                 const std::vector<NodeId>& nodes,
                 const graph::Bindings& bindings) {
  Traffic out;
  std::vector<NodeId> inputs;
  for (const NodeId id : nodes) {
    if (!HasKernel(graph, ops, id)) continue;
    ++out.kernels;
    graph.Inputs(id, inputs);
    for (const NodeId input : inputs) {
      const auto bytes = BytesOf(graph, input, bindings);
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
  absl::flat_hash_map<NodeId, std::vector<NodeId>> readers;
  std::vector<NodeId> order;  // values read, in order
  absl::flat_hash_set<NodeId> used_outside;
  size_t heavy = 0;
  std::vector<NodeId> inputs;
  for (const NodeId id : nodes) {
    graph.Inputs(id, inputs);
    const bool kernel = HasKernel(graph, ops, id);
    out.kernels += kernel;
    heavy += kernel && ops.ClassOf(graph.op(id)) == OpClass::kHeavy;
    if (!kernel && !inputs.empty()) source[id] = source_of(inputs[0]);
    if (kernel) {
      for (const NodeId input : inputs) {
        std::vector<NodeId>& list = readers[source_of(input)];
        if (list.empty()) order.push_back(source_of(input));
        list.push_back(id);
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
    const std::vector<NodeId>& by = readers[value];
    const size_t heavy_readers =
        static_cast<size_t>(std::count_if(by.begin(), by.end(), is_heavy));
    const size_t light_readers = by.size() - heavy_readers;
    const bool made = inside.contains(value);
    if (made && !used_outside.contains(value)) {
      // Written by one kernel and read by others today. What one matrix
      // product hands to another stays in memory.
      if (is_heavy(value) && light_readers == 0) continue;
      out.bytes += *size * static_cast<int64_t>(1 + by.size());
      continue;
    }
    if (made) {
      out.bytes += *size * static_cast<int64_t>(light_readers);
      continue;
    }
    out.remaining_bytes += *size;
    if (light_readers > 1)
      out.bytes += *size * static_cast<int64_t>(light_readers - 1);
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
                         ? "an H100 SXM is assumed, --device names another"
                         : EscapeTerminal(device));
}

int64_t EstimateNs(int64_t launches, int64_t bytes, const Memory& memory) {
  return launches * kLaunchNs +
         static_cast<int64_t>(std::llround(static_cast<double>(bytes) * 1e9 /
                                           memory.bytes_per_s));
}

}  // namespace lamina::fusion
