// SPDX-License-Identifier: Apache-2.0

#include "page/device.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <string>
#include <string_view>

#include "analysis/common/cost_view.h"
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

void DeviceColumns::Add(const Event& event) {
  start_.push_back(event.start_ns);
  dur_.push_back(event.dur_ns);
  family_.push_back(static_cast<int64_t>(event.family));
  uid_.push_back(event.uid);
  kernel_.push_back(event.kernel);
}

void DeviceColumns::Set(std::string_view column, int64_t value, bool is_delta) {
  auto it = std::find_if(further_.begin(), further_.end(),
                         [&](const auto& f) { return f.name == column; });
  if (it == further_.end())
    it = further_.insert(further_.end(), {column, is_delta, {}});
  it->values.resize(rows());
  it->values.back() = value;
}

void DeviceColumns::AddTo(render::Page& page) const {
  render::Block block("device", rows());
  block.Add("start", start_, true);
  block.Add("dur", dur_);
  block.Add("kernel", kernel_);
  block.Add("family", family_);
  block.Add("uid", uid_, true);
  for (const Further& further : further_) {
    // Without rows of its kind the page shows nothing of it.
    if (std::all_of(further.values.begin(), further.values.end(),
                    [](int64_t row) { return row == 0; }))
      continue;
    std::vector<int64_t> values = further.values;
    values.resize(rows());
    block.Add(std::string(further.name), values, further.is_delta);
  }
  page.blocks.push_back(std::move(block));
}

std::string_view LauncherName(const analysis::Context& context,
                              trace::SliceId slice) {
  tree::NodeId parent = context.tree.launch(slice);
  if (!parent.valid()) return {};
  const tree::NodeId op = context.tree.EnclosingOp(parent);
  return context.tree.name(op.valid() ? op : parent);
}

int64_t PageKernels::RowOf(const analysis::Context& context,
                           trace::SliceId slice, std::string_view trace_name) {
  return RowOf(trace_name, context.trace.Name(slice),
               LauncherName(context, slice),
               context.catalog.family(context.device.family(slice)).name,
               context.trace.Duration(slice));
}

int64_t PageKernels::RowOf(std::string_view trace_name, std::string_view kernel,
                           std::string_view op, std::string_view family,
                           int64_t dur_ns) {
  const auto [it, is_new] = ids_.try_emplace(
      std::tuple(std::string(trace_name), std::string(kernel), std::string(op)),
      rows_.size());
  if (is_new) {
    rows_.push_back({std::string(trace_name), std::string(kernel),
                     std::string(op), std::string(family)});
  }
  Row& row = rows_[it->second];
  ++row.count;
  row.time_ns += dur_ns;
  return static_cast<int64_t>(it->second) + 1;
}

Table PageKernels::Take() const {
  Schema schema{
      "kernels",
      "Kernels, copies and fills of which this page holds events.",
      {{"trace", ColumnType::kText, "Trace of the events."},
       {"kernel", ColumnType::kText, "Name."},
       {"op", ColumnType::kText,
        "Op that launched it; the call where there is none."},
       {"family", ColumnType::kText, "Family of the kernel."},
       {"count", ColumnType::kInt, "Events in this page."},
       {"kernel_time_us", ColumnType::kTime, "Sum of their durations."}}};
  const bool named = !rows_.empty() && !rows_.front().trace.empty();
  if (!named) schema.columns.erase(schema.columns.begin());
  Table table(std::move(schema));
  for (const Row& row : rows_) {
    std::vector<Value> cells{row.kernel, row.op, row.family, row.count,
                             row.time_ns};
    if (named) cells.insert(cells.begin(), Value(row.trace));
    table.AddRow(cells);
  }
  return table;
}

}  // namespace lamina::page
