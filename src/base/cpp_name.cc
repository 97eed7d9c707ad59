// SPDX-License-Identifier: Apache-2.0

#include "base/cpp_name.h"

#include <csetjmp>

#include "base/escape.h"
#include "base/text.h"

// Else libiberty declares a basename() other than that of <cstring>.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

namespace lamina {

namespace {

constexpr size_t kMaxMangled = 4096;
constexpr size_t kMaxText = size_t{64} << 10;

struct Text {
  std::string text;
  std::jmp_buf full;
};

// The demangler hands over its text in pieces and cannot be told to stop. It
// keeps what it allocates on the stack, so leaving it by a jump leaks nothing.
void Append(const char* piece, size_t size, void* opaque) {
  Text& out = *static_cast<Text*>(opaque);
  if (out.text.size() + size > kMaxText) std::longjmp(out.full, 1);
  out.text.append(piece, size);
}

// False when the text is too large. Nothing here has a destructor that the
// jump could skip.
bool Expand(const char* symbol, Text* out) {
  if (setjmp(out->full) != 0) return false;
  return cplus_demangle_v3_callback(symbol, DMGL_PARAMS | DMGL_TYPES, Append,
                                    out) != 0;
}

}  // namespace

std::string Demangle(std::string_view name) {
  if (!name.starts_with("_Z") || name.size() > kMaxMangled)
    return std::string(name);
  const std::string symbol(name.substr(0, name.find(".kd")));
  Text out;
  return Expand(symbol.c_str(), &out) ? out.text : std::string(name);
}

std::string ShortenInside(std::string_view text, size_t max_bytes,
                          size_t tail) {
  constexpr size_t kDots = 3;
  if (text.size() <= max_bytes || max_bytes < tail + kDots)
    return Shorten(text, max_bytes);
  size_t end = text.size() - tail;
  while (end < text.size() &&
         (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    ++end;
  return Shorten(text, max_bytes - tail - kDots) +
         std::string(text.substr(end));
}

std::string WithoutNumbers(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (!IsDigit(c)) out += c;
    if (IsDigit(c) && !out.ends_with('#')) out += '#';
  }
  return out;
}

namespace {

constexpr std::string_view kNoResult = "void ";
constexpr std::string_view kAnonymous = "(anonymous namespace)";

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
    Skip(kNoResult);
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

}  // namespace

std::string ShortCppName(std::string_view name) {
  // No cell holds more, and nested brackets take time by the square.
  constexpr size_t kMaxRead = 4096;
  name = name.substr(0, kMaxRead);
  const std::string source = Demangle(name);
  std::string out;
  if (source.starts_with(kNoResult) ||
      (source.find("::") != std::string::npos &&
       source.find_first_of("<(") != std::string::npos))
    out = Demangled(source).Function();
  return out.empty() ? std::string(name) : out;
}

std::string_view QualifiedCppName(std::string_view name) {
  if (name.starts_with(kNoResult)) name.remove_prefix(kNoResult.size());
  size_t end = name.find_first_of("(<", 1);
  while (end != std::string_view::npos &&
         name.substr(end).starts_with(kAnonymous))
    end = name.find_first_of("(<", end + kAnonymous.size());
  return name.substr(0, end);
}

}  // namespace lamina
