// SPDX-License-Identifier: Apache-2.0
//
// MLIR in its generic and its pretty form: a graph per function, and behind all
// of them one per region of while, case and if. An op with regions is one node
// that also uses what its regions capture. One walk from left to right; every
// region and dictionary is skipped by its brackets, regions are read
// afterwards.
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>

#include "base/decimal.h"
#include "base/escape.h"
#include "graph/dialects/readers.h"
#include "graph/line_parser.h"

namespace lamina::graph {
namespace {

size_t ParseNumber(std::string_view digits) {
  return static_cast<size_t>(
      std::clamp<int64_t>(ParseInt(digits).value_or(1), 0, 1000000));
}

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool IsOpByte(char c) { return IsNameByte(c) || c == '.' || c == '$'; }

// What a location says: the path of an op or the name of an argument, and the
// line of the model with its function.
struct Location {
  std::string_view name;
  std::string_view function;
  std::string_view file;
  std::string_view line;

  std::string Source() const {
    std::string out;
    if (file.empty()) return out;
    out = std::string(file) + ":" + std::string(line);
    if (!function.empty()) out += " in " + std::string(function);
    return out;
  }
};

// Locations, most of which are aliases that stand behind all functions:
// `#loc5 = loc("jit(f)/layers_3/add"(#loc2))`.
class Locations {
 public:
  explicit Locations(std::string_view text) : text_(text) {
    for (size_t at = text.find('#'); at != kNone; at = text.find('#', at + 1)) {
      if (at > 0 && text[at - 1] != '\n') continue;
      size_t end = at + 1;
      while (end < text.size() && IsOpByte(text[end])) ++end;
      constexpr std::string_view kIs = " = loc(";
      if (text.substr(end, kIs.size()) != kIs) continue;
      const size_t begin = end + kIs.size();
      aliases_.try_emplace(text.substr(at, end - at), begin);
    }
  }

  // Of what stands behind `loc(`, at `pos`.
  Location At(size_t pos) const {
    Location out;
    size_t steps = 0;
    Read(pos, 0, steps, out);
    return out;
  }

 private:
  // Deeper ones, and those of more parts, say no more than what was read.
  static constexpr size_t kMostDeep = 64;
  static constexpr size_t kMostSteps = 256;
  static constexpr size_t kBytesOfStep = 16;

  char CharAt(size_t pos) const {
    return pos < text_.size() ? text_[pos] : ' ';
  }
  size_t SkipBlanks(size_t pos) const {
    while (pos < text_.size() && IsSpace(text_[pos])) ++pos;
    return pos;
  }

  // One location; returns its end. What is known already stays: the inner one
  // of a call comes first.
  size_t Read(size_t pos, size_t depth, size_t& steps, Location& out) const {
    pos = SkipBlanks(pos);
    if (depth > kMostDeep || ++steps > kMostSteps) return text_.size();
    if (CharAt(pos) == '#') {
      size_t end = pos + 1;
      while (end < text_.size() && IsOpByte(text_[end])) ++end;
      const auto found = aliases_.find(text_.substr(pos, end - pos));
      if (found != aliases_.end()) Read(found->second, depth + 1, steps, out);
      return end;
    }
    if (CharAt(pos) == '"') return ReadNamed(pos, depth, steps, out);
    size_t end = pos;
    while (end < text_.size() && IsOpByte(text_[end])) ++end;
    const std::string_view word = text_.substr(pos, end - pos);
    if (word == "callsite" && CharAt(end) == '(') {
      end = SkipBlanks(Read(end + 1, depth + 1, steps, out));
      if (text_.substr(end, 3) == "at ")
        end = Read(end + 3, depth + 1, steps, out);
      return End(end, ')');
    }
    if (word == "fused") {
      if (CharAt(end) == '<') end = End(FindAngle(end, steps), '>');
      if (CharAt(end) != '[') return end;
      do {
        end = SkipBlanks(Read(end + 1, depth + 1, steps, out));
      } while (CharAt(end) == ',');
      return End(end, ']');
    }
    return end;
  }

  // `"file":12:8`, or a name and what it is of.
  size_t ReadNamed(size_t pos, size_t depth, size_t& steps,
                   Location& out) const {
    // Each node may mean it again: what is looked at is limited.
    const std::string_view seen =
        text_.substr(0, pos + (kMostSteps - steps) * kBytesOfStep);
    const size_t end = SkipQuoted(seen, pos);
    if (end < pos + 2 || end > seen.size() || seen[end - 1] != '"')
      return text_.size();
    steps += (end - pos) / kBytesOfStep;
    const std::string_view word = text_.substr(pos + 1, end - pos - 2);
    if (CharAt(end) == ':' && IsDigit(CharAt(end + 1))) {
      size_t digits = end + 1;
      while (IsDigit(CharAt(digits))) ++digits;
      if (out.file.empty()) {
        out.file = word;
        out.line = text_.substr(end + 1, digits - end - 1);
      }
      // `12:8`, `12:8 to :20`
      const auto skip = [&] {
        while (IsDigit(CharAt(digits)) || CharAt(digits) == ':') ++digits;
      };
      skip();
      if (text_.substr(digits, 4) == " to ") {
        digits += 4;
        skip();
      }
      return digits;
    }
    const bool first = out.name.empty();
    if (first) out.name = word;
    if (CharAt(end) != '(') return end;
    const bool knew = !out.file.empty();
    const size_t inside = Read(end + 1, depth + 1, steps, out);
    // The name around a place in a file is that of the function.
    if (!first && !knew && !out.file.empty() && out.function.empty())
      out.function = word;
    return End(inside, ')');
  }

  size_t End(size_t pos, char bracket) const {
    pos = SkipBlanks(pos);
    return CharAt(pos) == bracket ? pos + 1 : pos;
  }
  size_t FindAngle(size_t open, size_t& steps) const {
    const std::string_view seen =
        text_.substr(0, open + (kMostSteps - steps) * kBytesOfStep);
    size_t pos = open + 1;
    while (pos < seen.size() && seen[pos] != '>' && seen[pos] != '\n') {
      if (seen[pos] == '"') {
        pos = std::min(seen.size(), SkipQuoted(seen, pos));
      } else {
        ++pos;
      }
    }
    steps += (pos - open) / kBytesOfStep;
    return pos;
  }

  std::string_view text_;
  absl::flat_hash_map<std::string_view, size_t> aliases_;
};

class MlirReader {
 public:
  MlirReader(const SourceText& source, std::string_view name, Builder& out)
      : source_(source),
        name_(name),
        out_(out),
        text_(source.text()),
        locations_(text_) {}

  void Run() {
    size_t pos = 0;
    while (pos < text_.size()) pos = ReadOuter(pos);
    if (function_) EndFunction(text_.size());
    // Regions may hold others.
    for (size_t i = 0; i < regions_.size(); ++i) ReadBranch(i);
  }

 private:
  // A region of an op of control flow, to be read as a graph of its own.
  struct Branch {
    std::string name;  // "main.while_0.body"
    Span body;         // without braces
    size_t depth = 1;
    // What is defined around it: name and result.
    std::vector<std::pair<std::string_view, std::string>> around;
  };
  static constexpr size_t kMostBranches = 10000;
  static constexpr size_t kMostBranchDepth = 16;

  size_t LineEnd(size_t pos) const {
    return std::min(text_.find('\n', pos), text_.size());
  }
  // The name of a value behind its %, which may be empty.
  Span NameBehind(size_t percent, size_t limit) const {
    size_t end = percent + 1;
    while (end < limit &&
           (IsNameByte(text_[end]) || text_[end] == '.' || text_[end] == '-'))
      ++end;
    return {percent + 1, end};
  }
  // Behind the "#1" that may follow a name: one of several results.
  size_t NumberEnd(size_t pos, size_t limit) const {
    if (pos < limit && text_[pos] == '#')
      while (++pos < limit && IsDigit(text_[pos])) {
      }
    return pos;
  }

  size_t Skip(size_t pos) const {
    while (pos < text_.size()) {
      if (IsSpace(text_[pos])) {
        ++pos;
      } else if (text_.substr(pos, 2) == "//") {
        pos = LineEnd(pos);
      } else {
        break;
      }
    }
    return pos;
  }

  // One thing outside of ops: a bracket, a label, an op, an alias.
  size_t ReadOuter(size_t pos) {
    pos = Skip(pos);
    if (pos >= text_.size()) return pos;
    const char c = text_[pos];
    if (c == '}') {
      if (function_ && depth_-- == function_depth_) EndFunction(pos);
      // The rest of a generic function or module: `}) {...} : () -> ()`.
      ++pos;
      if (pos < text_.size() && text_[pos] == ')')
        return std::max(pos, OpEnd(pos + 1));
      return pos;
    }
    if (c == '#' || c == '!' || text_.substr(pos, 3) == "{-#" || c == '-')
      return LineEnd(pos) + 1;
    if (c == '^') return ReadLabel(pos);
    if (c == '%' || c == '"' || IsNameStart(c)) return ReadOp(pos);
    return pos + 1;
  }

  void EndFunction(size_t pos) {
    if (!out_.graph().output().valid())
      out_.Warn(std::min(pos, text_.size() - 1),
                "truncated: function '" + EscapeTerminal(out_.graph().name()) +
                    "' has no return");
    out_.End();
    function_ = false;
  }

  size_t ReadLabel(size_t pos) {
    size_t at = pos + 1;
    while (at < text_.size() && IsOpByte(text_[at])) ++at;
    if (at < text_.size() && text_[at] == '(') {
      const size_t close = FindClose(text_, at, text_.size());
      if (close != kNone && function_) ReadArguments({at + 1, close});
      at = close == kNone ? text_.size() : close + 1;
    }
    at = Skip(at);
    return at < text_.size() && text_[at] == ':' ? at + 1
                                                 : std::max(at, pos + 1);
  }

  // `%arg0: tensor<4xf32> {attributes} loc(...)`
  void ReadArguments(Span span) {
    for (Span piece : Pieces(span)) {
      piece = out_.Trim(piece);
      const std::string_view whole = out_.Text(piece);
      if (!whole.starts_with('%')) continue;
      size_t end = 1;
      while (end < whole.size() &&
             (IsNameByte(whole[end]) || whole[end] == '.' || whole[end] == '-'))
        ++end;
      const std::string_view name = whole.substr(1, end - 1);
      const size_t colon = whole.find(':', end);
      const std::string result =
          colon == kNone ? std::string() : TypeResult(whole.substr(colon + 1));
      const std::string path = WeightPath(whole, piece.begin);
      if (!path.empty()) {
        out_.Weight(name, path, result);
        continue;
      }
      Builder::Statement statement;
      statement.kind = NodeKind::kPlaceholder;
      statement.span = piece;
      statement.name = name;
      statement.result = out_.Keep(result);
      out_.Add(statement);
    }
  }

  // What an attribute or a location calls a parameter.
  std::string WeightPath(std::string_view text, size_t begin_of_text) const {
    for (const std::string_view key :
         {"jax.arg_info = \"", "tf.resource_name = \""}) {
      const size_t at = text.find(key);
      if (at == kNone) continue;
      const size_t begin = at + key.size();
      const size_t end = text.find('"', begin);
      if (end == kNone) continue;
      const std::string_view name = text.substr(begin, end - begin);
      if (name.find("params") == kNone && key.starts_with("jax")) continue;
      return DottedPath(name);
    }
    const size_t location = LocationIn(text);
    if (location == kNone) return {};
    const std::string_view name = locations_.At(begin_of_text + location).name;
    return name.find('[') == kNone ? std::string() : DottedPath(name);
  }

  // Behind the `loc(` that ends an op or argument; npos: it has none.
  static size_t LocationIn(std::string_view text) {
    const size_t at = text.rfind(" loc(");
    return at == kNone ? kNone : at + 5;
  }

  // Splits at commas outside of all brackets, `<>` too.
  std::vector<Span> Pieces(Span span) const {
    std::vector<Span> out;
    size_t depth = 0;
    size_t begin = span.begin;
    for (size_t pos = span.begin; pos < span.end;) {
      const char c = text_[pos];
      if (c == '"') {
        pos = SkipQuoted(text_.substr(0, span.end), pos);
        continue;
      }
      if (IsOpen(c)) ++depth;
      if (IsClose(pos) && depth > 0) --depth;
      if (c == ',' && depth == 0) {
        out.push_back({begin, pos});
        begin = pos + 1;
      }
      ++pos;
    }
    if (begin < span.end) out.push_back({begin, span.end});
    return out;
  }

  static bool IsOpen(char c) {
    return c == '(' || c == '[' || c == '{' || c == '<';
  }
  bool IsClose(size_t pos) const {
    const char c = text_[pos];
    return c == ')' || c == ']' || c == '}' ||
           (c == '>' &&
            (pos == 0 || (text_[pos - 1] != '-' && text_[pos - 1] != '=')));
  }

  // "tensor<4x8xbf16, encoding>" as "4x8 : torch.bfloat16".
  static std::string TypeResult(std::string_view type) {
    while (!type.empty() && IsSpace(type.front())) type.remove_prefix(1);
    const size_t open = type.find("tensor<");
    if (open != 0) return "? : ?";
    const size_t close = type.rfind('>');
    if (close == kNone || close < 7) return "? : ?";
    std::string_view inside = type.substr(7, close - 7);
    size_t depth = 0;
    for (size_t i = 0; i < inside.size(); ++i) {
      if (inside[i] == '<') ++depth;
      if (inside[i] == '>' && depth > 0) --depth;
      // An encoding, or what stands behind the type.
      if (depth == 0 && (inside[i] == ',' || inside[i] == '>')) {
        inside = inside.substr(0, i);
        break;
      }
    }
    std::vector<std::string_view> dims;
    for (;;) {
      size_t end = 0;
      while (end < inside.size() &&
             (IsDigit(inside[end]) || inside[end] == '?'))
        ++end;
      if (end == 0 || end >= inside.size() || inside[end] != 'x') break;
      dims.push_back(inside.substr(0, end));
      inside.remove_prefix(end + 1);
    }
    return ShapeOf(dims) + " : " + DTypeOf(inside);
  }

  // Whether the brace at `pos` opens a region, not a dictionary.
  bool IsRegion(size_t pos) const {
    size_t at = Skip(pos + 1);
    if (at >= text_.size()) return true;
    const char c = text_[at];
    if (c == '%' || c == '^') return true;
    if (c == '"') {
      at = Skip(SkipQuoted(text_, at));
      return at < text_.size() && text_[at] == '(';
    }
    if (!IsNameStart(c)) return false;
    const size_t begin = at;
    while (at < text_.size() && IsOpByte(text_[at])) ++at;
    const std::string_view word = text_.substr(begin, at - begin);
    at = Skip(at);
    const char next = at < text_.size() ? text_[at] : '}';
    if (next == '=') return false;
    if (next == ',' || next == '}')
      return word.ends_with("return") || word.ends_with("yield") ||
             word.ends_with("terminator");
    return true;
  }

  // Past the op at `pos`: a line end outside of brackets behind which the next
  // op begins.
  size_t OpEnd(size_t pos) const {
    size_t depth = 0;
    while (pos < text_.size()) {
      const char c = text_[pos];
      if (c == '"') {
        pos = SkipQuoted(text_, pos);
        continue;
      }
      if (text_.substr(pos, 2) == "//") {
        pos = LineEnd(pos);
        continue;
      }
      if (IsOpen(c)) ++depth;
      if (IsClose(pos)) {
        if (depth == 0) return pos;
        --depth;
      }
      if (c == '\n' && depth == 0 && NextBegins(pos)) return pos;
      ++pos;
    }
    return pos;
  }

  bool NextBegins(size_t line_end) const {
    size_t last = line_end;
    while (last > 0 && IsSpace(text_[last - 1])) --last;
    if (last > 0 && (text_[last - 1] == ',' || text_[last - 1] == '=' ||
                     text_[last - 1] == ':' ||
                     (last > 1 && text_.substr(last - 2, 2) == "->")))
      return false;
    const size_t at = Skip(line_end);
    if (at >= text_.size()) return true;
    const char c = text_[at];
    if (c == '%' || c == '}' || c == '^' || c == '#' || c == '!') return true;
    if (c == '"') {
      const size_t after = Skip(SkipQuoted(text_, at));
      return after < text_.size() && text_[after] == '(';
    }
    if (!IsNameStart(c)) return false;
    size_t end = at;
    while (end < text_.size() && IsOpByte(text_[end])) ++end;
    const std::string_view word = text_.substr(at, end - at);
    return word.find('.') != kNone || word == "return" || word == "call" ||
           word == "module" || word == "func";
  }

  size_t ReadOp(size_t begin) {
    size_t pos = begin;
    // Results: `%a, %b:2 = `
    std::vector<std::string_view> results;
    size_t values = 0;
    while (pos < text_.size() && text_[pos] == '%') {
      const Span name = NameBehind(pos, text_.size());
      pos = name.end;
      // Not by the builder, which has no text before the first function.
      results.push_back(text_.substr(name.begin, name.end - name.begin));
      size_t own = 1;
      if (pos < text_.size() && text_[pos] == ':') {
        const size_t digits = ++pos;
        while (pos < text_.size() && IsDigit(text_[pos])) ++pos;
        own = ParseNumber(text_.substr(digits, pos - digits));
      }
      values += own;
      pos = Skip(pos);
      if (pos < text_.size() && text_[pos] == ',') pos = Skip(pos + 1);
    }
    if (!results.empty()) {
      if (pos >= text_.size() || text_[pos] != '=') {
        if (pos < text_.size())
          out_.open() ? out_.Error(pos, "expected '=' behind the results")
                      : void();
        return std::max(pos, begin + 1);
      }
      pos = Skip(pos + 1);
    }
    std::string_view op;
    const bool generic = pos < text_.size() && text_[pos] == '"';
    if (generic) {
      const size_t end = SkipQuoted(text_, pos);
      op = text_.substr(pos + 1,
                        end - pos - 2 < text_.size() ? end - pos - 2 : 0);
      pos = end;
    } else {
      const size_t start = pos;
      while (pos < text_.size() && IsOpByte(text_[pos])) ++pos;
      op = text_.substr(start, pos - start);
    }
    if (op.empty()) return std::max(pos, begin + 1);
    if (op == "builtin.module" || op == "module") return EnterModule(pos);
    if (op == "func.func" || op == "func") return EnterFunction(pos, generic);
    const size_t end = OpEnd(pos);
    if (!function_) return std::max(end, begin + 1);
    AddOp(out_.Trim({begin, end}), pos, results, values, op);
    return std::max(end, begin + 1);
  }

  // The body of a module is read as if it stood alone.
  size_t EnterModule(size_t pos) const {
    while (pos < text_.size()) {
      if (text_[pos] == '"') {
        pos = SkipQuoted(text_, pos);
        continue;
      }
      if (text_[pos] == '{') {
        if (IsRegion(pos)) return pos + 1;
        const size_t close = FindClose(text_, pos, text_.size());
        if (close == kNone) return text_.size();
        pos = close;
      }
      ++pos;
    }
    return pos;
  }

  size_t EnterFunction(size_t pos, bool generic) {
    // A declaration has no body: it ends as an op does.
    const size_t limit = OpEnd(pos);
    size_t body = kNone;
    Span arguments;
    for (size_t at = pos; at < limit;) {
      const char c = text_[at];
      if (c == '"') {
        at = SkipQuoted(text_, at);
        continue;
      }
      if (text_.substr(at, 2) == "//") {
        at = LineEnd(at);
        continue;
      }
      if (c == '(' && !generic && arguments.end == 0) {
        const size_t close = FindClose(text_, at, text_.size());
        if (close == kNone) break;
        arguments = {at + 1, close};
        at = close + 1;
        continue;
      }
      if (c == '{') {
        if (IsRegion(at)) {
          body = at;
          break;
        }
        const size_t close = FindClose(text_, at, text_.size());
        if (close == kNone) break;
        at = close;
      }
      ++at;
    }
    if (body == kNone) return std::max(limit, pos + 1);
    std::string name = NameOf(pos, body, limit, generic);
    if (!name_.empty()) name = std::string(name_) + "." + name;
    out_.Begin(source_, name, arguments.end > 0 ? arguments.begin : body + 1);
    function_ = true;
    branches_.clear();
    function_depth_ = depth_ = 1;
    if (arguments.end > 0) ReadArguments(arguments);
    return body + 1;
  }

  // `@name`, or `sym_name = "name"` behind (or in front of) the body.
  std::string NameOf(size_t pos, size_t body, size_t limit,
                     bool generic) const {
    if (!generic) {
      const size_t at = text_.substr(0, body).find('@', pos);
      if (at == kNone) return "function";
      size_t end = at + 1;
      while (end < text_.size() && IsOpByte(text_[end])) ++end;
      return std::string(text_.substr(at + 1, end - at - 1));
    }
    for (const auto& [from, to] :
         {std::pair<size_t, size_t>{pos, body}, {body, limit}}) {
      const std::string_view part = text_.substr(0, to);
      const size_t at = from == pos ? part.find("sym_name = \"", from)
                                    : part.rfind("sym_name = \"");
      if (at == kNone || at < from) continue;
      const size_t end = part.find('"', at + 12);
      if (end != kNone) return std::string(part.substr(at + 12, end - at - 12));
    }
    return "function";
  }

  // The last " : " outside of brackets; npos when there is none.
  size_t TypeAt(Span span) const {
    size_t depth = 0;
    size_t found = kNone;
    for (size_t pos = span.begin; pos < span.end;) {
      const char c = text_[pos];
      if (c == '"') {
        pos = SkipQuoted(text_.substr(0, span.end), pos);
        continue;
      }
      if (IsOpen(c)) ++depth;
      if (IsClose(pos) && depth > 0) --depth;
      if (c == ':' && depth == 0 && pos + 1 < span.end &&
          IsSpace(text_[pos + 1]))
        found = pos;
      ++pos;
    }
    return found;
  }

  std::string Tuple(const std::vector<Span>& types) const {
    std::vector<std::string> results;
    for (const Span type : types)
      results.push_back(TypeResult(out_.Text(out_.Trim(type))));
    return TupleResult(results);
  }

  std::string ResultOf(Span type, size_t results) const {
    const std::string_view whole = out_.Text(type);
    Span span = type;
    // `(types) -> types`: what is behind the last arrow outside of brackets.
    size_t depth = 0;
    for (size_t pos = type.begin; pos < type.end; ++pos) {
      if (IsOpen(text_[pos])) ++depth;
      if (IsClose(pos) && depth > 0) --depth;
      if (depth == 0 && text_.substr(pos, 2) == "->") span.begin = pos + 2;
    }
    (void)whole;
    span = out_.Trim(span);
    // A location may follow.
    const size_t location = out_.Text(span).find(" loc(");
    if (location != kNone) span.end = span.begin + location;
    span = out_.Unwrap(span);
    if (!span.empty() && text_[span.begin] == '(') {
      return results == 0 ? "? : N/A"
                          : Tuple(Pieces({span.begin + 1, span.end - 1}));
    }
    if (results == 0) return "? : N/A";
    const std::vector<Span> pieces = Pieces(span);
    if (pieces.empty()) return "? : N/A";
    // `%0:2 = while(...) : type, type`.
    if (results > 1 && pieces.size() == results) return Tuple(pieces);
    // One type for all of several: the last.
    return TypeResult(out_.Text(out_.Trim(pieces.back())));
  }

  void AddOp(Span span, size_t after_name,
             const std::vector<std::string_view>& results, size_t values,
             std::string_view op) {
    const size_t type = TypeAt({after_name, span.end});
    Span body{after_name, type == kNone ? span.end : type};
    const bool is_return =
        op == "return" || op.ends_with(".return") || op == "std.return";
    // `call @f(...)` is the op call.f.
    std::string_view callee;
    if (op == "call" || op == "func.call") {
      const size_t at = Skip(body.begin);
      size_t end = at + 1;
      while (end < body.end && IsOpByte(text_[end])) ++end;
      if (at < body.end && text_[at] == '@' && end > at + 1) {
        callee = text_.substr(at + 1, end - at - 1);
        body.begin = end;
      }
    }
    captured_.clear();
    ReadBody(body);
    const std::vector<Span> regions = RegionsIn({after_name, span.end});
    // The pretty form has them behind the types.
    for (const Span region : regions) {
      if (region.begin >= body.end) ReadRegion(region.begin, span.end);
    }
    AddBranches(op, {after_name, span.end}, regions);
    Builder::Statement statement;
    statement.span = span;
    if (is_return) {
      // Of a region inside of an op nothing is read, so this one is ours.
      statement.kind = NodeKind::kOutput;
      out_.Add(statement);
      return;
    }
    statement.name = results.empty() ? out_.Fresh(op) : results[0];
    statement.target = op;
    if (!callee.empty())
      statement.target = out_.Keep("call." + std::string(callee));
    statement.result = out_.Keep(
        type == kNone ? "? : N/A" : ResultOf({type + 1, span.end}, values));
    const size_t location = LocationIn(out_.Text(span));
    if (location != kNone) {
      const Location place = locations_.At(span.begin + location);
      std::string scope(place.name);
      std::replace(scope.begin(), scope.end(), '/', '_');
      if (!scope.empty()) statement.origin.scope = out_.Keep(scope);
      const std::string line = place.Source();
      if (!line.empty()) statement.origin.source = out_.Keep(line);
    }
    out_.Add(statement);
    for (size_t i = 1; i < results.size(); ++i)
      out_.Alias(results[i], results[0]);
  }

  // Regions of an op, without those inside of them.
  std::vector<Span> RegionsIn(Span span) const {
    std::vector<Span> out;
    for (size_t pos = span.begin; pos < span.end;) {
      if (text_[pos] == '"') {
        pos = SkipQuoted(text_.substr(0, span.end), pos);
        continue;
      }
      if (text_[pos] == '{') {
        const size_t close =
            std::min(FindClose(text_, pos, span.end), span.end);
        if (IsRegion(pos)) out.push_back({pos, close});
        pos = close;
      }
      ++pos;
    }
    return out;
  }

  // Calls f(name) for the names of values in a span, behind their %; what is
  // quoted has none.
  template <class F>
  void ForNames(Span span, const F& f) const {
    for (size_t pos = span.begin; pos < span.end;) {
      if (text_[pos] == '"') {
        pos = SkipQuoted(text_.substr(0, span.end), pos);
      } else if (text_[pos] == '%') {
        const Span name = NameBehind(pos, span.end);
        f(name);
        pos = name.end;
      } else {
        ++pos;
      }
    }
  }

  std::string ResultAt(std::string_view name) const {
    const std::string_view known = out_.Resolve(name);
    const NodeId id = known.empty() ? NodeId() : out_.graph().Find(known);
    return id.valid() ? std::string(out_.graph()[id].result) : std::string();
  }

  void AddBranches(std::string_view op, Span span,
                   const std::vector<Span>& regions) {
    std::string_view kind = op;
    kind.remove_prefix(std::min(kind.rfind('.') + 1, kind.size()));
    if ((kind != "while" && kind != "case" && kind != "if") ||
        regions.empty() || branch_depth_ >= kMostBranchDepth)
      return;
    const std::string base = out_.graph().name() + "." + std::string(kind) +
                             "_" + std::to_string(branches_[kind]++) + ".";
    // `%iterArg = %c`: the arguments of a while.
    std::vector<std::pair<std::string_view, std::string>> around;
    for (size_t pos = span.begin; pos < regions[0].begin; ++pos) {
      if (text_[pos] != '%') continue;
      const Span name = NameBehind(pos, span.end);
      size_t at = Skip(name.end);
      pos = name.end - 1;
      if (at + 1 >= span.end || text_[at] != '=') continue;
      at = Skip(at + 1);
      if (at < span.end && text_[at] == '%')
        around.emplace_back(out_.Text(name),
                            ResultAt(out_.Text(NameBehind(at, span.end))));
    }
    for (size_t i = 0; i < regions.size(); ++i) {
      if (regions_.size() >= kMostBranches) return;
      Branch branch;
      branch.name = base + (kind == "while" ? (i == 0 ? "cond" : "body")
                            : kind == "if"  ? (i == 0 ? "true" : "false")
                                            : "branch_" + std::to_string(i));
      branch.body = {regions[i].begin + 1, regions[i].end};
      branch.depth = branch_depth_ + 1;
      branch.around = around;
      absl::flat_hash_set<std::string_view> seen;
      ForNames(branch.body, [&](Span of) {
        const std::string_view name = out_.Text(of);
        if (!out_.Resolve(name).empty() && seen.insert(name).second)
          branch.around.emplace_back(name, ResultAt(name));
      });
      regions_.push_back(std::move(branch));
    }
  }

  void ReadBranch(size_t i) {
    const Branch branch = std::move(regions_[i]);
    out_.Begin(source_, branch.name, 0);
    branches_.clear();
    branch_depth_ = branch.depth;
    for (const auto& [name, result] : branch.around) {
      if (!out_.Resolve(name).empty()) continue;
      Builder::Statement statement;
      statement.kind = NodeKind::kPlaceholder;
      statement.span = {branch.body.begin, branch.body.begin};
      statement.name = name;
      statement.result = out_.Keep(result);
      out_.Add(statement);
    }
    function_ = true;
    function_depth_ = depth_ = 1;
    for (size_t pos = branch.body.begin; pos < branch.body.end;)
      pos = ReadOuter(pos);
    if (function_) EndFunction(branch.body.end);
    branch_depth_ = 0;
  }

  // What a region at `pos` uses of what is defined around it; returns its end.
  size_t ReadRegion(size_t pos, size_t limit) {
    const size_t close = std::min(FindClose(text_, pos, limit), limit);
    ForNames({pos, close}, [&](Span name) {
      const std::string_view known = out_.Resolve(out_.Text(name));
      if (known.empty()) return;
      const std::string_view text = text_.substr(
          name.begin - 1, NumberEnd(name.end, close) - name.begin + 1);
      if (captured_.insert(text).second) out_.AddValue(known, text, true);
    });
    return std::min(close + 1, limit);
  }

  // Every known %name; dictionaries and other text once as a literal.
  void ReadBody(Span span) {
    size_t literal = kNone;
    size_t depth = 0;
    const auto flush = [&](size_t end) {
      if (literal == kNone) return;
      const Span text = out_.Trim({literal, end});
      literal = kNone;
      const std::string_view one = out_.Text(text);
      if (one.find_first_not_of("(), ") != kNone) out_.AddLiteral(one);
    };
    for (size_t pos = span.begin; pos < span.end;) {
      const char c = text_[pos];
      if (c == '%') {
        const size_t start = pos;
        const Span name = NameBehind(start, span.end);
        pos = NumberEnd(name.end, span.end);
        const std::string_view known = out_.Resolve(out_.Text(name));
        if (known.empty()) continue;  // defined inside of a region
        if (depth <= 1) flush(start);
        out_.AddValue(known, text_.substr(start, pos - start), depth > 1);
        continue;
      }
      if (c == '"') {
        if (literal == kNone && depth == 0) literal = pos;
        pos = SkipQuoted(text_.substr(0, span.end), pos);
        continue;
      }
      if (IsOpen(c)) {
        // `@f(%0)`: the callee ends where its operands begin.
        if (c == '(' && depth == 0) flush(pos);
        // Of a region only what it uses is told.
        if (c == '{' && IsRegion(pos)) {
          if (depth <= 1) flush(pos);
          pos = ReadRegion(pos, span.end);
          continue;
        }
        if (literal == kNone && (depth > 0 || c != '(')) literal = pos;
        ++depth;
      } else if (IsClose(pos)) {
        if (depth > 0) --depth;
      } else if (literal == kNone && depth == 0 && c != ',' && !IsSpace(c)) {
        literal = pos;
      }
      ++pos;
    }
    flush(span.end);
  }

  const SourceText& source_;
  std::string_view name_;
  Builder& out_;
  std::string_view text_;
  Locations locations_;
  bool function_ = false;
  size_t depth_ = 0;
  size_t function_depth_ = 0;
  std::vector<Branch> regions_;
  absl::flat_hash_set<std::string_view> captured_;  // by the op at hand
  // Ops of control flow of the graph at hand, by kind.
  absl::flat_hash_map<std::string_view, size_t> branches_;
  size_t branch_depth_ = 0;
};

}  // namespace

void ReadMlir(const SourceText& source, std::string_view name, Builder& out) {
  MlirReader(source, name, out).Run();
}

}  // namespace lamina::graph
