// SPDX-License-Identifier: Apache-2.0
//
// Functions that walk the call tree, with Python frames, from an event: FROM
// callstack(4711). The last argument names the trace when there are several.
#include <algorithm>

#include "sql/impl.h"

namespace lamina::sql {
namespace {

using analysis::Context;
using trace::SliceId;
using tree::NodeId;

struct Found {
  const Context* context;
  struct Row {
    SliceId slice;
    int64_t depth;
  };
  std::vector<Row> rows;
  std::vector<std::string> modules;
};

const std::vector<ColumnDef>& TreeColumns() {
  static const std::vector<ColumnDef> columns = {
      {"uid", Type::kInt, "Event number."},
      {"depth", Type::kInt, "Steps from the event asked about."},
      {"kind", Type::kText, "Kind of slice."},
      {"name", Type::kText, "Name as recorded."},
      {"start_ns", Type::kInt, "Start, from the first event."},
      {"dur_ns", Type::kInt, "Duration."},
      {"device_time_ns", Type::kInt, "Sum of the device work inside."}};
  return columns;
}

FunctionRows<Found>::Cells Cells() {
  using M = Found;
  return {[](const M& m, size_t r) -> Value {
            return m.context->trace.Uid(m.rows[r].slice);
          },
          [](const M& m, size_t r) -> Value { return m.rows[r].depth; },
          [](const M& m, size_t r) -> Value {
            return trace::KindName(m.context->trace.KindOf(m.rows[r].slice));
          },
          [](const M& m, size_t r) -> Value {
            return m.context->trace.Name(m.rows[r].slice);
          },
          [](const M& m, size_t r) -> Value {
            return m.context->trace.Start(m.rows[r].slice) -
                   m.context->trace.first_ns;
          },
          [](const M& m, size_t r) -> Value {
            return m.context->trace.Duration(m.rows[r].slice);
          },
          [](const M& m, size_t r) -> Value {
            const SliceId s = m.rows[r].slice;
            if (trace::IsDevice(m.context->trace.KindOf(s)))
              return m.context->trace.Duration(s);
            const NodeId node = m.context->tree.node(s);
            return node.valid() ? Value(m.context->tree.DeviceTime(node))
                                : Value();
          }};
}

// Where the walk begins: the slice of a number and its node; of device work
// the call that launched it.
struct Start {
  SliceId slice;
  NodeId node;
  bool device = false;
};

using Walk = void (*)(const Context&, const Start&, std::string_view kind,
                      std::vector<Found::Row>&);

Result<std::shared_ptr<const Rows>> Run(Database::Impl& impl,
                                        std::span<const Value> args,
                                        size_t trace_arg, std::string_view kind,
                                        Walk walk) {
  const std::string_view schema =
      args[trace_arg].null() ? std::string_view() : args[trace_arg].text();
  LAMINA_ASSIGN(engine::Session* const session, impl.SessionOf(schema));
  LAMINA_ASSIGN(const Context* const context,
                (Asked{*session, {}}.Context(true)));
  Found found{context, {}, {}};
  if (args[0].kind() == Value::Kind::kInt) {
    // The index over uids is that of the table slice.
    LAMINA_ASSIGN(const auto slices, OpenRows(*session, *FindTable("slice")));
    static const int kUid = [] {
      const auto& columns = FindTable("slice")->columns;
      return static_cast<int>(
          std::find_if(columns.begin(), columns.end(),
                       [](const ColumnDef& c) { return c.name == "uid"; }) -
          columns.begin());
    }();
    std::vector<uint32_t> room;
    bool stopped = false;
    const auto rows = slices->Equal(kUid, args[0], room,
                                    [&] { return stopped = impl.MustStop(); });
    if (stopped) return Fail(*impl.failed);
    if (!rows.empty()) {
      Start start;
      start.slice = SliceId(rows.front());
      start.device = trace::IsDevice(context->trace.KindOf(start.slice));
      start.node = start.device ? context->tree.launch(start.slice)
                                : context->tree.node(start.slice);
      walk(*context, start, kind, found.rows);
    }
  }
  const size_t count = found.rows.size();
  return std::make_shared<FunctionRows<Found>>(std::move(found), count,
                                               Cells());
}

// From the innermost outwards.
void Up(const Context& context, const Start& start, std::string_view,
        std::vector<Found::Row>& rows) {
  int64_t depth = 0;
  NodeId n = start.node;
  if (!start.device && n.valid()) n = context.tree.parent(n);
  for (; n.valid(); n = context.tree.parent(n))
    rows.push_back({context.tree.slice(n), ++depth});
}

void Stack(const Context& context, const Start& start, std::string_view kind,
           std::vector<Found::Row>& rows) {
  Up(context, start, kind, rows);
  std::reverse(rows.begin(), rows.end());
  rows.push_back({start.slice, 0});
}

void Children(const Context& context, const Start& start, std::string_view,
              std::vector<Found::Row>& rows) {
  if (start.device || !start.node.valid()) return;
  for (NodeId n = context.tree.first_child(start.node); n.valid();
       n = context.tree.next_sibling(n))
    rows.push_back({context.tree.slice(n), 1});
  for (const SliceId s : context.tree.OwnDeviceWork(start.node))
    rows.push_back({s, 1});
}

void Siblings(const Context& context, const Start& start, std::string_view kind,
              std::vector<Found::Row>& rows) {
  if (start.device || !start.node.valid()) return;
  const NodeId parent = context.tree.parent(start.node);
  if (!parent.valid()) return;
  Children(context, {context.tree.slice(parent), parent, false}, kind, rows);
  std::erase_if(rows, [&](const Found::Row& row) {
    return row.slice == start.slice ||
           trace::IsDevice(context.trace.KindOf(row.slice));
  });
}

void Down(const Context& context, const Start& start, std::string_view kind,
          std::vector<Found::Row>& rows) {
  if (start.device || !start.node.valid()) return;
  const tree::Tree& tree = context.tree;
  const auto wanted = [&](SliceId s) {
    return kind.empty() || trace::KindName(context.trace.KindOf(s)) == kind;
  };
  // Nodes stand in preorder: the depth is the number of open ends.
  std::vector<NodeId> open = {start.node};
  for (uint32_t i = start.node.value; i < tree.end(start.node).value; ++i) {
    const NodeId n(i);
    while (open.size() > 1 && tree.end(open.back()).value <= i) open.pop_back();
    if (n != start.node) {
      if (wanted(tree.slice(n)))
        rows.push_back({tree.slice(n), static_cast<int64_t>(open.size())});
      open.push_back(n);
    }
    for (const SliceId s : tree.OwnDeviceWork(n)) {
      if (wanted(s)) rows.push_back({s, static_cast<int64_t>(open.size())});
    }
  }
}

void Launched(const Context& context, const Start& start, std::string_view,
              std::vector<Found::Row>& rows) {
  if (start.device || !start.node.valid()) return;
  for (const SliceId s : context.tree.OwnDeviceWork(start.node))
    rows.push_back({s, 1});
}

void Kernels(const Context& context, const Start& start, std::string_view,
             std::vector<Found::Row>& rows) {
  if (start.device || !start.node.valid()) return;
  for (const SliceId s : context.tree.DeviceWork(start.node))
    rows.push_back({s, 1});
}

template <Walk kWalk>
Result<std::shared_ptr<const Rows>> Simple(Database::Impl& impl,
                                           std::span<const Value> args) {
  return Run(impl, args, 1, {}, kWalk);
}

}  // namespace

std::span<const TableFunction> TreeFunctions() {
  static const std::vector<std::string> kArgs = {"of_uid", "of_trace"};
  static const std::vector<TableFunction> functions = {
      {"ancestors", "ancestors(uid[, trace])",
       "What an event was called from, innermost first; of device work from "
       "its launch on.",
       "SELECT name FROM ancestors((SELECT min(uid) FROM op))", TreeColumns(),
       kArgs, 1, &Simple<&Up>},
      {"callstack", "callstack(uid[, trace])",
       "The same outermost first, and the event itself at the end.",
       "SELECT name FROM callstack((SELECT min(uid) FROM kernel))",
       TreeColumns(), kArgs, 1, &Simple<&Stack>},
      {"children", "children(uid[, trace])",
       "Events and device work right below an event.",
       "SELECT name FROM children((SELECT min(uid) FROM op))", TreeColumns(),
       kArgs, 1, &Simple<&Children>},
      {"siblings", "siblings(uid[, trace])",
       "Host events below the same parent.",
       "SELECT name FROM siblings((SELECT min(uid) FROM op))", TreeColumns(),
       kArgs, 1, &Simple<&Siblings>},
      {"descendants",
       "descendants(uid[, kind[, trace]])",
       "All below an event, device work included; of one kind, as 'op'.",
       "SELECT name FROM descendants((SELECT min(uid) FROM op), 'kernel')",
       TreeColumns(),
       {"of_uid", "of_kind", "of_trace"},
       1,
       [](Database::Impl& impl, std::span<const Value> args) {
         return Run(impl, args, 2,
                    args[1].kind() == Value::Kind::kText ? args[1].text()
                                                         : std::string_view(),
                    &Down);
       }},
      {"launched", "launched(uid[, trace])",
       "Device work that a call launched itself.",
       "SELECT name FROM launched((SELECT min(launch_uid) FROM launch))",
       TreeColumns(), kArgs, 1, &Simple<&Launched>},
      {"subtree_kernels", "subtree_kernels(uid[, trace])",
       "Device work launched inside an event.",
       "SELECT name, dur_ns FROM subtree_kernels((SELECT min(uid) FROM op))",
       TreeColumns(), kArgs, 1, &Simple<&Kernels>}};
  return functions;
}

}  // namespace lamina::sql
