// SPDX-License-Identifier: Apache-2.0
#include "engine/roofline.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/decimal.h"
#include "cost/device.h"
#include "render/roofline/roofline.h"

namespace lamina::engine {

Result<std::string> DrawRoofline(Session& session, const Table& ops) {
  LAMINA_ASSIGN(const auto device, session.input().Device());
  if (!device) {
    return Fail(
        UsageError("the trace does not say on which device it was "
                   "recorded, or lamina does not know it",
                   "give it with ⟨device⟩ (⟨lamina⟩ list devices)"));
  }
  render::RooflinePlot plot;
  plot.title = device->title;
  plot.bytes_per_s = device->bytes_per_s;
  LAMINA_ASSIGN(const auto files, session.data().Load("labels"));
  for (const auto& file : files) {
    const rules::Node* list = file->root.Find("palette");
    if (list == nullptr) continue;
    for (const rules::Node& item : list->items) {
      const std::string_view keys[] = {"group", "light", "dark"};
      LAMINA_ASSIGN(const auto members, rules::Members::Of(*file, item, keys));
      render::RooflineStyle style;
      LAMINA_ASSIGN(style.group, members.Text("group"));
      LAMINA_ASSIGN(style.light, members.Text("light"));
      LAMINA_ASSIGN(style.dark, members.Text("dark"));
      plot.styles.push_back(std::move(style));
    }
  }
  int64_t left_out_ns = 0;
  int64_t total_ns = 0;
  const auto& catalog = session.catalog();
  for (size_t row = 0; row < ops.rows(); ++row) {
    const int64_t time_ns = ops.At(row, "kernel_time_us").integer();
    total_ns += time_ns;
    const Value flops = ops.At(row, "flops_per_s");
    const Value intensity = ops.At(row, "flops_per_byte");
    if (flops.null() || intensity.null() || flops.real() <= 0 ||
        intensity.real() <= 0) {
      left_out_ns += time_ns;
      continue;
    }
    render::RooflineMark mark;
    mark.label = std::string(ops.At(row, "op").text());
    mark.group =
        catalog.family(catalog.FamilyIndex(ops.At(row, "family").text())).group;
    mark.flops_per_byte = intensity.real();
    mark.flops_per_s = flops.real();
    mark.time_ns = time_ns;
    plot.marks.push_back(std::move(mark));
    std::string spec(ops.At(row, "compute_spec").text());
    if (spec.ends_with('?')) spec.pop_back();
    const auto peak = device->Peak(spec);
    const bool drawn = std::any_of(
        plot.roofs.begin(), plot.roofs.end(),
        [&](const render::RooflineRoof& roof) { return roof.label == spec; });
    if (peak && !drawn) plot.roofs.push_back({spec, *peak});
  }
  plot.footnote = fmt::format(
      "Peaks: {}. Not drawn: {} of {} in ops without FLOPs or without a cost "
      "model.",
      device->source, HumanTime(left_out_ns), HumanTime(total_ns));
  return render::DrawRoofline(plot);
}

}  // namespace lamina::engine
