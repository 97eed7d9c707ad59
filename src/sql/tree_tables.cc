// SPDX-License-Identifier: Apache-2.0
//
// What is derived from the trace before any analysis: the host call tree,
// modules and steps.
#include "sql/table_def.h"

namespace lamina::sql {
namespace {

using analysis::Context;
using tree::ModuleCallId;
using tree::ModulePathId;
using tree::NodeId;

struct TreeModel {
  const Context* context;
  std::vector<uint32_t> depths;      // by node
  std::vector<std::string> modules;  // by path
};

template <class Fill>
TableDef TreeTable(std::string name, std::string doc,
                   std::vector<ColumnDef> columns,
                   FunctionRows<TreeModel>::Cells cells, Fill fill) {
  TableDef table;
  table.name = std::move(name);
  table.doc = std::move(doc);
  table.cost = Cost::kTree;
  table.columns = std::move(columns);
  table.open = [cells = std::move(cells), fill](
                   const Asked& source) -> Result<std::shared_ptr<const Rows>> {
    LAMINA_ASSIGN(const Context* const context, source.Context());
    TreeModel model{context, {}, {}};
    const size_t count = fill(model);
    return std::make_shared<FunctionRows<TreeModel>>(std::move(model), count,
                                                     cells);
  };
  return table;
}

NodeId Node(size_t row) { return NodeId(static_cast<uint32_t>(row)); }

Value UidOf(const Context& context, NodeId node) {
  return node.valid() ? Value(context.trace.Uid(context.tree.slice(node)))
                      : Value();
}

TableDef NodeTable() {
  using M = TreeModel;
  return TreeTable(
      "node",
      "The host call tree: every op and call, in order of time below its "
      "parent, without Python frames. A subtree is a range of node_id.",
      {{"node_id", Type::kInt, "Number in preorder, from 0."},
       {"uid", Type::kInt, "Event number."},
       {"parent_uid", Type::kInt, "The event around it."},
       {"depth", Type::kInt, "Events around it."},
       {"subtree_end", Type::kInt, "The node_id behind its subtree."},
       {"track_id", Type::kInt, "Thread, a row of track."},
       {"name", Type::kText, "Name as recorded."},
       {"kind", Type::kText, "op, runtime or driver."},
       {"start_ns", Type::kInt, "Start, from the first event."},
       {"dur_ns", Type::kInt, "Duration on the host."},
       {"device_time_ns", Type::kInt,
        "Sum of the device work launched inside."},
       {"self_device_time_ns", Type::kInt,
        "Sum of the device work launched by itself."},
       {"kernels", Type::kInt, "Device work launched inside."}},
      {[](const M&, size_t row) -> Value { return row; },
       [](const M& m, size_t row) { return UidOf(*m.context, Node(row)); },
       [](const M& m, size_t row) {
         return UidOf(*m.context, m.context->tree.parent(Node(row)));
       },
       [](const M& m, size_t row) -> Value { return m.depths[row]; },
       [](const M& m, size_t row) -> Value {
         return m.context->tree.end(Node(row)).value;
       },
       [](const M& m, size_t row) -> Value {
         const auto s = m.context->tree.slice(Node(row));
         return m.context->trace.slices.track[s.value].value;
       },
       [](const M& m, size_t row) -> Value {
         return m.context->tree.name(Node(row));
       },
       [](const M& m, size_t row) -> Value {
         return trace::KindName(m.context->tree.kind(Node(row)));
       },
       [](const M& m, size_t row) -> Value {
         return m.context->trace.Start(m.context->tree.slice(Node(row))) -
                m.context->trace.first_ns;
       },
       [](const M& m, size_t row) -> Value {
         return m.context->trace.HostTime(m.context->tree.slice(Node(row)));
       },
       [](const M& m, size_t row) -> Value {
         return m.context->tree.DeviceTime(Node(row));
       },
       [](const M& m, size_t row) -> Value {
         int64_t sum = 0;
         for (const auto s : m.context->tree.OwnDeviceWork(Node(row)))
           sum += m.context->trace.Duration(s);
         return sum;
       },
       [](const M& m, size_t row) -> Value {
         return m.context->tree.DeviceWork(Node(row)).size();
       }},
      [](M& m) {
        const tree::Tree& tree = m.context->tree;
        m.depths.resize(tree.size());
        for (size_t i = 0; i < tree.size(); ++i) {
          const NodeId parent = tree.parent(Node(i));
          m.depths[i] = parent.valid() ? m.depths[parent.value] + 1 : 0;
        }
        return tree.size();
      });
}

TableDef ModulePathTable() {
  using M = TreeModel;
  const auto id = [](size_t row) {
    return ModulePathId(static_cast<uint32_t>(row));
  };
  static constexpr auto kId = id;
  return TreeTable(
      "module_path", "Places in the hierarchy of nn.Modules.",
      {{"id", Type::kInt, "Position, from 0."},
       {"parent_id", Type::kInt, "The module around it."},
       {"name", Type::kText, "Name with its number, \"Linear_21\"."},
       {"class", Type::kText, "Class of the module."},
       {"path", Type::kText, "Names from the root, joined by /."},
       {"depth", Type::kInt, "Modules around it."},
       {"calls", Type::kInt, "How often it was called."}},
      {[](const M&, size_t row) -> Value { return row; },
       [](const M& m, size_t row) -> Value {
         const auto parent = m.context->modules.path(kId(row)).parent;
         return parent.valid() ? Value(parent.value) : Value();
       },
       [](const M& m, size_t row) -> Value {
         return tree::Modules::ShortName(
             m.context->trace.strings[m.context->modules.path(kId(row)).name]);
       },
       [](const M& m, size_t row) -> Value {
         return tree::Modules::ClassName(
             m.context->trace.strings[m.context->modules.path(kId(row)).name]);
       },
       [](const M& m, size_t row) -> Value { return m.modules[row]; },
       [](const M& m, size_t row) -> Value {
         return m.context->modules.path(kId(row)).depth;
       },
       [](const M& m, size_t row) -> Value {
         return m.context->modules.path(kId(row)).calls;
       }},
      [](M& m) {
        m.modules = m.context->modules.PathTexts();
        return m.modules.size();
      });
}

TableDef ModuleCallTable() {
  using M = TreeModel;
  return TreeTable(
      "module_call", "Calls of nn.Modules.",
      {{"id", Type::kInt, "Position, from 0."},
       {"uid", Type::kInt, "Event number of the frame or range."},
       {"parent_id", Type::kInt, "The call around it on its thread."},
       {"module_path_id", Type::kInt, "Which module, a row of module_path."},
       {"module", Type::kText, "Path of the module."},
       {"start_ns", Type::kInt, "Start, from the first event."},
       {"dur_ns", Type::kInt, "Duration on the host."}},
      {[](const M&, size_t row) -> Value { return row; },
       [](const M& m, size_t row) -> Value {
         return m.context->trace.Uid(m.context->modules.calls()[row].slice);
       },
       [](const M& m, size_t row) -> Value {
         const ModuleCallId parent = m.context->modules.calls()[row].parent;
         return parent.valid() ? Value(parent.value) : Value();
       },
       [](const M& m, size_t row) -> Value {
         return m.context->modules.calls()[row].path.value;
       },
       [](const M& m, size_t row) -> Value {
         return m.modules[m.context->modules.calls()[row].path.value];
       },
       [](const M& m, size_t row) -> Value {
         return m.context->trace.Start(m.context->modules.calls()[row].slice) -
                m.context->trace.first_ns;
       },
       [](const M& m, size_t row) -> Value {
         return m.context->trace.Duration(
             m.context->modules.calls()[row].slice);
       }},
      [](M& m) {
        m.modules = m.context->modules.PathTexts();
        return m.context->modules.calls().size();
      });
}

TableDef StepTable() {
  using M = TreeModel;
  return TreeTable(
      "step", "Steps of training or serving, as ranges mark them.",
      {{"id", Type::kInt, "Position, from 0."},
       {"uid", Type::kInt, "Event number of the range."},
       {"step", Type::kInt, "Number of the step."},
       {"name", Type::kText, "Name of the range."},
       {"start_ns", Type::kInt, "Start on the host, from the first event."},
       {"dur_ns", Type::kInt, "Duration on the host."}},
      {[](const M&, size_t row) -> Value { return row; },
       [](const M& m, size_t row) -> Value {
         return m.context->trace.Uid(m.context->steps.steps()[row].slice);
       },
       [](const M& m, size_t row) -> Value {
         return m.context->steps.steps()[row].number;
       },
       [](const M& m, size_t row) -> Value {
         return m.context->trace.Name(m.context->steps.steps()[row].slice);
       },
       [](const M& m, size_t row) -> Value {
         return m.context->steps.steps()[row].host.start_ns -
                m.context->trace.first_ns;
       },
       [](const M& m, size_t row) -> Value {
         return m.context->steps.steps()[row].host.length_ns();
       }},
      [](M& m) { return m.context->steps.steps().size(); });
}

}  // namespace

void AddTreeTables(std::vector<TableDef>& tables) {
  tables.push_back(NodeTable());
  tables.push_back(ModulePathTable());
  tables.push_back(ModuleCallTable());
  tables.push_back(StepTable());
}

}  // namespace lamina::sql
