// SPDX-License-Identifier: Apache-2.0
#include "render/ranks/sheet.h"

#include "base/escape.h"

namespace lamina::render {

Sheet::Sheet(double width, double height, std::string_view title,
             std::string_view footnote) {
  Put("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" "
      "width=\"{0:g}\" height=\"{1:g}\" font-family=\"sans-serif\" "
      "font-size=\"12\" role=\"img\">",
      width, height);
  Put("<title>{}</title>", EscapeXml(title));
  out_ +=
      "<style>\n"
      ".ground{fill:#ffffff}.ink{fill:#1c202a}.soft{fill:#5b616e}\n"
      ".grid{stroke:#e3e5ea;fill:none}.none{fill:#f2f3f5}.heat{fill:#b3261e}\n"
      ".c0{fill:#d1495b;stroke:#d1495b}.c1{fill:#2e6fb7;stroke:#2e6fb7}\n"
      ".c2{fill:#8a6fc0;stroke:#8a6fc0}.c3{fill:#2f8f6b;stroke:#2f8f6b}\n"
      ".c4{fill:#c98a1b;stroke:#c98a1b}.c5{fill:#6b7280;stroke:#6b7280}\n"
      ".curve{fill:none;stroke-width:1.5;stroke-dasharray:5 4}\n"
      "@media (prefers-color-scheme:dark){\n"
      ".ground{fill:#14161b}.ink{fill:#e8eaf0}.soft{fill:#a0a6b4}\n"
      ".grid{stroke:#2b2f38}.none{fill:#1d2027}.heat{fill:#ff8a7a}\n"
      ".c0{fill:#f08a97;stroke:#f08a97}.c1{fill:#7db4ee;stroke:#7db4ee}\n"
      ".c2{fill:#bda8ea;stroke:#bda8ea}.c3{fill:#74cfa9;stroke:#74cfa9}\n"
      ".c4{fill:#eec069;stroke:#eec069}.c5{fill:#a9afbb;stroke:#a9afbb}\n"
      "}\n</style>\n";
  Put("<rect class=\"ground\" width=\"{:g}\" height=\"{:g}\"/>", width, height);
  Put("<text class=\"ink\" x=\"24\" y=\"28\" font-size=\"16\" "
      "font-weight=\"600\">{}</text>",
      EscapeXml(title));
  Text(24, height - 12, footnote, "start", "soft", 11);
}

void Sheet::Text(double x, double y, std::string_view text,
                 std::string_view anchor, std::string_view style, double size) {
  if (text.empty()) return;
  Put("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" "
      "font-size=\"{:g}\">{}</text>",
      style, x, y, anchor, size, EscapeXml(text));
}

void Sheet::Legend(double x, double y, size_t colour, std::string_view text) {
  Put("<rect class=\"c{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"11\" "
      "height=\"11\"/>",
      colour % kColours, x, y - 10);
  Text(x + 17, y, text);
}

std::string Sheet::Take() { return std::move(out_) + "</svg>\n"; }

}  // namespace lamina::render
