// SPDX-License-Identifier: Apache-2.0
#include "graph/compiled/compiled_tables.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <vector>

#include "analysis/common/kernel_groups.h"
#include "graph/compiled/compiled_join.h"
#include "table/row_columns.h"

namespace lamina::graph {
namespace {

using analysis::CompiledWork;
using analysis::Join;
using trace::SliceId;

struct KernelRow {
  std::string_view program, kernel, kind, ops, where, lines, nodes;
  size_t calls, count;
  int64_t kernel_time;
  std::optional<double> percent;
  std::optional<std::string_view> join;
};

const RowColumns<KernelRow>& KernelColumns() {
  static const RowColumns<KernelRow> columns{
      "compiled_kernels",
      "Kernels of compiled programs: the ops and lines of the model that each "
      "computes.",
      {{"program", ColumnType::kText, "Compile id, or the file.",
        &KernelRow::program},
       {"kernel", ColumnType::kText, "As the code names it.",
        &KernelRow::kernel},
       {"kind", ColumnType::kText,
        "triton: a kernel of its own; extern and op: a call of a library.",
        &KernelRow::kind, Shown::kHidden},
       {"ops", ColumnType::kText, "Ops that it computes.", &KernelRow::ops},
       {"where", ColumnType::kText,
        "Lines of the model that they come from, in short; empty when only the "
        "output code is there.",
        &KernelRow::where},
       {"lines", ColumnType::kText, "The same in full, with the code.",
        &KernelRow::lines, Shown::kHidden},
       {"nodes", ColumnType::kText, "Nodes of the compiled graph.",
        &KernelRow::nodes, Shown::kHidden},
       {"calls", ColumnType::kInt, "In one run of the program.",
        &KernelRow::calls, Shown::kHidden},
       {"count", ColumnType::kInt, "Launches in the trace.", &KernelRow::count},
       {"kernel_time_us", ColumnType::kTime, "Sum of durations.",
        &KernelRow::kernel_time},
       {"percent", ColumnType::kReal, "Share of all device time.",
        &KernelRow::percent, Shown::kBar},
       {"join", ColumnType::kText,
        "exact: the name, and as many launches as calls; sure: a call of a "
        "library between two exact ones; likely: the name fits, the counts do "
        "not; empty: not in the trace.",
        &KernelRow::join}}};
  return columns;
}

struct NodeRow {
  std::string_view program;
  std::optional<std::string_view> node;
  std::string_view kernel;
  size_t split;
  int64_t kernel_time;
};

const RowColumns<NodeRow>& NodeColumns() {
  static const RowColumns<NodeRow> columns{
      "compiled_nodes",
      "Device time by node of the compiled graph; the rows add up to "
      "compiled_kernels.",
      {{"program", ColumnType::kText, "Compile id, or the file.",
        &NodeRow::program},
       {"node", ColumnType::kText,
        "Name in the compiled graph; empty: the code names none.",
        &NodeRow::node},
       {"kernel", ColumnType::kText, "Kernel that computes it.",
        &NodeRow::kernel},
       {"split", ColumnType::kInt,
        "Nodes of the kernel: its time is divided equally.", &NodeRow::split},
       {"kernel_time_us", ColumnType::kTime, "Its part of the time.",
        &NodeRow::kernel_time}}};
  return columns;
}

struct Sum {
  size_t count = 0;
  int64_t time_ns = 0;
  Join worst = Join::kExact;
};

std::vector<std::string_view> NamesOf(std::string_view list) {
  std::vector<std::string_view> out;
  while (!list.empty()) {
    const size_t comma = list.find(", ");
    out.push_back(list.substr(0, comma));
    list = comma == std::string_view::npos ? "" : list.substr(comma + 2);
  }
  return out;
}

}  // namespace

std::vector<Schema> CompiledSchemas() {
  return {KernelColumns().schema(), NodeColumns().schema()};
}

ResultSet CompiledTables(const trace::Trace& trace, const CompiledWork& work) {
  std::vector<Sum> sums(work.kernels.size());
  int64_t all_ns = 0;
  for (const SliceId s : trace.device_slices()) {
    const int64_t dur = trace.Duration(s);
    all_ns += dur;
    const auto found = work.uses.find(s);
    if (found == work.uses.end()) continue;
    Sum& sum = sums[found->second.kernel];
    ++sum.count;
    sum.time_ns += dur;
    sum.worst = std::max(sum.worst, found->second.join);
  }
  // The longest first; those that did not run last, in the order of the code.
  std::vector<size_t> order(sums.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return sums[a].time_ns > sums[b].time_ns;
  });
  Table table(KernelColumns().schema());
  Table nodes(NodeColumns().schema());
  for (const size_t i : order) {
    const CompiledWork::Kernel& kernel = work.kernels[i];
    const Sum& sum = sums[i];
    KernelColumns().Add(
        table,
        {.program = kernel.program,
         .kernel = kernel.name,
         .kind = kernel.kind,
         .ops = kernel.ops,
         .where = kernel.where,
         .lines = kernel.lines,
         .nodes = kernel.nodes,
         .calls = kernel.calls,
         .count = sum.count,
         .kernel_time = sum.time_ns,
         .percent = all_ns > 0 ? std::optional(
                                     100.0 * static_cast<double>(sum.time_ns) /
                                     static_cast<double>(all_ns))
                               : std::nullopt,
         .join =
             sum.count > 0 ? std::optional(Name(sum.worst)) : std::nullopt});
    if (sum.count == 0) continue;
    const std::vector<std::string_view> own = NamesOf(kernel.nodes);
    if (own.empty())
      NodeColumns().Add(nodes, {.program = kernel.program,
                                .node = std::nullopt,
                                .kernel = kernel.name,
                                .split = 0,
                                .kernel_time = sum.time_ns});
    // What is left over of the division goes to the first ones.
    const auto parts = static_cast<int64_t>(own.size());
    for (int64_t n = 0; n < parts; ++n) {
      NodeColumns().Add(
          nodes, {.program = kernel.program,
                  .node = own[static_cast<size_t>(n)],
                  .kernel = kernel.name,
                  .split = own.size(),
                  .kernel_time =
                      sum.time_ns / parts + (n < sum.time_ns % parts ? 1 : 0)});
    }
  }
  ResultSet result;
  result.tables.push_back(std::move(table));
  result.tables.push_back(std::move(nodes));
  result.notes = work.notes;
  return result;
}

void AddCompiledColumns(const analysis::Context& context,
                        const CompiledWork& work, Table& table) {
  const trace::Trace& trace = context.trace;
  const auto groups = analysis::KernelGroups::Build(context);
  // What the events of each row are by the code: one name, and one op, may
  // stand for kernels of several places.
  std::vector<std::vector<uint32_t>> uses_of(groups.rows.size());
  for (const SliceId s : trace.device_slices()) {
    const auto use = work.uses.find(s);
    if (use == work.uses.end()) continue;
    auto& uses = uses_of[groups.row_of[trace.slices.detail[s.value]]];
    if (std::find(uses.begin(), uses.end(), use->second.kernel) == uses.end())
      uses.push_back(use->second.kernel);
  }
  absl::flat_hash_map<int64_t, size_t> row_of_uid;
  for (size_t row = 0; row < groups.rows.size(); ++row)
    row_of_uid[static_cast<int64_t>(trace.Uid(groups.rows[row].first))] = row;
  // The texts of the kernels of a row that differ, the first few of them.
  const auto text = [&](size_t row, std::string CompiledWork::Kernel::*field) {
    constexpr size_t kMost = 3;
    std::vector<std::string_view> texts;
    for (const uint32_t kernel : uses_of[row]) {
      const std::string& one = work.kernels[kernel].*field;
      if (std::find(texts.begin(), texts.end(), one) == texts.end())
        texts.push_back(one);
    }
    const size_t shown = std::min(texts.size(), kMost);
    std::string out = fmt::format(
        "{}", fmt::join(texts.begin(),
                        texts.begin() + static_cast<ptrdiff_t>(shown), " | "));
    if (shown < texts.size())
      out += fmt::format(" | {} more", texts.size() - shown);
    return out;
  };
  Schema schema = table.schema();
  const size_t at = std::min<size_t>(2, schema.columns.size());
  const auto place = schema.columns.begin() + static_cast<ptrdiff_t>(at);
  schema.columns.insert(
      place,
      {{"computes", ColumnType::kText,
        "Ops that a compiled kernel computes; where the kernels of a row "
        "differ, each: a | b."},
       {"where", ColumnType::kText,
        "Lines of the model that they come from, in short."}});
  schema.columns.push_back({"lines", ColumnType::kText,
                            "Lines of the model, with the code.",
                            Shown::kHidden});
  Table out(std::move(schema));
  std::vector<Value> values;
  for (size_t row = 0; row < table.rows(); ++row) {
    const Value uid = table.At(row, "first_uid");
    const auto found = uid.kind() == Value::Kind::kInt
                           ? row_of_uid.find(uid.integer())
                           : row_of_uid.end();
    // Cells look at texts, which must outlive them.
    std::array<std::string, 3> texts;
    const bool known =
        found != row_of_uid.end() && !uses_of[found->second].empty();
    if (known) {
      texts = {text(found->second, &CompiledWork::Kernel::ops),
               text(found->second, &CompiledWork::Kernel::where),
               text(found->second, &CompiledWork::Kernel::lines)};
    }
    const auto cell = [&](size_t i) {
      return known ? Value(texts[i]) : Value();
    };
    values.clear();
    for (size_t c = 0; c < table.columns(); ++c) {
      if (c == at) {
        values.push_back(cell(0));
        values.push_back(cell(1));
      }
      values.push_back(table.At(row, c));
    }
    values.push_back(cell(2));
    out.AddRow(values);
  }
  table = std::move(out);
}

analysis::AnalysisInfo CompiledInfo() {
  return {"compiled", "What kernels of a compiler compute, by its code.",
          &CompiledSchemas,
          [](const analysis::Context& context) -> Result<ResultSet> {
            LAMINA_ASSIGN(const auto* const code, context.Get<JoinedCode>());
            if (!code->work) return ResultSet();
            return CompiledTables(context.trace, *code->work);
          }};
}

}  // namespace lamina::graph
