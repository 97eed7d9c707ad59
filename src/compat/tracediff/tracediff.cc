// SPDX-License-Identifier: Apache-2.0
#include "compat/tracediff/tracediff.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/common/launchers.h"
#include "base/sequence_match.h"
#include "compare/diff/match.h"
#include "compare/diff/side.h"
#include "compat/tracelens/python_text.h"
#include "compat/tracelens/sheets.h"

namespace lamina::compat::tracediff {
namespace {

using analysis::Context;
using analysis::NodeId;
using analysis::SliceId;
using analysis::diff::kNone;
using analysis::diff::Matching;
using analysis::diff::Names;
using analysis::diff::PerSide;
using analysis::diff::Side;
using tracelens::Count;
using tracelens::Number;
using tracelens::Text;

constexpr size_t kSides[] = {0, 1};

// Events of both sides with one lowest common ancestor.
struct Group {
  std::string name;
  PerSide<std::vector<SliceId>> work;
};

// Two spellings of the call that starts a kernel of a module; others are
// compared as they are, so that hipLaunchKernel is no cudaLaunchKernel.
std::string_view LaunchName(std::string_view name) {
  return name == "hipModuleLaunchKernel" ? "cuLaunchKernel" : name;
}

std::string Joined(std::string_view a, std::string_view b) {
  return a == b ? std::string(a) : std::string(a) + " | " + std::string(b);
}

class Grouper {
 public:
  Grouper(const Side& a, const Side& b, const Matching& matching, Names& names)
      : sides_{&a, &b},
        partners_{&matching.partner_a, &matching.partner_b},
        names_(names) {}

  // In the order of A, what only B has behind what stands before it there.
  std::vector<Group> Run() {
    Anchor(0);
    Anchor(1);
    std::vector<std::pair<std::pair<uint32_t, uint32_t>, uint32_t>> order;
    for (uint32_t i = 0; i < groups_.size(); ++i)
      order.push_back({places_[i], i});
    std::sort(order.begin(), order.end());
    std::vector<Group> out;
    for (const auto& [place, i] : order) Split(std::move(groups_[i]), out);
    return out;
  }

 private:
  // Every entry's work goes to the nearest matched entry above it, or to none.
  void Anchor(size_t s) {
    const Side& side = *sides_[s];
    const auto& entries = side.entries();
    const std::vector<uint32_t>& partner = *partners_[s];
    std::vector<uint32_t> anchor(entries.size(), kNone);
    uint32_t last = 0;  // the entry of A before this one
    uint32_t alone = 0;
    for (uint32_t i = 0; i < entries.size(); ++i) {
      if (partner[i] != kNone) {
        anchor[i] = i;
        last = s == 0 ? i : partner[i];
      } else if (entries[i].parent != kNone) {
        anchor[i] = anchor[entries[i].parent];
      }
      if (side.Work(i).empty()) continue;
      const bool matched = anchor[i] != kNone;
      // Entries of A by their number, those of B that none holds by the side.
      const std::pair<uint32_t, uint32_t> key =
          matched ? std::pair(s == 0 ? anchor[i] : partner[anchor[i]], 0u)
                  : std::pair(s == 0 ? i : last, s == 0 ? 1u : 2 + alone++);
      Group& group = GroupAt(key);
      if (matched) {
        const uint32_t in_a = key.first;
        const uint32_t in_b = (*partners_[0])[in_a];
        group.name = Joined(NameOf(0, in_a), NameOf(1, in_b));
      }
      for (const SliceId slice : side.Work(i)) group.work[s].push_back(slice);
    }
  }
  Group& GroupAt(std::pair<uint32_t, uint32_t> key) {
    const auto [it, is_new] =
        ids_.try_emplace(key, static_cast<uint32_t>(groups_.size()));
    if (is_new) {
      groups_.emplace_back();
      places_.push_back(key);
    }
    return groups_[it->second];
  }
  std::string_view NameOf(size_t s, uint32_t entry) const {
    const NodeId node = sides_[s]->entry(entry).node;
    if (node.valid()) return sides_[s]->context().tree.name(node);
    // A step; what stands outside of steps has nothing above it.
    const std::string_view step = names_.Text(sides_[s]->entry(entry).name);
    return step.starts_with('(') ? std::string_view() : step;
  }

  // Launches by equal calls, one by one, are groups of their own.
  void Split(Group group, std::vector<Group>& out) const {
    PerSide<std::vector<uint64_t>> calls, both;
    std::map<std::string_view, uint64_t> numbers;
    for (const size_t s : kSides) {
      for (const SliceId slice : group.work[s]) {
        const auto& tree = sides_[s]->context().tree;
        const NodeId launch = tree.launch(slice);
        // One call may start many kernels: those of a graph.
        const std::string_view name =
            trace::IsApiCall(tree.kind(launch)) &&
                    tree.OwnDeviceWork(launch).size() == 1
                ? LaunchName(tree.name(launch))
                : std::string_view();
        const uint64_t call =
            name.empty()
                ? 0
                : numbers.try_emplace(name, numbers.size() + 1).first->second;
        calls[s].push_back(call);
        both[s].push_back(call << 32 | sides_[s]->Kernel(slice).value);
      }
    }
    PerSide<std::vector<bool>> taken;
    for (const size_t s : kSides) taken[s].resize(group.work[s].size());
    std::vector<SequencePair> pairs;
    for (const SequencePair& pair : Refined(both, calls)) {
      if (calls[0][pair.a] == 0) continue;
      taken[0][pair.a] = taken[1][pair.b] = true;
      pairs.push_back(pair);
    }
    Group rest;
    rest.name = group.name;
    for (const size_t s : kSides) {
      for (size_t i = 0; i < group.work[s].size(); ++i) {
        if (!taken[s][i]) rest.work[s].push_back(group.work[s][i]);
      }
    }
    if (!rest.work[0].empty() || !rest.work[1].empty())
      out.push_back(std::move(rest));
    for (const SequencePair& pair : pairs) {
      const SliceId a = group.work[0][pair.a], b = group.work[1][pair.b];
      out.push_back(
          {Joined(sides_[0]->trace().Name(a), sides_[1]->trace().Name(b)),
           {std::vector<SliceId>{a}, std::vector<SliceId>{b}}});
    }
  }

  // Equal in call and kernel first, between those equal in the call.
  static std::vector<SequencePair> Refined(
      const PerSide<std::vector<uint64_t>>& both,
      const PerSide<std::vector<uint64_t>>& calls) {
    std::vector<SequencePair> out;
    std::vector<SequencePair> stops = MatchSequences(both[0], both[1]);
    stops.push_back({static_cast<uint32_t>(both[0].size()),
                     static_cast<uint32_t>(both[1].size())});
    SequencePair at{0, 0};
    for (const SequencePair& stop : stops) {
      for (const SequencePair& pair :
           MatchSequences(std::span(calls[0]).subspan(at.a, stop.a - at.a),
                          std::span(calls[1]).subspan(at.b, stop.b - at.b)))
        out.push_back({at.a + pair.a, at.b + pair.b});
      if (stop.a < both[0].size()) out.push_back(stop);
      at = {stop.a + 1, stop.b + 1};
    }
    return out;
  }

  PerSide<const Side*> sides_;
  PerSide<const std::vector<uint32_t>*> partners_;
  Names& names_;
  std::vector<Group> groups_;
  std::vector<std::pair<uint32_t, uint32_t>> places_;  // by group
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> ids_;
};

// One device event.
struct Row {
  std::string_view kernel;
  std::string_view op;
  std::optional<uint32_t> op_uid;
  size_t side = 0;
  std::string dims, strides, types, concrete;
  int64_t kernel_ns = 0;
  int64_t busy_ns = 0;  // of its group on this side
  std::string_view ancestor;
  int64_t ancestor_id = 0;
  uint32_t uid = 0;
  std::string modules, module;

  auto ArgumentKey() const {
    return std::tie(kernel, op, op_uid, side, dims, strides, types, concrete,
                    busy_ns, ancestor, modules, module);
  }
};

std::string TupleOf(const trace::Trace& trace, StringId text) {
  return text.valid() ? tracelens::PythonTuple(trace.Text(text))
                      : std::string();
}

void FillModules(const Context& context, NodeId node, Row& row) {
  const auto& modules = context.modules;
  std::vector<std::string> names;
  const bool frames = context.tree.options().python_stacks;
  for (auto path = frames ? modules.OwnerOf(node).path : tree::ModulePathId();
       path.valid(); path = modules.path(path).parent)
    names.emplace_back(context.trace.Text(modules.path(path).name));
  if (names.empty()) names.emplace_back("root");
  row.module = names.front();
  for (auto it = names.rbegin(); it != names.rend(); ++it)
    row.modules += (row.modules.empty() ? "" : ";") + *it;
}

std::vector<Row> RowsOf(const std::vector<Group>& groups,
                        const PerSide<const Side*>& sides) {
  std::vector<Row> rows;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const size_t s : kSides) {
      const Context& context = sides[s]->context();
      const trace::Trace& trace = context.trace;
      const std::vector<SliceId>& work = groups[g].work[s];
      const int64_t busy = analysis::UnionOf(trace, work);
      for (const SliceId slice : work) {
        Row& row = rows.emplace_back();
        row.kernel = trace.Name(slice);
        row.side = s;
        row.kernel_ns = trace.Duration(slice);
        row.busy_ns = busy;
        row.ancestor = groups[g].name;
        row.ancestor_id = static_cast<int64_t>(g);
        row.uid = trace.Uid(slice);
        const NodeId launch = context.tree.launch(slice);
        FillModules(context, launch, row);
        const NodeId op = context.tree.EnclosingOp(launch);
        if (!op.valid()) continue;
        row.op = context.tree.name(op);
        row.op_uid = trace.Uid(context.tree.slice(op));
        if (const trace::OpArgs* args = trace.Op(context.tree.slice(op))) {
          row.dims = TupleOf(trace, args->dims);
          row.strides = TupleOf(trace, args->strides);
          row.types = TupleOf(trace, args->types);
          row.concrete = TupleOf(trace, args->concrete);
        }
      }
    }
  }
  return rows;
}

Value Uid(const std::optional<uint32_t>& uid) {
  return uid ? Value(static_cast<int64_t>(*uid)) : Value();
}
std::string_view Source(size_t side) { return side == 0 ? "trace1" : "trace2"; }

Table EventSheet(const std::vector<Row>& rows) {
  Table table(
      {"diff_stats",
       "Device events by their lowest common ancestor.",
       {Text("name"), Text("cpu_op_name"), Count("cpu_op_uid"), Text("source"),
        Text("Input Dims"), Text("Input Strides"), Text("Input type"),
        Text("Concrete Inputs"), Number("kernel_time"), Number("busy_time"),
        Text("lowest_common_ancestor_name"), Count("lowest_common_ancestor_id"),
        Count("gpu_op_uid"), Text("nn_module_stack"),
        Text("nn_module_parent")}});
  for (const Row& row : rows) {
    table.Add(row.kernel, row.op, Uid(row.op_uid), Source(row.side), row.dims,
              row.strides, row.types, row.concrete,
              tracelens::Us(row.kernel_ns), tracelens::Us(row.busy_ns),
              row.ancestor, row.ancestor_id, static_cast<int64_t>(row.uid),
              row.modules, row.module);
  }
  return table;
}

Table SummarySheet(const std::vector<Row>& rows) {
  struct Sum {
    const Row* first = nullptr;
    int64_t count = 0;
    int64_t ns = 0;
  };
  std::vector<Sum> sums;
  std::map<decltype(rows[0].ArgumentKey()), size_t> ids;
  for (const Row& row : rows) {
    const auto [it, is_new] = ids.try_emplace(row.ArgumentKey(), sums.size());
    if (is_new) sums.push_back({&row, 0, 0});
    ++sums[it->second].count;
    sums[it->second].ns += row.kernel_ns;
  }
  // Ties as TraceDiff breaks them: by the cells as text, from the left.
  const auto cells = [](const Sum& sum) {
    const Row& r = *sum.first;
    return std::tuple(r.kernel, std::to_string(sum.count), r.op,
                      r.op_uid ? std::to_string(*r.op_uid) : std::string(),
                      r.side, std::string_view(r.dims),
                      std::string_view(r.strides), std::string_view(r.types),
                      std::string_view(r.concrete), r.busy_ns);
  };
  std::stable_sort(sums.begin(), sums.end(), [&](const Sum& a, const Sum& b) {
    return a.ns != b.ns ? a.ns > b.ns : cells(a) < cells(b);
  });
  Table table(
      {"diff_stats_unique_args_summary",
       "The same by kernel, op and arguments.",
       {Text("name"), Count("operation_count"), Text("cpu_op_name"),
        Count("cpu_op_uid"), Text("source"), Text("Input Dims"),
        Text("Input Strides"), Text("Input type"), Text("Concrete Inputs"),
        Number("busy_time"), Text("lowest_common_ancestor_name"),
        Text("nn_module_stack"), Text("nn_module_parent"),
        Number("kernel_time_mean"), Number("kernel_time_sum")}});
  for (const Sum& sum : sums) {
    const Row& row = *sum.first;
    table.Add(row.kernel, sum.count, row.op, Uid(row.op_uid), Source(row.side),
              row.dims, row.strides, row.types, row.concrete,
              tracelens::Us(row.busy_ns), row.ancestor, row.modules, row.module,
              tracelens::Us(sum.ns) / static_cast<double>(sum.count),
              tracelens::Us(sum.ns));
  }
  return table;
}

}  // namespace

ResultSet MakeSheets(const Context& context_a, const Context& context_b) {
  Names names;
  const auto levels = analysis::diff::LevelsOf(context_a, context_b);
  const Side a(context_a, levels, names);
  const Side b(context_b, levels, names);
  const Matching matching = MatchSides(a, b);
  const std::vector<Group> groups = Grouper(a, b, matching, names).Run();
  const std::vector<Row> rows = RowsOf(groups, {&a, &b});
  ResultSet result;
  result.tables.push_back(EventSheet(rows));
  result.tables.push_back(SummarySheet(rows));
  return result;
}

}  // namespace lamina::compat::tracediff
