// SPDX-License-Identifier: Apache-2.0
#include "base/cpp_name.h"

#include <algorithm>
#include <vector>

namespace lamina {
namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWord(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         c == '_' || c == '$' || c == '~' || static_cast<signed char>(c) < 0;
}

// Reads a demangled name from left to right. Text that does not follow the
// form is copied, so nothing is lost but what is dropped on purpose.
class Demangled {
 public:
  explicit Demangled(std::string_view text) : rest_(text) {}

  // The name of a function; its parameters are dropped.
  std::string Function() {
    Skip("void ");
    std::string out = Name();
    if (rest_.starts_with('(')) Balanced();
    Arguments(out);
    return out;
  }

 private:
  bool Skip(std::string_view prefix) {
    if (!rest_.starts_with(prefix)) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }

  // Consumes up to the bracket that closes the one in front.
  std::string_view Balanced() {
    const std::string_view start = rest_;
    size_t depth = 0;
    size_t at = 0;
    for (; at < start.size(); ++at) {
      const char c = start[at];
      if (c == '(' || c == '{') ++depth;
      if ((c == ')' || c == '}') && --depth == 0) {
        ++at;
        break;
      }
    }
    rest_.remove_prefix(at);
    return start.substr(0, at);
  }

  std::string_view Word() {
    size_t size = 0;
    while (size < rest_.size() && IsWord(rest_[size])) ++size;
    const std::string_view word = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return word;
  }

  // a::b<T>::c: the last part, or the function around a lambda.
  std::string Name() {
    std::string name;
    bool fixed = false;  // the name is found: parts behind it are inside it
    while (true) {
      std::string part;
      bool named = false;
      if (Skip(kAnonymous)) {
      } else if (rest_.starts_with('{')) {
        part = Balanced();
      } else {
        const std::string_view word = Word();
        part = word;
        named = word != "operator";
        if (word == "operator") {
          while (!rest_.empty() && !rest_.starts_with('(')) {
            part += rest_.front();
            rest_.remove_prefix(1);
          }
          if (Skip("()")) part += "()";
        }
        if (named && rest_.starts_with('<')) TemplateArguments(part);
      }
      const bool inside = InsideAFunction();
      if (!fixed && (named || name.empty())) name = std::move(part);
      fixed |= inside;
      if (!Skip("::")) return name;
    }
  }

  // Whether parameters stand in front and something in the function follows
  // them; the parameters are consumed then.
  bool InsideAFunction() {
    if (!rest_.starts_with('(')) return false;
    const std::string_view before = rest_;
    Balanced();
    Skip(" const");
    if (rest_.starts_with("::")) return true;
    rest_ = before;
    return false;
  }

  void TemplateArguments(std::string& out) {
    if (depth_ >= kMaxDepth) return;
    ++depth_;
    rest_.remove_prefix(1);
    out += '<';
    Arguments(out);
    if (Skip(">")) {
      if (out.ends_with(' ')) out.pop_back();
      out += '>';
    }
    --depth_;
  }

  // Up to a '>' that nothing here opened, or the end.
  void Arguments(std::string& out) {
    while (!rest_.empty() && !(depth_ > 0 && rest_.starts_with('>'))) {
      if (IsWord(rest_.front()) || rest_.front() == '{' ||
          rest_.starts_with(kAnonymous)) {
        out += Name();
      } else {
        out += rest_.front();
        rest_.remove_prefix(1);
      }
    }
  }

  static constexpr int kMaxDepth = 100;
  std::string_view rest_;
  int depth_ = 0;
};

// Names in a mangled one: a length in decimal, then so many characters.
class Mangled {
 public:
  explicit Mangled(std::string_view text) : rest_(text) {}

  std::string Function() {
    std::string out;
    while (!rest_.empty() && IsDigit(rest_.front())) {
      const std::string_view name = Identifier();
      if (name.empty()) return {};
      if (!out.empty()) out += "::";
      out += name;
    }
    if (out.empty() || !rest_.starts_with('I')) return out;
    std::vector<std::string_view> seen;
    std::string arguments;
    while (!rest_.empty()) {
      if (IsDigit(rest_.front())) {
        const std::string_view name = Identifier();
        if (name.empty() ||
            std::find(seen.begin(), seen.end(), name) != seen.end())
          continue;
        if (seen.size() >= kMaxNames) break;
        seen.push_back(name);
        if (!arguments.empty()) arguments += ", ";
        arguments += name;
      } else {
        SkipOne();
      }
    }
    return out + "<" + arguments + ">";
  }

 private:
  // A name with its length in front; empty, behind the digits, when there is
  // none.
  std::string_view Identifier() {
    size_t size = 0;
    while (!rest_.empty() && IsDigit(rest_.front())) {
      size = std::min(size * 10 + static_cast<size_t>(rest_.front() - '0'),
                      rest_.size());
      rest_.remove_prefix(1);
    }
    const std::string_view name = rest_.substr(0, size);
    if (size == 0 || size > rest_.size() || IsDigit(name.front()) ||
        !std::all_of(name.begin(), name.end(), IsWord))
      return {};
    rest_.remove_prefix(size);
    return name;
  }

  // One code; digits that are no length (Li8E, S4_, T0_, DF16b) go with it.
  void SkipOne() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (c == 'L') {
      if (rest_.empty() || IsDigit(rest_.front())) return;
      rest_.remove_prefix(1);
    } else if (c == 'D' && rest_.starts_with('F')) {
      rest_.remove_prefix(1);
    } else if (c != 'S' && c != 'T') {
      return;
    }
    while (!rest_.empty() && IsDigit(rest_.front())) rest_.remove_prefix(1);
  }

  static constexpr size_t kMaxNames = 16;
  std::string_view rest_;
};

}  // namespace

std::string ShortCppName(std::string_view name) {
  // No cell holds more, and nested brackets take time by the square.
  constexpr size_t kMaxRead = 4096;
  name = name.substr(0, kMaxRead);
  std::string out;
  if (name.starts_with("_ZN")) {
    out = Mangled(name.substr(3)).Function();
  } else if (name.starts_with("void ") ||
             (name.find("::") != std::string_view::npos &&
              name.find_first_of("<(") != std::string_view::npos)) {
    out = Demangled(name).Function();
  }
  return out.empty() ? std::string(name) : out;
}

}  // namespace lamina
