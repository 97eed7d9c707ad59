// SPDX-License-Identifier: Apache-2.0
#include "analysis/calltree/calltree.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "table/row_columns.h"

namespace lamina::analysis::calltree {
namespace {

constexpr int64_t kSeveral = -2;

// One line of a tree before pruning.
struct Line {
  std::string name;
  std::string kind;
  size_t instances = 1;  // merged siblings
  size_t calls = 0;
  size_t kernels = 0;
  int64_t total_ns = 0;
  int64_t self_ns = 0;
  int64_t host_ns = 0;
  int64_t weight_ns = 0;  // what lines are sorted and folded by
  // What its own compiled kernels compute; -2: several, -1: none.
  int64_t compiled = -1;
  std::vector<uint32_t> children;  // positions of lines
};

struct TreeRow {
  const Line& line;
  size_t depth;
  double percent;
  const CompiledWork::Kernel* compiled;  // null: none or several
};

template <class T>
auto Of(T Line::*member) {
  return [member](const TreeRow& row) -> const T& { return row.line.*member; };
}
auto Of(std::string CompiledWork::Kernel::*member) {
  return [member](const TreeRow& row) {
    return row.compiled != nullptr
               ? std::optional<std::string_view>(row.compiled->*member)
               : std::nullopt;
  };
}

// `compiled`: with what compiled kernels compute.
RowColumns<TreeRow> TreeColumns(std::string name, std::string doc,
                                bool compiled = false) {
  using Columns = std::vector<RowColumn<TreeRow>>;
  Columns columns = {
      {"name", ColumnType::kText, "What was called.", Of(&Line::name)},
      {"depth", ColumnType::kInt, "0 for roots.", &TreeRow::depth,
       Shown::kHidden},
      {"kind", ColumnType::kText,
       "op, call or module; \"folded\" for lines under the threshold, "
       "\"unlinked\" for work without a launch in the file.",
       Of(&Line::kind), Shown::kHidden},
      {"instances", ColumnType::kInt, "Equal siblings that are added up here.",
       Of(&Line::instances), Shown::kHidden}};
  const auto add = [&](const Columns& more) {
    columns.insert(columns.end(), more.begin(), more.end());
  };
  if (compiled) {
    add({{"computes", ColumnType::kText,
          "Ops that its compiled kernel computes.",
          Of(&CompiledWork::Kernel::ops)},
         {"where", ColumnType::kText,
          "Lines of the model that they come from, in short.",
          Of(&CompiledWork::Kernel::where)}});
  }
  add({{"calls", ColumnType::kInt, "Times it was called.", Of(&Line::calls)},
       {"kernels", ColumnType::kInt, "Device slices inside.",
        Of(&Line::kernels)},
       {"kernel_time_us", ColumnType::kTime, "Sum of durations inside.",
        Of(&Line::total_ns)},
       {"percent", ColumnType::kReal,
        "Share of all device time; without device work of the host time of "
        "all roots.",
        &TreeRow::percent, Shown::kBar},
       {"self_kernel_time_us", ColumnType::kTime,
        "Launched by it and by nothing below.", Of(&Line::self_ns)},
       {"host_us", ColumnType::kTime, "Host time of the calls.",
        Of(&Line::host_ns), Shown::kHidden}});
  if (compiled) {
    add({{"lines", ColumnType::kText, "Lines of the model, with the code.",
          Of(&CompiledWork::Kernel::lines), Shown::kHidden}});
  }
  return {std::move(name), std::move(doc), std::move(columns)};
}

RowColumns<TreeRow> OpTreeColumns(bool compiled) {
  return TreeColumns("op_tree", "Ops by calling context.", compiled);
}
RowColumns<TreeRow> ModuleTreeColumns() {
  return TreeColumns("module_tree", "Modules by hierarchy.");
}

// Writes lines in preorder, largest child first, folding what is small or
// deep into one line per parent, so that children and self add up.
class Printer {
 public:
  Printer(const std::vector<Line>& lines, int64_t all,
          const TreeOptions& options, RowColumns<TreeRow> columns)
      : lines_(lines),
        all_(all),
        options_(options),
        columns_(std::move(columns)),
        table_(columns_.schema()) {}

  Table Print(const std::vector<uint32_t>& roots, bool by_time) {
    struct Open {
      uint32_t line;
      size_t depth;
      const Line* folded;
    };
    std::vector<Open> stack;
    Push(roots, 0, by_time, stack);
    while (!stack.empty()) {
      const auto [index, depth, folded] = stack.back();
      stack.pop_back();
      if (folded != nullptr) {
        Row(*folded, depth);
        continue;
      }
      const Line& line = lines_[index];
      Row(line, depth);
      if (depth + 1 < options_.max_depth)
        Push(line.children, depth + 1, by_time, stack);
    }
    return std::move(table_);
  }

 private:
  double Share(int64_t ns) const {
    return all_ > 0
               ? 100.0 * static_cast<double>(ns) / static_cast<double>(all_)
               : 0.0;
  }

  template <class Stack>
  void Push(std::vector<uint32_t> children, size_t depth, bool by_time,
            Stack& stack) {
    if (by_time) {
      std::stable_sort(children.begin(), children.end(),
                       [&](uint32_t a, uint32_t b) {
                         return lines_[a].weight_ns > lines_[b].weight_ns;
                       });
    }
    Line folded;
    size_t folded_lines = 0;
    std::vector<uint32_t> kept;
    for (const uint32_t child : children) {
      const Line& line = lines_[child];
      if (line.weight_ns > 0 && Share(line.weight_ns) >= options_.min_percent) {
        kept.push_back(child);
        continue;
      }
      ++folded_lines;
      folded.calls += line.calls;
      folded.kernels += line.kernels;
      folded.total_ns += line.total_ns;
      folded.host_ns += line.host_ns;
      folded.weight_ns += line.weight_ns;
    }
    if (folded_lines > 0 && folded.weight_ns > 0) {
      folded.name = "(" + std::to_string(folded_lines) + " smaller)";
      folded.kind = "folded";
      folds_.push_back(std::make_unique<Line>(std::move(folded)));
      stack.push_back({0, depth, folds_.back().get()});
    }
    for (auto it = kept.rbegin(); it != kept.rend(); ++it)
      stack.push_back({*it, depth, nullptr});
  }

  void Row(const Line& line, size_t depth) {
    columns_.Add(
        table_,
        {.line = line,
         .depth = depth,
         .percent = Share(line.weight_ns),
         .compiled = line.compiled >= 0
                         ? &options_.compiled
                                ->kernels[static_cast<size_t>(line.compiled)]
                         : nullptr});
  }

  const std::vector<Line>& lines_;
  int64_t all_;
  const TreeOptions& options_;
  const RowColumns<TreeRow> columns_;
  Table table_;
  std::vector<std::unique_ptr<Line>> folds_;
};

int64_t DeviceTime(const Context& context) {
  int64_t all = 0;
  for (const SliceId s : context.trace.device_slices())
    all += context.trace.Duration(s);
  return all;
}

// Work that no host event launched, as a root of its own: without it the roots
// would not add up to all device time.
void AddUnlinked(const Context& context, std::vector<Line>& lines,
                 std::vector<uint32_t>& roots) {
  Line line;
  line.name = "(unlinked)";
  line.kind = "unlinked";
  for (const SliceId s : context.trace.device_slices()) {
    if (context.tree.launch(s).valid()) continue;
    ++line.kernels;
    line.total_ns += context.trace.Duration(s);
  }
  if (line.kernels == 0) return;
  line.self_ns = line.total_ns;
  roots.push_back(static_cast<uint32_t>(lines.size()));
  lines.push_back(std::move(line));
}

}  // namespace

Table MakeOpTree(const Context& context, const TreeOptions& options) {
  const tree::Tree& tree = context.tree;
  const Trace& trace = context.trace;
  std::vector<Line> lines;
  std::vector<uint32_t> roots;
  absl::flat_hash_map<std::pair<uint32_t, StringId>, uint32_t> ids;
  std::vector<uint32_t> line_of(tree.size(), 0xFFFFFFFF);
  // Without any device work the tree is that of the host's time.
  const bool host_only = trace.device_slices().empty();
  for (uint32_t n = 0; n < tree.size(); ++n) {
    const NodeId node(n);
    if (!tree.HasDeviceWork(node) && !host_only) continue;
    const NodeId parent = tree.parent(node);
    const uint32_t parent_line =
        parent.valid() ? line_of[parent.value] : 0xFFFFFFFF;
    const StringId name = trace.slices.name[tree.slice(node).value];
    const auto [it, is_new] = ids.try_emplace(
        std::pair(parent_line, name), static_cast<uint32_t>(lines.size()));
    if (is_new) {
      Line line;
      line.name = trace.Text(name);
      line.kind = trace::KindName(tree.kind(node));
      lines.push_back(std::move(line));
      if (parent_line == 0xFFFFFFFF) {
        roots.push_back(it->second);
      } else {
        lines[parent_line].children.push_back(it->second);
      }
    }
    line_of[n] = it->second;
    Line& line = lines[it->second];
    ++line.calls;
    line.kernels += tree.DeviceWork(node).size();
    line.total_ns += tree.DeviceTime(node);
    for (const SliceId s : tree.OwnDeviceWork(node))
      line.self_ns += trace.Duration(s);
    if (options.compiled != nullptr) {
      // An op that runs one compiled kernel, and all calls above its launch.
      for (const SliceId s : tree.DeviceWork(node)) {
        const auto use = options.compiled->uses.find(s);
        const int64_t row = use == options.compiled->uses.end()
                                ? kSeveral
                                : static_cast<int64_t>(use->second.kernel);
        line.compiled =
            line.compiled == -1 || line.compiled == row ? row : kSeveral;
        if (line.compiled == kSeveral) break;
      }
    }
    line.host_ns += trace.HostTime(tree.slice(node));
  }
  AddUnlinked(context, lines, roots);
  int64_t all = DeviceTime(context);
  for (Line& line : lines)
    line.weight_ns = host_only ? line.host_ns : line.total_ns;
  if (host_only) {
    for (const uint32_t root : roots) all += lines[root].weight_ns;
  }
  return Printer(lines, all, options,
                 OpTreeColumns(options.compiled != nullptr))
      .Print(roots, true);
}

Table MakeModuleTree(const Context& context, const TreeOptions& options) {
  const tree::Modules& modules = context.modules;
  const Trace& trace = context.trace;
  const auto& paths = modules.paths();
  std::vector<Line> lines(paths.size() + 1);
  std::vector<uint32_t> roots;
  const auto outside = static_cast<uint32_t>(paths.size());
  lines[outside].name = "(outside)";
  lines[outside].kind = "folded";
  for (const SliceId s : context.tree.launched()) {
    const auto owner = modules.OwnerOf(context.tree.launch(s));
    Line& line = lines[owner.path.valid() ? owner.path.value : outside];
    line.self_ns += trace.Duration(s);
    line.total_ns += trace.Duration(s);
    ++line.kernels;
  }
  for (const tree::Modules::Call& call : modules.calls())
    lines[call.path.value].host_ns += trace.HostTime(call.slice);
  for (uint32_t i = 0; i < paths.size(); ++i) {
    lines[i].name = tree::Modules::ShortName(trace.Text(paths[i].name));
    lines[i].kind = "module";
    lines[i].calls = paths[i].calls;
  }
  for (size_t i = paths.size(); i-- > 0;) {
    if (!paths[i].parent.valid()) continue;
    Line& parent = lines[paths[i].parent.value];
    parent.total_ns += lines[i].total_ns;
    parent.kernels += lines[i].kernels;
  }
  for (uint32_t i = 0; i < paths.size(); ++i) {
    (paths[i].parent.valid() ? lines[paths[i].parent.value].children : roots)
        .push_back(i);
  }
  if (options.merge) {
    // Equal shape: class and shapes of the children, as numbers. Children
    // stand behind parents, so from the end all children are known.
    absl::flat_hash_map<std::string, uint32_t> shapes;
    std::vector<uint32_t> shape(paths.size());
    std::vector<uint32_t> merged_into(paths.size());
    for (uint32_t i = 0; i < paths.size(); ++i) merged_into[i] = i;
    const auto merge_siblings = [&](std::vector<uint32_t>& children) {
      std::vector<uint32_t> kept;
      for (const uint32_t child : children) {
        if (!kept.empty() && shape[kept.back()] == shape[child]) {
          merged_into[child] = kept.back();
        } else {
          kept.push_back(child);
        }
      }
      children = std::move(kept);
    };
    for (size_t i = paths.size(); i-- > 0;) {
      merge_siblings(lines[i].children);
      std::string key(tree::Modules::ClassName(trace.Text(paths[i].name)));
      for (const uint32_t child : lines[i].children)
        key += "," + std::to_string(shape[child]);
      shape[i] = shapes.try_emplace(key, static_cast<uint32_t>(shapes.size()))
                     .first->second;
    }
    merge_siblings(roots);
    // Adds the whole subtree of a merged sibling to its twin.
    const auto add = [&](Line& to, const Line& from) {
      to.calls += from.calls;
      to.kernels += from.kernels;
      to.total_ns += from.total_ns;
      to.self_ns += from.self_ns;
      to.host_ns += from.host_ns;
      to.instances += from.instances;
    };
    // Parents first: a merged child is added to the twin's child at the same
    // place. Positions within a parent are equal since shapes are.
    std::vector<std::vector<uint32_t>> all_children(paths.size());
    for (uint32_t i = 0; i < paths.size(); ++i) {
      if (paths[i].parent.valid())
        all_children[paths[i].parent.value].push_back(i);
    }
    std::vector<std::pair<uint32_t, uint32_t>> todo;  // (from, to)
    for (uint32_t i = static_cast<uint32_t>(paths.size()); i-- > 0;) {
      if (merged_into[i] == i) continue;
      add(lines[merged_into[i]], lines[i]);
      todo.emplace_back(i, merged_into[i]);
      while (!todo.empty()) {
        const auto [from, to] = todo.back();
        todo.pop_back();
        const auto& a = lines[from].children;
        const auto& b = lines[to].children;
        for (size_t k = 0; k < std::min(a.size(), b.size()); ++k) {
          add(lines[b[k]], lines[a[k]]);
          todo.emplace_back(a[k], b[k]);
        }
      }
    }
    for (uint32_t i = 0; i < paths.size(); ++i) {
      if (lines[i].instances > 1) {
        lines[i].name =
            std::to_string(lines[i].instances) + " x " +
            std::string(tree::Modules::ClassName(trace.Text(paths[i].name)));
      }
    }
  }
  if (lines[outside].total_ns > 0) roots.push_back(outside);
  AddUnlinked(context, lines, roots);
  for (Line& line : lines) line.weight_ns = line.total_ns;
  return Printer(lines, DeviceTime(context), options, ModuleTreeColumns())
      .Print(roots, false);
}

namespace {

Result<ResultSet> RunTrees(const Context& context) {
  ResultSet result;
  result.tables.push_back(MakeOpTree(context, {}));
  result.tables.push_back(MakeModuleTree(context, {}));
  return result;
}

}  // namespace

AnalysisInfo Info() {
  return {"calltree", "Call trees with device time.",
          [] {
            return std::vector<Schema>{OpTreeColumns(false).schema(),
                                       ModuleTreeColumns().schema()};
          },
          &RunTrees};
}

}  // namespace lamina::analysis::calltree
