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

// Bytes per event after compression, as measured on real traces; the choice
// of detail must not depend on how well this trace compresses, or a page
// could change its content with the version of zlib.
constexpr uint64_t kDeviceEventBytes = 8;
constexpr uint64_t kHostEventBytes = 6;
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

// How much of the host fits beside the device events.
HostDetail ChooseDetail(const trace::Trace& trace, uint64_t max_bytes,
                        uint64_t& host_events) {
  uint64_t calls = 0, ranges = 0;
  for (size_t i = 0; i < trace.slices.size(); ++i) {
    const auto kind = trace.slices.kind[i];
    calls += kind == trace::Kind::kOp || trace::IsApiCall(kind);
    ranges += kind == trace::Kind::kAnnotation;
  }
  host_events = calls + ranges;
  const uint64_t device = trace.device_slices().size();
  const auto fits = [&](uint64_t events) {
    return device * kDeviceEventBytes + events * kHostEventBytes <= max_bytes;
  };
  if (fits(calls + ranges)) return HostDetail::kAll;
  // An op and a call for each piece of device work.
  if (fits(ranges + 3 * device)) return HostDetail::kNoDeepCalls;
  if (fits(ranges + 2 * device)) return HostDetail::kWithDeviceWork;
  if (fits(ranges)) return HostDetail::kRanges;
  return HostDetail::kNone;
}

std::string_view WhatIsLeftOut(HostDetail detail) {
  switch (detail) {
    case HostDetail::kAll:
      return "";
    case HostDetail::kNoDeepCalls:
      return "host events without device work";
    case HostDetail::kWithDeviceWork:
      return "runtime calls and host ops without device work";
    case HostDetail::kRanges:
      return "host ops, runtime calls and modules";
    case HostDetail::kNone:
      return "all host events";
  }
  return "";
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
  const HostDetail detail = ChooseDetail(trace, options.max_bytes, host_events);
  if (detail != HostDetail::kAll) {
    Note note;
    note.severity = Severity::kWarning;
    note.id = "page_left_out";
    note.text = fmt::format(
        "This page leaves out {} to stay below {}; --html-max-mb changes "
        "that.",
        WhatIsLeftOut(detail),
        HumanBytes(static_cast<double>(options.max_bytes)));
    note.evidence.push_back({"trace_health", "", "", {}});
    document.result.notes.push_back(std::move(note));
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
