// SPDX-License-Identifier: Apache-2.0

#include "graph/line_parser.h"

#include <algorithm>

#include "base/escape.h"
#include "graph/types.h"

namespace lamina::graph {

namespace {

bool IsDotted(std::string_view text) {
  return !text.empty() && IsNameStart(text[0]) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsNameByte(c) || c == '.'; });
}

}  // namespace

size_t SkipQuoted(std::string_view text, size_t pos) {
  const char quote = text[pos++];
  while (pos < text.size()) {
    if (text[pos] == '\\') {
      pos += 2;
    } else if (text[pos++] == quote) {
      return pos;
    }
  }
  return text.size();
}

size_t SkipAngles(std::string_view text, size_t pos) {
  size_t depth = 0;
  for (; pos < text.size(); ++pos) {
    if (text[pos] == '<') ++depth;
    if (text[pos] == '>' && --depth == 0) return pos + 1;
  }
  return std::string_view::npos;
}

bool IsKeyword(std::string_view name) {
  for (const std::string_view word :
       {"None", "True", "False", "Ellipsis", "slice", "inf", "nan", "device"}) {
    if (name == word) return true;
  }
  return false;
}

bool IsNumber(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+'))
    text.remove_prefix(1);
  if (text.empty()) return false;
  if (text == "inf" || text == "nan") return true;
  if (!IsDigit(text[0]) && !(text[0] == '.' && text.size() > 1)) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return IsNameByte(c) || c == '.' || c == '-' || c == '+';
  });
}

bool IsDevice(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    return text == "cpu" || text == "cuda" || text == "meta";
  const std::string_view index = text.substr(colon + 1);
  return IsDotted(text.substr(0, colon)) && !index.empty() &&
         std::all_of(index.begin(), index.end(), IsDigit);
}

namespace {

constexpr size_t kNone = std::string_view::npos;

std::string Shown(std::string_view text) {
  return "'" + EscapeTerminal(Shorten(text, 40)) + "'";
}

class Parser {
 public:
  Parser(std::string_view line, ParsedLine& out, LineError& error)
      : line_(line), out_(out), error_(error) {}

  bool Parse() {
    out_.kind = NodeKind::kOp;
    out_.ambiguous = out_.call_form = false;
    out_.text = line_;
    out_.name = out_.target = out_.result = {};
    out_.operands.clear();
    const size_t nul = line_.find('\0');
    if (nul != kNone) return Fail(nul, "found a NUL byte");
    if (line_.starts_with("output")) return ParseOutput();
    if (!line_.starts_with('%')) {
      return Fail(0,
                  "expected '%name', 'output' or the head of a section, "
                  "found " +
                      Shown(line_));
    }
    size_t pos = 1;
    while (pos < line_.size() && IsValueNameByte(line_[pos])) ++pos;
    out_.name = line_.substr(1, pos - 1);
    if (out_.name.empty()) return Fail(1, "expected a name after '%'");
    const std::string_view rest = line_.substr(pos);
    if (rest.starts_with(" = ")) return ParseOp(pos + 3);
    if (rest.starts_with(kColon)) {
      out_.kind = NodeKind::kPlaceholder;
      out_.result = rest.substr(kColon.size());
      if (IsResult(out_.result)) return true;
      return Fail(pos + kColon.size(),
                  "expected a shape, ' : ' and a dtype, "
                  "found " +
                      Shown(out_.result));
    }
    return Fail(pos,
                "expected ' = ' or ' : ' after the name, found " + Shown(rest));
  }

 private:
  bool Fail(size_t column, std::string what, std::string note = {}) {
    error_.column = column;
    error_.what = std::move(what);
    error_.note = std::move(note);
    return false;
  }

  bool ParseOutput() {
    out_.kind = NodeKind::kOutput;
    std::string_view rest = line_.substr(6);
    if (rest.empty()) return true;
    if (rest[0] == '(' && rest.back() == ')') {
      out_.call_form = true;
      return ParseOperands(7, line_.size() - 1);
    }
    if (rest[0] != ' ')
      return Fail(6,
                  "expected ' ' or '(' after 'output', found " + Shown(rest));
    return ParseOperands(7, line_.size());
  }

  bool ParseOp(size_t pos) {
    const size_t open = TargetEnd(pos);
    if (open == kNone || open == pos || line_[open] != '(') {
      return Fail(
          pos, "expected a target and '(', found " + Shown(line_.substr(pos)));
    }
    out_.target = line_.substr(pos, open - pos);
    size_t close = 0;
    if (!FindClose(open, close)) return false;
    out_.result = line_.substr(close + 1 + kColon.size());
    return ParseOperands(open + 1, close);
  }

  size_t TargetEnd(size_t pos) const {
    if (pos < line_.size() && line_[pos] == '<') {
      const size_t end = SkipAngles(line_, pos);
      return end < line_.size() ? end : kNone;
    }
    while (pos < line_.size() && line_[pos] != '(') {
      if (line_[pos] == ' ') return kNone;
      ++pos;
    }
    return pos < line_.size() ? pos : kNone;
  }

  bool ResultFollows(size_t close) const {
    const std::string_view rest = line_.substr(close + 1);
    return rest.starts_with(kColon) && IsResult(rest.substr(kColon.size()));
  }

  // The parenthesis that ends the operand list.
  bool FindClose(size_t open, size_t& close) {
    size_t depth = 0;
    size_t pos = open;
    bool balanced = false;
    while (pos < line_.size()) {
      const Byte c = ByteOf(line_[pos]);
      if (c == Byte::kOpen) {
        if (++depth > kMaxDepth) {
          return Fail(pos, "brackets are nested more than " +
                               std::to_string(kMaxDepth) + " deep");
        }
      } else if (c == Byte::kClose) {
        if (--depth == 0) {
          balanced = true;
          break;
        }
      } else if (c == Byte::kQuote && depth > 1) {
        pos = SkipQuoted(line_, pos);
        continue;
      }
      ++pos;
    }
    if (balanced && ResultFollows(pos)) {
      close = pos;
      return true;
    }
    // The result holds exactly one " : ", so the list can only end in front of
    // the last but one.
    const size_t last = line_.rfind(kColon);
    const size_t before =
        last == kNone || last == 0 ? kNone : line_.rfind(kColon, last - 1);
    if (before != kNone && before > open && line_[before - 1] == ')' &&
        ResultFollows(before - 1)) {
      close = before - 1;
      out_.ambiguous = true;
      return true;
    }
    const std::string note =
        "the operand list opened at column " + std::to_string(open + 1);
    if (!balanced) {
      return Fail(line_.size(), "expected ')' at the end of the operand list",
                  note);
    }
    return Fail(pos + 1,
                "expected ' : ' and a result after the operand list, found " +
                    Shown(line_.substr(pos + 1)),
                note);
  }

  // The end of the operand at `pos`: ", " outside of brackets, or `end`.
  size_t PieceEnd(size_t pos, size_t end) const {
    size_t depth = 0;
    while (pos < end) {
      const Byte c = ByteOf(line_[pos]);
      if (c == Byte::kOpen) {
        ++depth;
      } else if (c == Byte::kClose) {
        if (depth > 0) --depth;
      } else if (c == Byte::kQuote && depth > 0) {
        pos = SkipQuoted(line_, pos);
        continue;
      } else if (c == Byte::kComma && depth == 0 && pos + 1 < end &&
                 line_[pos + 1] == ' ') {
        return pos;
      }
      ++pos;
    }
    return end;
  }

  bool ParseOperands(size_t pos, size_t end) {
    if (pos >= end) return true;
    for (;;) {
      const size_t stop = PieceEnd(pos, end);
      if (!ParsePiece(pos, stop)) return false;
      if (stop >= end) return true;
      pos = stop + 2;
    }
  }

  bool ParsePiece(size_t begin, size_t end) {
    const std::string_view piece = line_.substr(begin, end - begin);
    if (piece.starts_with('%') && ParseValue(piece)) return true;
    ParsedOperand operand;
    operand.text = piece;
    if (IsNumber(piece) || IsKeyword(piece) || IsDevice(piece) ||
        piece.starts_with("torch.")) {
      out_.operands.push_back(operand);
      return true;
    }
    if (piece.starts_with('<') && SkipAngles(piece, 0) == piece.size()) {
      out_.operands.push_back(operand);
      return true;
    }
    if (IsContainerText(piece)) return ParseNested(begin, end);
    operand.kind = OperandKind::kText;
    const bool doubtful =
        piece.empty() || piece.find_first_of(" :%,()[]{}") != kNone;
    if (!doubtful) {
      out_.operands.push_back(operand);
      return true;
    }
    // A guess: names in it may be references, so they are kept as such.
    out_.ambiguous = true;
    const size_t at = out_.operands.size();
    out_.operands.push_back(operand);
    if (!ParseNested(begin, end)) return false;
    out_.operands[at].extent =
        static_cast<uint32_t>(out_.operands.size() - at - 1);
    return true;
  }

  // `%name : shape : dtype`, in the output also `%name`.
  bool ParseValue(std::string_view piece) {
    size_t pos = 1;
    while (pos < piece.size() && IsValueNameByte(piece[pos])) ++pos;
    if (pos == 1) return false;
    ParsedOperand operand;
    operand.kind = OperandKind::kValue;
    operand.text = piece;
    operand.name = piece.substr(1, pos - 1);
    const std::string_view rest = piece.substr(pos);
    if (rest.starts_with(kColon)) {
      operand.annotation = rest.substr(kColon.size());
      if (!IsResult(operand.annotation)) return false;
    } else if (!rest.empty()) {
      return false;
    }
    out_.operands.push_back(operand);
    return true;
  }

  // Whether the bracket that opens the piece closes at its end.
  static bool IsContainerText(std::string_view piece) {
    size_t pos = 0;
    while (pos < piece.size() && (IsNameByte(piece[pos]) || piece[pos] == '.'))
      ++pos;
    if (pos == piece.size() || ByteOf(piece[pos]) != Byte::kOpen) return false;
    if (pos > 0 && (piece[pos] != '(' || !IsNameStart(piece[0]))) return false;
    if (ByteOf(piece.back()) != Byte::kClose) return false;
    size_t depth = 0;
    while (pos < piece.size()) {
      const Byte c = ByteOf(piece[pos]);
      if (c == Byte::kOpen) ++depth;
      if (c == Byte::kClose && --depth == 0) return pos + 1 == piece.size();
      pos = c == Byte::kQuote ? SkipQuoted(piece, pos) : pos + 1;
    }
    return false;
  }

  static OperandKind KindOf(char open) {
    return open == '['   ? OperandKind::kList
           : open == '(' ? OperandKind::kTuple
                         : OperandKind::kDict;
  }

  void AddNested(OperandKind kind, size_t begin, size_t end) {
    ParsedOperand operand;
    operand.kind = kind;
    operand.nested = !open_.empty() || kind == OperandKind::kValue;
    operand.text = line_.substr(begin, end - begin);
    if (kind == OperandKind::kValue) {
      operand.name = operand.text;
      if (operand.name.starts_with('%')) operand.name.remove_prefix(1);
    }
    out_.operands.push_back(operand);
  }

  // Everything from `begin` to `end`: containers, names, literals.
  bool ParseNested(size_t begin, size_t end) {
    open_.clear();
    angles_ = true;
    size_t pos = begin;
    while (pos < end) {
      const char c = line_[pos];
      const size_t start = pos;
      if (ByteOf(c) == Byte::kOpen) {
        if (!Open(KindOf(c), pos, pos)) return false;
        ++pos;
      } else if (ByteOf(c) == Byte::kClose) {
        ++pos;
        Close(pos);
      } else if (ByteOf(c) == Byte::kQuote) {
        pos = std::min(SkipQuoted(line_, pos), end);
        AddNested(OperandKind::kLiteral, start, pos);
      } else if (c == '<' && angles_) {
        const size_t after = SkipAngles(line_.substr(0, end), pos);
        // One without its end is enough to know that they are no reprs.
        angles_ = after != kNone;
        pos = angles_ ? after : pos + 1;
        if (angles_) AddNested(OperandKind::kLiteral, start, pos);
      } else if (c == '%' && pos + 1 < end && IsNameStart(line_[pos + 1])) {
        ++pos;
        while (pos < end && IsNameByte(line_[pos])) ++pos;
        AddNested(OperandKind::kValue, start, pos);
      } else if (IsNameStart(c)) {
        while (pos < end && (IsNameByte(line_[pos]) || line_[pos] == '.'))
          ++pos;
        const std::string_view word = line_.substr(start, pos - start);
        const char next = pos < end ? line_[pos] : ' ';
        if (next == '(') {
          if (!Open(OperandKind::kCall, start, pos)) return false;
          ++pos;
        } else if (next != '=') {
          AddNested(word.find('.') != kNone || IsKeyword(word)
                        ? OperandKind::kLiteral
                        : OperandKind::kValue,
                    start, pos);
        }
      } else if (IsDigit(c) || c == '-' || c == '.') {
        ++pos;
        while (pos < end &&
               (IsNameByte(line_[pos]) || line_[pos] == '.' ||
                (line_[pos] == '-' && (line_[pos - 1] | 32) == 'e')))
          ++pos;
        AddNested(OperandKind::kLiteral, start, pos);
      } else {
        ++pos;
      }
    }
    while (!open_.empty()) Close(end);
    return true;
  }

  bool Open(OperandKind kind, size_t begin, size_t bracket) {
    if (open_.size() >= kMaxDepth) {
      return Fail(bracket, "brackets are nested more than " +
                               std::to_string(kMaxDepth) + " deep");
    }
    AddNested(kind, begin, begin);
    open_.push_back(static_cast<uint32_t>(out_.operands.size() - 1));
    return true;
  }

  // A closing bracket too many closes nothing: the piece is a guess anyway.
  void Close(size_t end) {
    if (open_.empty()) return;
    ParsedOperand& operand = out_.operands[open_.back()];
    const auto begin = static_cast<size_t>(operand.text.data() - line_.data());
    operand.text = line_.substr(begin, end - begin);
    operand.extent =
        static_cast<uint32_t>(out_.operands.size() - open_.back() - 1);
    open_.pop_back();
  }

  std::string_view line_;
  ParsedLine& out_;
  LineError& error_;
  std::vector<uint32_t> open_;
  bool angles_ = true;
};

}  // namespace

bool ParseLine(std::string_view line, ParsedLine& out, LineError& error) {
  return Parser(line, out, error).Parse();
}

}  // namespace lamina::graph
