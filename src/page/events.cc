// SPDX-License-Identifier: Apache-2.0

#include "page/events.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/common/device_fold.h"
#include "base/escape.h"

namespace lamina::page {

namespace {

using analysis::Context;
using trace::Trace;
using tree::NodeId;

// Adds a column of `rows`.
template <typename Row, typename Get>
void AddColumn(render::Block& block, std::string name,
               const std::vector<Row>& rows, const Get& get,
               bool delta = false) {
  std::vector<int64_t> values;
  values.reserve(rows.size());
  for (const Row& row : rows) values.push_back(static_cast<int64_t>(get(row)));
  block.Add(std::move(name), values, delta);
}

// The columns that say what an event belongs to.
void AddMembership(render::Block& block, const std::vector<DeviceRow>& rows) {
  AddColumn(block, "kernel", rows, [](auto& row) { return row.kernel; });
  AddColumn(block, "family", rows, [](auto& row) { return row.family; });
  AddColumn(block, "op", rows, [](auto& row) { return row.op; });
  AddColumn(block, "module", rows, [](auto& row) { return row.module; });
  AddColumn(block, "layer", rows, [](auto& row) { return row.layer; });
  AddColumn(block, "pass", rows, [](auto& row) { return row.pass; });
  AddColumn(block, "step", rows, [](auto& row) { return row.step; });
}

render::Block DeviceBlock(const Context& context,
                          const std::vector<DeviceRow>& rows,
                          const std::vector<uint32_t>& host_row,
                          const CallStacks& stacks) {
  render::Block block("device", rows.size());
  AddColumn(
      block, "start", rows, [](auto& row) { return row.start_ns; }, true);
  AddColumn(block, "dur", rows, [](auto& row) { return row.dur_ns; });
  AddMembership(block, rows);
  const Trace& trace = context.trace;
  AddColumn(
      block, "uid", rows, [&](auto& row) { return trace.Uid(row.slice); },
      true);
  AddColumn(
      block, "launch", rows,
      [&](auto& row) {
        const NodeId call = context.tree.launch(row.slice);
        return call.valid() ? host_row[context.tree.slice(call).value] : 0;
      },
      true);
  AddColumn(
      block, "call", rows, [](auto& row) { return row.call; }, true);
  AddColumn(block, "place", rows, [](auto& row) { return row.place; });
  const bool replays = std::any_of(rows.begin(), rows.end(),
                                   [](auto& row) { return row.graph != 0; });
  if (replays)
    AddColumn(block, "graph", rows, [](auto& row) { return row.graph; });
  AddColumn(block, "rule", rows, [](auto& row) { return row.rule; });
  if (!stacks.empty()) {
    AddColumn(
        block, "stack", rows,
        [&](auto& row) {
          return stacks.of_device[trace.slices.detail[row.slice.value]];
        },
        true);
  }
  return block;
}

// What is left of the events that are no rows of their own.
void AddMerged(const ThinRows& thin, render::Page& page) {
  std::vector<DeviceRow> rows;
  for (const MergedRow& merged : thin.merged) rows.push_back(merged.of);
  render::Block block("merged", rows.size());
  AddColumn(block, "lane", rows, [](auto& row) { return row.lane; });
  AddColumn(block, "dur", rows, [](auto& row) { return row.dur_ns; });
  AddColumn(block, "events", thin.merged, [](auto& row) { return row.events; });
  AddMembership(block, rows);
  page.blocks.push_back(std::move(block));

  render::Block buckets("buckets", thin.buckets.size());
  const auto& of = thin.buckets;
  AddColumn(buckets, "lane", of, [](auto& row) { return row.lane; });
  AddColumn(
      buckets, "bucket", of, [](auto& row) { return row.bucket; }, true);
  AddColumn(buckets, "family", of, [](auto& row) { return row.family; });
  AddColumn(buckets, "busy", of, [](auto& row) { return row.busy_ns; });
  page.blocks.push_back(std::move(buckets));

  std::string dropped;
  for (const std::string_view name : thin.dropped)
    dropped += fmt::format("{}\"{}\"", dropped.empty() ? "" : ",", name);
  page.facts.emplace_back(
      "thinned",
      fmt::format("{{\"bucket_ns\":{},\"origin_ns\":{},"
                  "\"last_ns\":{},\"dropped\":[{}]}}",
                  thin.bucket_ns, thin.origin_ns, thin.last_ns, dropped));
}

}  // namespace

void AddEvents(const Context& context, const std::vector<DeviceRow>& rows,
               const ThinRows* thin, const HostChoice& choice,
               render::Page& page) {
  HostEvents host;
  const auto host_rows = host.Add(context, choice.detail, choice.mask, {},
                                  page.strings, choice.python_ns);
  std::vector<DeviceRow> singles;
  if (thin != nullptr) {
    for (const uint32_t row : thin->singles) singles.push_back(rows[row]);
    AddMerged(*thin, page);
  }
  const std::vector<DeviceRow>& shown = thin != nullptr ? singles : rows;
  std::vector<size_t> in_lane(context.trace.streams.size());
  for (const DeviceRow& row : shown) ++in_lane[row.lane];
  std::string lanes = "[";
  size_t first = 0;
  AppendLanes(context.trace, {}, in_lane, first, lanes);
  page.facts.emplace_back("lanes", lanes + "]");
  page.facts.emplace_back("families", FamiliesJson(context.catalog));
  page.blocks.push_back(DeviceBlock(context, shown, host_rows, choice.stacks));
  host.AddTo(page);
  AddFrames(context.trace, choice.stacks, page);
  AddAutograd(context, host_rows, page);
  AddCounters(context.trace, page);
}

namespace {

using analysis::FamilyBy;
using analysis::FamilyDecision;
using trace::SliceId;

Schema RuleSchema() {
  return {"family_rules",
          "What says the families of kernels, copies and fills; all rows add "
          "up to all device time.",
          {{"family", ColumnType::kText, "Family."},
           {"by", ColumnType::kText,
            "op (above the launch), kernel (its name), collective, copy (a "
            "copy or a fill), or none."},
           {"op", ColumnType::kText, "The op that decided."},
           {"source", ColumnType::kText,
            "registry (exact name of an op), generated (ops in the name of a "
            "Triton kernel), pattern, or list: neither."},
           {"rule", ColumnType::kText, "Id of the pattern."},
           {"match", ColumnType::kText, "The pattern."},
           {"place", ColumnType::kText, "File and line of the pattern."},
           {"kernels", ColumnType::kInt, "Device events."},
           {"kernel_time_us", ColumnType::kTime, "Sum of their durations."}}};
}

// What says the family of a name.
struct NameReason {
  std::string_view source;
  const rules::PatternRule* rule = nullptr;  // of a pattern
};

NameReason KernelReason(const rules::Catalog& catalog, std::string_view name) {
  if (!rules::GeneratedFamily(name).empty()) return {"generated"};
  const int rule = catalog.kernel_table().Find(name);
  if (rule == rules::PatternTable::kNone) return {"list"};
  return {"pattern", &catalog.kernel_table().rule(rule)};
}

// "aten::add_" is looked up as "aten::add", too.
NameReason OpReason(const rules::Catalog& catalog, std::string_view op) {
  const bool in_place = op.ends_with('_');
  if (catalog.Entry(op) != nullptr ||
      (in_place && catalog.Entry(op.substr(0, op.size() - 1)) != nullptr))
    return {"registry"};
  if (!rules::GeneratedFamily(op).empty()) return {"generated"};
  const int rule = catalog.op_table().Find(op);
  if (rule == rules::PatternTable::kNone ||
      catalog.op_table().rule(rule).value != catalog.OpFamily(op))
    return {"list"};
  return {"pattern", &catalog.op_table().rule(rule)};
}

std::string_view NameOf(FamilyBy by) {
  switch (by) {
    case FamilyBy::kCollective:
      return "collective";
    case FamilyBy::kOp:
      return "op";
    case FamilyBy::kName:
      return "kernel";
    case FamilyBy::kKind:
      return "copy";
    case FamilyBy::kNothing:
      break;
  }
  return "none";
}

class Finder {
 public:
  explicit Finder(const analysis::Context& context)
      : context_(context),
        trace_(context.trace),
        of_name_(trace_.strings.size()),
        fold_(trace_) {}

  FamilyRuleRows Run() {
    for (const SliceId s : trace_.device_slices())
      Add(context_.device.family_decision(s), s);
    Table table(RuleSchema());
    for (const auto& [info, kernels, ns] : fold_.rows()) {
      const rules::PatternRule* rule = info.reason.rule;
      table.Add(context_.catalog.family(info.family).name, NameOf(info.by),
                info.op, info.reason.source,
                rule != nullptr ? std::string_view(rule->id) : "",
                rule != nullptr ? std::string_view(rule->match) : "",
                rule != nullptr ? rule->file + ":" + std::to_string(rule->line)
                                : std::string(),
                kernels, ns);
    }
    return {std::move(table), fold_.TakeRowOf()};
  }

 private:
  struct Info {
    size_t family = 0;
    FamilyBy by = FamilyBy::kNothing;
    std::string op;
    NameReason reason;
  };

  void Add(const FamilyDecision& decision, SliceId s) {
    Info info{decision.family, decision.by, {}, {}};
    if (decision.by == FamilyBy::kOp) {
      const SliceId op = context_.tree.slice(decision.op);
      info.op = analysis::FamilyName(trace_, op);
      info.reason = ReasonOf(info.op);
    } else if (decision.by == FamilyBy::kName) {
      info.reason = ReasonOf(s);
    }
    const Key key(info.family, info.by, info.op, info.reason.source,
                  info.reason.rule);
    fold_.Add(s, key, std::move(info));
  }

  // Names are asked for once each.
  NameReason ReasonOf(const std::string& op) {
    const auto [it, is_new] = of_op_.try_emplace(op);
    if (is_new) it->second = OpReason(context_.catalog, op);
    return it->second;
  }
  NameReason ReasonOf(SliceId s) {
    NameReason& reason = of_name_[trace_.slices.name[s.value].value];
    if (reason.source.empty())
      reason = KernelReason(context_.catalog, trace_.Name(s));
    return reason;
  }

  using Key = std::tuple<size_t, FamilyBy, std::string, std::string_view,
                         const rules::PatternRule*>;

  const analysis::Context& context_;
  const trace::Trace& trace_;
  std::vector<NameReason> of_name_;  // by StringId
  std::map<std::string, NameReason, std::less<>> of_op_;
  analysis::DeviceFold<Key, Info> fold_;
};

}  // namespace

FamilyRuleRows FindFamilyRules(const analysis::Context& context) {
  return Finder(context).Run();
}

namespace {

using trace::Trace;

// A page draws this many series at most, the longest ones.
constexpr size_t kMostSeries = 64;

struct Point {
  int64_t time_ns;
  uint32_t uid;
  double value;
};

struct Series {
  std::string name;
  bool is_bytes = false;
  std::vector<Point> points;
};

std::string DeviceName(const trace::MemoryArgs& memory) {
  return memory.device_type == 0 ? std::string("host")
                                 : fmt::format("GPU {}", memory.device_id);
}

// Series in the order of their first sample.
std::vector<Series> Collect(const Trace& trace) {
  std::vector<Series> all;
  std::map<std::string, size_t> at;
  const auto add = [&](std::string name, bool is_bytes, const Point& point) {
    const auto [it, is_new] = at.try_emplace(name, all.size());
    if (is_new) all.push_back({std::move(name), is_bytes, {}});
    all[it->second].points.push_back(point);
  };
  for (uint32_t i = 0; i < trace.counters.size(); ++i) {
    const std::string_view name = trace.Text(trace.counters.name[i]);
    const std::string_view series = trace.Text(trace.counters.series[i]);
    const trace::Track& track = trace.tracks[trace.counters.track[i].value];
    std::string full(name);
    if (!series.empty() && series != "value" && series != name)
      full += fmt::format(" {}", series);
    full += fmt::format(" ({})", trace.Text(track.pid));
    add(std::move(full), false,
        {trace.counters.time_ns[i], trace.counters.uid[i],
         trace.counters.value[i]});
  }
  for (uint32_t i = 0; i < trace.instants.size(); ++i) {
    const uint32_t row = trace.instants.memory[i];
    if (row == trace::kNoRow) continue;
    const trace::MemoryArgs& memory = trace.memory[row];
    const auto sample = [&](std::string_view what, int64_t bytes) {
      if (bytes == trace::kNoInt) return;
      add(fmt::format("{} {}", what, DeviceName(memory)), true,
          {trace.instants.time_ns[i], trace.instants.uid[i],
           static_cast<double>(bytes)});
    };
    sample("Allocated", memory.total_allocated);
    sample("Reserved", memory.total_reserved);
  }
  return all;
}

// A sample that repeats the value before it changes no step line.
void KeepSteps(std::vector<Point>& points) {
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return std::pair(a.time_ns, a.uid) < std::pair(b.time_ns, b.uid);
  });
  std::vector<Point> kept;
  for (size_t i = 0; i < points.size(); ++i) {
    const bool is_last = i + 1 == points.size();
    if (!kept.empty() && !is_last && kept.back().value == points[i].value)
      continue;
    kept.push_back(points[i]);
  }
  points = std::move(kept);
}

}  // namespace

void AddCounters(const Trace& trace, render::Page& page) {
  std::vector<Series> all = Collect(trace);
  for (Series& series : all) KeepSteps(series.points);
  std::stable_sort(all.begin(), all.end(),
                   [](const Series& a, const Series& b) {
                     return a.points.size() > b.points.size();
                   });
  if (all.size() > kMostSeries) all.resize(kMostSeries);
  std::sort(all.begin(), all.end(),
            [](const Series& a, const Series& b) { return a.name < b.name; });
  if (all.empty()) return;
  std::vector<int64_t> time;
  std::vector<double> value;
  std::string json = "[";
  for (const Series& series : all) {
    if (json.size() > 1) json += ',';
    json += fmt::format("{{\"name\":{},\"bytes\":{},\"begin\":{},",
                        JsonQuote(Shorten(series.name, 200)), series.is_bytes,
                        time.size());
    for (const Point& point : series.points) {
      time.push_back(point.time_ns - trace.first_ns);
      value.push_back(point.value);
    }
    json += fmt::format("\"end\":{}}}", time.size());
  }
  page.facts.emplace_back("counters", json + "]");
  render::Block block("counters", time.size());
  block.Add("time", time, true);
  block.AddReals("value", value);
  page.blocks.push_back(std::move(block));
}

}  // namespace lamina::page
