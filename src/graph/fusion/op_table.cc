// SPDX-License-Identifier: Apache-2.0

#include "graph/fusion/op_table.h"

#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "base/text.h"
#include "graph/fusion/form_kind.h"
#include "graph/fusion/meaning.h"
#include "graph/types.h"

namespace lamina::fusion {

namespace {

using rules::DataFile;
using rules::Members;

constexpr std::pair<std::string_view, OpClass> kClasses[] = {
    {"heavy", OpClass::kHeavy}, {"light", OpClass::kLight},
    {"view", OpClass::kView},   {"host", OpClass::kHost},
    {"other", OpClass::kOther},
};

Result<OpClass> ReadClass(const DataFile& file, const Members& members) {
  LAMINA_ASSIGN(const std::string name, members.Text("class"));
  for (const auto& [known, op_class] : kClasses) {
    if (name == known) return op_class;
  }
  return Fail(file.ErrorAt(*members.Find("class"),
                           "expected heavy, light, view, host or other"));
}

Result<KnownOp> ReadOp(const DataFile& file, const rules::Node& node) {
  constexpr std::string_view kKeys[] = {"op",    "kind",  "source", "evidence",
                                        "means", "takes", "needs"};
  LAMINA_ASSIGN(const Members members, Members::Of(file, node, kKeys));
  KnownOp op;
  LAMINA_ASSIGN(op.op, members.Text("op"));
  op.kind = members.TextOr("kind", "");
  op.source = members.TextOr("source", "");
  op.evidence = members.TextOr("evidence", "inferred");
  LAMINA_ASSIGN(op.means, members.Texts("means"));
  LAMINA_ASSIGN(op.takes, members.Texts("takes"));
  op.needs = members.TextOr("needs", "");
  for (const std::string& text : op.means) {
    if (!Meaning().Parse(text)) {
      return Fail(file.ErrorAt(*members.Find("means"),
                               "expected terms like 'mul(silu(a), b)'"));
    }
  }
  return op;
}

// The number of an input; nothing when the key is absent.
Result<std::optional<size_t>> ReadInput(const DataFile& file,
                                        const Members& members,
                                        std::string_view key) {
  constexpr double kMaxInputs = 1000;
  LAMINA_ASSIGN(const auto number, members.OptionalNumber(key));
  if (!number) return std::optional<size_t>();
  if (!(*number >= 0 && *number < kMaxInputs) ||
      *number != std::floor(*number)) {
    return Fail(file.ErrorAt(*members.Find(key),
                             "expected the number of an input, from 0"));
  }
  return std::optional(static_cast<size_t>(*number));
}

Result<Lookup> ReadLookup(const DataFile& file, const rules::Node& node) {
  constexpr std::string_view kKeys[] = {"op", "table", "rows"};
  LAMINA_ASSIGN(const Members members, Members::Of(file, node, kKeys));
  Lookup lookup;
  LAMINA_ASSIGN(lookup.op, members.Text("op"));
  LAMINA_ASSIGN(const auto table, ReadInput(file, members, "table"));
  lookup.table = table.value_or(0);
  LAMINA_ASSIGN(lookup.rows, ReadInput(file, members, "rows"));
  return lookup;
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
  auto out = std::make_shared<OpTable>();
  LAMINA_ASSIGN(const auto files, data.Load("autodeploy"));
  for (const auto& file : files) LAMINA_TRY(out->Read(*file));
  return out;
}

Result<void> OpTable::Read(const DataFile& file) {
  constexpr std::string_view kKeys[] = {"classes", "maybe_free", "fused",
                                        "lookups", "tokens",     "ops"};
  constexpr std::string_view kClassKeys[] = {"class", "ops", "containing"};
  LAMINA_ASSIGN(const Members members, Members::Of(file, file.root, kKeys));
  LAMINA_ASSIGN(const auto free, members.Texts("maybe_free"));
  maybe_free_.insert(maybe_free_.end(), free.begin(), free.end());
  LAMINA_ASSIGN(const auto fused, members.Texts("fused"));
  fused_.insert(fused_.end(), fused.begin(), fused.end());
  if (const rules::Node* const classes = members.Find("classes")) {
    for (const rules::Node& node : classes->items) {
      LAMINA_ASSIGN(const Members one, Members::Of(file, node, kClassKeys));
      LAMINA_ASSIGN(const OpClass op_class, ReadClass(file, one));
      LAMINA_ASSIGN(const auto exact, one.Texts("ops"));
      LAMINA_ASSIGN(const auto words, one.Texts("containing"));
      for (const std::string& op : exact)
        prefixes_.push_back({op, op_class, false});
      for (const std::string& word : words)
        prefixes_.push_back({word, op_class, true});
    }
  }
  if (const rules::Node* const lookups = members.Find("lookups")) {
    for (const rules::Node& node : lookups->items) {
      LAMINA_ASSIGN(Lookup lookup, ReadLookup(file, node));
      lookups_.push_back(std::move(lookup));
    }
  }
  if (const rules::Node* const tokens = members.Find("tokens")) {
    for (size_t i = 0; i < tokens->keys.size(); ++i)
      tokens_.emplace_back(tokens->keys[i].text, tokens->items[i].text);
  }
  if (const rules::Node* const ops = members.Find("ops")) {
    for (const rules::Node& node : ops->items) {
      LAMINA_ASSIGN(KnownOp op, ReadOp(file, node));
      ops_.push_back(std::move(op));
    }
  }
  return {};
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

bool OpTable::IsFused(std::string_view op) const {
  return std::any_of(
      fused_.begin(), fused_.end(),
      [&](const std::string& part) { return Contains(op, part); });
}

const KnownOp* OpTable::Find(std::string_view op) const {
  for (const KnownOp& known : ops_) {
    if (graph::MatchesTarget(op, known.op)) return &known;
  }
  return nullptr;
}

const Lookup* OpTable::FindLookup(std::string_view op) const {
  for (const Lookup& lookup : lookups_) {
    if (graph::MatchesTarget(op, lookup.op)) return &lookup;
  }
  return nullptr;
}

namespace {

using graph::Graph;
using graph::NodeId;
using graph::NodeKind;

// Light nodes between a form and attention that still count as close.
constexpr int kNear = 3;

// Whether an op for which `is` holds is within a few nodes.
bool CloseTo(const Graph& graph, const ClassedOps& ops,
             const std::vector<NodeId>& nodes, bool ahead,
             bool (*is)(std::string_view), int hops) {
  std::vector<std::pair<NodeId, int>> open;
  for (const NodeId id : nodes) open.emplace_back(id, 0);
  absl::flat_hash_set<NodeId> seen(nodes.begin(), nodes.end());
  while (!open.empty()) {
    const auto [id, depth] = open.back();
    open.pop_back();
    for (const NodeId next : ahead ? graph.Users(id) : graph.Inputs(id)) {
      if (graph[next].kind != NodeKind::kOp || !seen.insert(next).second)
        continue;
      if (is(graph.op(next))) return true;
      if (ops.IsView(next)) {
        open.emplace_back(next, depth);
      } else if (ops.IsLight(next) && depth + 1 < hops) {
        open.emplace_back(next, depth + 1);
      }
    }
  }
  return false;
}

}  // namespace

FormKind KindOfForm(const Graph& graph, const ClassedOps& ops,
                    const std::vector<NodeId>& nodes) {
  bool norm = false;
  bool copies = true;
  for (const NodeId id : nodes) {
    const std::string_view op = graph.op(id);
    norm |= Contains(op, "rsqrt") || Contains(op, "norm");
    if (ops.IsLight(id)) {
      copies &= Contains(op, "aten.to") || Contains(op, "_to_copy") ||
                Contains(op, "contiguous") || Contains(op, "clone");
    }
  }
  if (copies) return FormKind::kCopies;
  const auto collective = [](std::string_view op) {
    return Contains(op, "all_reduce") || Contains(op, "allreduce") ||
           Contains(op, "all_gather") || Contains(op, "reduce_scatter");
  };
  if (CloseTo(graph, ops, nodes, false, collective, 1))
    return FormKind::kCollective;
  if (norm) return FormKind::kNorm;
  const auto attention = [](std::string_view op) {
    return Contains(op, "attention") || Contains(op, "sdpa") ||
           Contains(op, "rope");
  };
  if (CloseTo(graph, ops, nodes, true, attention, kNear) ||
      CloseTo(graph, ops, nodes, false, attention, kNear))
    return FormKind::kAttention;
  const auto heavy = [](std::string_view op) {
    return Contains(op, "linear") || Contains(op, "gemm") ||
           Contains(op, "moe") || Contains(op, "aten.mm") ||
           Contains(op, "matmul");
  };
  if (CloseTo(graph, ops, nodes, false, heavy, 1)) return FormKind::kEpilogue;
  if (CloseTo(graph, ops, nodes, true, heavy, 1)) return FormKind::kPrologue;
  return FormKind::kElementWise;
}

std::string_view Name(FormKind kind) {
  switch (kind) {
    case FormKind::kElementWise:
      return "element-wise chain";
    case FormKind::kNorm:
      return "norm chain";
    case FormKind::kEpilogue:
      return "epilogue";
    case FormKind::kPrologue:
      return "prologue";
    case FormKind::kAttention:
      return "attention-adjacent";
    case FormKind::kCollective:
      return "collective + norm";
    case FormKind::kCopies:
      return "redundant casts and copies";
    case FormKind::kSiblings:
      return "sibling GEMMs";
  }
  return {};
}

}  // namespace lamina::fusion
