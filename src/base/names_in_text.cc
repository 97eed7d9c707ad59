// SPDX-License-Identifier: Apache-2.0
#include "base/names_in_text.h"

#include <algorithm>
#include <array>

namespace lamina {
namespace {

constexpr std::string_view kOpen = "\u27e8";
constexpr std::string_view kClose = "\u27e9";

// A text with names, of which `missing` counts those that are not there: they
// are called what they are called in the text.
struct Named {
  std::string text;
  int missing = 0;
};

Named PutNames(std::string_view text, const NamesOf& names) {
  Named out;
  while (true) {
    const size_t open = text.find(kOpen);
    const size_t close = text.find(kClose, open);
    if (open == std::string_view::npos || close == std::string_view::npos) {
      out.text += text;
      return out;
    }
    std::string_view name =
        text.substr(open + kOpen.size(), close - open - kOpen.size());
    out.text += text.substr(0, open);
    if (const auto called = names(name)) {
      out.text += *called;
    } else {
      ++out.missing;
      if (name.ends_with("()")) name.remove_suffix(2);
      out.text += name;
    }
    text.remove_prefix(close + kClose.size());
  }
}

// Without brackets that speak of what is missing.
std::string WithoutBrackets(std::string_view text, const NamesOf& names) {
  std::string out(text);
  for (size_t at = 0; (at = out.find(" (", at)) != std::string::npos;) {
    // The bracket that closes this one: "report()" has some as well.
    size_t end = at + 2;
    for (int depth = 1; end < out.size(); ++end) {
      depth += out[end] == '(' ? 1 : out[end] == ')' ? -1 : 0;
      if (depth == 0) break;
    }
    if (end >= out.size()) break;
    if (PutNames(std::string_view(out).substr(at, end - at), names).missing > 0)
      out.erase(at, end + 1 - at);
    else
      at = end;
  }
  return out;
}

size_t EndOfClause(std::string_view text, size_t from) {
  constexpr std::array<std::string_view, 3> kEnds = {"; ", "? ", ". "};
  size_t end = text.size();
  for (const std::string_view mark : kEnds)
    end = std::min(end, text.find(mark, from));
  return end;
}

// Empty: every clause speaks of what is missing.
std::string KnownClauses(std::string_view text, const NamesOf& names) {
  const std::string whole = WithoutBrackets(text, names);
  std::string out;
  char before = 0;  // what ended the clause in front
  for (size_t at = 0; at < whole.size();) {
    const size_t end = EndOfClause(whole, at);
    const Named clause =
        PutNames(std::string_view(whole).substr(at, end - at), names);
    if (clause.missing == 0) {
      if (!out.empty()) out += before == ';' ? "; " : " ";
      out += clause.text;
      if (end < whole.size() && whole[end] != ';') out += whole[end];
      before = end < whole.size() ? whole[end] : '\0';
    }
    at = end + 2;
  }
  if (out.empty()) return out;
  if (text.ends_with('.') && !out.ends_with('.') && !out.ends_with('?'))
    out += '.';
  return out;
}

}  // namespace

std::string WithNames(std::string_view text, const NamesOf& names) {
  if (text.find(kOpen) == std::string_view::npos) return std::string(text);
  std::string out = KnownClauses(text, names);
  return out.empty() ? PutNames(text, names).text : out;
}

Error WithNames(Error error, const NamesOf& names) {
  error.what = PutNames(error.what, names).text;
  // A hint that helps nobody who asks is none.
  if (error.hint.find(kOpen) != std::string::npos)
    error.hint = KnownClauses(error.hint, names);
  return error;
}

std::optional<std::string> OptionNames(std::string_view name) {
  if (name == "lamina") return "lamina";
  std::string out(name);
  if (name.ends_with("()")) {
    out.resize(out.size() - 2);
    // "graph_log_diff" is "graph log-diff".
    const size_t group = out.starts_with("graph_") ? 6 : 0;
    std::replace(out.begin() + static_cast<ptrdiff_t>(group), out.end(), '_',
                 '-');
    if (group > 0) out[group - 1] = ' ';
    return "lamina " + out;
  }
  std::replace(out.begin(), out.end(), '_', '-');
  return "--" + out;
}

std::optional<std::string> PlainNames(std::string_view name) {
  if (name == "lamina") return std::nullopt;
  if (name.ends_with("()")) name.remove_suffix(2);
  return std::string(name);
}

}  // namespace lamina
