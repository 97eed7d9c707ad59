// SPDX-License-Identifier: Apache-2.0
//
// What the pictures of this folder share: a ground with a title, colours for a
// light and a dark one, text.
#pragma once

#include <fmt/core.h>
#include <string>
#include <string_view>
#include <utility>

namespace lamina::render {

class Sheet {
 public:
  static constexpr size_t kColours = 6;

  Sheet(double width, double height, std::string_view title,
        std::string_view footnote);

  template <class... Args>
  void Put(fmt::format_string<Args...> format, Args&&... args) {
    out_ += fmt::format(format, std::forward<Args>(args)...);
    out_ += '\n';
  }
  // `anchor`: start, middle or end. `style`: ink or soft.
  void Text(double x, double y, std::string_view text,
            std::string_view anchor = "start", std::string_view style = "ink",
            double size = 12);
  // A small square and a name.
  void Legend(double x, double y, size_t colour, std::string_view text);

  std::string Take();

 private:
  std::string out_;
};

}  // namespace lamina::render
