// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/escape.h"
#include "render/ranks/charts.h"
#include "render/ranks/sheet.h"

namespace lamina::render {
namespace {

constexpr double kMapLeft = 90;
constexpr double kMapTop = 64;
constexpr double kMapRight = 24;
constexpr double kMapBottom = 84;
constexpr double kMapAcross = 846;  // room for cells

}  // namespace

std::string DrawHeatMap(const HeatMap& map) {
  const size_t rows = std::max<size_t>(map.rows.size(), 1);
  const size_t columns = std::max<size_t>(map.columns.size(), 1);
  const double width =
      std::min(kMapAcross / static_cast<double>(columns), 60.0);
  const double height =
      std::clamp(560.0 / static_cast<double>(rows), 3.0, 24.0);
  const double bottom = kMapTop + height * static_cast<double>(rows);
  Sheet sheet(kMapLeft + kMapAcross + kMapRight, bottom + kMapBottom, map.title,
              map.footnote);
  // As many names as there is room for.
  const auto row_step = static_cast<size_t>(std::max(1.0, 14.0 / height));
  const auto column_step = static_cast<size_t>(std::max(1.0, 34.0 / width));
  for (size_t r = 0; r < map.rows.size(); r += row_step) {
    sheet.Text(kMapLeft - 8,
               kMapTop + height * (static_cast<double>(r) + 0.5) + 4,
               map.rows[r], "end", "soft", 11);
  }
  for (size_t c = 0; c < map.columns.size(); c += column_step) {
    sheet.Text(kMapLeft + width * (static_cast<double>(c) + 0.5), bottom + 16,
               map.columns[c], "middle", "soft", 11);
  }
  sheet.Text(kMapLeft - 8, kMapTop - 10, map.row_title, "end");
  sheet.Text(kMapLeft, bottom + 34, map.column_title);
  const double gap = std::min({1.0, width / 10, height / 10});
  for (size_t i = 0; i < map.values.size(); ++i) {
    const double value = map.values[i];
    const size_t row = i / columns;
    const auto r = static_cast<double>(row);
    const auto c = static_cast<double>(i % columns);
    const bool none = value < 0;
    const double share =
        map.limit > 0 ? std::clamp(value / map.limit, 0.0, 1.0) : 0;
    sheet.Put(
        "<rect class=\"{}\" fill-opacity=\"{:.3f}\" x=\"{:.1f}\" "
        "y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>{}</title>"
        "</rect>",
        none ? "none" : "heat", none ? 1.0 : 0.04 + 0.96 * share,
        kMapLeft + c * width, kMapTop + r * height, width - gap, height - gap,
        EscapeXml(i < map.texts.size() ? map.texts[i] : ""));
  }
  // The scale.
  const double x = kMapLeft + kMapAcross - 220;
  for (int i = 0; i < 10; ++i) {
    sheet.Put(
        "<rect class=\"heat\" fill-opacity=\"{:.3f}\" x=\"{:.1f}\" "
        "y=\"{:.1f}\" width=\"12\" height=\"10\"/>",
        0.04 + 0.96 * i / 9.0, x + 50 + 12 * i, bottom + 25);
  }
  sheet.Text(x + 44, bottom + 34, map.low, "end", "soft", 11);
  sheet.Text(x + 176, bottom + 34, map.high, "start", "soft", 11);
  return sheet.Take();
}

}  // namespace lamina::render
