// SPDX-License-Identifier: Apache-2.0
//
// Pictures of a job of many ranks as SVG: where and when time was lost, who is
// to blame, and what the links carry.
#pragma once

#include <string>
#include <vector>

namespace lamina::render {

// Rows by columns; a value below 0 is none. Dark is much.
struct HeatMap {
  std::string title;
  std::string footnote;
  std::string row_title;     // "rank"
  std::string column_title;  // "step"
  std::vector<std::string> rows;
  std::vector<std::string> columns;
  std::vector<double> values;      // row by row, of 0..limit
  std::vector<std::string> texts;  // shown when a cell is pointed at
  double limit = 1;                // at full colour
  std::string low, high;           // ends of the scale
};
std::string DrawHeatMap(const HeatMap& map);

// Bars from parts of several kinds.
struct BarPart {
  size_t kind = 0;
  double value = 0;
  std::string text;  // shown when it is pointed at
};
struct Bar {
  std::string label;
  std::string value;  // beside the bar
  std::vector<BarPart> parts;
};
struct BarChart {
  std::string title;
  std::string footnote;
  std::vector<std::string> kinds;
  std::vector<Bar> bars;
};
std::string DrawBars(const BarChart& chart);

// Rates by size, both logarithmic, with curves of what is expected.
struct RatePoint {
  size_t series = 0;
  double bytes = 0;
  double bytes_per_s = 0;
  std::string text;
};
struct RateCurve {
  size_t series = 0;
  double latency_s = 0;
  double bytes_per_s = 0;  // of long messages
};
struct RatePlot {
  std::string title;
  std::string footnote;
  std::vector<std::string> series;
  std::vector<RatePoint> points;
  std::vector<RateCurve> curves;
};
std::string DrawRates(const RatePlot& plot);

}  // namespace lamina::render
