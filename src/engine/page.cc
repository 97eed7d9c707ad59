// SPDX-License-Identifier: Apache-2.0
#include "engine/page.h"

#include <algorithm>
#include <fmt/core.h>
#include <set>

#include "analysis/layers/layers.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "engine/page_events.h"
#include "render/html/page.h"

namespace lamina::engine {
namespace {

// A table with a row per call says less than the timeline and the ops, and
// costs more than all events.
constexpr size_t kMostLauncherRows = 20000;

// The peaks of the device as a JSON object, for the roofs of the drawing.
Result<std::string> DeviceJson(Session& session, const Table* ops) {
  LAMINA_ASSIGN(const auto device, session.FindDevice());
  if (!device) return std::string("null");
  std::string json = fmt::format(
      "{{\"title\":{},\"source\":{},\"bytes_per_s\":{},\"peaks\":{{",
      JsonQuote(device->title), JsonQuote(device->source),
      FormatDouble(device->bytes_per_s));
  std::set<std::string> specs;
  for (size_t row = 0; ops != nullptr && row < ops->rows(); ++row) {
    std::string spec(ops->At(row, "compute_spec").text());
    if (spec.ends_with('?')) spec.pop_back();
    specs.insert(std::move(spec));
  }
  bool first = true;
  for (const std::string& spec : specs) {
    const auto peak = device->Peak(spec);
    if (!peak) continue;
    json += fmt::format("{}{}:{}", first ? "" : ",", JsonQuote(spec),
                        FormatDouble(*peak));
    first = false;
  }
  return json + "}}";
}

}  // namespace

Status WritePage(Session& session, Document document,
                 const PageOptions& options) {
  LAMINA_ASSIGN(analysis::Context* const context,
                session.ContextFor(options.link, options.python_stacks,
                                   options.settings));
  LAMINA_ASSIGN(const auto rules, analysis::layers::LoadRules(session.data()));
  const analysis::layers::Options layer_options;
  const analysis::layers::LayerModel layers =
      analysis::layers::FindLayers(*context, *rules, layer_options);
  document.result.Append(
      analysis::layers::LayerTables(*context, *rules, layers, layer_options));

  const Table* launchers = document.result.Find("launchers");
  const bool without_launchers =
      launchers != nullptr && launchers->rows() > kMostLauncherRows;
  if (without_launchers) {
    std::erase_if(document.result.tables, [](const Table& table) {
      return table.name() == "launchers";
    });
  }

  const trace::Trace& trace = session.trace();
  uint64_t host_events = 0;
  const trace::Trace* const traces[] = {&trace};
  const HostDetail detail =
      ChooseDetail(traces, options.max_bytes, host_events);
  if (detail != HostDetail::kAll) {
    document.result.notes.push_back(LeftOutNote(detail, options.max_bytes));
    document.result.notes.back().evidence.push_back(
        {"trace_health", "", "", {}});
  }
  render::Page page(document);
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
                  JsonQuote(WhatIsLeftOut(detail)), without_launchers,
                  options.settings.short_kernel_ns));
  AddEvents(*context, layers, document, detail, page);
  LAMINA_ASSIGN(const auto sink, CreateFileSink(options.output));
  LAMINA_TRY(render::WritePage(page, *sink, options.threads));
  return sink->Close();
}

}  // namespace lamina::engine
