// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/escape.h"
#include "render/ranks/charts.h"
#include "render/ranks/sheet.h"

namespace lamina::render {
namespace {

constexpr double kBarsLeft = 110;
constexpr double kBarsTop = 78;
constexpr double kBarsAcross = 640;
constexpr double kRow = 24;

}  // namespace

std::string DrawBars(const BarChart& chart) {
  const double bottom =
      kBarsTop + kRow * static_cast<double>(chart.bars.size());
  Sheet sheet(960, bottom + 48, chart.title, chart.footnote);
  double x = kBarsLeft;
  for (size_t k = 0; k < chart.kinds.size(); ++k) {
    sheet.Legend(x, 56, k, chart.kinds[k]);
    x += 40 + 7.0 * static_cast<double>(chart.kinds[k].size());
  }
  double most = 0;
  for (const Bar& bar : chart.bars) {
    double sum = 0;
    for (const BarPart& part : bar.parts) sum += part.value;
    most = std::max(most, sum);
  }
  double y = kBarsTop;
  for (const Bar& bar : chart.bars) {
    sheet.Text(kBarsLeft - 8, y + 15, bar.label, "end");
    double at = kBarsLeft;
    for (const BarPart& part : bar.parts) {
      const double length = most > 0 ? kBarsAcross * part.value / most : 0;
      sheet.Put(
          "<rect class=\"c{}\" stroke=\"none\" x=\"{:.1f}\" y=\"{:.1f}\" "
          "width=\"{:.1f}\" height=\"{:g}\"><title>{}</title></rect>",
          part.kind % Sheet::kColours, at, y + 2, std::max(length, 0.5),
          kRow - 6, EscapeXml(part.text));
      at += length;
    }
    sheet.Text(at + 8, y + 15, bar.value, "start", "soft");
    y += kRow;
  }
  return sheet.Take();
}

}  // namespace lamina::render
