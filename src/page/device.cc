// SPDX-License-Identifier: Apache-2.0
#include "page/device.h"

#include <absl/container/flat_hash_map.h>
#include <optional>
#include <string>
#include <tuple>

#include "analysis/common/timeline.h"

namespace lamina::page {
namespace {

using analysis::Context;
using trace::SliceId;
using trace::Trace;
using tree::NodeId;

// Rows of a table by the event number in its column first_uid.
class RowsByUid {
 public:
  RowsByUid(const Document& document, std::string_view name) {
    const Table* table = document.result.Find(name);
    if (table == nullptr) return;
    const size_t column = table->schema().IndexOf("first_uid");
    for (size_t row = 0; row < table->rows(); ++row)
      rows_.emplace(table->Int(row, column), static_cast<int64_t>(row) + 1);
  }
  // Row + 1; 0 for none.
  int64_t Find(uint32_t uid) const {
    const auto it = rows_.find(uid);
    return it == rows_.end() ? 0 : it->second;
  }

 private:
  absl::flat_hash_map<int64_t, int64_t> rows_;
};

// What each device slice belongs to, by its row of device arguments; row + 1
// of a table, 0 for none.
struct Membership {
  std::vector<uint32_t> kernel, op, module, layer, pass, call;
};

class DeviceMembers {
 public:
  DeviceMembers(const Context& context,
                const analysis::layers::LayerModel& layers,
                const Document& document)
      : context_(context), trace_(context.trace) {
    const size_t count = trace_.device.size();
    for (auto* column :
         {&of_.kernel, &of_.op, &of_.module, &of_.layer, &of_.pass, &of_.call})
      column->assign(count, 0);
    Kernels(document);
    Ops(document);
    Modules(document);
    Layers(layers);
    steps_table_ = document.result.Find("steps");
  }

  std::vector<DeviceRow> Make() {
    std::vector<DeviceRow> rows;
    rows.reserve(trace_.device.size());
    const auto steps = static_cast<uint32_t>(context_.steps.steps().size());
    const std::vector<uint32_t> step_rows = StepRows();
    for (uint32_t lane = 0; lane < trace_.streams.size(); ++lane) {
      for (const SliceId s : trace_.streams[lane].slices) {
        const uint32_t at = Row(s);
        const uint32_t step =
            steps > 0 ? context_.steps.StepOf(s) : tree::Steps::kOutside;
        rows.push_back(
            {.start_ns = trace_.Start(s) - trace_.first_ns,
             .dur_ns = trace_.Duration(s),
             .lane = lane,
             .kernel = of_.kernel[at],
             .family = static_cast<uint32_t>(context_.device.family(s)),
             .op = of_.op[at],
             .module = of_.module[at],
             .layer = of_.layer[at],
             .pass = of_.pass[at],
             .step = steps == 0
                         ? 0
                         : step_rows[(step == tree::Steps::kOutside ? steps
                                                                    : step) *
                                         devices_ +
                                     device_of_[at]],
             .call = of_.call[at],
             .slice = s});
      }
    }
    return rows;
  }

 private:
  // Row + 1 of the table steps by step (those outside of all behind the last)
  // and device. The table has the devices of a step that worked in it, in their
  // order, and one row of none where none did.
  std::vector<uint32_t> StepRows() {
    const std::vector<analysis::DeviceWork> devices =
        analysis::WorkByDevice(trace_);
    devices_ = devices.size();
    device_of_.assign(trace_.device.size(), 0);
    absl::flat_hash_map<std::string, size_t> numbers;
    for (size_t d = 0; d < devices.size(); ++d) {
      numbers.emplace(devices[d].name, d);
      for (const SliceId s : devices[d].slices)
        device_of_[Row(s)] = static_cast<uint32_t>(d);
    }
    const size_t steps = context_.steps.steps().size();
    std::vector<uint32_t> rows((steps + 1) * devices_, 0);
    if (steps_table_ == nullptr) return rows;
    const Table& table = *steps_table_;
    const size_t device = table.schema().IndexOf("device");
    const size_t number = table.schema().IndexOf("step");
    const size_t start = table.schema().IndexOf("start_us");
    size_t step = 0;
    std::optional<size_t> last;  // device of the last row of the step
    bool any = false;
    for (size_t row = 0; row < table.rows(); ++row) {
      const bool none = table.IsNull(row, device);
      const auto own = none ? std::nullopt
                            : std::optional(numbers.at(
                                  std::string(table.At(row, device).text())));
      if (table.IsNull(row, number)) {
        step = steps;
      } else if (any && (!last || !own || *own <= *last ||
                         table.Int(row, number) != table.Int(row - 1, number) ||
                         table.Int(row, start) != table.Int(row - 1, start))) {
        ++step;
      }
      any = true;
      last = own;
      if (own && step <= steps)
        rows[step * devices_ + *own] = static_cast<uint32_t>(row + 1);
    }
    return rows;
  }

  uint32_t Row(SliceId s) const { return trace_.slices.detail[s.value]; }

  // The grouping of the table kernels: name, op above the launch, lane.
  void Kernels(const Document& document) {
    const RowsByUid rows(document, "kernels");
    using Key = std::tuple<StringId, StringId, uint32_t>;
    absl::flat_hash_map<Key, int64_t> found;
    for (const SliceId s : trace_.device_slices()) {
      NodeId parent = context_.tree.launch(s);
      if (parent.valid()) {
        const NodeId op = context_.tree.EnclosingOp(parent);
        if (op.valid()) parent = op;
      }
      const StringId name =
          parent.valid() ? trace_.slices.name[context_.tree.slice(parent).value]
                         : StringId();
      const Key key(trace_.slices.name[s.value], name,
                    trace_.Device(s)->lane.value);
      const auto [it, is_new] = found.try_emplace(key, 0);
      if (is_new) it->second = rows.Find(trace_.Uid(s));
      of_.kernel[Row(s)] = static_cast<uint32_t>(it->second);
    }
  }

  void Ops(const Document& document) {
    if (context_.efficiency == nullptr) return;
    const RowsByUid rows(document, "op_efficiency");
    const analysis::CostView& view = *context_.efficiency->costs;
    for (const analysis::CostView::Group& group : view.groups()) {
      const int64_t row =
          rows.Find(trace_.Uid(context_.tree.slice(group.first)));
      uint32_t number = 0;
      for (const uint32_t c : group.calls) {
        ++number;
        for (const SliceId s : view.Work(view.calls()[c])) {
          of_.op[Row(s)] = static_cast<uint32_t>(row);
          of_.call[Row(s)] = number;
        }
      }
    }
  }

  void Modules(const Document& document) {
    const Table* table = document.result.Find("modules");
    if (table == nullptr || context_.modules.empty()) return;
    const auto order = context_.modules.Preorder();
    std::vector<uint32_t> rows(order.size());
    for (uint32_t i = 0; i < order.size(); ++i) rows[order[i].value] = i + 1;
    const auto outside = static_cast<uint32_t>(order.size()) + 1;
    for (const SliceId s : context_.tree.launched()) {
      const auto owner = context_.modules.OwnerOf(context_.tree.launch(s));
      of_.module[Row(s)] =
          owner.path.valid() ? rows[owner.path.value] : outside;
    }
  }

  void Layers(const analysis::layers::LayerModel& model) {
    for (uint32_t i = 0; i < model.layers.size(); ++i) {
      for (const SliceId s : model.layers[i].work) of_.layer[Row(s)] = i + 1;
    }
    for (uint32_t p = 0; p < model.passes.size(); ++p) {
      for (const SliceId s : model.passes[p].outside) of_.pass[Row(s)] = p + 1;
      for (const uint32_t l : model.passes[p].layers) {
        for (const SliceId s : model.layers[l].work) of_.pass[Row(s)] = p + 1;
      }
    }
  }

  const Context& context_;
  const Trace& trace_;
  Membership of_;
  const Table* steps_table_ = nullptr;
  size_t devices_ = 0;
  std::vector<uint32_t> device_of_;  // by row of device arguments
};

}  // namespace

std::vector<DeviceRow> DeviceRows(const Context& context,
                                  const analysis::layers::LayerModel& layers,
                                  const Document& document) {
  return DeviceMembers(context, layers, document).Make();
}

}  // namespace lamina::page
