// SPDX-License-Identifier: Apache-2.0
#include "page/device.h"

#include <absl/container/flat_hash_map.h>
#include <string_view>

#include "analysis/common/kernel_groups.h"
#include "analysis/common/step_rows.h"

namespace lamina::page {
namespace {

using analysis::Context;
using trace::SliceId;
using trace::Trace;

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
  std::vector<uint32_t> kernel, op, module, layer, pass, step, call;
};

class DeviceMembers {
 public:
  DeviceMembers(const Context& context,
                const analysis::layers::LayerModel& layers,
                const Document& document)
      : context_(context), trace_(context.trace) {
    const size_t count = trace_.device.size();
    for (auto* column : {&of_.kernel, &of_.op, &of_.module, &of_.layer,
                         &of_.pass, &of_.step, &of_.call})
      column->assign(count, 0);
    Kernels(document);
    Ops(document);
    Modules(document);
    Layers(layers);
    Steps(document);
  }

  std::vector<DeviceRow> Make() {
    std::vector<DeviceRow> rows;
    rows.reserve(trace_.device.size());
    for (uint32_t lane = 0; lane < trace_.streams.size(); ++lane) {
      for (const SliceId s : trace_.streams[lane].slices) {
        const uint32_t at = Row(s);
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
             .step = of_.step[at],
             .call = of_.call[at],
             .slice = s});
      }
    }
    return rows;
  }

 private:
  uint32_t Row(SliceId s) const { return trace_.slices.detail[s.value]; }

  // `row_of` by row of device arguments; `rows` are those of the table.
  static void FromTable(const std::vector<uint32_t>& row_of, size_t rows,
                        std::vector<uint32_t>& out) {
    for (size_t at = 0; at < out.size(); ++at)
      out[at] = row_of[at] < rows ? row_of[at] + 1 : 0;
  }

  void Kernels(const Document& document) {
    if (document.result.Find("kernels") == nullptr) return;
    const auto groups = analysis::KernelGroups::Build(context_);
    FromTable(groups.row_of, groups.rows.size(), of_.kernel);
  }

  void Steps(const Document& document) {
    if (document.result.Find("steps") == nullptr) return;
    const auto steps = analysis::StepRows::Build(context_);
    FromTable(steps.RowOf(context_), steps.rows.size(), of_.step);
  }

  void Ops(const Document& document) {
    if (document.result.Find("op_efficiency") == nullptr) return;
    const RowsByUid rows(document, "op_efficiency");
    // The table was made of it.
    const auto efficiency = context_.Get<analysis::Efficiency>();
    LAMINA_CHECK(efficiency);
    const analysis::CostView& view = *(*efficiency)->costs;
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
};

}  // namespace

std::vector<DeviceRow> DeviceRows(const Context& context,
                                  const analysis::layers::LayerModel& layers,
                                  const Document& document) {
  return DeviceMembers(context, layers, document).Make();
}

}  // namespace lamina::page
