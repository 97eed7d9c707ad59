// SPDX-License-Identifier: Apache-2.0

#include "compare/diff/diff.h"

#include <absl/container/flat_hash_map.h>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "analysis/common/launchers.h"
#include "analysis/common/timeline.h"
#include "compare/diff/tables.h"

namespace lamina::analysis::diff {

namespace {

SideFacts FactsOf(const Context& context, const Timeline& timeline) {
  const Trace& trace = context.trace;
  SideFacts facts;
  facts.input = trace.info.file;
  if (!trace.info.devices.empty()) facts.device = trace.info.devices[0].name;
  facts.steps = static_cast<int64_t>(context.steps.steps().size());
  facts.device_slices = static_cast<int64_t>(trace.device_slices().size());
  facts.modules = !context.modules.empty();
  facts.totals = {timeline.kernel_time_ns, timeline.busy_ns, timeline.idle_ns,
                  timeline.total_ns};
  for (const SliceId slice : trace.device_slices()) {
    if (!context.tree.launch(slice).valid())
      facts.unlinked_ns += trace.Duration(slice);
  }
  return facts;
}

std::vector<MovedRow> MovedRows(const Side& a, const Side& b,
                                const Matching& matching) {
  std::vector<MovedRow> out;
  for (const auto& [i, j] : matching.moved) {
    MovedRow& row = out.emplace_back();
    row.name = a.Title(i);
    row.module = a.Module(i);
    for (const size_t s : {size_t{0}, size_t{1}}) {
      const Side& side = s == 0 ? a : b;
      const uint32_t entry = s == 0 ? i : j;
      for (uint32_t e = entry; e < side.entry(entry).end; ++e)
        row.time_ns[s] += SumOf(side.trace(), side.Work(e));
      const NodeId node = side.entry(entry).node;
      if (node.valid())
        row.uid[s] = side.trace().Uid(side.context().tree.slice(node));
    }
  }
  return out;
}

}  // namespace

bool NeedsPythonStacks(const Trace& trace, const Options& options) {
  if (options.python) return true;
  for (uint32_t i = 0; i < trace.strings.size(); ++i) {
    if (trace.strings[StringId(i)].starts_with(tree::kModulePrefix))
      return true;
  }
  return false;
}

Comparison Compare(const Context& context_a, const Context& context_b,
                   const layers::Rules& rules, const Options& options) {
  Differences d;
  d.letter = options.letter;
  SideOptions levels = LevelsOf(context_a, context_b);
  levels.python = options.python;
  const Side a(context_a, levels, d.names);
  const Side b(context_b, levels, d.names);
  const Matching matching = MatchSides(a, b);
  d.rows = CollectRows(a, b, matching);
  PerSide<Timeline> timelines;
  for (const size_t s : {size_t{0}, size_t{1}}) {
    const Context& context = s == 0 ? context_a : context_b;
    timelines[s] = MakeTimeline(
        context.trace, context.trace.device_slices(),
        [&](SliceId slice) { return context.device.bucket(slice); });
    d.sides[s] = FactsOf(context, timelines[s]);
  }
  d.dimensions = {SumByTimeline(timelines[0], timelines[1]),
                  SumByCategory(a, b), SumByModule(a, b, matching, d.names),
                  SumByLayer(a, b, rules)};
  d.calls = SumCalls(a, b);
  d.moved = MovedRows(a, b, matching);
  return MakeComparison(std::move(d));
}

// Two results of lamina report: ops by name and shapes, kernels by name and op,
// sums by timeline, category and module.

namespace {

constexpr std::string_view kTables[] = {"gpu_timeline", "op_shapes", "kernels"};

int64_t IntAt(const Table& table, size_t row, std::string_view column) {
  const Value value = table.At(row, column);
  return value.null() ? 0 : value.integer();
}

// Sums of its columns stay within int64.
bool SumsFit(const Table& table) {
  constexpr double kMost = 4e18;
  for (size_t c = 0; c < table.columns(); ++c) {
    const ColumnType type = table.schema().columns[c].type;
    if (type != ColumnType::kInt && type != ColumnType::kTime) continue;
    double sum = 0;
    for (size_t row = 0; row < table.rows(); ++row)
      sum += std::fabs(static_cast<double>(table.Int(row, c)));
    if (sum > kMost) return false;
  }
  return true;
}

class ReportComparer {
 public:
  ReportComparer(const ReportInput& a, const ReportInput& b,
                 const Options& options)
      : inputs_{&a, &b} {
    d_.letter = options.letter;
  }

  Result<Comparison> Run() {
    for (const size_t s : {size_t{0}, size_t{1}}) {
      for (const std::string_view name : kTables) {
        if (TableOf(s, name) == nullptr) {
          return Fail(UsageError(
              inputs_[s]->name + ": the report has no table " +
                  std::string(name),
              "write it without ⟨only⟩: ⟨lamina⟩ report TRACE --format json"));
        }
      }
    }
    for (const size_t s : {size_t{0}, size_t{1}}) {
      for (const std::string_view name : {"op_shapes", "kernels", "modules"}) {
        const Table* table = TableOf(s, name);
        if (table == nullptr || SumsFit(*table)) continue;
        return Fail(UsageError(inputs_[s]->name +
                                   ": the numbers of the table " +
                                   std::string(name) + " are out of range",
                               "write the report again"));
      }
    }
    AddTimeline();
    AddOps();
    AddKernels();
    AddModules();
    for (const size_t s : {size_t{0}, size_t{1}}) {
      int64_t ops = 0;
      for (const OpRow& row : d_.rows.ops) ops += row.time_ns[s];
      SideFacts& facts = d_.sides[s];
      if (ops + facts.unlinked_ns != facts.totals.kernel_time_ns) {
        return Fail(UsageError(
            inputs_[s]->name + ": the tables of the report are not complete",
            "write it without ⟨top⟩: ⟨lamina⟩ report TRACE --format json"));
      }
      facts.input = inputs_[s]->name;
      if (const Table* steps = TableOf(s, "steps")) {
        for (size_t row = 0; row < steps->rows(); ++row)
          facts.steps += steps->At(row, "step").null() ? 0 : 1;
      }
    }
    Comparison out = MakeComparison(std::move(d_));
    out.result.notes.push_back(
        MakeNote(Severity::kInfo, "diff_reports",
                 "Reports are compared by ops and shapes; the modules of ops, "
                 "layers and API calls need the traces."));
    return out;
  }

 private:
  const Table* TableOf(size_t s, std::string_view name) const {
    return inputs_[s]->result->Find(name);
  }
  StringId Name(const Table& table, size_t row, std::string_view column) {
    const Value value = table.At(row, column);
    return value.null() ? StringId() : d_.names.Of(value.text());
  }

  void AddTimeline() {
    PerSide<Timeline> timelines;
    for (const size_t s : {size_t{0}, size_t{1}}) {
      const Table& table = *TableOf(s, "gpu_timeline");
      Timeline& t = timelines[s];
      for (size_t row = 0; row < table.rows(); ++row) {
        if (table.At(row, "device").text() != "all") continue;
        const std::string_view type = table.At(row, "type").text();
        const int64_t ns = IntAt(table, row, "time_us");
        if (type == "computation_time") t.computation_ns = ns;
        if (type == "exposed_comm_time") t.exposed_communication_ns = ns;
        if (type == "exposed_memcpy_time") t.exposed_copies_ns = ns;
        if (type == "busy_time") t.busy_ns = ns;
        if (type == "idle_time" || type == "micro_idle_time" ||
            type == "macro_idle_time")
          t.idle_ns += ns;
        if (type == "total_time") t.total_ns = ns;
      }
      d_.sides[s].totals.busy_ns = t.busy_ns;
      d_.sides[s].totals.idle_ns = t.idle_ns;
      d_.sides[s].totals.total_ns = t.total_ns;
    }
    d_.dimensions.push_back(SumByTimeline(timelines[0], timelines[1]));
  }

  struct Op {
    PerSide<int64_t> count{}, time_ns{};
    PerSide<std::optional<uint32_t>> uid;
    PerSide<std::set<std::string>> kernels;
  };
  using OpKey = std::tuple<std::string, std::string, std::string>;

  void AddOps() {
    std::map<OpKey, Op> ops;
    std::map<std::string, PerSide<std::vector<const OpKey*>>> alone;
    for (const size_t s : {size_t{0}, size_t{1}}) {
      const Table& table = *TableOf(s, "op_shapes");
      const auto text = [&](size_t row, std::string_view column) {
        const Value value = table.At(row, column);
        return value.null() ? std::string() : std::string(value.text());
      };
      for (size_t row = 0; row < table.rows(); ++row) {
        Op& op = ops[{text(row, "op"), text(row, "input_dims"),
                      text(row, "input_types")}];
        op.count[s] += IntAt(table, row, "count");
        op.time_ns[s] += IntAt(table, row, "kernel_time_us");
        op.kernels[s].insert(text(row, "kernel"));
        const int64_t uid = IntAt(table, row, "first_uid");
        if (!op.uid[s] && uid >= 0 && uid < int64_t{0xFFFFFFFF})
          op.uid[s] = static_cast<uint32_t>(uid);
      }
    }
    AddCommunication(ops);
    for (const auto& [key, op] : ops) {
      const bool in_a = op.count[0] > 0;
      const bool in_b = op.count[1] > 0;
      if (in_a && in_b) {
        Change change = op.kernels[0] == op.kernels[1] ? Change::kChanged
                                                       : Change::kOtherKernel;
        AddRow(key, key, change, op.count, op.time_ns, op.uid);
      } else {
        alone[std::get<0>(key)][in_a ? 0 : 1].push_back(&key);
      }
    }
    // One left on each side: the same op with other shapes.
    for (const auto& [name, keys] : alone) {
      if (keys[0].size() == 1 && keys[1].size() == 1) {
        const Op& a = ops[*keys[0][0]];
        const Op& b = ops[*keys[1][0]];
        AddRow(*keys[0][0], *keys[1][0], Change::kOtherShape,
               {a.count[0], b.count[1]}, {a.time_ns[0], b.time_ns[1]},
               {a.uid[0], b.uid[1]});
        continue;
      }
      for (const size_t s : {size_t{0}, size_t{1}}) {
        for (const OpKey* key : keys[s]) {
          const Op& op = ops[*key];
          AddRow(*key, *key, s == 0 ? Change::kOnlyA : Change::kOnlyB, op.count,
                 op.time_ns, op.uid);
        }
      }
    }
  }
  // Communication is in no table of ops but in that of kernels.
  void AddCommunication(std::map<OpKey, Op>& ops) const {
    for (const size_t s : {size_t{0}, size_t{1}}) {
      const Table& table = *TableOf(s, "kernels");
      for (size_t row = 0; row < table.rows(); ++row) {
        const Value name = table.At(row, "op");
        if (name.null() || name.text().empty() ||
            table.At(row, "family").text() != "communication")
          continue;
        Op& op = ops[{std::string(name.text()), "", ""}];
        op.count[s] += IntAt(table, row, "count");
        op.time_ns[s] += IntAt(table, row, "kernel_time_us");
        op.kernels[s].insert(NormalKernelName(table.At(row, "kernel").text()));
      }
    }
  }
  void AddRow(const OpKey& a, const OpKey& b, Change change,
              PerSide<int64_t> count, PerSide<int64_t> time_ns,
              PerSide<std::optional<uint32_t>> uid) {
    const auto name = [&](const std::string& text) {
      return text.empty() ? StringId() : d_.names.Of(text);
    };
    OpRow& row = d_.rows.ops.emplace_back();
    row.op = d_.names.Of(std::get<0>(a));
    row.module = StringPool::kEmpty;
    row.dims = {name(std::get<1>(a)), name(std::get<1>(b))};
    row.types = {name(std::get<2>(a)), name(std::get<2>(b))};
    row.change = change;
    row.count = count;
    row.time_ns = time_ns;
    row.uid = uid;
  }

  void AddKernels() {
    absl::flat_hash_map<std::pair<StringId, StringId>, size_t> rows;
    std::map<std::string, Sum> families;
    for (const size_t s : {size_t{0}, size_t{1}}) {
      const Table& table = *TableOf(s, "kernels");
      SideFacts& facts = d_.sides[s];
      for (size_t i = 0; i < table.rows(); ++i) {
        const int64_t count = IntAt(table, i, "count");
        const int64_t ns = IntAt(table, i, "kernel_time_us");
        const Value op_text = table.At(i, "op");
        const StringId op =
            op_text.null() ? StringPool::kEmpty : d_.names.Of(op_text.text());
        const StringId kernel =
            d_.names.Of(NormalKernelName(table.At(i, "kernel").text()));
        const auto [it, is_new] =
            rows.try_emplace(std::pair(op, kernel), d_.rows.kernels.size());
        if (is_new) d_.rows.kernels.emplace_back().op = op;
        KernelRow& row = d_.rows.kernels[it->second];
        row.kernel = {kernel, kernel};
        row.count[s] += count;
        row.time_ns[s] += ns;
        Sum& sum = families[std::string(table.At(i, "family").text())];
        sum.count[s] += count;
        sum.time_ns[s] += ns;
        facts.device_slices += count;
        facts.totals.kernel_time_ns += ns;
        if (op == StringPool::kEmpty) facts.unlinked_ns += ns;
      }
    }
    AddDimension("category", families);
  }

  void AddModules() {
    std::map<std::string, Sum> modules;
    for (const size_t s : {size_t{0}, size_t{1}}) {
      const Table* table = TableOf(s, "modules");
      SideFacts& facts = d_.sides[s];
      facts.modules = table != nullptr && table->rows() > 0;
      if (!facts.modules) continue;
      for (size_t i = 0; i < table->rows(); ++i) {
        Sum& sum = modules[std::string(table->At(i, "module").text())];
        sum.time_ns[s] += IntAt(*table, i, "self_kernel_time_us");
      }
      modules["(unlinked)"].time_ns[s] += facts.unlinked_ns;
    }
    // Modules of one side alone would not add up.
    if (d_.sides[0].modules && d_.sides[1].modules)
      AddDimension("module", modules);
  }

  void AddDimension(std::string_view dimension,
                    const std::map<std::string, Sum>& sums) {
    std::vector<Sum>& out = d_.dimensions.emplace_back().rows;
    for (const auto& [key, sum] : sums) {
      out.push_back(sum);
      out.back().dimension = dimension;
      out.back().key = key;
    }
  }

  PerSide<const ReportInput*> inputs_;
  Differences d_;
};

}  // namespace

Result<Comparison> CompareReports(const ReportInput& a, const ReportInput& b,
                                  const Options& options) {
  return ReportComparer(a, b, options).Run();
}

ResultSet JoinComparisons(std::vector<Comparison> comparisons) {
  ResultSet out;
  if (comparisons.empty()) return out;
  for (const Table& first : comparisons[0].result.tables) {
    Schema schema = first.schema();
    schema.columns.insert(
        schema.columns.begin(),
        {"with", ColumnType::kText, "The side that the row compares A with."});
    Table& table = out.tables.emplace_back(std::move(schema));
    for (size_t c = 0; c < comparisons.size(); ++c) {
      const Table* from = comparisons[c].result.Find(first.name());
      const std::string letter(1, static_cast<char>('b' + c));
      for (size_t row = 0; row < from->rows(); ++row) {
        std::vector<Value> cells = {Value(letter)};
        for (size_t i = 0; i < from->columns(); ++i)
          cells.push_back(from->At(row, i));
        // The second side has a letter of its own here.
        if (first.name() == "diff_totals" && cells[1].text() == "b")
          cells[1] = Value(letter);
        table.AddRow(cells);
      }
    }
  }
  for (Comparison& comparison : comparisons) {
    for (Note& note : comparison.result.notes)
      out.notes.push_back(std::move(note));
  }
  return out;
}

}  // namespace lamina::analysis::diff
