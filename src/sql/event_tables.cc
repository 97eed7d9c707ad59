// SPDX-License-Identifier: Apache-2.0
//
// Rows for rules about findings: device events with the part of the busy time
// that is theirs alone, host events, calls that wait for the device, what the
// recording holds, and steps with what makes them unlike others. And the tables
// of `lamina host` and `lamina path`, which are no analyses of a report.
//
// Why it is longer than 250 lines: it is a list of columns, each one line.
#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <tuple>

#include "analysis/common/collective.h"
#include "analysis/common/lost_work.h"
#include "analysis/host/activities.h"
#include "analysis/host/counters.h"
#include "analysis/host/sequences.h"
#include "analysis/host/steady.h"
#include "analysis/host/sync_cost.h"
#include "analysis/host/tables.h"
#include "analysis/path/tables.h"
#include "sql/table_def.h"
#include "trace/losses.h"

namespace lamina::sql {
namespace {

namespace host = analysis::host;
using analysis::Context;
using trace::Kind;
using trace::SliceId;
using trace::Trace;
using tree::NodeId;

// What cells of events are read from.
struct EventModel {
  const Context* context = nullptr;
  const host::HostModel* host = nullptr;
  std::vector<SliceId> slices;  // by row
  std::vector<std::string> modules;
  std::vector<host::StepFlags> steps;
  // By row of device arguments.
  std::vector<int64_t> own_ns, exposed_ns;
  std::vector<SliceId> before;  // on the same stream
  // Number of name, grid and shapes, made when a query first reads it.
  struct Same {
    std::once_flag once;
    std::vector<int64_t> number;
  };
  std::shared_ptr<Same> same;

  const Trace& trace() const { return context->trace; }
  const tree::Tree& tree() const { return context->tree; }
  SliceId at(size_t row) const { return slices[row]; }
  uint32_t device_row(size_t row) const {
    return trace().slices.detail[at(row).value];
  }
  NodeId launch(size_t row) const { return tree().launch(at(row)); }
  // The op that launched device work; invalid without one.
  NodeId op(size_t row) const {
    const NodeId launcher = context->device.launcher(at(row));
    return launcher.valid() && tree().IsOp(launcher) ? launcher : NodeId();
  }
  const trace::OpArgs* op_args(size_t row) const {
    const NodeId n = op(row);
    return n.valid() ? trace().Op(tree().slice(n)) : nullptr;
  }
  const trace::DeviceArgs* args(size_t row) const {
    return trace().Device(at(row));
  }
  const trace::LaunchConfig* config(size_t row) const {
    const trace::DeviceArgs* a = args(row);
    return a == nullptr ? nullptr : trace().Config(a->config);
  }
  Value Uid(SliceId s) const {
    return s.valid() ? Value(trace().Uid(s)) : Value();
  }
  Value NodeUid(NodeId n) const {
    return n.valid() ? Value(trace().Uid(tree().slice(n))) : Value();
  }
  Value Text(StringId id) const {
    return id.valid() ? Value(trace().strings[id]) : Value();
  }
  Value Module(NodeId n) const {
    if (!n.valid()) return {};
    const auto owner = context->modules.OwnerOf(n);
    return owner.path.valid() ? Value(modules[owner.path.value]) : Value();
  }
  Value Step(uint32_t step) const { return context->steps.NumberOf(step); }
};

struct Spec {
  ColumnDef column;
  Value (*cell)(const EventModel& m, size_t row);
};

void AddSpan(std::vector<Spec>& out) {
  out.push_back({{"uid", Type::kInt, "Event number."},
                 [](const EventModel& m, size_t r) { return m.Uid(m.at(r)); }});
  out.push_back({{"name", Type::kText, "Name as recorded."},
                 [](const EventModel& m, size_t r) -> Value {
                   return m.trace().Name(m.at(r));
                 }});
  out.push_back({{"start_ns", Type::kInt, "Start, from the first event."},
                 [](const EventModel& m, size_t r) -> Value {
                   return m.trace().Start(m.at(r)) - m.trace().first_ns;
                 }});
  out.push_back({{"dur_ns", Type::kInt, "Duration."},
                 [](const EventModel& m, size_t r) -> Value {
                   return m.trace().Duration(m.at(r));
                 }});
  out.push_back({{"kind", Type::kText, "Kind of slice, as in slice."},
                 [](const EventModel& m, size_t r) -> Value {
                   return trace::KindName(m.trace().KindOf(m.at(r)));
                 }});
}

// Blocks or threads; a zero is what the profiler did not know.
Value Product(const std::array<uint32_t, 3>& extent) {
  int64_t product = 1;
  for (const auto n : extent) product *= n;
  return product > 0 ? Value(product) : Value();
}

int64_t SameOf(const EventModel& model, size_t row) {
  std::call_once(model.same->once, [&] {
    const Trace& trace = model.trace();
    std::vector<int64_t>& number = model.same->number;
    number.assign(trace.device.size(), 0);
    absl::flat_hash_map<std::tuple<uint32_t, uint32_t, uint32_t>, int64_t>
        known;
    for (size_t r = 0; r < model.slices.size(); ++r) {
      const auto* op = model.op_args(r);
      const std::tuple key(trace.slices.name[model.at(r).value].value,
                           model.args(r)->config,
                           op == nullptr ? StringId().value : op->dims.value);
      number[model.device_row(r)] =
          known.try_emplace(key, static_cast<int64_t>(known.size()))
              .first->second;
    }
  });
  return model.same->number[model.device_row(row)];
}

std::vector<Spec> DeviceColumns() {
  std::vector<Spec> out;
  AddSpan(out);
  const auto add = [&](std::string name, Type type, std::string doc,
                       Value (*cell)(const EventModel&, size_t)) {
    out.push_back({{std::move(name), type, std::move(doc)}, cell});
  };
  add("device", Type::kText, "process:device, as in idle_parts.",
      [](const EventModel& m, size_t r) -> Value {
        return m.host->devices()[m.host->device(m.at(r))].name;
      });
  add("stream", Type::kInt, "Stream as recorded.",
      [](const EventModel& m, size_t r) { return Known(m.args(r)->stream); });
  add("bucket", Type::kText,
      "compute, communication or memcpy: its part of the timeline.",
      [](const EventModel& m, size_t r) -> Value {
        switch (m.context->device.bucket(m.at(r))) {
          case analysis::Bucket::kCompute:
            return "compute";
          case analysis::Bucket::kCommunication:
            return "communication";
          case analysis::Bucket::kMemcpy:
            return "memcpy";
        }
        return {};
      });
  add("family", Type::kText, "Family of the op or, without one, of the kernel.",
      [](const EventModel& m, size_t r) -> Value {
        return m.context->catalog.family(m.context->device.family(m.at(r)))
            .name;
      });
  add("kernel_family", Type::kText, "Family of the kernel by its name alone.",
      [](const EventModel& m, size_t r) -> Value {
        return m.context->catalog
            .family(m.context->device.kernel_family(m.at(r)))
            .name;
      });
  add("own_ns", Type::kInt,
      "Its part of the time in which the device is busy: each moment belongs "
      "to the event that began first, outside computation to a gather that "
      "computation waits for, not to a reduction beside it.",
      [](const EventModel& m, size_t r) -> Value {
        return m.own_ns[m.device_row(r)];
      });
  add("exposed_ns", Type::kInt,
      "Of communication and copies: the part outside computation; each moment "
      "belongs to the one that began first, of a reduction and a gather that "
      "computation waits for to the gather.",
      [](const EventModel& m, size_t r) -> Value {
        return m.exposed_ns[m.device_row(r)];
      });
  add("lead_ns", Type::kInt,
      "How long it was submitted before it began; null without a launch.",
      [](const EventModel& m, size_t r) -> Value {
        return m.launch(r).valid() && m.host->call(m.at(r)) != host::kNone
                   ? Value(m.trace().Start(m.at(r)) - m.host->Ready(m.at(r)))
                   : Value();
      });
  add("prev_uid", Type::kInt,
      "Event number of the work before it on its stream.",
      [](const EventModel& m, size_t r) -> Value {
        const SliceId before = m.before[m.device_row(r)];
        return before.valid() ? Value(m.trace().Uid(before)) : Value();
      });
  add("launch_uid", Type::kInt, "Event number of the call that launched it.",
      [](const EventModel& m, size_t r) { return m.NodeUid(m.launch(r)); });
  add("op", Type::kText, "Op that launched it.",
      [](const EventModel& m, size_t r) -> Value {
        const NodeId n = m.op(r);
        return n.valid() ? Value(m.tree().name(n)) : Value();
      });
  add("op_uid", Type::kInt, "Event number of that op.",
      [](const EventModel& m, size_t r) { return m.NodeUid(m.op(r)); });
  add("module", Type::kText, "Path of the nn.Module that launched it.",
      [](const EventModel& m, size_t r) { return m.Module(m.launch(r)); });
  add("step", Type::kInt, "Number of the step that launched it.",
      [](const EventModel& m, size_t r) {
        return m.Step(m.context->steps.StepOf(m.at(r)));
      });
  add("steady", Type::kInt,
      "1: in the steady part, neither a warm-up step nor one that is cut.",
      [](const EventModel& m, size_t r) -> Value {
        return int64_t{host::IsSteady(*m.host, m.steps, m.at(r))};
      });
  add("dims", Type::kText, "Shapes of the op's inputs. JSON.",
      [](const EventModel& m, size_t r) {
        const auto* op = m.op_args(r);
        return op == nullptr ? Value() : m.Text(op->dims);
      });
  add("types", Type::kText, "Element types of the op's inputs. JSON.",
      [](const EventModel& m, size_t r) {
        const auto* op = m.op_args(r);
        return op == nullptr ? Value() : m.Text(op->types);
      });
  add("concrete", Type::kText, "Values of the op's scalar inputs. JSON.",
      [](const EventModel& m, size_t r) {
        const auto* op = m.op_args(r);
        return op == nullptr ? Value() : m.Text(op->concrete);
      });
  add("graph_id", Type::kInt, "Device graph that it belongs to.",
      [](const EventModel& m, size_t r) { return Known(m.args(r)->graph_id); });
  add("bytes", Type::kInt, "Bytes of a copy or fill.",
      [](const EventModel& m, size_t r) { return Known(m.args(r)->bytes); });
  add("grid_blocks", Type::kInt, "Blocks of the launch.",
      [](const EventModel& m, size_t r) -> Value {
        const auto* c = m.config(r);
        return c == nullptr ? Value() : Product(c->grid);
      });
  add("same", Type::kInt,
      "Number that work of the same name, launch configuration and shapes "
      "shares.",
      [](const EventModel& m, size_t r) -> Value { return SameOf(m, r); });
  add("block_threads", Type::kInt, "Threads of a block.",
      [](const EventModel& m, size_t r) -> Value {
        const auto* c = m.config(r);
        return c == nullptr ? Value() : Product(c->block);
      });
  return out;
}

std::vector<Spec> HostColumns() {
  std::vector<Spec> out;
  AddSpan(out);
  const auto add = [&](std::string name, Type type, std::string doc,
                       Value (*cell)(const EventModel&, size_t)) {
    out.push_back({{std::move(name), type, std::move(doc)}, cell});
  };
  add("cat", Type::kText, "Category as recorded.",
      [](const EventModel& m, size_t r) -> Value {
        return m.trace().Category(m.at(r));
      });
  add("track_id", Type::kInt, "Process and thread, a row of track.",
      [](const EventModel& m, size_t r) -> Value {
        return m.trace().slices.track[m.at(r).value].value;
      });
  add("parent_uid", Type::kInt, "Event number of what it runs inside.",
      [](const EventModel& m, size_t r) -> Value {
        const NodeId n = m.tree().node(m.at(r));
        return n.valid() ? m.NodeUid(m.tree().parent(n)) : Value();
      });
  add("op", Type::kText, "Innermost op around it, or itself.",
      [](const EventModel& m, size_t r) -> Value {
        const NodeId n = m.tree().node(m.at(r));
        const NodeId op = n.valid() ? m.tree().EnclosingOp(n) : NodeId();
        return op.valid() ? Value(m.tree().name(op)) : Value();
      });
  add("module", Type::kText, "Path of the nn.Module around it.",
      [](const EventModel& m, size_t r) {
        return m.Module(m.tree().node(m.at(r)));
      });
  add("step", Type::kInt, "Number of the step in which it begins.",
      [](const EventModel& m, size_t r) {
        return m.Step(m.context->steps.StepAt(m.trace().Start(m.at(r))));
      });
  return out;
}

// Whether computation begins right behind a time, as if it had waited for it.
bool Releases(const host::Cover& compute, int64_t time) {
  return compute.Over(time - 1, time) == 0 &&
         compute.Over(time, time + host::kNearNs) > 0;
}

// Each moment of the busy time to the event that began first, and of the time
// outside computation to the communication or copy that began first; but to a
// gather beside a reduction if computation begins behind the gather only: it
// waits for its parameters.
void FillOwn(EventModel& model) {
  const Trace& trace = model.trace();
  model.own_ns.assign(trace.device.size(), 0);
  model.exposed_ns.assign(trace.device.size(), 0);
  model.before.assign(trace.device.size(), SliceId());
  absl::flat_hash_map<SliceId, analysis::CollectiveKind> kinds;
  for (const analysis::Collective& one :
       analysis::CollectCollectives(model.context->tree, model.context->device))
    kinds[one.slice] = one.kind;
  using analysis::CollectiveKind;
  const auto kind_of = [&](SliceId s) {
    const auto known = kinds.find(s);
    return known == kinds.end() ? CollectiveKind::kUnknown : known->second;
  };
  const auto gathers = [&](SliceId s) {
    const CollectiveKind kind = kind_of(s);
    return kind == CollectiveKind::kAllGather ||
           kind == CollectiveKind::kBroadcast;
  };
  const auto reduces = [&](SliceId s) {
    const CollectiveKind kind = kind_of(s);
    return kind == CollectiveKind::kReduceScatter ||
           kind == CollectiveKind::kAllReduce;
  };
  for (const host::DeviceFacts& device : model.host->devices()) {
    std::vector<Interval> compute;
    for (const SliceId s : device.work) {
      if (model.context->device.bucket(s) == analysis::Bucket::kCompute)
        compute.push_back({trace.Start(s), trace.End(s)});
    }
    const host::Cover covered(std::move(compute));
    absl::flat_hash_map<int64_t, SliceId> last;  // by stream
    int64_t reached = std::numeric_limits<int64_t>::min();
    int64_t reached_other = reached;
    SliceId holds;  // what reached so far, other than computation
    for (const SliceId s : device.work) {
      const uint32_t row = trace.slices.detail[s.value];
      const int64_t start = trace.Start(s), end = trace.End(s);
      model.before[row] = std::exchange(last[trace.Device(s)->stream], s);
      model.own_ns[row] = std::max<int64_t>(0, end - std::max(start, reached));
      reached = std::max(reached, end);
      if (model.context->device.bucket(s) == analysis::Bucket::kCompute)
        continue;
      const int64_t from = std::max(start, reached_other);
      if (end > from)
        model.exposed_ns[row] = end - from - covered.Over(from, end);
      if (holds.valid() && start < reached_other && gathers(s) &&
          reduces(holds) && Releases(covered, end) &&
          !Releases(covered, reached_other)) {
        const uint32_t other = trace.slices.detail[holds.value];
        const int64_t until = std::min(end, reached_other);
        const int64_t shared =
            std::min({until - start - covered.Over(start, until),
                      model.own_ns[other], model.exposed_ns[other]});
        for (auto* const time : {&model.own_ns, &model.exposed_ns}) {
          (*time)[other] -= shared;
          (*time)[row] += shared;
        }
      }
      if (end >= reached_other) holds = s;
      reached_other = std::max(reached_other, end);
    }
  }
}

Result<EventModel> MakeModel(const Asked& source) {
  EventModel model;
  LAMINA_ASSIGN(model.context, source.Context());
  LAMINA_ASSIGN(model.host, source.Get<host::HostModel>());
  model.steps = host::FlagSteps(*model.host);
  model.modules = model.context->modules.PathTexts();
  return model;
}

TableDef Events(std::string name, std::string doc, std::vector<Spec> specs,
                std::function<void(EventModel&)> choose) {
  TableDef table;
  table.name = std::move(name);
  table.doc = std::move(doc);
  table.cost = Cost::kTree;
  FunctionRows<EventModel>::Cells cells;
  for (Spec& spec : specs) {
    table.columns.push_back(std::move(spec.column));
    cells.push_back(spec.cell);
  }
  table.open = [cells, choose = std::move(choose)](
                   const Asked& source) -> Result<std::shared_ptr<const Rows>> {
    LAMINA_ASSIGN(EventModel model, MakeModel(source));
    choose(model);
    const size_t count = model.slices.size();
    return std::make_shared<FunctionRows<EventModel>>(std::move(model), count,
                                                      cells);
  };
  return table;
}

// What a waiting call is for, by the ops around it: a value for the host, a
// copy, or the wait itself. Where no op is recorded, by what it waits for: a
// copy to the host is what a program waits for to read it, and a single number
// is at most eight bytes.
std::string_view ReaderOf(const EventModel& m, const host::Wait& wait) {
  constexpr int64_t kNumberBytes = 8;
  const NodeId node = m.tree().node(wait.slice);
  bool copies = wait.copies(), in_op = false;
  for (NodeId n = node; n.valid(); n = m.tree().parent(n)) {
    if (!m.tree().IsOp(n)) continue;
    in_op = true;
    const std::string_view name = m.tree().name(n);
    if (host::ReadsBack(name)) return "scalar";
    copies |=
        name == "aten::copy_" || name == "aten::_to_copy" || name == "aten::to";
  }
  if (!in_op && wait.target.valid() &&
      m.host->kind(wait.target) == host::WorkKind::kCopy &&
      m.trace().Name(wait.target).find("DtoH") != std::string_view::npos &&
      m.trace().Name(wait.slice).find("Device") == std::string_view::npos) {
    const int64_t bytes = m.trace().Device(wait.target)->bytes;
    return bytes >= 0 && bytes <= kNumberBytes ? "scalar" : "copy";
  }
  return copies ? "copy" : "explicit";
}

Status FillSyncs(const Asked& source, Table& out) {
  LAMINA_ASSIGN(const EventModel m, MakeModel(source));
  const Trace& trace = m.trace();
  // Whether the device has work when a call returns.
  std::vector<host::Cover> busy;
  for (const host::DeviceFacts& device : m.host->devices()) {
    std::vector<Interval> spans;
    for (const SliceId s : device.work)
      spans.push_back({trace.Start(s), trace.End(s)});
    busy.emplace_back(std::move(spans));
  }
  for (const host::Wait& wait : m.host->waits()) {
    // A call that feeds a copy is no wait, one that had nothing to wait for is.
    if (wait.how == host::WaitHow::kStaged) continue;
    const SliceId s = wait.slice;
    const NodeId node = m.tree().node(s);
    const NodeId op = node.valid() ? m.tree().EnclosingOp(node) : NodeId();
    // The copy that it waited for.
    Value bytes, direction;
    if (wait.target.valid() &&
        m.host->kind(wait.target) == host::WorkKind::kCopy) {
      bytes = Known(trace.Device(wait.target)->bytes);
      direction = trace.Name(wait.target);
    }
    bool drained = false;
    if (wait.target.valid()) {
      const int64_t end = trace.End(s);
      drained = busy[m.host->device(wait.target)].Over(end, end + 1) == 0;
    }
    const uint32_t step = m.context->steps.StepAt(trace.Start(s));
    out.Add(trace.Uid(s), trace.Name(s), trace.Start(s) - trace.first_ns,
            trace.Duration(s), trace.slices.track[s.value].value,
            m.Uid(wait.target), direction, bytes, ReaderOf(m, wait),
            op.valid() ? Value(m.tree().name(op)) : Value(), m.Module(node),
            m.Step(step),
            int64_t{step == tree::Steps::kOutside ? m.steps.empty()
                                                  : m.steps[step].steady()},
            int64_t{!wait.inferred}, int64_t{drained});
  }
  return {};
}

Status FillRecording(const Asked& source, Table& out) {
  LAMINA_ASSIGN(const Context* const context, source.Context());
  const Trace& trace = context->trace;
  const auto add = [&](std::string_view key, int64_t value) {
    out.Add(key, value, Value());
  };
  int64_t shapes = 0, frames = 0, host_events = 0, overhead = 0;
  for (size_t i = 0; i < trace.slices.size(); ++i) {
    const Kind kind = trace.slices.kind[i];
    frames += kind == Kind::kPython;
    host_events += trace::IsHostTree(kind);
    overhead += kind == Kind::kOverhead;
  }
  for (const trace::OpArgs& op : trace.ops) shapes += op.dims.valid();
  int64_t linked_ns = 0, called_ns = 0, kernel_ns = 0;
  for (const SliceId s : trace.device_slices()) {
    kernel_ns += trace.Duration(s);
    const tree::NodeId launch = context->tree.launch(s);
    if (!launch.valid()) continue;
    linked_ns += trace.Duration(s);
    SliceId call = context->tree.slice(launch);
    while (trace.captured.Has(call)) call = trace.captured.Parent(call);
    if (trace::IsApiCall(trace.KindOf(call))) called_ns += trace.Duration(s);
  }
  add("record_shapes", shapes > 0);
  add("with_stack", frames > 0);
  add("profile_memory", !trace.memory.empty());
  add("host_events", host_events);
  add("device_events", static_cast<int64_t>(trace.device_slices().size()));
  add("python_frames", frames);
  add("overhead_events", overhead);
  add("steps", static_cast<int64_t>(context->steps.steps().size()));
  add("kernel_time_ns", kernel_ns);
  add("linked_time_ns", linked_ns);
  add("called_time_ns", called_ns);
  const trace::Losses losses = trace::FindLosses(trace.diagnostics);
  add("records", static_cast<int64_t>(trace.info.events));
  add("lost_records", static_cast<int64_t>(losses.records));
  out.Add("damaged", int64_t{losses.damaged},
          losses.damaged ? Value(losses.first) : Value());
  for (const trace::Doubt& doubt : trace::FindDoubts(trace.diagnostics))
    out.Add(doubt.reason, static_cast<int64_t>(doubt.count), doubt.text);
  const analysis::LaunchesWithoutWork lost =
      analysis::FindLaunchesWithoutWork(context->tree);
  add("launches", static_cast<int64_t>(lost.launches));
  out.Add("launches_without_work", static_cast<int64_t>(lost.without),
          lost.without > 0 ? Value(lost.Text()) : Value());
  out.Add("format", Value(), trace.info.format);
  for (const auto& [key, value] : trace.info.properties)
    out.Add(key, Value(), value);
  return {};
}

Status FillMain(const Asked& source, Table& out) {
  LAMINA_ASSIGN(const auto* const main, source.Get<host::MainThread>());
  LAMINA_ASSIGN(const auto* const model, source.Get<host::HostModel>());
  const Context& context = model->context();
  for (const auto& part : main->stretches) {
    const host::Activity& activity = main->activities[part.activity];
    out.Add("host", part.start_ns - context.trace.first_ns, part.length_ns,
            int64_t{main->track}, activity.what, activity.detail,
            part.step == host::kNone
                ? Value()
                : Value(context.steps.steps()[part.step].number));
  }
  return {};
}

Status FillSteps(const Asked& source, Table& out) {
  LAMINA_ASSIGN(const auto* const model, source.Get<host::HostModel>());
  const Context& context = model->context();
  const auto flags = host::FlagSteps(*model);
  for (size_t i = 0; i < flags.size(); ++i) {
    const tree::Step& step = context.steps.steps()[i];
    out.Add(step.number, context.trace.Name(step.slice),
            step.host.start_ns - context.trace.first_ns, flags[i].period_ns,
            flags[i].events, int64_t{flags[i].warmup}, int64_t{flags[i].cut},
            int64_t{flags[i].steady()}, int64_t{flags[i].outlier});
  }
  return {};
}

}  // namespace

void AddEventTables(std::vector<TableDef>& tables) {
  tables.push_back(Events(
      "device_events",
      "Device work with what rules of findings ask: what is its own of the "
      "busy time, of what step, of what op.",
      DeviceColumns(), [](EventModel& model) {
        const auto all = model.trace().device_slices();
        model.slices.assign(all.begin(), all.end());
        FillOwn(model);
        model.same = std::make_shared<EventModel::Same>();
      }));
  tables.push_back(
      Events("host_events",
             "What happened on the host: ops, calls, frames, ranges and the "
             "profiler's own work.",
             HostColumns(), [](EventModel& model) {
               const Trace& trace = model.trace();
               for (uint32_t i = 0; i < trace.slices.size(); ++i) {
                 const Kind kind = trace.slices.kind[i];
                 if (!trace::IsDevice(kind) && kind != Kind::kGpuAnnotation)
                   model.slices.push_back(SliceId(i));
               }
             }));
  tables.push_back(FilledTable(
      "sync_calls", "Calls that wait for the device.",
      {{"uid", Type::kInt, "Event number."},
       {"name", Type::kText, "Name as recorded."},
       {"start_ns", Type::kInt, "Start, from the first event."},
       {"dur_ns", Type::kInt, "Duration."},
       {"track_id", Type::kInt, "Process and thread, a row of track."},
       {"target_uid", Type::kInt,
        "The work whose end it waited for; null: it did not have to wait."},
       {"target", Type::kText, "Name of that work, if it is a copy."},
       {"bytes", Type::kInt, "Bytes of that copy."},
       {"reader", Type::kText,
        "scalar: a value for the host; copy: a copy; explicit: the wait."},
       {"op", Type::kText, "Innermost op around it."},
       {"module", Type::kText, "Path of the nn.Module around it."},
       {"step", Type::kInt, "Number of the step in which it begins."},
       {"steady", Type::kInt, "1: in the steady part."},
       {"recorded", Type::kInt, "1: what it waits for is recorded."},
       {"drained", Type::kInt, "1: the device had no work when it returned."}},
      &FillSyncs));
  tables.push_back(
      FilledTable("recording", "What the recording holds.",
                  {{"key", Type::kText, "What is told."},
                   {"number", Type::kInt, "A number, or 1 for yes."},
                   {"text", Type::kText, "Where it is no number."}},
                  &FillRecording));
  tables.push_back(FilledTable(
      "main_parts",
      "What the main thread does, piece by piece, in a recording without "
      "device work; empty with some.",
      {{"device", Type::kText, "host: what findings of it are placed on."},
       {"start_ns", Type::kInt, "Start, from the first event."},
       {"dur_ns", Type::kInt, "Duration."},
       {"track_id", Type::kInt, "Process and thread, a row of track."},
       {"activity", Type::kText,
        "Of data/host (data_loader), or op, call, python, annotation."},
       {"detail", Type::kText, "Name of the op, frame, range or call."},
       {"step", Type::kInt, "Number of the step in which it begins."}},
      &FillMain));
  tables.push_back(FilledTable(
      "step_flags", "Steps, and which of them are unlike a long run.",
      {{"step", Type::kInt, "Number of the step."},
       {"name", Type::kText, "Name of the range."},
       {"start_ns", Type::kInt, "Start, from the first event."},
       {"period_ns", Type::kInt, "Start to start."},
       {"events", Type::kInt, "Device events."},
       {"warmup", Type::kInt,
        "1: a leading step above 1.5 times the usual period."},
       {"cut", Type::kInt,
        "1: the first or last, with under 0.9 times the usual events."},
       {"steady", Type::kInt, "1: neither."},
       {"outlier", Type::kInt,
        "1: above the median by 5 times the median distance and 2 %."}},
      &FillSteps));
}

}  // namespace lamina::sql
