// SPDX-License-Identifier: Apache-2.0
//
// Longer than most: what a page holds is decided here, in one order, each part
// by what those before it have left.
#include "page/page.h"

#include <algorithm>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <optional>
#include <set>

#include "analysis/common/cost_view.h"
#include "analysis/host/tables.h"
#include "analysis/layers/variants.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/writer.h"
#include "compare/cudagraph/attribution.h"
#include "page/events.h"
#include "page/where.h"
#include "render/html/page.h"

namespace lamina::page {
namespace {

// A table with a row per call says less than the timeline and the ops, and
// costs more than all events.
constexpr size_t kMostLauncherRows = 20000;

// Gaps of the devices whose causes a page tells.
constexpr size_t kMostGaps = 300;

constexpr uint64_t kKindsOfThinRows = 3;  // single, merged, buckets

// The peaks of the device as a JSON object, for the roofs of the drawing.
Result<std::string> DeviceJson(engine::Session& session, const Table* ops) {
  LAMINA_ASSIGN(const cost::Device* const device, session.input().Device());
  if (!device) return std::string("null");
  std::set<std::string> specs;
  for (size_t row = 0; ops != nullptr && row < ops->rows(); ++row) {
    std::string spec(ops->At(row, "compute_spec").text());
    if (spec.ends_with('?')) spec.pop_back();
    specs.insert(std::move(spec));
  }
  std::string out;
  json::Writer w(out);
  w.Object();
  w.Text("title", device->title);
  w.Text("source", device->source);
  w.Raw("bytes_per_s", FormatDouble(device->bytes_per_s));
  w.Object("peaks");
  for (const std::string& spec : specs) {
    if (const auto peak = device->Peak(spec)) w.Raw(spec, FormatDouble(*peak));
  }
  w.Close();
  w.Close();
  return out;
}

// The rows of a trace with more device events than a page may have.
std::optional<ThinRows> ThinOut(const trace::Trace& trace,
                                const std::vector<DeviceRow>& rows,
                                const Document& document,
                                const PageOptions& options) {
  if (rows.size() <= options.max_events) return std::nullopt;
  std::set<uint32_t> evidence;
  for (const Note& note : document.result.notes) {
    for (const Evidence& proof : note.evidence)
      evidence.insert(proof.events.begin(), proof.events.end());
  }
  std::vector<uint32_t> names;
  std::vector<bool> found;
  names.reserve(rows.size());
  found.reserve(rows.size());
  for (const DeviceRow& row : rows) {
    names.push_back(trace.slices.name[row.slice.value].value);
    found.push_back(evidence.contains(trace.Uid(row.slice)));
  }
  // Half of the page is for the host and the tables.
  const size_t fit =
      options.max_bytes / 2 / (kKindsOfThinRows * kDeviceEventBytes);
  return Thin(rows, names, found, std::min(options.max_events, fit));
}

// What a page with these device events holds of the host; those above them
// alone where it has not all device events.
HostChoice ChooseHost(const analysis::Context& context,
                      const std::vector<DeviceRow>& rows, const ThinRows* thin,
                      uint64_t max_bytes, uint64_t& host_events) {
  std::vector<trace::SliceId> devices;
  size_t shown = rows.size();
  HostChoice host;
  if (thin != nullptr) {
    for (const uint32_t row : thin->singles) devices.push_back(rows[row].slice);
    host.mask = HostAbove(context, devices);
    shown = thin->singles.size() + thin->merged.size() + thin->buckets.size();
  } else {
    for (const DeviceRow& row : rows) devices.push_back(row.slice);
  }
  HostCounts counts;
  CountHost(context.trace, host.mask, counts);
  host_events = counts.total();
  host.detail = ChooseDetail(counts, shown, max_bytes);
  if (host.detail != HostDetail::kAll) return host;
  host.stacks = FindStacks(context, devices);
  if (!FitsPage(shown, host_events, host.stacks.EstimatedBytes(devices.size()),
                max_bytes)) {
    host.stacks = {};
    host.detail = HostDetail::kNoStacks;
    return host;
  }
  if (thin == nullptr) {
    const uint64_t used = shown * kDeviceEventBytes +
                          host_events * kHostEventBytes +
                          host.stacks.EstimatedBytes(devices.size());
    host.python_ns = ChoosePython(context.trace, used, max_bytes);
  }
  return host;
}

// What the page says about it.
std::string LeftOutText(const HostChoice& host, bool thin) {
  std::string text;
  if (host.python_ns > 0 && host.python_ns < kNoPython)
    return "Python functions shorter than " + HumanTime(host.python_ns);
  if (thin) {
    text =
        "most device events, and host events that launched none of the "
        "others";
  }
  const std::string_view more = WhatIsLeftOut(host.detail);
  if (thin && !more.empty()) text += "; ";
  return text.append(more);
}

Note ThinNote(size_t shown, size_t all, const ThinRows& thin, bool served) {
  std::vector<std::string_view> by{"time", "length", "frame"};
  by.insert(by.end(), thin.dropped.begin(), thin.dropped.end());
  const std::string held = fmt::format(
      "This page holds {} of {} device events: the slowest of each kernel "
      "name and those around findings, with what stands above them on the "
      "host. ",
      GroupDigits(static_cast<int64_t>(shown)),
      GroupDigits(static_cast<int64_t>(all)));
  std::string text =
      held +
      (served ? std::string("Sums count all of them. The timeline and filters "
                            "ask lamina serve for the others; drawings of "
                            "single events show those of the page alone. "
                            "--page-events changes how many that are.")
              : fmt::format("Sums and the columns of the timeline count all of "
                            "them; filters by {} or event see the single "
                            "events alone. --html-max-events changes that.",
                            fmt::join(by, ", ")));
  return MakeNote(Severity::kWarning, "page_thinned", std::move(text),
                  {{"trace_health", "", "", {}}});
}

Result<LiveTrace> MakeLive(const analysis::Context& context,
                           const std::vector<DeviceRow>& rows, int threads) {
  LiveTrace live;
  live.context = &context;
  std::vector<uint8_t> group_of;
  for (const rules::Family& family : context.catalog.families()) {
    auto at = std::find(live.groups.begin(), live.groups.end(), family.group);
    if (at == live.groups.end())
      at = live.groups.insert(at, std::string(family.group));
    group_of.push_back(static_cast<uint8_t>(at - live.groups.begin()));
  }
  LAMINA_ASSIGN(
      live.events,
      LiveEvents::Make(rows, context.trace.streams.size(), std::move(group_of),
                       live.groups.size(), threads));
  return live;
}

// What each command gives: layers its tables, slice what --where knows.
std::vector<render::PageCommand> Commands(
    std::vector<render::PageCommand> commands, const trace::Trace& trace,
    const ResultSet& report, const ResultSet& layers, const Table& variants) {
  std::erase_if(commands, [&](const render::PageCommand& command) {
    return command.name == "slice" && trace.info.format != "kineto";
  });
  for (render::PageCommand& command : commands) {
    if (command.name == "report") command.tables = render::TableNames(report);
    if (command.name == "layers") command.tables = render::TableNames(layers);
    if (command.name == "layers --variants") command.tables = {variants.name()};
    if (command.name != "slice") continue;
    for (const WhereField& field : WhereFields())
      command.where.emplace_back(field.name);
  }
  return commands;
}

// The session keeps its own for the next page.
Table CopyOf(const Table& table) {
  Table copy(table.schema());
  std::vector<Value> row(table.columns());
  for (size_t r = 0; r < table.rows(); ++r) {
    for (size_t c = 0; c < row.size(); ++c) row[c] = table.At(r, c);
    copy.AddRow(row);
  }
  return copy;
}

}  // namespace

void KeepEventTables(Document& document) {
  static constexpr std::string_view kRead[] = {
      "kernels", "op_efficiency", "modules", "layers", "passes", "steps"};
  std::erase_if(document.result.tables, [](const Table& table) {
    return std::ranges::find(kRead, table.name()) == std::end(kRead);
  });
}

Status WritePage(engine::Session& session, Document& document,
                 const PageOptions& options) {
  LAMINA_ASSIGN(const analysis::Context* const context,
                session.ContextFor(options.link, options.python_stacks,
                                   options.settings));
  LAMINA_ASSIGN(const auto* const known,
                context->Get<analysis::layers::LayerRules>());
  const analysis::layers::Rules& rules = *known->rules;
  const analysis::layers::LayerModel layers =
      analysis::layers::FindLayers(*context, rules, options.layers);
  LAMINA_ASSIGN(ResultSet tables, analysis::layers::LayerTables(
                                      *context, rules, layers, options.layers));
  analysis::layers::VariantKernels variants =
      analysis::layers::FindVariantKernels(
          {*context, rules, layers, options.layers});
  std::vector<render::PageCommand> commands =
      Commands(options.commands, session.trace(), document.result, tables,
               variants.table);
  document.result.Append(std::move(tables));
  if (document.result.Find(variants.table.name()) == nullptr)
    document.result.tables.push_back(std::move(variants.table));

  const Table* launchers = document.result.Find("launchers");
  const bool without_launchers =
      launchers != nullptr && launchers->rows() > kMostLauncherRows;
  if (without_launchers) {
    std::erase_if(document.result.tables, [](const Table& table) {
      return table.name() == "launchers";
    });
  }

  LAMINA_ASSIGN(const auto* const host_model,
                context->Get<analysis::host::HostModel>());
  LAMINA_ASSIGN(const auto* const idle, context->Get<analysis::host::Idle>());
  analysis::host::TableOptions gaps;
  gaps.top = kMostGaps;
  document.result.tables.push_back(
      analysis::host::IdleGapsTable(*host_model, *idle, gaps));
  const trace::Trace& trace = session.trace();
  std::vector<DeviceRow> rows = DeviceRows(*context, layers, document);
  LAMINA_ASSIGN(const auto graphs, session.GraphAttribution(*context));
  if (graphs != nullptr)
    document.result.tables.push_back(CopyOf(graphs->table));
  FamilyRuleRows families = FindFamilyRules(*context);
  document.result.tables.push_back(std::move(families.table));
  for (DeviceRow& row : rows) {
    const uint32_t at = trace.slices.detail[row.slice.value];
    row.place = variants.row_of[at];
    row.rule = families.row_of[at];
    if (graphs != nullptr) row.graph = graphs->row_of[at];
  }
  LiveTrace live;
  if (options.live) {
    LAMINA_ASSIGN(live, MakeLive(*context, rows, options.threads));
  }
  const auto thin = ThinOut(trace, rows, document, options);
  if (thin) {
    document.result.notes.push_back(ThinNote(thin->singles.size(), rows.size(),
                                             *thin, options.live != nullptr));
  }
  uint64_t host_events = 0;
  const HostChoice host = ChooseHost(*context, rows, thin ? &*thin : nullptr,
                                     options.max_bytes, host_events);
  if (host.detail != HostDetail::kAll) {
    document.result.notes.push_back(
        LeftOutNote(host.detail, options.max_bytes));
    document.result.notes.back().evidence.push_back(
        {"trace_health", "", "", {}});
  }
  render::Page page(document);
  page.commands = std::move(commands);
  page.redact = options.redact;
  LAMINA_ASSIGN(std::string device,
                DeviceJson(session, document.result.Find("op_efficiency")));
  page.facts.emplace_back("device", std::move(device));
  page.facts.emplace_back(
      "trace",
      fmt::format("{{\"format\":{},\"events\":{},\"bytes\":{},\"host_events\":"
                  "{},\"left_out\":{},\"no_launchers\":{},"
                  "\"short_kernel_ns\":{}}}",
                  JsonQuote(trace.info.format), trace.info.events,
                  trace.info.file_bytes, host_events,
                  JsonQuote(LeftOutText(host, thin.has_value())),
                  without_launchers, options.settings.short_kernel_ns));
  if (!options.answer.empty()) {
    page.facts.emplace_back("answer", options.answer);
    page.facts.emplace_back("answer_lanes", options.answer_lanes);
    for (const render::Block& block : options.answer_blocks)
      page.blocks.push_back(block);
  }
  AddEvents(*context, rows, thin ? &*thin : nullptr, host, page);
  LAMINA_TRY(render::WritePageFile(page, options.output, options.threads));
  if (options.live) options.live(std::move(live));
  return {};
}

}  // namespace lamina::page
