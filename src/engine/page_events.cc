// SPDX-License-Identifier: Apache-2.0
#include "engine/page_events.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <tuple>

namespace lamina::engine {
namespace {

using analysis::Context;
using trace::Kind;
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
  std::vector<uint32_t> kernel, op, module, layer, pass;
};

class DeviceColumns {
 public:
  DeviceColumns(const Context& context,
                const analysis::layers::LayerModel& layers,
                const Document& document)
      : context_(context), trace_(context.trace) {
    const size_t count = trace_.device.size();
    for (auto* column :
         {&of_.kernel, &of_.op, &of_.module, &of_.layer, &of_.pass})
      column->assign(count, 0);
    Kernels(document);
    Ops(document);
    Modules(document);
    Layers(layers);
  }

  render::Block Make(const std::vector<uint32_t>& host_row) const {
    std::vector<int64_t> start, dur, kernel, family, op, module, layer, pass,
        step, uid, launch;
    const bool steps = !context_.steps.steps().empty();
    for (const trace::Stream& lane : trace_.streams) {
      for (const SliceId s : lane.slices) {
        const uint32_t row = trace_.slices.detail[s.value];
        start.push_back(trace_.Start(s) - trace_.first_ns);
        dur.push_back(trace_.Duration(s));
        kernel.push_back(of_.kernel[row]);
        family.push_back(static_cast<int64_t>(context_.device.family(s)));
        op.push_back(of_.op[row]);
        module.push_back(of_.module[row]);
        layer.push_back(of_.layer[row]);
        pass.push_back(of_.pass[row]);
        const uint32_t at =
            steps ? context_.steps.StepOf(s) : tree::Steps::kOutside;
        // Work outside the steps is the row behind them.
        step.push_back(
            !steps ? 0
            : at == tree::Steps::kOutside
                ? static_cast<int64_t>(context_.steps.steps().size()) + 1
                : int64_t{at} + 1);
        uid.push_back(trace_.Uid(s));
        const NodeId call = context_.tree.launch(s);
        launch.push_back(
            call.valid() ? host_row[context_.tree.slice(call).value] : 0);
      }
    }
    render::Block block("device", start.size());
    block.Add("start", start, true);
    block.Add("dur", dur);
    block.Add("kernel", kernel);
    block.Add("family", family);
    block.Add("op", op);
    block.Add("module", module);
    block.Add("layer", layer);
    block.Add("pass", pass);
    block.Add("step", step);
    block.Add("uid", uid, true);
    block.Add("launch", launch, true);
    return block;
  }

 private:
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
      for (const uint32_t c : group.calls) {
        for (const SliceId s : view.Work(view.calls()[c]))
          of_.op[Row(s)] = static_cast<uint32_t>(row);
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
};

}  // namespace

void AddEvents(const Context& context,
               const analysis::layers::LayerModel& layers,
               const Document& document, HostDetail detail,
               render::Page& page) {
  HostEvents host;
  const auto host_rows = host.Add(context, detail, {}, page.strings);
  std::string lanes = "[";
  size_t rows = 0;
  AppendLanes(context.trace, {}, rows, lanes);
  page.facts.emplace_back("lanes", lanes + "]");
  page.facts.emplace_back("families", FamiliesJson(context.catalog));
  const DeviceColumns device(context, layers, document);
  page.blocks.push_back(device.Make(host_rows));
  host.AddTo(page);
}

}  // namespace lamina::engine
