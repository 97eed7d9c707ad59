// SPDX-License-Identifier: Apache-2.0
//
// Input: matched units. Output: rows that say which part of a layer, which
// class of modules and which kernels changed, per unit and with the mix of A.
// Kernels are aligned in one unit of each side, the median one of the class
// with most time: by a global alignment of their sequences, in which kernels of
// one family may meet under other names, and what is left between two meetings
// joins a neighbour whose work it can be part of. Cost: kernels of A times
// those of B.
#include "compare/runs/differences.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <re2/re2.h>
#include <set>

#include "analysis/common/cost_view.h"
#include "base/escape.h"
#include "compare/runs/halves.h"
#include "cost/arguments.h"
#include "cost/device.h"
#include "cost/dtype.h"
#include "rules/pattern_table.h"
#include "table/row_columns.h"

namespace lamina::runs {
namespace {

// --- diff_parts ---

struct PartRow {
  std::string_view phase;
  std::optional<std::string> half;
  std::string family;
  double kernels_a = 0, kernels_b = 0;
  int64_t a_ns = 0, b_ns = 0, delta_ns = 0;
  std::optional<int64_t> low_ns, high_ns;
  std::optional<bool> sure;
  std::optional<double> share;
};

const RowColumns<PartRow>& PartColumns() {
  static const RowColumns<PartRow> columns{
      "diff_parts",
      "Time of a unit by half of a layer and family; the deltas of a phase add "
      "up to that of diff_verdict.",
      {{"phase", ColumnType::kText, "train, eval, prefill, decode ...",
        &PartRow::phase},
       {"half", ColumnType::kText,
        "attention or feed_forward, by the modules of a layer (data/halves); "
        "outside: of no layer; empty: the trace does not say.",
        [](const PartRow& row) { return Value(row.half); }},
       {"family", ColumnType::kText,
        "Family of device work; idle: the device waited; overlap: work that "
        "ran beside other work, negative.",
        &PartRow::family},
       {"kernels_a", ColumnType::kReal, "Device events per unit of A.",
        &PartRow::kernels_a, Shown::kHidden},
       {"kernels_b", ColumnType::kReal, "Device events per unit of B.",
        &PartRow::kernels_b, Shown::kHidden},
       {"a_us", ColumnType::kTime, "Per unit of A.", &PartRow::a_ns},
       {"b_us", ColumnType::kTime, "Per unit of B.", &PartRow::b_ns},
       {"delta_us", ColumnType::kTime, "B minus A.", &PartRow::delta_ns},
       {"low_us", ColumnType::kTime, "The delta is at least this.",
        &PartRow::low_ns, Shown::kHidden},
       {"high_us", ColumnType::kTime, "The delta is at most this.",
        &PartRow::high_ns, Shown::kHidden},
       {"sure", ColumnType::kBool, "Whether its interval leaves 0 out.",
        &PartRow::sure},
       {"share_of_change_percent", ColumnType::kReal,
        "Share of the change of the phase.", &PartRow::share,
        Shown::kPercent}}};
  return columns;
}

// Sums of matched units by key, per unit with the mix of A.
template <class Key>
struct Sums {
  struct Cell {
    PerSide<double> ns{}, kernels{};
    PerSide<std::vector<double>> of_unit;  // of the only class; else empty
  };
  std::map<Key, Cell> cells;
};

// `key_of(context, slice)` -> key.
template <class Key, class KeyOf>
Sums<Key> SumUnits(const MatchedPhase& phase, const KeyOf& key_of) {
  Sums<Key> sums;
  const bool only = phase.classes.size() == 1;
  for (const MatchedClass* one : phase.classes) {
    const double weight = WeightOf(phase, *one);
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const auto& units = one->matched[side];
      const double part = weight / static_cast<double>(units.size());
      for (size_t u = 0; u < units.size(); ++u) {
        for (const SliceId s : units[u]->work) {
          auto& cell = sums.cells[key_of(*units[u]->context, s)];
          const auto ns =
              static_cast<double>(units[u]->context->trace.Duration(s));
          cell.ns[side] += part * ns;
          cell.kernels[side] += part;
          if (!only) continue;
          cell.of_unit[side].resize(units.size(), 0);
          cell.of_unit[side][u] += ns;
        }
      }
    }
  }
  return sums;
}

// The interval of a delta in nanoseconds; nothing where it cannot be told.
template <class Row>
void AddInterval(const PerSide<std::vector<double>>& of_unit, double a_ns,
                 const Options& options, Row& row) {
  const auto usable = [](const std::vector<double>& values) {
    return !values.empty() && std::all_of(values.begin(), values.end(),
                                          [](double v) { return v > 0; });
  };
  if (!usable(of_unit[0]) || !usable(of_unit[1])) return;
  const Shift shift =
      Widen(UnpairedShift(of_unit[0], of_unit[1], options.level), 1,
            NoiseOfSides(options), options.level);
  if (!shift.low) return;
  row.low_ns = std::llround(a_ns * std::expm1(*shift.low));
  row.high_ns = std::llround(a_ns * std::expm1(*shift.high));
  row.sure = *row.low_ns > 0 || *row.high_ns < 0;
}

// Mean busy and whole time of a unit of each side, with the mix of A.
struct Spans {
  explicit Spans(const MatchedPhase& phase) {
    for (const MatchedClass* one : phase.classes) {
      const double weight = WeightOf(phase, *one);
      for (const size_t side : {size_t{0}, size_t{1}}) {
        const double part =
            weight / static_cast<double>(one->matched[side].size());
        for (const Unit* unit : one->matched[side]) {
          busy[side] += part * static_cast<double>(unit->busy_ns);
          all[side] += part * static_cast<double>(unit->unit_ns);
        }
      }
    }
  }
  PerSide<double> busy{}, all{};
};

Table Parts(const std::map<const Context*, Halves>& halves,
            const Matching& matching, const Options& options) {
  std::vector<PartRow> rows;
  for (const MatchedPhase& phase : matching.phases) {
    using Key = std::pair<std::optional<std::string_view>, std::string_view>;
    const auto sums =
        SumUnits<Key>(phase, [&](const Context& context, SliceId s) {
          return Key(halves.at(&context).Of(s),
                     context.catalog.family(context.device.family(s)).name);
        });
    std::vector<PartRow> own;
    PerSide<double> kernel{};
    for (const auto& [key, cell] : sums.cells) {
      PartRow row{.phase = PhaseName(phase.phase),
                  .half = key.first ? std::optional<std::string>(*key.first)
                                    : std::nullopt,
                  .family = std::string(key.second),
                  .kernels_a = cell.kernels[0],
                  .kernels_b = cell.kernels[1],
                  .a_ns = std::llround(cell.ns[0]),
                  .b_ns = std::llround(cell.ns[1]),
                  .delta_ns = std::llround(cell.ns[1] - cell.ns[0])};
      AddInterval(cell.of_unit, cell.ns[0], options, row);
      own.push_back(std::move(row));
      for (const size_t side : {size_t{0}, size_t{1}})
        kernel[side] += cell.ns[side];
    }
    const auto& [busy, all] = Spans(phase);
    const auto add = [&](const char* name, double a, double b) {
      own.push_back({.phase = PhaseName(phase.phase),
                     .half = std::nullopt,
                     .family = name,
                     .a_ns = std::llround(a),
                     .b_ns = std::llround(b),
                     .delta_ns = std::llround(b - a)});
    };
    if (options.measure != Measure::kKernelTime)
      add("overlap", busy[0] - kernel[0], busy[1] - kernel[1]);
    if (options.measure == Measure::kUnit)
      add("idle", all[0] - busy[0], all[1] - busy[1]);
    const double change = phase.mean_ns[1] - phase.mean_ns[0];
    for (PartRow& row : own) {
      if (std::abs(change) >= 1)
        row.share = 100 * static_cast<double>(row.delta_ns) / change;
    }
    std::stable_sort(own.begin(), own.end(),
                     [](const PartRow& x, const PartRow& y) {
                       return std::abs(x.delta_ns) > std::abs(y.delta_ns);
                     });
    std::move(own.begin(), own.end(), std::back_inserter(rows));
  }
  return PartColumns().Make(rows);
}

// --- diff_modules ---

struct ModuleRow {
  std::string_view phase;
  std::string title, class_name, path, path_b;
  size_t instances_a = 0, instances_b = 0;
  int64_t a_ns = 0, b_ns = 0, delta_ns = 0;
  std::optional<int64_t> low_ns, high_ns;
  std::optional<bool> sure;
};

const RowColumns<ModuleRow>& ModuleColumns() {
  static const RowColumns<ModuleRow> columns{
      "diff_modules",
      "Own time of a unit by class of modules: instances of one class at one "
      "place of the model are one row.",
      {{"phase", ColumnType::kText, "train, eval, prefill, decode ...",
        &ModuleRow::phase},
       {"title", ColumnType::kText, "Class and instances.", &ModuleRow::title},
       {"class", ColumnType::kText, "Class of the module.",
        &ModuleRow::class_name, Shown::kHidden},
       {"path", ColumnType::kText, "Classes from the root.", &ModuleRow::path,
        Shown::kHidden},
       {"path_b", ColumnType::kText,
        "Those of B, where a class has another name there.",
        [](const ModuleRow& row) {
          return row.path_b.empty() ? Value() : Value(row.path_b);
        },
        Shown::kHidden},
       {"instances_a", ColumnType::kInt, "Modules of it in A.",
        &ModuleRow::instances_a, Shown::kHidden},
       {"instances_b", ColumnType::kInt, "Modules of it in B.",
        &ModuleRow::instances_b, Shown::kHidden},
       {"a_us", ColumnType::kTime,
        "Per unit of A: work that the module itself launched.",
        &ModuleRow::a_ns},
       {"b_us", ColumnType::kTime, "Per unit of B.", &ModuleRow::b_ns},
       {"delta_us", ColumnType::kTime, "B minus A.", &ModuleRow::delta_ns},
       {"low_us", ColumnType::kTime, "The delta is at least this.",
        &ModuleRow::low_ns, Shown::kHidden},
       {"high_us", ColumnType::kTime, "The delta is at most this.",
        &ModuleRow::high_ns, Shown::kHidden},
       {"sure", ColumnType::kBool, "Whether its interval leaves 0 out.",
        &ModuleRow::sure}}};
  return columns;
}

// "LlamaForCausalLM/LlamaDecoderLayer/LlamaMLP" of a place in the hierarchy.
std::string ClassPath(const Context& context, tree::ModulePathId id) {
  std::vector<std::string_view> names;
  for (; id.valid(); id = context.modules.path(id).parent) {
    names.push_back(tree::Modules::ClassName(
        context.trace.Text(context.modules.path(id).name)));
  }
  return fmt::format("{}", fmt::join(names.rbegin(), names.rend(), "/"));
}

std::string ModuleTitle(const std::string& path, size_t instances) {
  const size_t last = path.rfind('/');
  const size_t before =
      last == std::string::npos || last == 0 ? last : path.rfind('/', last - 1);
  std::string title =
      before == std::string::npos ? path : path.substr(before + 1);
  if (instances > 1) title += fmt::format(" x{}", instances);
  return title;
}

// By place of a side: its classes from the root, and how many places share
// them.
struct ClassPaths {
  explicit ClassPaths(const Context& context) {
    const auto& paths = context.modules.paths();
    for (uint32_t i = 0; i < paths.size(); ++i) {
      of.push_back(ClassPath(context, tree::ModulePathId(i)));
      ++instances[of.back()];
    }
  }
  std::vector<std::string> of;
  std::map<std::string, size_t> instances;
};

// By path of B that A lacks the one of A that it stands for: the only class of
// A below the same parent that B lacks, with as many modules. What is below it
// goes with it.
using Counts = std::map<std::string, size_t>;
size_t DepthOf(std::string_view path) {
  return static_cast<size_t>(std::count(path.begin(), path.end(), '/'));
}
std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}
std::map<std::string, std::string> RenamedModules(const Counts& a,
                                                  const Counts& b) {
  std::map<std::string, std::string> renamed;
  const auto name_in_a = [&](const std::string& path) {
    for (std::string above = path; !above.empty(); above = ParentOf(above)) {
      const auto found = renamed.find(above);
      if (found != renamed.end())
        return found->second + path.substr(above.size());
    }
    return path;
  };
  // From the root down, so that parents are known.
  std::vector<std::string> paths;
  for (const auto& [path, count] : b) paths.push_back(path);
  std::stable_sort(paths.begin(), paths.end(),
                   [](const std::string& x, const std::string& y) {
                     return DepthOf(x) < DepthOf(y);
                   });
  // By parent in A and number of modules, what only one side has.
  using Place = std::pair<std::string, size_t>;
  std::map<Place, std::vector<std::string>> only_a;
  for (const auto& [path, count] : a) {
    if (!b.contains(path)) only_a[{ParentOf(path), count}].push_back(path);
  }
  for (size_t i = 0; i < paths.size();) {
    const size_t depth = DepthOf(paths[i]);
    std::map<Place, std::vector<std::string>> only_b;
    for (; i < paths.size() && DepthOf(paths[i]) == depth; ++i) {
      if (!a.contains(name_in_a(paths[i])))
        only_b[{name_in_a(ParentOf(paths[i])), b.at(paths[i])}].push_back(
            paths[i]);
    }
    for (const auto& [place, own] : only_b) {
      const auto others = only_a.find(place);
      if (own.size() == 1 && others != only_a.end() &&
          others->second.size() == 1)
        renamed[own.front()] = others->second.front();
    }
  }
  std::map<std::string, std::string> out;
  for (const std::string& path : paths) {
    if (std::string known = name_in_a(path); known != path)
      out[path] = std::move(known);
  }
  return out;
}

// The contexts of matched units, by side; of a job those of the slowest ranks.
PerSide<std::set<const Context*>> ContextsOf(const Matching& matching) {
  PerSide<std::set<const Context*>> contexts;
  for (const MatchedClass& one : matching.classes) {
    for (const size_t side : {size_t{0}, size_t{1}}) {
      for (const Unit* unit : one.matched[side])
        contexts[side].insert(unit->context);
    }
  }
  return contexts;
}

Table Modules(const Matching& matching, const Options& options) {
  std::vector<ModuleRow> rows;
  // Places of modules are those of each context; how many share a class, of any
  // of a side.
  std::map<const Context*, ClassPaths> places;
  PerSide<std::map<std::string, size_t>> instances;
  const auto contexts = ContextsOf(matching);
  bool any = false;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    for (const Context* context : contexts[side]) {
      const auto& paths = places.try_emplace(context, *context).first->second;
      any |= !paths.of.empty();
      for (const auto& [path, count] : paths.instances)
        instances[side][path] = std::max(instances[side][path], count);
    }
  }
  const auto renamed = RenamedModules(instances[0], instances[1]);
  std::map<std::string, std::string> name_in_b;
  for (const auto& [path, known] : renamed) {
    name_in_b[known] = path;
    instances[1][known] = instances[1][path];
    instances[1].erase(path);
  }
  for (const Context* context : contexts[1]) {
    if (contexts[0].contains(context)) continue;
    for (std::string& path : places.at(context).of) {
      if (const auto found = renamed.find(path); found != renamed.end())
        path = found->second;
    }
  }
  if (any) {
    for (const MatchedPhase& phase : matching.phases) {
      const auto sums = SumUnits<std::string_view>(
          phase, [&](const Context& context, SliceId s) -> std::string_view {
            const tree::NodeId launcher = context.device.launcher(s);
            if (!launcher.valid()) return "(outside)";
            const auto owner = context.modules.OwnerOf(launcher);
            if (!owner.path.valid()) return "(outside)";
            return places.at(&context).of[owner.path.value];
          });
      std::set<std::string> all;
      for (const auto& [path, cell] : sums.cells) {
        // With what is around it, so that a class without own work has a row.
        for (std::string above(path); !above.empty();) {
          all.insert(above);
          const size_t slash = above.rfind('/');
          above = slash == std::string::npos ? "" : above.substr(0, slash);
        }
      }
      std::vector<ModuleRow> own;
      for (const std::string& path : all) {
        const auto count = [&](size_t side) {
          const auto found = instances[side].find(path);
          return found == instances[side].end() ? 0 : found->second;
        };
        ModuleRow row{.phase = PhaseName(phase.phase),
                      .title = ModuleTitle(path, count(0)),
                      .class_name = path.substr(path.rfind('/') + 1),
                      .path = path,
                      .instances_a = count(0),
                      .instances_b = count(1)};
        if (const auto other = name_in_b.find(path); other != name_in_b.end()) {
          row.path_b = other->second;
          const std::string name = row.path_b.substr(row.path_b.rfind('/') + 1);
          if (name != row.class_name) row.title += fmt::format(" -> {}", name);
        }
        const auto cell = sums.cells.find(path);
        if (cell != sums.cells.end()) {
          row.a_ns = std::llround(cell->second.ns[0]);
          row.b_ns = std::llround(cell->second.ns[1]);
          row.delta_ns = std::llround(cell->second.ns[1] - cell->second.ns[0]);
          AddInterval(cell->second.of_unit, cell->second.ns[0], options, row);
        }
        own.push_back(std::move(row));
      }
      std::stable_sort(own.begin(), own.end(),
                       [](const ModuleRow& x, const ModuleRow& y) {
                         return std::abs(x.delta_ns) > std::abs(y.delta_ns);
                       });
      std::move(own.begin(), own.end(), std::back_inserter(rows));
    }
  }
  return ModuleColumns().Make(rows);
}

// --- diff_aligned ---

struct AlignedRow {
  std::string_view phase;
  std::string kind;
  std::string family;
  std::string op_a, op_b, kernel_a, kernel_b;
  size_t kernels_a = 0, kernels_b = 0;
  std::string type_a, type_b, shapes_a, shapes_b;
  size_t calls = 1;  // equal groups of the unit
  int64_t a_ns = 0, b_ns = 0, delta_ns = 0;
};

std::optional<std::string_view> Text(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
}

const RowColumns<AlignedRow>& AlignedColumns() {
  static const RowColumns<AlignedRow> columns{
      "diff_aligned",
      "Kernels of a unit of A beside those of B, in one unit of each, by what "
      "they do and where they stand; equal groups are one row.",
      {{"phase", ColumnType::kText, "train, eval, prefill, decode ...",
        &AlignedRow::phase},
       {"kind", ColumnType::kText,
        "changed: the same kernel; dtype: another element type; other_shape: "
        "tensors of other shapes; renamed: the "
        "same role under another name; fused: more kernels of A than of B do "
        "it; split: the contrary; other_kernel: as many others; only_a, "
        "only_b: nothing fits. Kernels that are the same are left out.",
        &AlignedRow::kind},
       {"family", ColumnType::kText, "Of the first kernel.",
        &AlignedRow::family},
       {"op_a", ColumnType::kText, "Ops that launched them.",
        [](const AlignedRow& row) { return Text(row.op_a); }},
       {"op_b", ColumnType::kText, "Ops that launched them.",
        [](const AlignedRow& row) { return Text(row.op_b); }},
       {"kernel_a", ColumnType::kText, "Kernels of A.",
        [](const AlignedRow& row) { return Text(row.kernel_a); }},
       {"kernel_b", ColumnType::kText, "Kernels of B.",
        [](const AlignedRow& row) { return Text(row.kernel_b); }},
       {"kernels_a", ColumnType::kInt, "How many of one group.",
        &AlignedRow::kernels_a},
       {"kernels_b", ColumnType::kInt, "How many of one group.",
        &AlignedRow::kernels_b},
       {"dtype_a", ColumnType::kText, "Element type, where it is known.",
        [](const AlignedRow& row) { return Text(row.type_a); }, Shown::kHidden},
       {"dtype_b", ColumnType::kText, "Element type, where it is known.",
        [](const AlignedRow& row) { return Text(row.type_b); }, Shown::kHidden},
       {"shapes_a", ColumnType::kText, "Shapes of the inputs of the first op.",
        [](const AlignedRow& row) { return Text(row.shapes_a); },
        Shown::kHidden},
       {"shapes_b", ColumnType::kText, "Shapes of the inputs of the first op.",
        [](const AlignedRow& row) { return Text(row.shapes_b); },
        Shown::kHidden},
       {"calls_per_unit", ColumnType::kInt, "Groups like this in the unit.",
        &AlignedRow::calls},
       {"a_us", ColumnType::kTime, "Sum over the groups in the unit of A.",
        &AlignedRow::a_ns},
       {"b_us", ColumnType::kTime, "Sum over the groups in the unit of B.",
        &AlignedRow::b_ns},
       {"delta_us", ColumnType::kTime, "B minus A.", &AlignedRow::delta_ns}}};
  return columns;
}

struct Kernel {
  std::string_view name, op, dims;
  std::string type;
  size_t family = 0;
  int64_t ns = 0;
};

// "bf16" of the name of a kernel; empty: it does not say.
std::string_view TypeOfName(std::string_view name) {
  static const RE2 kType(
      R"((?i)(e4m3|e5m2|fp8|f8bs|sgemm|dgemm|bf16|bbs|f16f16|h(?:gemm|884|1688|16816)|s884|f32f32|tf32|fp32|fp16))");
  std::string found;
  if (!RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), kType,
                         &found))
    return {};
  for (char& c : found) c = static_cast<char>(std::tolower(c));
  if (found.starts_with("e4") || found.starts_with("e5") ||
      found.starts_with("f8") || found == "fp8")
    return "fp8";
  if (found == "sgemm" || found.starts_with("f32") || found == "fp32")
    return "fp32";
  if (found == "dgemm") return "fp64";
  if (found == "tf32") return "tf32";
  if (found == "bf16" || found == "bbs") return "bf16";
  return "fp16";
}

std::string TypeOf(const Context& context, SliceId s) {
  const tree::NodeId launcher = context.device.launcher(s);
  if (launcher.valid()) {
    const trace::OpArgs* const args =
        context.trace.Op(context.tree.slice(launcher));
    if (args != nullptr && args->types.valid()) {
      // The first tensor of the list.
      static const RE2 kFirst(R"re("([^"]+)")re");
      const std::string_view types = context.trace.Text(args->types);
      re2::StringPiece rest(types.data(), types.size());
      std::string type;
      while (RE2::FindAndConsume(&rest, kFirst, &type)) {
        if (const auto known = cost::FindDType(type))
          return std::string(known->precision.empty() ? known->name
                                                      : known->precision);
      }
    }
  }
  return std::string(TypeOfName(context.trace.Name(s)));
}

// In order of start on their streams, the stream with most work first: what
// runs beside it may begin sooner or later.
std::vector<SliceId> ByStream(const Context& context, const Unit& unit) {
  const trace::Trace& trace = context.trace;
  const auto stream = [&](SliceId s) {
    return trace.slices.track[s.value].value;
  };
  std::map<uint32_t, int64_t> times;
  for (const SliceId s : unit.work) times[stream(s)] += trace.Duration(s);
  std::vector<SliceId> work = unit.work;
  std::stable_sort(work.begin(), work.end(), [&](SliceId x, SliceId y) {
    return std::pair(-times[stream(x)], stream(x)) <
           std::pair(-times[stream(y)], stream(y));
  });
  return work;
}

std::vector<Kernel> KernelsOf(const Context& context, const Unit& unit) {
  std::vector<Kernel> out;
  for (const SliceId s : ByStream(context, unit)) {
    Kernel kernel;
    kernel.name = context.trace.Name(s);
    kernel.family = context.device.family(s);
    kernel.ns = context.trace.Duration(s);
    kernel.type = TypeOf(context, s);
    const tree::NodeId launcher = context.device.launcher(s);
    if (launcher.valid() && context.tree.kind(launcher) == trace::Kind::kOp) {
      kernel.op = context.tree.name(launcher);
      const trace::OpArgs* const args =
          context.trace.Op(context.tree.slice(launcher));
      if (args != nullptr && args->dims.valid())
        kernel.dims = context.trace.Text(args->dims);
    }
    out.push_back(std::move(kernel));
  }
  return out;
}

// Shapes of the tensors among inputs: a scalar has none.
std::string TensorsOf(std::string_view dims) {
  std::string out;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == ' ') continue;
    if (dims.substr(i).starts_with("[]")) {
      ++i;
      continue;
    }
    if (dims[i] == ',' &&
        (out.empty() || out.back() == '[' || out.back() == ','))
      continue;
    out += dims[i];
  }
  while (out.ends_with(",]")) out.erase(out.size() - 2, 1);
  if (out.ends_with(",")) out.pop_back();
  return out;
}

// Two kernels that may stand for each other; below 0: they may not.
int ScoreOf(const Kernel& x, const Kernel& y) {
  if (x.family != y.family) return -4;
  return 3 + 2 * (x.name == y.name) + (x.op == y.op) + (x.dims == y.dims);
}

struct Group {
  bool gap = false;
  std::vector<size_t> a, b;
};

// A global alignment with a price of 1 for what has no partner. Empty where the
// table of moves would be too large.
std::optional<std::vector<Group>> Align(const std::vector<Kernel>& a,
                                        const std::vector<Kernel>& b) {
  constexpr size_t kMostCells = 100'000'000;
  enum Move : uint8_t { kBoth, kA, kB };
  const size_t n = a.size(), m = b.size();
  if ((n + 1) * (m + 1) > kMostCells) return std::nullopt;
  std::vector<uint8_t> moves((n + 1) * (m + 1), kA);
  std::vector<int> above(m + 1), row(m + 1);
  for (size_t j = 0; j <= m; ++j) {
    above[j] = -static_cast<int>(j);
    moves[j] = kB;
  }
  for (size_t i = 1; i <= n; ++i) {
    row[0] = -static_cast<int>(i);
    for (size_t j = 1; j <= m; ++j) {
      const int score = ScoreOf(a[i - 1], b[j - 1]);
      const int both = above[j - 1] + score;
      const int only_a = above[j] - 1, only_b = row[j - 1] - 1;
      row[j] = std::max({both, only_a, only_b});
      moves[i * (m + 1) + j] = row[j] == both     ? kBoth
                               : row[j] == only_a ? kA
                                                  : kB;
    }
    std::swap(above, row);
  }
  std::vector<Group> groups;
  for (size_t i = n, j = m; i > 0 || j > 0;) {
    const uint8_t move = moves[i * (m + 1) + j];
    const bool gap = move != kBoth;
    if (!gap || groups.empty() || !groups.back().gap)
      groups.push_back({gap, {}, {}});
    if (move != kB) groups.back().a.push_back(--i);
    if (move != kA) groups.back().b.push_back(--j);
  }
  std::reverse(groups.begin(), groups.end());
  for (Group& group : groups) {
    std::reverse(group.a.begin(), group.a.end());
    std::reverse(group.b.begin(), group.b.end());
  }
  return groups;
}

class Aligner {
 public:
  Aligner(const Unit& a, const Unit& b)
      : catalog_(a.context->catalog),
        a_(KernelsOf(*a.context, a)),
        b_(KernelsOf(*b.context, b)) {
    for (const std::string_view name :
         {"elementwise", "norm", "activation", "copy", "quantization", "rope",
          "generated", "dropout"})
      light_.insert(catalog_.FamilyIndex(name));
  }

  // Rows of what differs, largest change first; false: too many kernels.
  bool Rows(std::string_view phase, std::vector<AlignedRow>& rows) {
    auto groups = Align(a_, b_);
    if (!groups) return false;
    Absorb(*groups);
    std::map<std::array<std::string, 10>, size_t> place;
    std::vector<AlignedRow> own;
    for (const Group& group : *groups) {
      AlignedRow row = RowOf(group);
      if (row.kind.empty()) continue;
      row.phase = phase;
      const std::array<std::string, 10> key = {
          row.kind,     row.op_a,
          row.op_b,     row.kernel_a,
          row.kernel_b, row.type_a,
          row.type_b,   row.shapes_a,
          row.shapes_b, std::to_string(row.kernels_a)};
      const auto [it, is_new] = place.try_emplace(key, own.size());
      if (is_new) {
        own.push_back(std::move(row));
        continue;
      }
      AlignedRow& known = own[it->second];
      ++known.calls;
      known.a_ns += row.a_ns;
      known.b_ns += row.b_ns;
      known.delta_ns += row.delta_ns;
    }
    std::stable_sort(own.begin(), own.end(),
                     [](const AlignedRow& x, const AlignedRow& y) {
                       return std::abs(x.delta_ns) > std::abs(y.delta_ns);
                     });
    std::move(own.begin(), own.end(), std::back_inserter(rows));
    return true;
  }

 private:
  std::set<size_t> FamiliesOf(const Group& group) const {
    std::set<size_t> families;
    for (const size_t i : group.a) families.insert(a_[i].family);
    for (const size_t j : group.b) families.insert(b_[j].family);
    return families;
  }

  bool IsSame(const Group& group) const {
    return !group.gap && group.a.size() == 1 && group.b.size() == 1 &&
           a_[group.a[0]].name == b_[group.b[0]].name;
  }

  // What one side alone has joins a neighbour that changed and whose work it
  // can be part of.
  void Absorb(std::vector<Group>& groups) const {
    for (size_t i = 0; i < groups.size();) {
      const size_t at = i++;
      if (!groups[at].gap || (!groups[at].a.empty() && !groups[at].b.empty()))
        continue;
      const std::set<size_t> own = FamiliesOf(groups[at]);
      size_t best = groups.size();
      bool best_within = false;
      for (const size_t j : {at + 1, at - 1}) {
        if (j >= groups.size() || IsSame(groups[j])) continue;
        const std::set<size_t> others = FamiliesOf(groups[j]);
        const bool within =
            std::includes(others.begin(), others.end(), own.begin(), own.end());
        const bool light = std::includes(light_.begin(), light_.end(),
                                         own.begin(), own.end()) &&
                           std::includes(light_.begin(), light_.end(),
                                         others.begin(), others.end());
        const bool shared = std::any_of(own.begin(), own.end(), [&](size_t f) {
          return others.contains(f);
        });
        if (!light && !shared) continue;
        if (best == groups.size() || (within && !best_within)) {
          best = j;
          best_within = within;
        }
      }
      if (best == groups.size()) continue;
      const size_t low = std::min(at, best), high = std::max(at, best);
      auto& into = groups[low];
      into.a.insert(into.a.end(), groups[high].a.begin(), groups[high].a.end());
      into.b.insert(into.b.end(), groups[high].b.begin(), groups[high].b.end());
      into.gap = into.a.empty() || into.b.empty();
      groups.erase(groups.begin() + static_cast<ptrdiff_t>(high));
      // Only its neighbours have another one now.
      i = low == 0 ? 0 : low - 1;
    }
  }

  std::string KindOf(const Group& group) const {
    if (group.b.empty()) return "only_a";
    if (group.a.empty()) return "only_b";
    if (group.a.size() != group.b.size())
      return group.a.size() > group.b.size() ? "fused" : "split";
    const Kernel& x = a_[group.a[0]];
    const Kernel& y = b_[group.b[0]];
    if (group.a.size() > 1 || group.gap) return "other_kernel";
    if (!x.type.empty() && !y.type.empty() && x.type != y.type) return "dtype";
    if (x.op == y.op && !x.dims.empty() && !y.dims.empty() &&
        TensorsOf(x.dims) != TensorsOf(y.dims))
      return "other_shape";
    if (x.name != y.name) return "renamed";
    // Below this share of its time a kernel varies from call to call.
    constexpr double kChanged = 0.03;
    const auto before = static_cast<double>(x.ns);
    return std::abs(static_cast<double>(y.ns) - before) > kChanged * before
               ? "changed"
               : "";
  }

  static void Join(std::string& text, std::string_view name) {
    if (name.empty()) return;
    if (!text.empty()) text += " + ";
    text += name;
  }

  AlignedRow RowOf(const Group& group) const {
    AlignedRow row;
    row.kind = KindOf(group);
    if (row.kind.empty()) return row;
    for (const size_t i : group.a) {
      Join(row.kernel_a, a_[i].name);
      if (row.op_a.find(a_[i].op) == std::string::npos)
        Join(row.op_a, a_[i].op);
      row.a_ns += a_[i].ns;
    }
    for (const size_t j : group.b) {
      Join(row.kernel_b, b_[j].name);
      if (row.op_b.find(b_[j].op) == std::string::npos)
        Join(row.op_b, b_[j].op);
      row.b_ns += b_[j].ns;
    }
    const Kernel& first = group.a.empty() ? b_[group.b[0]] : a_[group.a[0]];
    row.family = catalog_.family(first.family).name;
    if (!group.a.empty()) {
      row.type_a = a_[group.a[0]].type;
      row.shapes_a = a_[group.a[0]].dims;
    }
    if (!group.b.empty()) {
      row.type_b = b_[group.b[0]].type;
      row.shapes_b = b_[group.b[0]].dims;
    }
    row.kernels_a = group.a.size();
    row.kernels_b = group.b.size();
    row.delta_ns = row.b_ns - row.a_ns;
    return row;
  }

  const rules::Catalog& catalog_;
  const std::vector<Kernel> a_, b_;
  std::set<size_t> light_;
};

// The unit with the median of device work.
const Unit& MedianUnit(std::vector<const Unit*> units) {
  std::stable_sort(
      units.begin(), units.end(),
      [](const Unit* x, const Unit* y) { return x->kernel_ns < y->kernel_ns; });
  return *units[units.size() / 2];
}

Table Aligned(const Matching& matching, std::vector<Note>& notes) {
  std::vector<AlignedRow> rows;
  for (const MatchedPhase& phase : matching.phases) {
    const MatchedClass& one =
        **std::max_element(phase.classes.begin(), phase.classes.end(),
                           [](const MatchedClass* x, const MatchedClass* y) {
                             return x->share < y->share;
                           });
    Aligner aligner(MedianUnit(one.matched[0]), MedianUnit(one.matched[1]));
    if (aligner.Rows(PhaseName(phase.phase), rows)) continue;
    notes.push_back(
        MakeNote(Severity::kInfo, "diff_not_aligned",
                 fmt::format("Units of {} have too many kernels to be aligned: "
                             "diff_aligned has no rows of them.",
                             PhaseName(phase.phase)),
                 {{"diff_aligned", "", "", {}}}));
  }
  return AlignedColumns().Make(rows);
}

}  // namespace

std::vector<Schema> DifferenceSchemas() {
  return {PartColumns().schema(), ModuleColumns().schema(),
          AlignedColumns().schema(), WaitsSchema()};
}

namespace {

Result<std::map<const Context*, Halves>> HalvesOf(const Context& any,
                                                  const Matching& matching) {
  LAMINA_ASSIGN(const auto rules, HalfRules(any));
  std::map<const Context*, Halves> halves;
  for (const auto& side : ContextsOf(matching)) {
    for (const Context* context : side)
      halves.try_emplace(context, *context, rules);
  }
  return halves;
}

void AddParts(const std::map<const Context*, Halves>& halves,
              const MatchedPhase& phase, Account& out) {
  using Key = std::pair<std::string_view, std::string_view>;
  const auto sums =
      SumUnits<Key>(phase, [&](const Context& context, SliceId s) {
        return Key(halves.at(&context).Of(s).value_or(""),
                   context.catalog.family(context.device.family(s)).name);
      });
  double kernels = 0;
  for (const auto& [key, cell] : sums.cells) {
    out.parts.push_back({phase.phase, std::string(key.first),
                         std::string(key.second), cell.kernels[0], cell.ns[0]});
    kernels += cell.ns[0];
  }
  const Spans spans(phase);
  out.parts.push_back({phase.phase, "", "overlap", 0, spans.busy[0] - kernels});
  out.parts.push_back(
      {phase.phase, "", "idle", 0, spans.all[0] - spans.busy[0]});
}

void AddModules(const std::map<const Context*, ClassPaths>& places,
                const MatchedPhase& phase, Account& out) {
  const auto sums = SumUnits<std::string_view>(
      phase, [&](const Context& context, SliceId s) -> std::string_view {
        const tree::NodeId launcher = context.device.launcher(s);
        if (!launcher.valid()) return "";
        const auto owner = context.modules.OwnerOf(launcher);
        if (!owner.path.valid()) return "";
        return places.at(&context).of[owner.path.value];
      });
  for (const auto& [path, cell] : sums.cells) {
    if (path.empty()) continue;
    size_t instances = 0;
    for (const auto& [context, own] : places) {
      const auto found = own.instances.find(std::string(path));
      if (found != own.instances.end())
        instances = std::max(instances, found->second);
    }
    out.modules.push_back(
        {phase.phase, std::string(path), instances, cell.ns[0]});
  }
}

void AddKernels(const MatchedPhase& phase, Account& out) {
  using Key = std::tuple<std::string_view, std::string_view, std::string_view>;
  const auto sums =
      SumUnits<Key>(phase, [&](const Context& context, SliceId s) {
        const tree::NodeId launcher = context.device.launcher(s);
        const bool of_op =
            launcher.valid() && context.tree.kind(launcher) == trace::Kind::kOp;
        return Key(context.trace.Name(s),
                   of_op ? context.tree.name(launcher) : std::string_view(),
                   context.catalog.family(context.device.family(s)).name);
      });
  const size_t first = out.kernels.size();
  for (const auto& [key, cell] : sums.cells) {
    const auto& [name, op, family] = key;
    out.kernels.push_back({phase.phase, std::string(name), std::string(op),
                           std::string(family), cell.kernels[0], cell.ns[0]});
  }
  std::stable_sort(
      out.kernels.begin() + static_cast<ptrdiff_t>(first), out.kernels.end(),
      [](const KernelPart& x, const KernelPart& y) { return x.ns > y.ns; });
}

}  // namespace

Result<Account> AccountOf(const Context& any, const Matching& one) {
  LAMINA_ASSIGN(const auto halves, HalvesOf(any, one));
  std::map<const Context*, ClassPaths> places;
  for (const auto& [context, of_context] : halves)
    places.try_emplace(context, *context);
  Account out;
  for (const MatchedPhase& phase : one.phases) {
    AddParts(halves, phase, out);
    AddModules(places, phase, out);
    AddKernels(phase, out);
  }
  return out;
}

Table KeptParts(const PerSide<const std::vector<Part>*>& parts,
                const Matching& matching) {
  std::vector<PartRow> rows;
  for (const MatchedPhase& phase : matching.phases) {
    using Key = std::pair<std::string_view, std::string_view>;
    std::map<Key, PerSide<Part>> of_phase;
    PerSide<double> rest = phase.mean_ns;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      for (const Part& part : *parts[side]) {
        if (part.phase != phase.phase) continue;
        of_phase[{part.half, part.family}][side] = part;
        rest[side] -= part.ns;
      }
    }
    PerSide<Part> others;
    for (const size_t side : {size_t{0}, size_t{1}})
      others[side].ns = rest[side];
    if (std::abs(rest[0]) >= 1 || std::abs(rest[1]) >= 1)
      of_phase[{"", "rest"}] = others;
    std::vector<PartRow> own;
    const double change = phase.mean_ns[1] - phase.mean_ns[0];
    for (const auto& [key, of_side] : of_phase) {
      PartRow row{.phase = PhaseName(phase.phase),
                  .half = key.first.empty()
                              ? std::nullopt
                              : std::optional<std::string>(key.first),
                  .family = std::string(key.second),
                  .kernels_a = of_side[0].kernels,
                  .kernels_b = of_side[1].kernels,
                  .a_ns = std::llround(of_side[0].ns),
                  .b_ns = std::llround(of_side[1].ns),
                  .delta_ns = std::llround(of_side[1].ns - of_side[0].ns)};
      if (std::abs(change) >= 1)
        row.share = 100 * static_cast<double>(row.delta_ns) / change;
      own.push_back(std::move(row));
    }
    std::stable_sort(own.begin(), own.end(),
                     [](const PartRow& x, const PartRow& y) {
                       return std::abs(x.delta_ns) > std::abs(y.delta_ns);
                     });
    std::move(own.begin(), own.end(), std::back_inserter(rows));
  }
  return PartColumns().Make(rows);
}

namespace {

// Products and their like that take less time than their device can do them in:
// where B has such and A has not, B does not do the work that its ops name, or
// its times are wrong. Memory-bound work may come from a cache.
struct Beyond {
  std::string op, device;
  double share = 1;  // of the least time
};

std::map<std::array<std::string, 3>, Beyond> BeyondRoofline(
    const std::set<const Context*>& contexts) {
  constexpr double kSurely = 0.95;
  std::map<std::array<std::string, 3>, Beyond> out;
  for (const Context* context : contexts) {
    const auto efficiency = context->Get<analysis::Efficiency>();
    if (!efficiency || !(*efficiency)->device) continue;
    const analysis::CostView& costs = *(*efficiency)->costs;
    for (const auto& group : costs.groups()) {
      if (!group.cost || group.assumed_spec || group.calls.empty()) continue;
      const auto roofline =
          cost::RooflineOf(*group.cost, *(*efficiency)->device, group.spec);
      if (!roofline || !roofline->compute_bound) continue;
      std::vector<double> times;
      for (const uint32_t call : group.calls) {
        double ns = 0;
        for (const SliceId s : costs.Work(costs.calls()[call]))
          ns += static_cast<double>(context->trace.Duration(s));
        if (ns > 0) times.push_back(ns);
      }
      if (times.empty()) continue;
      const double share = Median(std::move(times)) / (roofline->seconds * 1e9);
      if (share >= kSurely) continue;
      const auto text = [&](StringId id) {
        return std::string(id.valid() ? context->trace.Text(id) : "");
      };
      Beyond& one =
          out[{text(group.name), text(group.dims), text(group.types)}];
      if (share < one.share)
        one = {text(group.name), (*efficiency)->device->title, share};
    }
  }
  return out;
}

void SayBeyondRoofline(const Matching& matching, std::vector<Note>& notes) {
  if (matching.same_recording) return;
  const auto contexts = ContextsOf(matching);
  const auto before = BeyondRoofline(contexts[0]);
  const auto after = BeyondRoofline(contexts[1]);
  const Beyond* least = nullptr;
  for (const auto& [key, one] : after) {
    if (!before.contains(key) && (least == nullptr || one.share < least->share))
      least = &one;
  }
  if (least == nullptr) return;
  notes.push_back(MakeNote(
      Severity::kWarning, "diff_beyond_roofline",
      fmt::format(
          "{} of B takes {:.0f} % of the least time that {} needs for it: "
          "it is other work than its op and shapes say, or the times are "
          "wrong.",
          EscapeTerminal(least->op), 100 * least->share, least->device),
      {{"diff_aligned", "op_b", least->op, {}}}));
}

}  // namespace

Result<std::vector<Table>> DifferenceTables(const Context& any,
                                            const Matching& matching,
                                            const Options& options,
                                            std::vector<Note>& notes) {
  LAMINA_ASSIGN(const auto halves, HalvesOf(any, matching));
  std::vector<Table> tables;
  tables.push_back(Parts(halves, matching, options));
  tables.push_back(Modules(matching, options));
  tables.push_back(Aligned(matching, notes));
  tables.push_back(WaitsTable(matching, notes));
  SayBeyondRoofline(matching, notes);
  return tables;
}

std::string MainType(const std::vector<const Unit*>& units) {
  // Of what computes, else of all work: models without matrix products.
  for (const bool all : {false, true}) {
    std::map<std::string, int64_t> types;
    for (const Unit* unit : units) {
      const Context& context = *unit->context;
      std::set<size_t> families;
      for (const char* name : {"gemm", "attention", "conv", "moe"})
        families.insert(context.catalog.FamilyIndex(name));
      for (const SliceId s : unit->work) {
        if (!all && !families.contains(context.device.family(s))) continue;
        std::string type = TypeOf(context, s);
        if (!type.empty()) types[std::move(type)] += context.trace.Duration(s);
      }
    }
    const auto most = std::max_element(
        types.begin(), types.end(),
        [](const auto& x, const auto& y) { return x.second < y.second; });
    if (most != types.end()) return most->first;
  }
  return {};
}

std::string TypeChange(const Context& a, const Context& b) {
  PerSide<std::string> types;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    Unit whole;
    whole.context = side == 0 ? &a : &b;
    const auto slices = whole.context->trace.device_slices();
    whole.work.assign(slices.begin(), slices.end());
    types[side] = MainType({&whole});
  }
  if (types[0].empty() || types[1].empty() || types[0] == types[1]) return {};
  return types[0] + " -> " + types[1];
}

}  // namespace lamina::runs
