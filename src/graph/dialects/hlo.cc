// SPDX-License-Identifier: Apache-2.0
//
// HLO text: a graph per computation; `fusion` and `call` are one node each.
#include <algorithm>

#include "base/escape.h"
#include "graph/dialects/readers.h"
#include "graph/line_parser.h"

namespace lamina::graph {
namespace {

bool IsHloName(char c) { return IsNameByte(c) || c == '.' || c == '-'; }

class HloReader {
 public:
  HloReader(const SourceText& source, std::string_view name, Builder& out,
            std::string& main)
      : source_(source),
        name_(name),
        out_(out),
        main_(main),
        text_(source.text()) {}

  void Run() {
    size_t pos = 0;
    while (pos < text_.size()) {
      pos = SkipSpace(pos);
      if (pos >= text_.size()) break;
      const size_t end = LineEnd(pos);
      const std::string_view line = text_.substr(pos, end - pos);
      if (line.starts_with("HloModule") || line.starts_with("//")) {
        pos = SkipStatement(pos);
        continue;
      }
      const size_t brace = HeadEnd(pos);
      if (brace == kNone) {
        pos = end + 1;
        continue;
      }
      pos = ReadComputation(pos, brace);
    }
  }

 private:
  size_t LineEnd(size_t pos) const {
    return std::min(text_.find('\n', pos), text_.size());
  }
  size_t SkipSpace(size_t pos) const {
    while (pos < text_.size()) {
      const char c = text_[pos];
      if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
        ++pos;
      } else if (text_.substr(pos, 2) == "/*") {
        const size_t end = text_.find("*/", pos);
        pos = end == kNone ? text_.size() : end + 2;
      } else if (text_.substr(pos, 2) == "//") {
        pos = LineEnd(pos);
      } else {
        break;
      }
    }
    return pos;
  }

  // Past a line whose brackets may span lines.
  size_t SkipStatement(size_t pos) const {
    size_t depth = 0;
    while (pos < text_.size()) {
      const char c = text_[pos];
      if (ByteOf(c) == Byte::kQuote) {
        pos = SkipQuoted(text_, pos);
        continue;
      }
      if (ByteOf(c) == Byte::kOpen) ++depth;
      if (ByteOf(c) == Byte::kClose && depth > 0) --depth;
      if (c == '\n' && depth == 0) return pos + 1;
      ++pos;
    }
    return pos;
  }

  // `[ENTRY ][%]name [(params) -> shape ]{`: the brace; npos for other lines.
  size_t HeadEnd(size_t pos) const {
    if (text_.substr(pos, 6) == "ENTRY ") pos = SkipSpace(pos + 6);
    if (pos < text_.size() && text_[pos] == '%') ++pos;
    const size_t begin = pos;
    while (pos < text_.size() && IsHloName(text_[pos])) ++pos;
    if (pos == begin) return kNone;
    pos = SkipSpace(pos);
    if (pos < text_.size() && text_[pos] == '(') {
      pos = FindClose(text_, pos, text_.size());
      if (pos == kNone) return kNone;
      pos = SkipSpace(pos + 1);
      if (text_.substr(pos, 2) != "->") return kNone;
      pos = SkipShape(SkipSpace(pos + 2));
      pos = SkipSpace(pos);
    }
    return pos < text_.size() && text_[pos] == '{' ? pos : kNone;
  }

  // Past `f32[8,16]{1,0:T(8,128)}` or `(shape, shape)`.
  size_t SkipShape(size_t pos) const {
    if (pos < text_.size() && text_[pos] == '(') {
      const size_t close = FindClose(text_, pos, text_.size());
      return close == kNone ? text_.size() : close + 1;
    }
    while (pos < text_.size() && IsNameByte(text_[pos])) ++pos;
    for (const char open : {'[', '{'}) {
      if (pos >= text_.size() || text_[pos] != open) continue;
      const size_t close = FindClose(text_, pos, text_.size());
      pos = close == kNone ? text_.size() : close + 1;
    }
    return pos;
  }

  static std::string OneResult(std::string_view shape) {
    const std::string out = ResultOfAnnotation(shape);
    return out.empty() ? "? : ?" : out;
  }

  std::string ResultOf(Span span) const {
    const std::string_view shape =
        text_.substr(span.begin, span.end - span.begin);
    if (!shape.starts_with('(')) return OneResult(shape);
    std::vector<std::string> results;
    for (Span piece : out_.SplitAt({span.begin + 1, span.end - 1}, ',')) {
      piece.begin = SkipSpace(piece.begin);
      piece = out_.Trim(piece);
      // Tuples in tuples have no form in the model.
      const bool inner = out_.Text(piece).starts_with('(');
      results.push_back(inner ? "? : ?" : OneResult(out_.Text(piece)));
    }
    return TupleResult(results);
  }

  size_t ReadComputation(size_t begin, size_t brace) {
    const bool entry = text_.substr(begin, 6) == "ENTRY ";
    size_t pos = entry ? SkipSpace(begin + 6) : begin;
    if (text_[pos] == '%') ++pos;
    const size_t start = pos;
    while (pos < text_.size() && IsHloName(text_[pos])) ++pos;
    std::string name(text_.substr(start, pos - start));
    if (!name_.empty()) name = std::string(name_) + "." + name;
    out_.Begin(source_, name, brace + 1);
    if (entry && main_.empty()) main_ = out_.graph().name();
    root_ = {};
    pos = brace + 1;
    bool closed = false;
    for (;;) {
      pos = SkipSpace(pos);
      if (pos >= text_.size()) break;
      if (text_[pos] == '}') {
        closed = true;
        ++pos;
        break;
      }
      pos = ReadInstruction(pos);
    }
    if (!closed)
      out_.Warn(text_.empty() ? 0 : text_.size() - 1,
                "truncated: expected '}' behind the computation");
    if (root_.empty() && out_.graph().last().valid())
      root_ = out_.graph()[out_.graph().last()].name;
    if (!root_.empty()) {
      out_.AddValue(root_, root_, false);
      Builder::Statement statement;
      statement.kind = NodeKind::kOutput;
      out_.Add(statement);
    }
    out_.End();
    return pos;
  }

  // Where the next instruction or the closing brace begins.
  size_t InstructionEnd(size_t pos) const {
    // Its own name is none that follows.
    pos = std::min(text_.find_first_of("=\n", pos), text_.size());
    size_t depth = 0;
    while (pos < text_.size()) {
      const char c = text_[pos];
      if (ByteOf(c) == Byte::kQuote) {
        pos = SkipQuoted(text_, pos);
        continue;
      }
      if (ByteOf(c) == Byte::kOpen) ++depth;
      if (ByteOf(c) == Byte::kClose) {
        if (depth == 0) return pos;
        --depth;
      }
      // The next one may stand in the same line.
      if (depth == 0 && (c == ' ' || c == '\n' || c == '\r' || c == '\t')) {
        const size_t behind = SkipSpace(pos);
        size_t next = behind;
        if (next >= text_.size() || text_[next] == '}') return pos;
        if (text_.substr(next, 5) == "ROOT ") return pos;
        if (text_[next] == '%') ++next;
        const size_t begin = next;
        while (next < text_.size() && IsHloName(text_[next])) ++next;
        if (next > begin && text_.substr(next, 3) == " = ") return pos;
        pos = behind;
        continue;
      }
      ++pos;
    }
    return pos;
  }

  size_t ReadInstruction(size_t begin) {
    const size_t end = InstructionEnd(begin);
    Span span = out_.Trim({begin, end});
    size_t pos = span.begin;
    const bool root = text_.substr(pos, 5) == "ROOT ";
    if (root) pos = SkipSpace(pos + 5);
    if (pos < span.end && text_[pos] == '%') ++pos;
    const size_t start = pos;
    while (pos < span.end && IsHloName(text_[pos])) ++pos;
    const std::string_view name = text_.substr(start, pos - start);
    pos = SkipSpace(pos);
    if (name.empty() || pos >= span.end || text_[pos] != '=')
      return Bad(span, end, pos, "expected NAME = SHAPE OPCODE(...)");
    const size_t shape = SkipSpace(pos + 1);
    size_t after = SkipShape(shape);
    const size_t opcode = SkipSpace(after);
    pos = opcode;
    while (pos < span.end && IsHloName(text_[pos])) ++pos;
    if (pos == opcode || pos >= span.end || text_[pos] != '(')
      return Bad(span, end, pos, "expected OPCODE(...)");
    const size_t close = FindClose(text_, pos, span.end);
    if (close == kNone)
      return Bad(span, end, span.end - 1,
                 "truncated: expected ')' behind the operands");
    const std::string_view op = text_.substr(opcode, pos - opcode);
    Builder::Statement statement;
    statement.span = span;
    statement.name = name;
    statement.target = out_.Keep("hlo." + std::string(op));
    statement.result = out_.Keep(ResultOf({shape, after}));
    const Span attributes{close + 1, span.end};
    ReadMetadata(attributes, statement);
    if (op == "parameter") {
      const std::string path = WeightPath(statement.origin.scope);
      statement.kind = NodeKind::kPlaceholder;
      statement.target = {};
      if (!path.empty()) {
        out_.Weight(name, path, statement.result);
        return Done(root, name, end);
      }
    } else {
      ReadInputs({pos + 1, close}, op);
      for (const Span piece : out_.SplitAt(attributes, ',')) {
        const std::string_view text = out_.Text(out_.Trim(piece));
        if (!text.empty() && !text.starts_with("metadata=") &&
            !text.starts_with("backend_config="))
          out_.AddLiteral(text);
      }
    }
    out_.Add(statement);
    return Done(root, name, end);
  }

  size_t Done(bool root, std::string_view name, size_t end) {
    if (root) root_ = out_.Resolve(name);
    return std::max(end, size_t{1});
  }

  size_t Bad(Span span, size_t end, size_t at, const std::string& what) {
    out_.Error(std::min(at, text_.size() - 1),
               what + ", found '" +
                   EscapeTerminal(out_.Text(span).substr(0, 60)) + "'");
    // A stray bracket must not stop the reader.
    return end > span.begin ? end : end + 1;
  }

  // `shape %name`, `name`, literals of constants.
  void ReadInputs(Span span, std::string_view op) {
    if (op == "constant") {
      out_.AddLiteral(out_.Text(out_.Trim(span)));
      return;
    }
    for (Span piece : out_.SplitAt(span, ',')) {
      piece = out_.Trim({SkipSpace(piece.begin), piece.end});
      if (piece.empty()) continue;
      size_t name = piece.end;
      while (name > piece.begin && IsHloName(text_[name - 1])) --name;
      const std::string_view word = text_.substr(name, piece.end - name);
      const std::string_view known = out_.Resolve(word);
      if (known.empty()) {
        out_.AddLiteral(out_.Text(piece));
        if (!word.empty() && IsNameStart(word[0]))
          out_.Warn(name, "'" + EscapeTerminal(word) +
                              "' is used before a definition");
      } else {
        out_.AddValue(known, word, false);
      }
    }
  }

  static std::string_view Value(std::string_view text, std::string_view key) {
    const size_t at = text.find(key);
    if (at == kNone) return {};
    const size_t begin = at + key.size();
    const size_t end = text.find('"', begin);
    return end == kNone ? std::string_view() : text.substr(begin, end - begin);
  }

  void ReadMetadata(Span span, Builder::Statement& statement) {
    const std::string_view text = out_.Text(span);
    const size_t at = text.find("metadata={");
    if (at == kNone) return;
    const std::string_view metadata = text.substr(at);
    std::string scope(Value(metadata, "op_name=\""));
    // "jit(f)/jvp(Model)/layers_3/dot": blanks and slashes part nothing else.
    std::replace(scope.begin(), scope.end(), '/', '_');
    if (!scope.empty()) statement.origin.scope = out_.Keep(scope);
    const std::string_view file = Value(metadata, "source_file=\"");
    if (file.empty()) return;
    std::string source(file);
    const size_t line = metadata.find("source_line=");
    if (line != kNone) {
      source += ":";
      for (size_t i = line + 12; i < metadata.size() && IsDigit(metadata[i]);
           ++i)
        source += metadata[i];
    }
    statement.origin.source = out_.Keep(source);
  }

  static std::string WeightPath(std::string_view name) {
    if (name.find('[') == kNone || name.find("params") == kNone) return {};
    return DottedPath(name);
  }

  const SourceText& source_;
  std::string_view name_;
  Builder& out_;
  std::string& main_;
  std::string_view text_;
  std::string_view root_;
};

}  // namespace

void ReadHlo(const SourceText& source, std::string_view name, Builder& out,
             std::string& main) {
  HloReader(source, name, out, main).Run();
}

}  // namespace lamina::graph
