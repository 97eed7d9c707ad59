// SPDX-License-Identifier: Apache-2.0
//
// Slices of one kind with all that is known of them in one row: kernels with
// their op, module, step and layer; ops with their device time; calls; frames;
// ranges; launches; and what follows from device work (busy, gap, queue).
//
// Why it is longer than 250 lines: it is a list of columns, each one line.
#include <algorithm>
#include <cmath>

#include "analysis/common/gaps.h"
#include "analysis/layers/layers.h"
#include "base/interval_set.h"
#include "sql/table_def.h"

namespace lamina::sql {
namespace {

using analysis::Context;
using trace::Kind;
using trace::SliceId;
using trace::Trace;
using tree::NodeId;

constexpr uint32_t kNone = 0xFFFFFFFF;

// Of a grid or block: zero is what the profiler did not know.
Value Extent(uint32_t n) { return n > 0 ? Value(int64_t{n}) : Value(); }

// What cells of slices are read from.
struct SliceModel {
  const Context* context = nullptr;
  std::vector<SliceId> slices;       // by row
  std::vector<std::string> modules;  // by path
  std::vector<uint32_t> depths;      // by node, for ops
  std::vector<std::string> devices;  // their names, by lane
  std::vector<int64_t> before;       // launch: end of the work before it
  // Layers, when a column of them was read: by device row.
  mutable std::once_flag layers_once;
  mutable const analysis::layers::LayerModel* layers = nullptr;
  mutable std::vector<uint32_t> layer_of;
  mutable std::vector<uint32_t> pass_of;

  SliceModel() = default;
  SliceModel(SliceModel&& other) noexcept
      : context(other.context),
        slices(std::move(other.slices)),
        modules(std::move(other.modules)),
        depths(std::move(other.depths)),
        devices(std::move(other.devices)),
        before(std::move(other.before)) {}

  const Trace& trace() const { return context->trace; }
  const tree::Tree& tree() const { return context->tree; }
  SliceId at(size_t row) const { return slices[row]; }
  NodeId node(size_t row) const { return tree().node(at(row)); }
  const trace::DeviceArgs* device(size_t row) const {
    return trace().Device(at(row));
  }

  Status FindLayers() const {
    // Outside of what is called once: a stop may end it.
    LAMINA_ASSIGN(const auto* const found,
                  context->Get<analysis::layers::LayerModel>());
    std::call_once(layers_once, [this, found] {
      layer_of.assign(trace().device.size(), kNone);
      pass_of.assign(trace().device.size(), kNone);
      layers = found;
      const auto row = [&](SliceId s) {
        return trace().slices.detail[s.value];
      };
      for (size_t l = 0; l < layers->layers.size(); ++l) {
        for (const SliceId s : layers->layers[l].work) {
          layer_of[row(s)] = static_cast<uint32_t>(l);
          pass_of[row(s)] = layers->layers[l].pass;
        }
      }
      for (size_t p = 0; p < layers->passes.size(); ++p) {
        for (const SliceId s : layers->passes[p].outside)
          pass_of[row(s)] = static_cast<uint32_t>(p);
      }
    });
    return {};
  }
  const analysis::layers::Layer* layer(size_t row) const {
    const uint32_t l = layer_of[trace().slices.detail[at(row).value]];
    return l == kNone ? nullptr : &layers->layers[l];
  }
  uint32_t pass(size_t row) const {
    return pass_of[trace().slices.detail[at(row).value]];
  }
};

class SliceRows : public FunctionRows<SliceModel> {
 public:
  SliceRows(SliceModel model, Cells cells, uint64_t layer_columns)
      : FunctionRows(std::move(model), 0, std::move(cells)),
        layer_columns_(layer_columns) {
    count_ = model_.slices.size();
  }
  Status Prepare(uint64_t columns) const override {
    if ((columns & layer_columns_) == 0) return {};
    return model_.FindLayers();
  }

 private:
  uint64_t layer_columns_;
};

struct SliceSpec {
  ColumnDef column;
  Value (*cell)(const SliceModel& m, size_t row);
  bool layers = false;
};

Value Text(const SliceModel& m, StringId id) {
  return id.valid() ? Value(m.trace().strings[id]) : Value();
}
Value NodeUid(const SliceModel& m, NodeId node) {
  return node.valid() ? Value(m.trace().Uid(m.tree().slice(node))) : Value();
}
Value SliceUid(const SliceModel& m, SliceId s) {
  return s.valid() ? Value(m.trace().Uid(s)) : Value();
}
Value Module(const SliceModel& m, NodeId node) {
  if (!node.valid()) return {};
  const auto owner = m.context->modules.OwnerOf(node);
  return owner.path.valid() ? Value(m.modules[owner.path.value]) : Value();
}
const trace::OpArgs* OpOf(const SliceModel& m, size_t row) {
  return m.trace().Op(m.at(row));
}
NodeId Launcher(const SliceModel& m, size_t row) {
  return m.context->device.launcher(m.at(row));
}
// The op of device work: its launcher, when that is an op.
NodeId LaunchOp(const SliceModel& m, size_t row) {
  const NodeId launcher = Launcher(m, row);
  return launcher.valid() && m.tree().IsOp(launcher) ? launcher : NodeId();
}
const trace::LaunchConfig* ConfigOf(const SliceModel& m, size_t row) {
  const trace::DeviceArgs* args = m.device(row);
  return args == nullptr ? nullptr : m.trace().Config(args->config);
}
const trace::CollectiveArgs* CollectiveOf(const SliceModel& m, size_t row) {
  const trace::DeviceArgs* args = m.device(row);
  if (args == nullptr) return nullptr;
  if (const auto* own = m.trace().Collective(args->collective)) return own;
  for (NodeId n = m.tree().launch(m.at(row)); n.valid();
       n = m.tree().parent(n)) {
    const trace::OpArgs* op = m.trace().Op(m.tree().slice(n));
    if (op != nullptr && op->collective != trace::kNoRow)
      return m.trace().Collective(op->collective);
  }
  return nullptr;
}

// Columns that all slices have.
std::vector<SliceSpec> Common() {
  return {
      {{"uid", Type::kInt, "Event number."},
       [](const SliceModel& m, size_t r) { return SliceUid(m, m.at(r)); }},
      {{"name", Type::kText, "Name as recorded."},
       [](const SliceModel& m, size_t r) -> Value {
         return m.trace().Name(m.at(r));
       }},
      {{"start_ns", Type::kInt, "Start, from the first event."},
       [](const SliceModel& m, size_t r) -> Value {
         return m.trace().Start(m.at(r)) - m.trace().first_ns;
       }},
      {{"dur_ns", Type::kInt, "Duration."},
       [](const SliceModel& m, size_t r) -> Value {
         return m.trace().Duration(m.at(r));
       }},
      {{"end_ns", Type::kInt, "End, from the first event.", true},
       [](const SliceModel& m, size_t r) -> Value {
         return m.trace().End(m.at(r)) - m.trace().first_ns;
       }},
      {{"ts_ns", Type::kInt, "Start as recorded.", true},
       [](const SliceModel& m, size_t r) -> Value {
         return m.trace().Start(m.at(r));
       }},
      {{"kind", Type::kText, "Kind of slice, as in slice."},
       [](const SliceModel& m, size_t r) -> Value {
         return trace::KindName(m.trace().KindOf(m.at(r)));
       }},
      {{"track_id", Type::kInt, "Process and thread, a row of track."},
       [](const SliceModel& m, size_t r) -> Value {
         return m.trace().slices.track[m.at(r).value].value;
       }},
  };
}

SliceSpec StepColumn(bool device) {
  if (device) {
    return {{"step", Type::kInt, "Number of the step that launched it."},
            [](const SliceModel& m, size_t r) -> Value {
              const tree::Steps& steps = m.context->steps;
              return steps.NumberOf(steps.StepOf(m.at(r)));
            }};
  }
  return {{"step", Type::kInt, "Number of the step in which it begins."},
          [](const SliceModel& m, size_t r) -> Value {
            const tree::Steps& steps = m.context->steps;
            return steps.NumberOf(steps.StepAt(m.trace().Start(m.at(r))));
          }};
}

std::vector<SliceSpec> KernelColumns() {
  std::vector<SliceSpec> out = Common();
  const auto arg = [&](std::string name, std::string doc, auto cell) {
    out.push_back({{std::move(name), Type::kInt, std::move(doc)}, cell});
  };
  const auto text = [&](std::string name, std::string doc, auto cell) {
    out.push_back({{std::move(name), Type::kText, std::move(doc)}, cell});
  };
  text("device", "process:device.", [](const SliceModel& m, size_t r) -> Value {
    const auto* d = m.device(r);
    return d == nullptr || !d->lane.valid() ? Value()
                                            : Value(m.devices[d->lane.value]);
  });
  arg("device_index", "Device number.",
      [](const SliceModel& m, size_t r) -> Value {
        return m.device(r) == nullptr ? Value() : Known(m.device(r)->device);
      });
  arg("stream", "Stream as recorded.",
      [](const SliceModel& m, size_t r) -> Value {
        return m.device(r) == nullptr ? Value() : Known(m.device(r)->stream);
      });
  arg("stream_id", "Lane of device work, a row of stream.",
      [](const SliceModel& m, size_t r) -> Value {
        const auto* d = m.device(r);
        return d == nullptr || !d->lane.valid() ? Value()
                                                : Value(d->lane.value);
      });
  text("bucket", "compute, communication or memcpy: its part of the timeline.",
       [](const SliceModel& m, size_t r) -> Value {
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
  text("family", "Family of the op or, without one, of the kernel.",
       [](const SliceModel& m, size_t r) -> Value {
         return m.context->catalog.family(m.context->device.family(m.at(r)))
             .name;
       });
  text("op", "Op that launched it.",
       [](const SliceModel& m, size_t r) -> Value {
         const NodeId op = LaunchOp(m, r);
         return op.valid() ? Value(m.tree().name(op)) : Value();
       });
  arg("op_uid", "Event number of that op.",
      [](const SliceModel& m, size_t r) { return NodeUid(m, LaunchOp(m, r)); });
  arg("launch_uid", "Event number of the call that launched it.",
      [](const SliceModel& m, size_t r) {
        return NodeUid(m, m.tree().launch(m.at(r)));
      });
  arg("latency_ns", "From the start of the call to its own start.",
      [](const SliceModel& m, size_t r) -> Value {
        const NodeId launch = m.tree().launch(m.at(r));
        return launch.valid() ? Value(m.trace().Start(m.at(r)) -
                                      m.trace().Start(m.tree().slice(launch)))
                              : Value();
      });
  text("unlinked_reason", "Why it has no launch; null when it has one.",
       [](const SliceModel& m, size_t r) -> Value {
         const auto reason = m.tree().unlinked(m.at(r));
         return reason == tree::Unlinked::kLinked
                    ? Value()
                    : Value(tree::UnlinkedName(reason));
       });
  text("module", "Path of the nn.Module that launched it.",
       [](const SliceModel& m, size_t r) {
         return Module(m, m.tree().launch(m.at(r)));
       });
  out.push_back({{"backward", Type::kInt,
                  "1: launched by the backward pass of its module."},
                 [](const SliceModel& m, size_t r) -> Value {
                   const NodeId launch = m.tree().launch(m.at(r));
                   if (!launch.valid()) return {};
                   const auto owner = m.context->modules.OwnerOf(launch);
                   return owner.path.valid() ? Value(int64_t{owner.backward})
                                             : Value();
                 }});
  out.push_back(StepColumn(true));
  out.push_back({{"layer", Type::kInt, "Number of its layer in the pass."},
                 [](const SliceModel& m, size_t r) -> Value {
                   const auto* layer = m.layer(r);
                   return layer == nullptr ? Value() : Value(layer->index);
                 },
                 true});
  out.push_back({{"layer_stack", Type::kText, "Stack of equal layers."},
                 [](const SliceModel& m, size_t r) -> Value {
                   const auto* layer = m.layer(r);
                   return layer == nullptr
                              ? Value()
                              : Value(m.layers->stacks[layer->stack].name);
                 },
                 true});
  out.push_back({{"pass", Type::kInt, "Number of its forward pass."},
                 [](const SliceModel& m, size_t r) -> Value {
                   const uint32_t pass = m.pass(r);
                   return pass == kNone ? Value() : Value(pass);
                 },
                 true});
  out.push_back({{"stage", Type::kText,
                  "prefill, decode, mixed, none or unknown: of its pass."},
                 [](const SliceModel& m, size_t r) -> Value {
                   if (const auto* layer = m.layer(r))
                     return analysis::layers::StageName(
                         m.layers->StageOf(*layer));
                   const uint32_t pass = m.pass(r);
                   return pass == kNone ? Value()
                                        : Value(analysis::layers::StageName(
                                              m.layers->passes[pass].stage));
                 },
                 true});
  arg("bytes", "Bytes of a copy or fill.",
      [](const SliceModel& m, size_t r) -> Value {
        return m.device(r) == nullptr ? Value() : Known(m.device(r)->bytes);
      });
  arg("correlation", "Correlation as recorded.",
      [](const SliceModel& m, size_t r) -> Value {
        return m.device(r) == nullptr ? Value()
                                      : Known(m.device(r)->correlation);
      });
  arg("graph_id", "Device graph that it belongs to.",
      [](const SliceModel& m, size_t r) -> Value {
        return m.device(r) == nullptr ? Value() : Known(m.device(r)->graph_id);
      });
  arg("graph_node_id", "Node of that graph.",
      [](const SliceModel& m, size_t r) -> Value {
        return m.device(r) == nullptr ? Value()
                                      : Known(m.device(r)->graph_node_id);
      });
#define LAMINA_CONFIG(name, doc, expression)                  \
  arg(name, doc, [](const SliceModel& m, size_t r) -> Value { \
    const auto* c = ConfigOf(m, r);                           \
    return c == nullptr ? Value() : (expression);             \
  })
  LAMINA_CONFIG("grid_x", "Blocks.", Extent(c->grid[0]));
  LAMINA_CONFIG("grid_y", "Blocks.", Extent(c->grid[1]));
  LAMINA_CONFIG("grid_z", "Blocks.", Extent(c->grid[2]));
  LAMINA_CONFIG("block_x", "Threads of a block.", Extent(c->block[0]));
  LAMINA_CONFIG("block_y", "Threads of a block.", Extent(c->block[1]));
  LAMINA_CONFIG("block_z", "Threads of a block.", Extent(c->block[2]));
  LAMINA_CONFIG("registers_per_thread", "Registers of a thread.",
                Known(c->registers_per_thread));
  LAMINA_CONFIG("shared_memory_bytes", "Shared memory of a block.",
                Known(c->shared_memory_bytes));
#undef LAMINA_CONFIG
  out.push_back({{"occupancy_percent", Type::kReal,
                  "Occupancy as the profiler estimates it."},
                 [](const SliceModel& m, size_t r) -> Value {
                   const auto* c = ConfigOf(m, r);
                   return c == nullptr || !(c->occupancy_pct >= 0)
                              ? Value()
                              : Value(c->occupancy_pct);
                 }});
#define LAMINA_COLLECTIVE(add, name, doc, expression)         \
  add(name, doc, [](const SliceModel& m, size_t r) -> Value { \
    const auto* c = CollectiveOf(m, r);                       \
    return c == nullptr ? Value() : expression;               \
  })
  LAMINA_COLLECTIVE(text, "collective", "Collective that it runs.",
                    Text(m, c->name));
  LAMINA_COLLECTIVE(text, "process_group", "Process group of the collective.",
                    Text(m, c->group));
  LAMINA_COLLECTIVE(text, "process_group_ranks",
                    "Ranks of the group, as recorded.",
                    Text(m, c->group_ranks));
  LAMINA_COLLECTIVE(text, "dtype", "Element type of the collective.",
                    Text(m, c->dtype));
  LAMINA_COLLECTIVE(arg, "group_size", "Ranks in the group.",
                    Known(c->group_size));
  LAMINA_COLLECTIVE(arg, "in_elements", "Elements of the input.",
                    Known(c->in_elements));
  LAMINA_COLLECTIVE(arg, "out_elements", "Elements of the output.",
                    Known(c->out_elements));
#undef LAMINA_COLLECTIVE
  return out;
}

// Columns of slices that are nodes of the host tree.
void AddNodeColumns(std::vector<SliceSpec>& out) {
  out.push_back({{"parent_uid", Type::kInt, "The event around it."},
                 [](const SliceModel& m, size_t r) -> Value {
                   const NodeId n = m.node(r);
                   return n.valid() ? NodeUid(m, m.tree().parent(n)) : Value();
                 }});
  out.push_back({{"depth", Type::kInt, "Events around it."},
                 [](const SliceModel& m, size_t r) -> Value {
                   const NodeId n = m.node(r);
                   return n.valid() ? Value(m.depths[n.value]) : Value();
                 }});
  out.push_back(
      {{"module", Type::kText, "Path of its nn.Module."},
       [](const SliceModel& m, size_t r) { return Module(m, m.node(r)); }});
  out.push_back(StepColumn(false));
  out.push_back({{"device_time_ns", Type::kInt,
                  "Sum of the device work launched inside."},
                 [](const SliceModel& m, size_t r) -> Value {
                   const NodeId n = m.node(r);
                   return n.valid() ? Value(m.tree().DeviceTime(n)) : Value();
                 }});
  out.push_back({{"self_device_time_ns", Type::kInt,
                  "Sum of the device work launched without an op between."},
                 [](const SliceModel& m, size_t r) -> Value {
                   const NodeId n = m.node(r);
                   if (!n.valid()) return {};
                   int64_t sum = 0;
                   for (const SliceId s : m.tree().DeviceWork(n)) {
                     if (m.context->device.launcher(s) == n)
                       sum += m.trace().Duration(s);
                   }
                   return sum;
                 }});
  out.push_back({{"kernels", Type::kInt, "Device work launched inside."},
                 [](const SliceModel& m, size_t r) -> Value {
                   const NodeId n = m.node(r);
                   return n.valid() ? Value(m.tree().DeviceWork(n).size())
                                    : Value();
                 }});
}

std::vector<SliceSpec> OpColumns() {
  std::vector<SliceSpec> out = Common();
#define LAMINA_OP(name, type, doc, expression)                         \
  out.push_back(                                                       \
      {{name, type, doc}, [](const SliceModel& m, size_t r) -> Value { \
         const auto* op = OpOf(m, r);                                  \
         return op == nullptr ? Value() : expression;                  \
       }})
  LAMINA_OP("dims", Type::kText, "Shapes of the inputs. JSON.",
            Text(m, op->dims));
  LAMINA_OP("types", Type::kText, "Element types of the inputs. JSON.",
            Text(m, op->types));
  LAMINA_OP("strides", Type::kText, "Strides of the inputs. JSON.",
            Text(m, op->strides));
  LAMINA_OP("concrete", Type::kText, "Values of scalar inputs. JSON.",
            Text(m, op->concrete));
  LAMINA_OP("external_id", Type::kInt, "External id.", Known(op->external_id));
  LAMINA_OP("sequence", Type::kInt, "Sequence number of autograd.",
            Known(op->sequence));
#undef LAMINA_OP
  out.push_back({{"family", Type::kText, "Family of the op by its name."},
                 [](const SliceModel& m, size_t r) -> Value {
                   const std::string_view family =
                       m.context->catalog.OpFamily(m.trace().Name(m.at(r)));
                   return family.empty() ? Value() : Value(family);
                 }});
  AddNodeColumns(out);
  out.push_back({{"forward_uid", Type::kInt,
                  "The forward op of an op of the backward pass."},
                 [](const SliceModel& m, size_t r) -> Value {
                   const NodeId n = m.node(r);
                   return n.valid() ? NodeUid(m, m.tree().forward(n)) : Value();
                 }});
  out.push_back(
      {{"backward_uid", Type::kInt, "The backward op of a forward op."},
       [](const SliceModel& m, size_t r) -> Value {
         const NodeId n = m.node(r);
         return n.valid() ? NodeUid(m, m.tree().backward(n)) : Value();
       }});
  return out;
}

std::vector<SliceSpec> CallColumns() {
  std::vector<SliceSpec> out = Common();
  out.push_back({{"correlation", Type::kInt, "Correlation as recorded."},
                 [](const SliceModel& m, size_t r) -> Value {
                   const auto* api = m.trace().Api(m.at(r));
                   return api == nullptr ? Value() : Known(api->correlation);
                 }});
  out.push_back({{"op", Type::kText, "Innermost op around it."},
                 [](const SliceModel& m, size_t r) -> Value {
                   const NodeId n = m.node(r);
                   const NodeId op =
                       n.valid() ? m.tree().EnclosingOp(n) : NodeId();
                   return op.valid() ? Value(m.tree().name(op)) : Value();
                 }});
  out.push_back({{"op_uid", Type::kInt, "Event number of that op."},
                 [](const SliceModel& m, size_t r) -> Value {
                   const NodeId n = m.node(r);
                   return n.valid() ? NodeUid(m, m.tree().EnclosingOp(n))
                                    : Value();
                 }});
  AddNodeColumns(out);
  return out;
}

std::vector<SliceSpec> FrameColumns() {
  std::vector<SliceSpec> out = Common();
#define LAMINA_FRAME(name, doc, member)                                       \
  out.push_back(                                                              \
      {{name, Type::kInt, doc}, [](const SliceModel& m, size_t r) -> Value {  \
         const auto* p = m.trace().Python(m.at(r));                           \
         return p == nullptr || p->member == -1 ? Value() : Value(p->member); \
       }})
  LAMINA_FRAME("python_id", "Number of the call.", id);
  LAMINA_FRAME("python_parent_id", "Number of its caller.", parent_id);
  LAMINA_FRAME("python_module_id", "Number of the nn.Module.", module_id);
#undef LAMINA_FRAME
  return out;
}

std::vector<SliceSpec> RangeColumns() {
  std::vector<SliceSpec> out = Common();
  out.push_back({{"category", Type::kText, "Category as recorded."},
                 [](const SliceModel& m, size_t r) -> Value {
                   return m.trace().Category(m.at(r));
                 }});
  out.push_back(StepColumn(false));
  return out;
}

SliceId LaunchSlice(const SliceModel& m, size_t row) {
  return m.tree().slice(m.tree().launch(m.at(row)));
}

std::vector<SliceSpec> LaunchColumns() {
  std::vector<SliceSpec> out;
  const auto add = [&](std::string name, Type type, std::string doc,
                       Value (*cell)(const SliceModel&, size_t)) {
    out.push_back({{std::move(name), type, std::move(doc)}, cell});
  };
  add("launch_uid", Type::kInt, "Event number of the call.",
      [](const SliceModel& m, size_t r) {
        return SliceUid(m, LaunchSlice(m, r));
      });
  add("device_uid", Type::kInt, "Event number of the device work.",
      [](const SliceModel& m, size_t r) { return SliceUid(m, m.at(r)); });
  add("call", Type::kText, "Name of the call.",
      [](const SliceModel& m, size_t r) -> Value {
        return m.trace().Name(LaunchSlice(m, r));
      });
  add("kernel", Type::kText, "Name of the device work.",
      [](const SliceModel& m, size_t r) -> Value {
        return m.trace().Name(m.at(r));
      });
  add("op", Type::kText, "Op around the call.",
      [](const SliceModel& m, size_t r) -> Value {
        const NodeId op = LaunchOp(m, r);
        return op.valid() ? Value(m.tree().name(op)) : Value();
      });
  add("start_ns", Type::kInt, "Start of the call, from the first event.",
      [](const SliceModel& m, size_t r) -> Value {
        return m.trace().Start(LaunchSlice(m, r)) - m.trace().first_ns;
      });
  add("call_dur_ns", Type::kInt, "Duration of the call.",
      [](const SliceModel& m, size_t r) -> Value {
        return m.trace().Duration(LaunchSlice(m, r));
      });
  add("device_start_ns", Type::kInt,
      "Start of the device work, from the first event.",
      [](const SliceModel& m, size_t r) -> Value {
        return m.trace().Start(m.at(r)) - m.trace().first_ns;
      });
  add("device_dur_ns", Type::kInt, "Duration of the device work.",
      [](const SliceModel& m, size_t r) -> Value {
        return m.trace().Duration(m.at(r));
      });
  add("latency_ns", Type::kInt,
      "From the start of the call to the start of the device work.",
      [](const SliceModel& m, size_t r) -> Value {
        return m.trace().Start(m.at(r)) - m.trace().Start(LaunchSlice(m, r));
      });
  add("queue_ns", Type::kInt,
      "Of this the time in which its stream had other work to do.",
      [](const SliceModel& m, size_t r) -> Value {
        const int64_t from = m.trace().Start(LaunchSlice(m, r));
        const int64_t to = std::min(m.trace().Start(m.at(r)), m.before[r]);
        return std::max<int64_t>(0, to - from);
      });
  add("stream_id", Type::kInt, "Lane of device work, a row of stream.",
      [](const SliceModel& m, size_t r) -> Value {
        const auto* d = m.device(r);
        return d == nullptr || !d->lane.valid() ? Value()
                                                : Value(d->lane.value);
      });
  return out;
}

TableDef Define(std::string name, std::string doc, std::vector<SliceSpec> specs,
                std::function<void(SliceModel&)> choose) {
  TableDef table;
  table.name = std::move(name);
  table.doc = std::move(doc);
  table.cost = Cost::kTree;
  FunctionRows<SliceModel>::Cells cells;
  uint64_t layers = 0;
  for (SliceSpec& spec : specs) {
    if (spec.layers)
      layers |= uint64_t{1} << std::min<size_t>(63, cells.size());
    table.columns.push_back(std::move(spec.column));
    cells.push_back(spec.cell);
  }
  table.open = [cells, layers, choose = std::move(choose)](
                   const Asked& source) -> Result<std::shared_ptr<const Rows>> {
    SliceModel model;
    LAMINA_ASSIGN(model.context, source.Context());
    model.modules = model.context->modules.PathTexts();
    for (const trace::Stream& stream : model.trace().streams)
      model.devices.push_back(model.trace().DeviceName(stream));
    choose(model);
    return std::make_shared<SliceRows>(std::move(model), cells, layers);
  };
  return table;
}

template <class Keep>
std::function<void(SliceModel&)> AllOf(bool depths, Keep keep) {
  return [depths, keep](SliceModel& model) {
    const Trace& trace = model.trace();
    for (uint32_t i = 0; i < trace.slices.size(); ++i) {
      if (keep(trace.slices.kind[i])) model.slices.push_back(SliceId(i));
    }
    if (!depths) return;
    const tree::Tree& tree = model.tree();
    model.depths.resize(tree.size());
    for (uint32_t i = 0; i < tree.size(); ++i) {
      const NodeId parent = tree.parent(NodeId(i));
      model.depths[i] = parent.valid() ? model.depths[parent.value] + 1 : 0;
    }
  };
}

// --- what follows from device work: finished tables ---

TableDef Finished(std::string name, std::string doc,
                  std::vector<ColumnDef> columns,
                  std::function<Status(const Context&, Table&)> fill) {
  return FilledTable(
      std::move(name), std::move(doc), std::move(columns),
      [fill = std::move(fill)](const Asked& source, Table& out) -> Status {
        LAMINA_ASSIGN(const Context* const context, source.Context());
        return fill(*context, out);
      });
}

analysis::Timeline TimelineOf(const Context& context,
                              const analysis::DeviceWork& work) {
  return analysis::MakeTimeline(context.trace, work.slices, [&](SliceId s) {
    return context.device.bucket(s);
  });
}

Status FillBusy(const Context& context, Table& out) {
  for (const auto& work : analysis::WorkByDevice(context.trace)) {
    const auto timeline = TimelineOf(context, work);
    for (const Interval& busy : timeline.busy.intervals())
      out.Add(work.name, busy.start_ns - context.trace.first_ns,
              busy.length_ns());
  }
  return {};
}

Status FillGaps(const Context& context, Table& out) {
  const Trace& trace = context.trace;
  for (const auto& work : analysis::WorkByDevice(trace)) {
    auto gaps = analysis::LongestGaps(context.tree, TimelineOf(context, work),
                                      SIZE_MAX);
    std::sort(gaps.begin(), gaps.end(), [](const auto& a, const auto& b) {
      return a.interval.start_ns < b.interval.start_ns;
    });
    for (const analysis::Gap& gap : gaps) {
      out.Add(work.name, gap.interval.start_ns - trace.first_ns,
              gap.interval.length_ns(), analysis::GapCauseName(gap.cause),
              gap.host.valid() ? Value(trace.Name(gap.host)) : Value(),
              gap.host.valid() ? Value(trace.Uid(gap.host)) : Value(),
              gap.next.valid() ? Value(trace.Name(gap.next)) : Value(),
              gap.next.valid() ? Value(trace.Uid(gap.next)) : Value());
    }
  }
  return {};
}

// Launched and not begun: one more at the start of a call, one less at the
// start of its work. Equal times are one row.
Status FillQueue(const Context& context, Table& out) {
  const Trace& trace = context.trace;
  for (size_t lane = 0; lane < trace.streams.size(); ++lane) {
    std::vector<std::pair<int64_t, int64_t>> changes;
    for (const SliceId s : trace.streams[lane].slices) {
      const NodeId launch = context.tree.launch(s);
      if (!launch.valid()) continue;
      const int64_t begin = trace.Start(context.tree.slice(launch));
      const int64_t start = std::max(begin, trace.Start(s));
      changes.emplace_back(begin, 1);
      changes.emplace_back(start, -1);
    }
    std::sort(changes.begin(), changes.end());
    int64_t length = 0;
    for (size_t i = 0; i < changes.size();) {
      const int64_t at = changes[i].first;
      for (; i < changes.size() && changes[i].first == at; ++i)
        length += changes[i].second;
      out.Add(lane, at - trace.first_ns, length,
              i < changes.size() ? Value(changes[i].first - at) : Value());
    }
  }
  return {};
}

}  // namespace

void AddSliceTables(std::vector<TableDef>& tables) {
  tables.push_back(Define(
      "kernel",
      "Device work (kernels, copies, fills, graphs) by start, with what "
      "launched it. The columns layer, layer_stack, pass and stage find the "
      "layers of the trace first.",
      KernelColumns(), [](SliceModel& model) {
        const auto all = model.trace().device_slices();
        model.slices.assign(all.begin(), all.end());
      }));
  tables.push_back(
      Define("op", "Framework ops with their arguments and device time.",
             OpColumns(), AllOf(true, [](Kind k) { return k == Kind::kOp; })));
  tables.push_back(
      Define("api_call", "Runtime and driver calls.", CallColumns(),
             AllOf(true, [](Kind k) { return trace::IsApiCall(k); })));
  tables.push_back(Define(
      "python_frame", "Python frames and calls of nn.Modules.", FrameColumns(),
      AllOf(false, [](Kind k) { return k == Kind::kPython; })));
  tables.push_back(
      Define("annotation", "Ranges of the user, on the host and on the device.",
             RangeColumns(), AllOf(false, [](Kind k) {
               return k == Kind::kAnnotation || k == Kind::kGpuAnnotation;
             })));
  tables.push_back(
      Define("launch", "Each call that launched device work, with that work.",
             LaunchColumns(), [](SliceModel& model) {
               const Trace& trace = model.trace();
               std::vector<int64_t> before(trace.device.size(), trace.first_ns);
               for (const trace::Stream& stream : trace.streams) {
                 int64_t end = trace.first_ns;
                 for (const SliceId s : stream.slices) {
                   before[trace.slices.detail[s.value]] = end;
                   end = std::max(end, trace.End(s));
                 }
               }
               for (const SliceId s : trace.device_slices()) {
                 if (!model.tree().launch(s).valid()) continue;
                 model.slices.push_back(s);
                 model.before.push_back(before[trace.slices.detail[s.value]]);
               }
             }));
  tables.push_back(
      Finished("busy", "Spans of time in which a device worked, merged.",
               {{"device", Type::kText, "process:device."},
                {"start_ns", Type::kInt, "Start, from the first event."},
                {"dur_ns", Type::kInt, "Length."}},
               &FillBusy));
  tables.push_back(Finished(
      "gap", "Spans of time in which a device had nothing to do, and why.",
      {{"device", Type::kText, "process:device."},
       {"start_ns", Type::kInt, "Start, from the first event."},
       {"dur_ns", Type::kInt, "Length."},
       {"cause", Type::kText,
        "host_busy, host_blocked, launch_latency or unknown."},
       {"host", Type::kText, "What the host did meanwhile."},
       {"host_uid", Type::kInt, "Event number of that."},
       {"next", Type::kText, "The work that ended it."},
       {"next_uid", Type::kInt, "Event number of that work."}},
      &FillGaps));
  tables.push_back(Finished(
      "queue_length",
      "Device work that was launched and had not begun, over time.",
      {{"stream_id", Type::kInt, "Lane of device work, a row of stream."},
       {"time_ns", Type::kInt, "From the first event."},
       {"length", Type::kInt, "Work in the queue from here on."},
       {"dur_ns", Type::kInt, "Until the length changes; null at the end."}},
      &FillQueue));
}

}  // namespace lamina::sql
