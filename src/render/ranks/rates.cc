// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/decades.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "render/ranks/charts.h"
#include "render/ranks/sheet.h"

namespace lamina::render {
namespace {

constexpr double kWidth = 960;
constexpr double kHeight = 560;
constexpr double kLeft = 90;
constexpr double kRight = 230;  // holds the legend
constexpr double kTop = 56;
constexpr double kBottom = 84;

// "1.00 kB" for 3.
std::string Unit(double exponent, std::string_view unit) {
  std::string text = HumanCount(std::pow(10.0, exponent));
  if (text.find(' ') == std::string::npos) text += ' ';
  return text + std::string(unit);
}

}  // namespace

std::string DrawRates(const RatePlot& plot) {
  Decades across, up;
  for (const RatePoint& p : plot.points) {
    across.Fit(p.bytes);
    up.Fit(p.bytes_per_s);
  }
  Sheet sheet(kWidth, kHeight, plot.title, plot.footnote);
  const auto x_of = [&](double bytes) {
    return kLeft + across.Share(bytes) * (kWidth - kLeft - kRight);
  };
  const auto y_of = [&](double rate) {
    return kHeight - kBottom - up.Share(rate) * (kHeight - kTop - kBottom);
  };
  for (int e = across.low; e <= across.high; ++e) {
    const double x = x_of(std::pow(10.0, e));
    sheet.Put(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:g}\" "
        "y2=\"{2:g}\"/>",
        x, kTop, kHeight - kBottom);
    sheet.Text(x, kHeight - kBottom + 18, Unit(e, "B"), "middle", "soft");
  }
  for (int e = up.low; e <= up.high; ++e) {
    const double y = y_of(std::pow(10.0, e));
    sheet.Put(
        "<line class=\"grid\" x1=\"{0:g}\" x2=\"{1:g}\" y1=\"{2:.1f}\" "
        "y2=\"{2:.1f}\"/>",
        kLeft, kWidth - kRight, y);
    sheet.Text(kLeft - 8, y + 4, Unit(e, "B/s"), "end", "soft");
  }
  sheet.Text((kLeft + kWidth - kRight) / 2, kHeight - kBottom + 40,
             "bytes that a link moves", "middle");
  for (const RateCurve& curve : plot.curves) {
    std::string path;
    constexpr int kSteps = 60;
    for (int i = 0; i <= kSteps; ++i) {
      const double bytes = std::pow(
          10.0, across.low + double(across.high - across.low) * i / kSteps);
      const double rate = bytes / (curve.latency_s + bytes / curve.bytes_per_s);
      if (rate < std::pow(10.0, up.low) || rate > std::pow(10.0, up.high))
        continue;
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L",
                          x_of(bytes), y_of(rate));
    }
    if (path.empty()) continue;
    sheet.Put(
        "<path class=\"curve c{}\" fill=\"none\" style=\"fill:none\" "
        "d=\"{}\"/>",
        curve.series % Sheet::kColours, path);
  }
  for (const RatePoint& p : plot.points) {
    if (!(p.bytes > 0) || !(p.bytes_per_s > 0)) continue;
    sheet.Put(
        "<circle class=\"c{}\" fill-opacity=\".6\" cx=\"{:.1f}\" "
        "cy=\"{:.1f}\" r=\"5\"><title>{}</title></circle>",
        p.series % Sheet::kColours, x_of(p.bytes), y_of(p.bytes_per_s),
        EscapeXml(p.text));
  }
  double y = kTop + 10;
  for (size_t s = 0; s < plot.series.size(); ++s) {
    sheet.Legend(kWidth - kRight + 20, y, s, plot.series[s]);
    y += 20;
  }
  if (!plot.curves.empty())
    sheet.Text(kWidth - kRight + 20, y + 4, "dashed: expected", "start", "soft",
               11);
  return sheet.Take();
}

}  // namespace lamina::render
