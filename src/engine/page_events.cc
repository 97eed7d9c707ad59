// SPDX-License-Identifier: Apache-2.0
#include "engine/page_events.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <fmt/core.h>
#include <tuple>

#include "base/escape.h"

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

// Modules are drawn apart from the ops of their thread.
enum class HostTrack : uint8_t { kRanges, kModules, kCalls };

class HostColumns {
 public:
  HostColumns(const Context& context, HostDetail detail)
      : context_(context), trace_(context.trace), detail_(detail) {
    row_of_.assign(trace_.slices.size(), 0);
    if (detail == HostDetail::kNone) return;
    for (uint32_t i = 0; i < trace_.slices.size(); ++i) {
      if (const auto track = Wanted(SliceId(i)))
        order_.emplace_back(*track, trace_.slices.track[i].value, i);
    }
    std::sort(order_.begin(), order_.end(), [&](const Item& a, const Item& b) {
      const SliceId x(std::get<2>(a));
      const SliceId y(std::get<2>(b));
      return std::tuple(std::get<1>(a), std::get<0>(a), trace_.Start(x),
                        -trace_.Duration(x), x.value) <
             std::tuple(std::get<1>(b), std::get<0>(b), trace_.Start(y),
                        -trace_.Duration(y), y.value);
    });
    for (uint32_t row = 0; row < order_.size(); ++row)
      row_of_[std::get<2>(order_[row])] = row + 1;
  }

  // Row + 1 by slice.
  const std::vector<uint32_t>& rows() const { return row_of_; }

  void AddTo(render::Page& page) const {
    std::vector<int64_t> start, dur, name, kind, uid;
    std::string tracks = "[";
    for (size_t i = 0; i < order_.size(); ++i) {
      const auto [track, thread, slice] = order_[i];
      const SliceId s(slice);
      if (i == 0 || std::get<0>(order_[i - 1]) != track ||
          std::get<1>(order_[i - 1]) != thread) {
        const trace::Track& info = trace_.tracks[thread];
        const char* names[] = {"ranges", "modules", "calls"};
        if (i > 0) tracks += fmt::format("\"end\":{}}},", i);
        tracks += fmt::format(
            "{{\"kind\":\"{}\",\"process\":{},\"thread\":{},\"name\":{},"
            "\"begin\":{},",
            names[static_cast<size_t>(track)], JsonQuote(trace_.Text(info.pid)),
            JsonQuote(trace_.Text(info.tid)),
            JsonQuote(info.thread_name.valid()
                          ? Shorten(trace_.Text(info.thread_name), 200)
                          : std::string()),
            i);
      }
      start.push_back(trace_.Start(s) - trace_.first_ns);
      dur.push_back(trace_.Duration(s));
      name.push_back(page.strings.Id(trace_.Name(s)));
      kind.push_back(static_cast<int64_t>(trace_.KindOf(s)));
      uid.push_back(trace_.Uid(s));
    }
    if (!order_.empty()) tracks += fmt::format("\"end\":{}}}", order_.size());
    page.facts.emplace_back("host_tracks", tracks + "]");
    render::Block block("host", order_.size());
    block.Add("start", start, true);
    block.Add("dur", dur);
    block.Add("name", name);
    block.Add("kind", kind);
    block.Add("uid", uid, true);
    page.blocks.push_back(std::move(block));
  }

 private:
  using Item = std::tuple<HostTrack, uint32_t, uint32_t>;

  std::optional<HostTrack> Wanted(SliceId s) const {
    switch (trace_.KindOf(s)) {
      case Kind::kAnnotation:
        return HostTrack::kRanges;
      case Kind::kPython:
        if (detail_ >= HostDetail::kRanges ||
            !trace_.Name(s).starts_with(tree::kModulePrefix))
          return std::nullopt;
        return HostTrack::kModules;
      case Kind::kOp:
      case Kind::kRuntime:
      case Kind::kDriver: {
        if (detail_ >= HostDetail::kRanges) return std::nullopt;
        const NodeId node = context_.tree.node(s);
        if (!node.valid()) return std::nullopt;
        if (detail_ == HostDetail::kWithDeviceWork &&
            (!context_.tree.HasDeviceWork(node) || !context_.tree.IsOp(node)))
          return std::nullopt;
        if (detail_ == HostDetail::kNoDeepCalls &&
            !context_.tree.HasDeviceWork(node))
          return std::nullopt;
        return HostTrack::kCalls;
      }
      default:
        return std::nullopt;
    }
  }

  const Context& context_;
  const Trace& trace_;
  HostDetail detail_;
  std::vector<Item> order_;
  std::vector<uint32_t> row_of_;
};

std::string Lanes(const Trace& trace) {
  std::string json = "[";
  size_t begin = 0;
  for (const trace::Stream& lane : trace.streams) {
    const auto number = [](int64_t value) {
      return value == trace::kNoInt ? std::string("null")
                                    : std::to_string(value);
    };
    if (json.size() > 1) json += ',';
    json += fmt::format(
        "{{\"process\":{},\"device\":{},\"stream\":{},\"begin\":{},"
        "\"end\":{}}}",
        JsonQuote(trace.Text(lane.pid)), number(lane.device),
        number(lane.stream), begin, begin + lane.slices.size());
    begin += lane.slices.size();
  }
  return json + "]";
}

std::string Families(const rules::Catalog& catalog) {
  std::string json = "[";
  for (const rules::Family& family : catalog.families()) {
    if (json.size() > 1) json += ',';
    json += fmt::format("{{\"name\":{},\"group\":{},\"title\":{}}}",
                        JsonQuote(family.name), JsonQuote(family.group),
                        JsonQuote(family.title));
  }
  return json + "]";
}

}  // namespace

void AddEvents(const Context& context,
               const analysis::layers::LayerModel& layers,
               const Document& document, HostDetail detail,
               render::Page& page) {
  const HostColumns host(context, detail);
  page.facts.emplace_back("lanes", Lanes(context.trace));
  page.facts.emplace_back("families", Families(context.catalog));
  const DeviceColumns device(context, layers, document);
  page.blocks.push_back(device.Make(host.rows()));
  host.AddTo(page);
}

}  // namespace lamina::engine
