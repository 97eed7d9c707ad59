// SPDX-License-Identifier: Apache-2.0
#include "render/roofline/roofline.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "base/decades.h"
#include "base/decimal.h"
#include "base/escape.h"

namespace lamina::render {
namespace {

constexpr double kWidth = 960;
constexpr double kHeight = 600;
constexpr double kLeft = 80;
constexpr double kRight = 170;  // holds the legend
constexpr double kTop = 56;
constexpr double kBottom = 76;
constexpr size_t kLabels = 8;

// "1 T" for 1e12.
std::string Power(double exponent, std::string_view unit) {
  static constexpr const char* kPrefix[] = {"", "k", "M", "G", "T", "P", "E"};
  const int e = static_cast<int>(exponent);
  if (e < 0 || e > 20) return fmt::format("1e{} {}", e, unit);
  return fmt::format("{} {}{}",
                     e % 3 == 0   ? 1
                     : e % 3 == 1 ? 10
                                  : 100,
                     kPrefix[e / 3], unit);
}

class Drawing {
 public:
  explicit Drawing(const RooflinePlot& plot) : plot_(plot) {}

  std::string Run() {
    for (const RooflineMark& mark : plot_.marks) {
      if (mark.flops_per_byte > 0 && mark.flops_per_s > 0 && mark.time_ns > 0)
        marks_.push_back(&mark);
    }
    // Large marks first, so that small ones stay visible on top.
    std::stable_sort(
        marks_.begin(), marks_.end(),
        [](const auto* a, const auto* b) { return a->time_ns > b->time_ns; });
    Axes();
    Head();
    Grid();
    Roofs();
    Marks();
    Labels();
    Legend();
    out_ += "</svg>\n";
    return std::move(out_);
  }

 private:
  double X(double intensity) const {
    return kLeft + x_.Share(intensity) * (kWidth - kLeft - kRight);
  }
  double Y(double rate) const {
    return kHeight - kBottom - y_.Share(rate) * (kHeight - kTop - kBottom);
  }
  template <class... Args>
  void Put(fmt::format_string<Args...> format, Args&&... args) {
    out_ += fmt::format(format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  void Axes() {
    for (const RooflineMark* mark : marks_) {
      // Room for the mark and for its label.
      x_.Fit(mark->flops_per_byte);
      x_.Fit(mark->flops_per_byte * 3);
      y_.Fit(mark->flops_per_s);
    }
    for (const RooflineRoof& roof : plot_.roofs) {
      y_.Fit(roof.flops_per_s * 1.5);
      if (plot_.bytes_per_s > 0) x_.Fit(roof.flops_per_s / plot_.bytes_per_s);
    }
    if (plot_.bytes_per_s > 0 && x_.any)
      y_.Fit(plot_.bytes_per_s * std::pow(10.0, x_.low));
    x_.Fit(1);
    y_.Fit(1e12);
  }

  void Head() {
    Put("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" "
        "width=\"{}\" height=\"{}\" font-family=\"sans-serif\" "
        "font-size=\"12\" role=\"img\">",
        kWidth, kHeight, kWidth, kHeight);
    Put("<title>{}</title>", EscapeXml(plot_.title));
    out_ +=
        "<style>\n"
        ".ground{fill:#ffffff}.ink{fill:#1c202a}.soft{fill:#5b616e}\n"
        ".grid{stroke:#e3e5ea}.roof{stroke:#1c202a;fill:none}\n"
        ".mark{fill-opacity:.55;stroke-width:1.2}\n";
    for (size_t i = 0; i < plot_.styles.size(); ++i) {
      Put(".g{}{{fill:{};stroke:{}}}", i, EscapeXml(plot_.styles[i].light),
          EscapeXml(plot_.styles[i].light));
    }
    out_ +=
        "@media (prefers-color-scheme:dark){\n"
        ".ground{fill:#14161b}.ink{fill:#e8eaf0}.soft{fill:#a0a6b4}\n"
        ".grid{stroke:#2b2f38}.roof{stroke:#e8eaf0}\n";
    for (size_t i = 0; i < plot_.styles.size(); ++i) {
      Put(".g{}{{fill:{};stroke:{}}}", i, EscapeXml(plot_.styles[i].dark),
          EscapeXml(plot_.styles[i].dark));
    }
    out_ += "}\n</style>\n";
    Put("<rect class=\"ground\" width=\"{}\" height=\"{}\"/>", kWidth, kHeight);
    Put("<text class=\"ink\" x=\"{}\" y=\"26\" font-size=\"16\" "
        "font-weight=\"600\">{}</text>",
        kLeft, EscapeXml(plot_.title));
    Put("<text class=\"soft\" x=\"{}\" y=\"{}\" font-size=\"11\">{}</text>",
        kLeft, kHeight - 12, EscapeXml(plot_.footnote));
  }

  void Grid() {
    for (int e = x_.low; e <= x_.high; ++e) {
      const double x = X(std::pow(10.0, e));
      Put("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" "
          "y2=\"{2}\"/>",
          x, kTop, kHeight - kBottom);
      Put("<text class=\"soft\" x=\"{:.1f}\" y=\"{}\" "
          "text-anchor=\"middle\">{:g}</text>",
          x, kHeight - kBottom + 18, std::pow(10.0, e));
    }
    for (int e = y_.low; e <= y_.high; ++e) {
      const double y = Y(std::pow(10.0, e));
      Put("<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" "
          "y2=\"{2:.1f}\"/>",
          kLeft, kWidth - kRight, y);
      Put("<text class=\"soft\" x=\"{}\" y=\"{:.1f}\" "
          "text-anchor=\"end\">{}</text>",
          kLeft - 8, y + 4, Power(e, ""));
    }
    Put("<text class=\"ink\" x=\"{:.1f}\" y=\"{}\" "
        "text-anchor=\"middle\">FLOPs per byte</text>",
        (kLeft + kWidth - kRight) / 2, kHeight - kBottom + 38);
    Put("<text class=\"ink\" transform=\"translate(20 {:.1f}) rotate(-90)\" "
        "text-anchor=\"middle\">FLOP/s</text>",
        (kTop + kHeight - kBottom) / 2);
  }

  // One roof per spec: the slope of the memory up to its ridge, then flat.
  void Roofs() {
    const double left = std::pow(10.0, x_.low);
    const double right = std::pow(10.0, x_.high);
    double highest = 0;
    for (const RooflineRoof& roof : plot_.roofs)
      highest = std::max(highest, roof.flops_per_s);
    if (plot_.bytes_per_s > 0 && highest > 0) {
      const double ridge = std::clamp(highest / plot_.bytes_per_s, left, right);
      Put("<line class=\"roof\" stroke-width=\"2\" x1=\"{:.1f}\" "
          "y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>",
          X(left), Y(plot_.bytes_per_s * left), X(ridge),
          Y(plot_.bytes_per_s * ridge));
      const double middle = std::sqrt(left * ridge);
      Put("<text class=\"ink\" x=\"{:.1f}\" y=\"{:.1f}\" "
          "text-anchor=\"end\">{:.2f} TB/s</text>",
          X(middle) - 10, Y(plot_.bytes_per_s * middle) - 6,
          plot_.bytes_per_s / 1e12);
    }
    for (const RooflineRoof& roof : MergedRoofs()) {
      const double ridge =
          plot_.bytes_per_s > 0
              ? std::clamp(roof.flops_per_s / plot_.bytes_per_s, left, right)
              : left;
      Put("<line class=\"roof\" stroke-width=\"1.5\" x1=\"{:.1f}\" "
          "x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>",
          X(ridge), X(right), Y(roof.flops_per_s), Y(roof.flops_per_s));
      // At the far end: marks crowd at the ridge.
      Put("<text class=\"ink\" x=\"{:.1f}\" y=\"{:.1f}\" "
          "text-anchor=\"end\" font-size=\"11\">{} {:.4g} T</text>",
          X(right) - 4, Y(roof.flops_per_s) - 5, EscapeXml(roof.label),
          roof.flops_per_s / 1e12);
    }
  }

  // Roofs of one height are one line with all their names.
  std::vector<RooflineRoof> MergedRoofs() const {
    std::vector<RooflineRoof> merged;
    for (const RooflineRoof& roof : plot_.roofs) {
      const auto same = std::find_if(
          merged.begin(), merged.end(), [&](const RooflineRoof& other) {
            return other.flops_per_s == roof.flops_per_s;
          });
      if (same == merged.end()) {
        merged.push_back(roof);
      } else {
        same->label += ", " + roof.label;
      }
    }
    return merged;
  }

  size_t StyleOf(const std::string& group) const {
    for (size_t i = 0; i < plot_.styles.size(); ++i) {
      if (plot_.styles[i].group == group) return i;
    }
    return plot_.styles.empty() ? 0 : plot_.styles.size() - 1;
  }

  // Circle, square, diamond or triangle of the same area.
  void Shape(size_t style, double x, double y, double r,
             const std::string& title) {
    switch (style % 4) {
      case 0:
        Put("<circle class=\"mark g{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" "
            "r=\"{:.1f}\"><title>{}</title></circle>",
            style, x, y, r, title);
        return;
      case 1:
        Put("<rect class=\"mark g{}\" x=\"{:.1f}\" y=\"{:.1f}\" "
            "width=\"{:.1f}\" height=\"{:.1f}\"><title>{}</title></rect>",
            style, x - 0.886 * r, y - 0.886 * r, 1.772 * r, 1.772 * r, title);
        return;
      case 2: {
        const double d = 1.253 * r;
        Put("<path class=\"mark g{}\" d=\"M{:.1f} {:.1f}l{:.1f} {:.1f}l{:.1f} "
            "{:.1f}l{:.1f} {:.1f}z\"><title>{}</title></path>",
            style, x, y - d, d, d, -d, d, -d, -d, title);
        return;
      }
      default: {
        const double d = 1.347 * r;
        Put("<path class=\"mark g{}\" d=\"M{:.1f} {:.1f}l{:.1f} "
            "{:.1f}h{:.1f}z\"><title>{}</title></path>",
            style, x, y - 1.155 * d, d, 1.732 * d, -2 * d, title);
      }
    }
  }

  double Radius(const RooflineMark& mark) const {
    const auto most = static_cast<double>(marks_[0]->time_ns);
    return std::max(2.5,
                    22.0 * std::sqrt(static_cast<double>(mark.time_ns) / most));
  }

  void Marks() {
    for (const RooflineMark* mark : marks_) {
      Shape(StyleOf(mark->group), X(mark->flops_per_byte), Y(mark->flops_per_s),
            Radius(*mark),
            EscapeXml(fmt::format("{}: {}, {:.3g} FLOPs per byte, {:.3g} "
                                  "TFLOP/s",
                                  mark->label, HumanTime(mark->time_ns),
                                  mark->flops_per_byte,
                                  mark->flops_per_s / 1e12)));
    }
  }

  // Names of the largest, each once; a label that would lie on another moves
  // down.
  void Labels() {
    struct Box {
      double x, y, width;
    };
    std::vector<Box> taken;
    std::vector<std::string_view> named;
    for (const RooflineMark* next : marks_) {
      const RooflineMark& mark = *next;
      if (named.size() == kLabels) break;
      if (std::find(named.begin(), named.end(), mark.label) != named.end())
        continue;
      named.push_back(mark.label);
      std::string text = mark.label;
      if (text.size() > 34) text = text.substr(0, 31) + "...";
      Box box{X(mark.flops_per_byte) + Radius(mark) + 4,
              Y(mark.flops_per_s) + 4, 6.4 * static_cast<double>(text.size())};
      if (box.x + box.width > kWidth - kRight - 2)
        box.x = X(mark.flops_per_byte) - Radius(mark) - 4 - box.width;
      for (int tries = 0; tries < 40; ++tries) {
        const bool free =
            std::none_of(taken.begin(), taken.end(), [&](const Box& other) {
              return std::abs(other.y - box.y) < 13 &&
                     box.x < other.x + other.width &&
                     other.x < box.x + box.width;
            });
        if (free) break;
        box.y += 13;
      }
      taken.push_back(box);
      Put("<text class=\"ink\" x=\"{:.1f}\" y=\"{:.1f}\" "
          "font-size=\"11\">{}</text>",
          box.x, box.y, EscapeXml(text));
    }
  }

  void Legend() {
    double y = kTop + 6;
    const double x = kWidth - kRight + 24;
    for (size_t i = 0; i < plot_.styles.size(); ++i) {
      const bool used = std::any_of(
          marks_.begin(), marks_.end(),
          [&](const auto* mark) { return StyleOf(mark->group) == i; });
      if (!used) continue;
      Shape(i, x, y, 6, EscapeXml(plot_.styles[i].group));
      Put("<text class=\"ink\" x=\"{}\" y=\"{:.1f}\">{}</text>", x + 14, y + 4,
          EscapeXml(plot_.styles[i].group));
      y += 20;
    }
    Put("<text class=\"soft\" x=\"{}\" y=\"{:.1f}\" font-size=\"11\">area: "
        "time</text>",
        x - 6, y + 6);
  }

  const RooflinePlot& plot_;
  std::vector<const RooflineMark*> marks_;
  Decades x_;
  Decades y_;
  std::string out_;
};

}  // namespace

std::string DrawRoofline(const RooflinePlot& plot) {
  return Drawing(plot).Run();
}

}  // namespace lamina::render
