// SPDX-License-Identifier: Apache-2.0
//
// Device time by what launched it: categories, ops, ops with shapes, single
// launchers.
//
// Two times are kept apart everywhere. `kernel_time_us` is the sum of
// durations: it adds up, and
//   categories + collectives + unlinked = all device slices
// holds to the nanosecond. `busy_us` is the length of the union: it answers
// "how long", and does not add up where kernels of one launcher overlap.
#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/common/launchers.h"
#include "analysis/common/stats.h"
#include "analysis/ops/schemas.h"

namespace lamina::analysis::ops {
namespace {

constexpr size_t kMaxKernelNames = 4;

// Per-family time of a group of launchers, to name the largest.
class FamilyTimes {
 public:
  void Add(size_t family, int64_t ns) {
    for (auto& [known, time] : times_) {
      if (known == family) {
        time += ns;
        return;
      }
    }
    times_.emplace_back(family, ns);
  }
  size_t Largest() const {
    size_t best = 0;
    int64_t best_time = -1;
    for (const auto& [family, time] : times_) {
      if (time > best_time || (time == best_time && family < best)) {
        best = family;
        best_time = time;
      }
    }
    return best;
  }

 private:
  std::vector<std::pair<size_t, int64_t>> times_;
};

struct Group {
  NodeId first;
  StringId kernel;  // of API calls without an op
  FamilyTimes families;
  std::vector<int64_t> times;  // device time per call
  int64_t kernel_time = 0;
  int64_t busy = 0;
  int64_t subtree = 0;
  int64_t host = 0;
  size_t kernels = 0;
  size_t first_kernels = 0;
  size_t varying = 0;
};

using OpKey = std::pair<StringId, StringId>;
using ShapeKey =
    std::tuple<StringId, StringId, StringId, StringId, StringId, StringId>;

class OpTables {
 public:
  explicit OpTables(const Context& context)
      : context_(context), trace_(context.trace), tree_(context.tree) {}

  ResultSet Make() {
    for (const SliceId s : trace_.device_slices()) total_ += trace_.Duration(s);
    launchers_ = CollectLaunchers(
        tree_, [&](SliceId s) { return !context_.device.communication(s); },
        [&](SliceId s) { return context_.device.launcher(s); });
    Collect();
    ResultSet result;
    result.tables.push_back(Categories());
    result.tables.push_back(Ops());
    result.tables.push_back(Shapes());
    result.tables.push_back(LauncherRows());
    return result;
  }

 private:
  double Percent(int64_t ns) const { return PercentOf(ns, total_); }

  void Collect() {
    for (const Launcher& launcher : launchers_.list) {
      const auto work = launchers_.Work(launcher);
      const SliceId slice = tree_.slice(launcher.node);
      const int64_t sum = SumOf(trace_, work);
      const int64_t busy = UnionOf(trace_, work);
      const bool is_op = tree_.IsOp(launcher.node);
      // One kernel without an op is named; a graph launch of hundreds is not.
      const StringId kernel = is_op || work.size() > 1
                                  ? StringId()
                                  : trace_.slices.name[work[0].value];
      const StringId name = trace_.slices.name[slice.value];
      const trace::OpArgs* args = trace_.Op(slice);
      const ShapeKey shape_key(name, kernel, args ? args->dims : StringId(),
                               args ? args->types : StringId(),
                               args ? args->strides : StringId(),
                               args ? args->concrete : StringId());
      const auto add = [&](Group& group, bool is_new) {
        if (is_new) {
          group.first = launcher.node;
          group.kernel = kernel;
          group.first_kernels = work.size();
        }
        for (const SliceId s : work)
          group.families.Add(context_.device.family(s), trace_.Duration(s));
        group.times.push_back(sum);
        group.kernel_time += sum;
        group.busy += busy;
        group.subtree += tree_.DeviceTime(launcher.node);
        group.host += trace_.HostTime(slice);
        group.kernels += work.size();
        group.varying += work.size() != group.first_kernels;
      };
      const auto [op, new_op] =
          op_ids_.try_emplace(OpKey(name, kernel), ops_.size());
      if (new_op) ops_.emplace_back();
      add(ops_[op->second], new_op);
      const auto [shape, new_shape] =
          shape_ids_.try_emplace(shape_key, shapes_.size());
      if (new_shape) shapes_.emplace_back();
      add(shapes_[shape->second], new_shape);
    }
  }

  // Largest first, ties by first event.
  std::vector<const Group*> Sorted(const std::vector<Group>& groups) const {
    std::vector<const Group*> out;
    for (const Group& group : groups) out.push_back(&group);
    std::sort(out.begin(), out.end(), [&](const Group* a, const Group* b) {
      if (a->kernel_time != b->kernel_time)
        return a->kernel_time > b->kernel_time;
      return Uid(*a) < Uid(*b);
    });
    return out;
  }

  uint32_t Uid(const Group& group) const {
    return trace_.Uid(tree_.slice(group.first));
  }
  uint32_t EventOf(const Group& group) const {
    return trace_.EventOf(tree_.slice(group.first));
  }
  std::string_view FamilyName(size_t family) const {
    return context_.catalog.family(family).name;
  }

  Table Categories() const {
    struct Row {
      std::string name;
      std::string group;
      std::string_view kind;
      size_t launchers = 0;
      std::vector<SliceId> slices;
    };
    const auto& families = context_.catalog.families();
    std::vector<Row> rows;
    for (const rules::Family& family : families)
      rows.push_back({family.name, family.group, "category", 0, {}});
    const size_t collective = rows.size();
    rows.push_back({"communication", "comm", "collective", 0, {}});
    const size_t unlinked = rows.size();
    rows.push_back({"unlinked", "other", "unlinked", 0, {}});

    std::vector<std::vector<NodeId>> launchers(rows.size());
    for (const SliceId s : tree_.launched()) {
      const size_t row = context_.device.communication(s)
                             ? collective
                             : context_.device.family(s);
      rows[row].slices.push_back(s);
      const NodeId launcher = context_.device.launcher(s);
      if (launchers[row].empty() || launchers[row].back() != launcher)
        launchers[row].push_back(launcher);
    }
    for (size_t row = 0; row < rows.size(); ++row) {
      // An op may launch, call another op, and launch again.
      std::sort(launchers[row].begin(), launchers[row].end());
      rows[row].launchers = static_cast<size_t>(
          std::unique(launchers[row].begin(), launchers[row].end()) -
          launchers[row].begin());
    }
    // In a recording of the device alone, kernel names say what work is.
    for (const SliceId s : trace_.device_slices()) {
      if (tree_.launch(s).valid()) continue;
      size_t row = unlinked;
      if (tree_.unlinked(s) == tree::Unlinked::kNoHost) {
        row = context_.device.communication(s) ? collective
                                               : context_.device.family(s);
      }
      rows[row].slices.push_back(s);
    }
    struct Sum {
      const Row* row;
      int64_t ns;
    };
    std::vector<Sum> sums;
    for (const Row& row : rows) {
      if (!row.slices.empty())
        sums.push_back({&row, SumOf(trace_, row.slices)});
    }
    std::sort(sums.begin(), sums.end(), [](const Sum& a, const Sum& b) {
      if (a.ns != b.ns) return a.ns > b.ns;
      return a.row->name < b.row->name;
    });
    std::vector<CategoryRow> out;
    int64_t running = 0;
    for (const auto& [row, ns] : sums) {
      running += ns;
      out.push_back({.category = row->name,
                     .group = row->group,
                     .kind = row->kind,
                     .launchers = row->launchers,
                     .kernels = row->slices.size(),
                     .kernel_time = ns,
                     .busy = UnionOf(trace_, row->slices),
                     .percent = Percent(ns),
                     .cumulative_percent = Percent(running)});
    }
    return CategoryColumns().Make(out);
  }

  Table Ops() const {
    std::vector<OpRow> rows;
    int64_t running = 0;
    for (const Group* group : Sorted(ops_)) {
      running += group->kernel_time;
      rows.push_back({.op = tree_.name(group->first),
                      .kernel = trace_.Text(group->kernel),
                      .family = FamilyName(group->families.Largest()),
                      .count = group->times.size(),
                      .kernels = group->kernels,
                      .kernel_time = group->kernel_time,
                      .percent = Percent(group->kernel_time),
                      .busy = group->busy,
                      .subtree_time = group->subtree,
                      .host = group->host,
                      .cumulative_percent = Percent(running),
                      .first_uid = EventOf(*group)});
    }
    return OpColumns().Make(rows);
  }

  std::string KernelNames(NodeId node) const {
    std::vector<std::string_view> names;
    const auto it = first_work_.find(node);
    if (it == first_work_.end()) return {};
    size_t more = 0;
    for (const SliceId s : launchers_.Work(launchers_.list[it->second])) {
      const std::string_view name = trace_.Name(s);
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      if (names.size() == kMaxKernelNames) {
        ++more;
        continue;
      }
      names.push_back(name);
    }
    std::string out;
    for (const std::string_view name : names) {
      if (!out.empty()) out += "; ";
      out += name;
    }
    if (more > 0) out += "; +" + std::to_string(more);
    return out;
  }

  Table Shapes() {
    for (size_t i = 0; i < launchers_.list.size(); ++i)
      first_work_.emplace(launchers_.list[i].node, i);
    std::vector<ShapeRow> rows;
    for (const Group* group : Sorted(shapes_)) {
      std::vector<int64_t> times = group->times;
      const Stats stats = Summarize(times);
      const trace::OpArgs* args = trace_.Op(tree_.slice(group->first));
      const auto list = [&](StringId trace::OpArgs::*member) {
        return args != nullptr && (args->*member).valid()
                   ? OptionalText(trace_.Text(args->*member))
                   : std::nullopt;
      };
      std::optional<int64_t> std_dev;
      if (stats.std_dev) std_dev = RoundNs(*stats.std_dev);
      rows.push_back({.op = tree_.name(group->first),
                      .input_dims = list(&trace::OpArgs::dims),
                      .kernel = KernelNames(group->first),
                      .family = FamilyName(group->families.Largest()),
                      .count = group->times.size(),
                      .kernel_time = group->kernel_time,
                      .percent = Percent(group->kernel_time),
                      .mean = RoundNs(stats.mean),
                      .p50 = RoundNs(stats.median),
                      .std_dev = std_dev,
                      .min = stats.min,
                      .max = stats.max,
                      .busy = group->busy,
                      .kernels = group->kernels,
                      .varying_kernels = group->varying,
                      .input_types = list(&trace::OpArgs::types),
                      .input_strides = list(&trace::OpArgs::strides),
                      .concrete_inputs = list(&trace::OpArgs::concrete),
                      .first_uid = EventOf(*group)});
    }
    return ShapeColumns().Make(rows);
  }

  Table LauncherRows() const {
    const RowColumns<LauncherRow>& columns = LauncherColumns();
    Table table(columns.schema());
    std::vector<std::string> module_texts(context_.modules.paths().size());
    for (uint32_t i = 0; i < module_texts.size(); ++i)
      module_texts[i] = context_.modules.PathText(tree::ModulePathId(i));
    for (const Launcher& launcher : launchers_.list) {
      const auto work = launchers_.Work(launcher);
      const SliceId slice = tree_.slice(launcher.node);
      const auto owner = context_.modules.OwnerOf(launcher.node);
      const NodeId launch = tree_.launch(work[0]);
      const uint32_t step = context_.steps.StepOf(work[0]);
      LauncherRow row{.uid = trace_.EventOf(slice),
                      .op = tree_.name(launcher.node),
                      .module = {},
                      .start = trace_.Start(slice) - trace_.first_ns,
                      .host = trace_.HostTime(slice),
                      .kernels = work.size(),
                      .kernel_time = SumOf(trace_, work),
                      .busy = UnionOf(trace_, work),
                      .launch_latency = trace_.Start(work[0]) -
                                        trace_.Start(tree_.slice(launch)),
                      .step = {}};
      if (owner.path.valid()) row.module = module_texts[owner.path.value];
      row.step = context_.steps.NumberOf(step);
      columns.Add(table, row);
    }
    return table;
  }

  const Context& context_;
  const Trace& trace_;
  const tree::Tree& tree_;
  int64_t total_ = 0;
  Launchers launchers_;
  std::vector<Group> ops_;
  std::vector<Group> shapes_;
  absl::flat_hash_map<OpKey, size_t> op_ids_;
  absl::flat_hash_map<ShapeKey, size_t> shape_ids_;
  absl::flat_hash_map<NodeId, size_t> first_work_;
};

Result<ResultSet> Run(const Context& context) {
  return OpTables(context).Make();
}

}  // namespace

AnalysisInfo Info() {
  return {"ops", "Device time by category, op, shapes and launcher.",
          [] {
            return std::vector<Schema>{
                CategoryColumns().schema(), OpColumns().schema(),
                ShapeColumns().schema(), LauncherColumns().schema()};
          },
          &Run};
}

}  // namespace lamina::analysis::ops
