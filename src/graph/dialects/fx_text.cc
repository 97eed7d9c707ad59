// SPDX-License-Identifier: Apache-2.0
//
// FX graphs as Python text. Read by brackets and quotes, never by line: a
// formatter may break a statement anywhere. Nothing is executed or imported.
// One file, because statements, names and weights of this dialect know each
// other.
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <map>
#include <optional>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/text.h"
#include "graph/dialects/readers.h"
#include "graph/line_parser.h"
#include "graph/types.h"

namespace lamina::graph {
namespace {

// A weight's path in the names of dynamo: "L_self_modules_layers_modules_3_
// modules_fc_parameters_weight_". Empty for other inputs.
std::string DynamoPath(std::string_view name) {
  const size_t old = name.find("L__self___");
  if (old != kNone) return std::string(name.substr(old + 10));
  if (!name.starts_with("L_") && !name.starts_with("l_")) return {};
  if (name.find("_parameters_") == kNone && name.find("_buffers_") == kNone)
    return {};
  name.remove_prefix(2);
  if (name.ends_with('_')) name.remove_suffix(1);
  std::string out;
  // The first part is the object that holds the module.
  bool first = true;
  while (!name.empty()) {
    size_t at = name.size();
    size_t next = at;
    for (const std::string_view word :
         {"_modules_", "_parameters_", "_buffers_"}) {
      const size_t found = name.find(word);
      if (found < at) {
        at = found;
        next = found + word.size();
      }
    }
    if (!first) {
      if (!out.empty()) out += '.';
      out += name.substr(0, at);
    }
    first = false;
    name.remove_prefix(next);
  }
  return out;
}

// Targets of an ExportedProgram's inputs: its signature stands behind it.
struct Signature {
  bool found = false;
  absl::flat_hash_map<std::string_view, std::string_view> weights;

  static std::string_view Quoted(std::string_view text, std::string_view key) {
    const size_t at = text.find(key);
    if (at == kNone) return {};
    const size_t begin = at + key.size();
    const size_t end = text.find('\'', begin);
    return end == kNone ? std::string_view() : text.substr(begin, end - begin);
  }

  void Read(std::string_view text) {
    const size_t at = text.find("\nGraph signature:");
    if (at == kNone) return;
    found = true;
    text.remove_prefix(at);
    const auto is_weight = [](std::string_view kind) {
      return kind.starts_with("PARAMETER") || kind.starts_with("BUFFER:") ||
             kind.starts_with("BUFFER ") || kind.starts_with("CONSTANT_TENSOR");
    };
    // InputSpec(kind=<InputKind.PARAMETER: 2>, arg=...(name='..'), target='..'
    for (size_t pos = text.find("<InputKind."); pos != kNone;) {
      const size_t next = text.find("<InputKind.", pos + 1);
      const std::string_view spec =
          text.substr(pos, std::min(next, text.size()) - pos);
      if (is_weight(spec.substr(11)))
        weights.try_emplace(Quoted(spec, "name='"), Quoted(spec, "target='"));
      pos = next;
    }
    // `    p_fc_weight: PARAMETER target='fc.weight'`
    while (!text.empty()) {
      std::string_view line = TakeUntil(text, '\n');
      while (line.starts_with(' ')) line.remove_prefix(1);
      const size_t colon = line.find(": ");
      if (colon == kNone || line.find('(') != kNone) continue;
      if (is_weight(line.substr(colon + 2)))
        weights.try_emplace(line.substr(0, colon), Quoted(line, "target='"));
    }
  }

  // The path of an input; empty for what is no weight.
  std::string_view PathOf(std::string_view name) const {
    const auto found_at = weights.find(name);
    if (found_at == weights.end()) return {};
    return found_at->second.empty() && name.size() > 2 ? name.substr(2)
                                                       : found_at->second;
  }
};

// `name: "annotation"  # description` in a body.
struct Declared {
  std::string_view annotation;
  std::string_view description;
};

class FxReader {
 public:
  FxReader(const SourceText& source, std::string_view name, Builder& out)
      : source_(source), name_(name), out_(out), text_(source.text()) {}

  void Run() {
    exported_ = text_.find("ExportedProgram:") != kNone;
    if (exported_) signature_.Read(text_);
    ReadInnerNames();
    size_t pos = 0;
    while (pos < text_.size()) {
      const size_t def = text_.find("def forward(", pos);
      if (def == kNone) break;
      pos = ReadGraph(pos, def);
    }
  }

 private:
  static bool IsSpace(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
  }
  size_t LineBegin(size_t pos) const {
    const size_t end = pos == 0 ? kNone : text_.rfind('\n', pos - 1);
    return end == kNone ? 0 : end + 1;
  }
  size_t LineEnd(size_t pos) const {
    return std::min(text_.find('\n', pos), text_.size());
  }

  std::string_view RestOfLine(size_t pos) const {
    return text_.substr(pos, LineEnd(pos) - pos);
  }

  // Classes inside of others: `self.cond_true_0` is such a graph, no weight.
  void ReadInnerNames() {
    constexpr std::string_view kModule = "(torch.nn.Module):";
    for (size_t at = text_.find(kModule); at != kNone;
         at = text_.find(kModule, at + 1)) {
      const size_t line = LineBegin(at);
      size_t begin = line;
      while (begin < at && text_[begin] == ' ') ++begin;
      const std::string_view head = text_.substr(begin, at - begin);
      if (begin > line && head.starts_with("class "))
        inner_names_.insert(head.substr(6));
    }
  }

  // What the text in front of a graph calls it.
  std::string NameOf(size_t from, size_t def) {
    const std::string_view before = text_.substr(from, def - from);
    std::string own = "forward";
    size_t indent = 0;
    const size_t header = before.rfind("(torch.nn.Module):");
    if (header != kNone) {
      const size_t at = before.rfind("class ", header);
      if (at != kNone) {
        own = std::string(before.substr(at + 6, header - at - 6));
        const size_t line = LineBegin(from + at);
        while (line + indent < text_.size() && text_[line + indent] == ' ')
          ++indent;
        // A graph inside of the class before.
        while (!outer_.empty() && outer_.back().first >= indent)
          outer_.pop_back();
        if (!outer_.empty()) own = outer_.back().second + "." + own;
        const bool inner = !outer_.empty();
        if (!inner && !name_.empty()) own = std::string(name_);
        if (!inner && name_.empty()) {
          if (exported_) own = "forward";
          // ` ===== Forward graph 0 =====`
          const size_t title = before.rfind(" ===== ");
          const size_t rule = before.find(
              " =====",
              std::min(title == kNone ? title : title + 7, before.size()));
          const size_t start =
              title == kNone || rule == kNone
                  ? kNone
                  : before.substr(0, rule).find("===== ", title);
          if (start != kNone) {
            own = std::string(before.substr(start + 6, rule - start - 6));
          }
        }
        outer_.emplace_back(indent, own);
        return own;
      }
    }
    outer_.clear();
    return name_.empty() ? own : std::string(name_);
  }

  // Reads one forward; returns where to go on.
  size_t ReadGraph(size_t from, size_t def) {
    const size_t line = LineBegin(def);
    indent_ = def - line;
    const size_t open = def + 11;
    const size_t close = CloseOf(open);
    out_.Begin(source_, NameOf(from, def), open + 1);
    inner_ = outer_.size() > 1;
    iadd_.clear();
    source_line_ = {};
    declared_.clear();
    if (close == kNone) {
      out_.Error(text_.size() - (text_.empty() ? 0 : 1),
                 "truncated: expected ')' behind the parameters of forward");
      out_.End();
      return text_.size();
    }
    const size_t colon = text_.find(':', close);
    size_t body = colon == kNone ? text_.size() : colon + 1;
    // The return type may hold colons.
    const size_t arrow = text_.substr(0, body).find("->", close);
    if (arrow != kNone) body = LineEnd(arrow);
    const bool bound = HasBind(body);
    ReadParameters({open + 1, close}, bound);
    const size_t end = ReadBody(body);
    TakeTuples();
    if (!out_.graph().output().valid())
      out_.Warn(end == 0 ? 0 : end - 1,
                "truncated: graph '" + EscapeTerminal(out_.graph().name()) +
                    "' has no return");
    out_.End();
    return std::max(end, open + 1);
  }

  // The bracket that closes, comments with quotes skipped.
  size_t CloseOf(size_t open) const {
    size_t depth = 0;
    for (size_t pos = open; pos < text_.size();) {
      const char c = text_[pos];
      if (c == '#') {
        pos = LineEnd(pos);
        continue;
      }
      if (ByteOf(c) == Byte::kQuote) {
        pos = SkipQuoted(text_, pos);
        continue;
      }
      if (ByteOf(c) == Byte::kOpen) ++depth;
      if (ByteOf(c) == Byte::kClose && --depth == 0) return pos;
      ++pos;
    }
    return kNone;
  }

  // Whether the parameters are trees that a first statement takes apart.
  bool HasBind(size_t body) const {
    size_t pos = body;
    for (int i = 0; i < 2000 && pos < text_.size(); ++i) {
      const size_t end = LineEnd(pos);
      const std::string_view line = text_.substr(pos, end - pos);
      if (line.find("fx_pytree.tree_flatten_spec(") != kNone) return true;
      if (line.find(" = torch.") != kNone || line.find("return ") != kNone)
        return false;
      pos = end + 1;
    }
    return false;
  }

  // The number of an input of AOT: 0 for primals_1 and arg0_1.
  static std::optional<size_t> PrimalOf(std::string_view name) {
    const bool primal = name.starts_with("primals_");
    if (!primal && !(name.starts_with("arg") && name.ends_with("_1")))
      return std::nullopt;
    name.remove_prefix(primal ? 8 : 3);
    if (!primal) name.remove_suffix(2);
    const auto number = ParseInt(name);
    if (!number || *number < (primal ? 1 : 0)) return std::nullopt;
    return static_cast<size_t>(*number - (primal ? 1 : 0));
  }

  // Whether two results are alike up to the names of symbols, each of which is
  // always the same one.
  static bool Agree(std::string_view a, std::string_view b,
                    std::map<std::string, std::string, std::less<>>& symbols) {
    const auto parts = [](std::string_view result) {
      const size_t colon = result.find(" : ");
      return std::pair(result.substr(0, colon),
                       colon == kNone ? "" : result.substr(colon + 3));
    };
    const auto [shape_a, type_a] = parts(a);
    const auto [shape_b, type_b] = parts(b);
    const auto dims_a = SplitShape(shape_a);
    const auto dims_b = SplitShape(shape_b);
    if (type_a != type_b || !dims_a || !dims_b ||
        dims_a->size() != dims_b->size())
      return type_a == type_b && shape_a == shape_b;
    for (size_t i = 0; i < dims_a->size(); ++i) {
      const std::string_view one = (*dims_a)[i];
      const std::string_view other = (*dims_b)[i];
      const bool number = ParseInt(one).has_value();
      if (number != ParseInt(other).has_value()) return false;
      if (number && one != other) return false;
      if (number) continue;
      const auto [known, fresh] = symbols.try_emplace(std::string(one), other);
      if (!fresh && known->second != other) return false;
    }
    return true;
  }

  struct Parameter {
    Span span;
    std::string_view name;
    std::string_view annotation;
    std::string_view description;
  };

  // Whether the primals are the inputs of the graph of dynamo: all of them are
  // there, or in a backward graph some, each with shape and type of its own.
  static bool Joins(const std::vector<Builder::Input>& primals,
                    const std::vector<Parameter>& parameters) {
    size_t found = 0;
    bool backward = false;
    std::map<std::string, std::string, std::less<>> symbols;
    for (const Parameter& one : parameters) {
      const auto primal = PrimalOf(one.name);
      if (!primal) {
        // Values that the forward graph saved, and tangents behind primals.
        backward = backward || !one.name.starts_with("tangents_");
        continue;
      }
      if (*primal >= primals.size() ||
          !Agree(primals[*primal].result, ResultOfAnnotation(one.annotation),
                 symbols))
        return false;
      ++found;
    }
    return found > 0 && (backward || found == primals.size());
  }

  // The inputs of dynamo that the primals are; null: not known. A backward
  // graph is compiled when other frames may have been: where several of their
  // graphs fit and name the primals otherwise, it is none of them.
  const std::vector<Builder::Input>* PrimalsOf(
      const std::vector<Parameter>& parameters) const {
    const auto primals = static_cast<size_t>(
        std::count_if(parameters.begin(), parameters.end(),
                      [](const auto& one) { return PrimalOf(one.name); }));
    if (!out_.primals || primals == 0) return nullptr;
    const std::vector<Builder::Input>* const nearest = out_.primals(0);
    if (nearest == nullptr) return nullptr;
    const std::vector<Builder::Input>* chosen =
        Joins(*nearest, parameters) ? nearest : nullptr;
    if (primals == parameters.size()) return chosen;
    if (out_.more_primals) return nullptr;
    for (size_t i = 1;; ++i) {
      const std::vector<Builder::Input>* const other = out_.primals(i);
      if (other == nullptr) return chosen;
      if (!Joins(*other, parameters)) continue;
      if (chosen == nullptr) {
        chosen = other;
        continue;
      }
      for (const Parameter& one : parameters) {
        const auto primal = PrimalOf(one.name);
        if (primal && (*chosen)[*primal].path != (*other)[*primal].path)
          return nullptr;
      }
    }
  }

  void Input(Span span, std::string_view name, std::string_view annotation,
             std::string_view description,
             const std::vector<Builder::Input>* primals = nullptr) {
    const std::string result = ResultOfAnnotation(annotation);
    std::string path;
    if (signature_.found) path = std::string(signature_.PathOf(name));
    const size_t described = description.find("AOTInput(target='");
    if (path.empty() && described != kNone &&
        (description.find("Param") != kNone ||
         description.find("Buffer") != kNone)) {
      path = std::string(Signature::Quoted(description, "target='"));
    }
    if (path.empty()) path = DynamoPath(name);
    if (path.empty() && exported_ && !signature_.found &&
        (name.starts_with("p_") || name.starts_with("b_") ||
         name.starts_with("c_")))
      path = std::string(name.substr(2));
    if (!inner_) out_.inputs.push_back({path, result});
    const auto primal = PrimalOf(name);
    if (path.empty() && primals != nullptr && primal) {
      path = (*primals)[*primal].path;
      if (!path.empty()) out_.named_by = primals;
    }
    if (!path.empty()) {
      out_.Weight(name, path, result);
      return;
    }
    Builder::Statement statement;
    statement.kind = NodeKind::kPlaceholder;
    statement.span = span;
    statement.name = name;
    statement.result = result.empty() ? result : out_.Keep(result);
    out_.Add(statement);
  }

  void ReadParameters(Span span, bool bound) {
    std::vector<Parameter> parameters;
    for (Span piece : out_.SplitAt(span, ',')) {
      // The description of the parameter before may stand in front.
      piece = out_.Trim(piece);
      while (!piece.empty() && text_[piece.begin] == '#')
        piece =
            out_.Trim({std::min(LineEnd(piece.begin), piece.end), piece.end});
      if (piece.empty()) continue;
      size_t pos = piece.begin;
      while (pos < piece.end && text_[pos] == '*') ++pos;
      const size_t begin = pos;
      while (pos < piece.end && IsNameByte(text_[pos])) ++pos;
      const std::string_view name = text_.substr(begin, pos - begin);
      if (name.empty() || name == "self" || bound) continue;
      std::string_view annotation;
      if (pos < piece.end && text_[pos] == ':')
        annotation = Unquoted(out_.Trim({pos + 1, piece.end}));
      // A description follows the comma, on the same line.
      const size_t hash = text_.find_first_not_of(", \t", piece.end);
      const bool described = hash != kNone && text_[hash] == '#';
      parameters.push_back({piece, name, annotation,
                            described ? RestOfLine(hash) : std::string_view()});
    }
    Inputs(parameters);
  }

  // Those of a graph inside of another are its own: they are neither inputs of
  // the compilation nor made of them, whatever they are called.
  void Inputs(const std::vector<Parameter>& parameters) {
    if (!inner_) out_.inputs.clear();
    const auto* const primals = inner_ ? nullptr : PrimalsOf(parameters);
    for (const Parameter& one : parameters)
      Input(one.span, one.name, one.annotation, one.description, primals);
  }

  std::string_view Unquoted(Span span) const {
    std::string_view text = text_.substr(span.begin, span.end - span.begin);
    if (text.size() >= 2 && ByteOf(text.front()) == Byte::kQuote) {
      const size_t end = SkipQuoted(text, 0);
      return text.substr(1, end > 2 ? end - 2 : 0);
    }
    return text;
  }

  // Statements up to the return or to a line that belongs to no forward.
  size_t ReadBody(size_t pos) {
    while (pos < text_.size()) {
      const char c = text_[pos];
      if (IsSpace(c) || c == ';' || c == '\\') {
        ++pos;
        continue;
      }
      const size_t line = LineBegin(pos);
      const bool starts =
          text_.substr(line, pos - line).find_first_not_of(" \t") == kNone;
      if (c == '#') {
        ReadComment(pos);
        pos = LineEnd(pos);
        continue;
      }
      if (starts && pos - line <= indent_) return pos;
      if (text_.substr(pos, 3) == "\"\"\"") {
        const size_t end = text_.find("\"\"\"", pos + 3);
        if (end == kNone) {
          out_.Error(pos, "truncated: expected the end of this text");
          return text_.size();
        }
        pos = end + 3;
        continue;
      }
      const size_t end = StatementEnd(pos);
      if (end == kNone) {
        out_.Error(pos, "truncated: brackets of this statement do not close");
        return text_.size();
      }
      const Span statement = out_.Trim({pos, end});
      if (out_.Text(statement).starts_with("return") &&
          (statement.end - statement.begin == 6 ||
           !IsNameByte(text_[statement.begin + 6]))) {
        ReadReturn(statement);
        return end;
      }
      if (!statement.empty()) ReadStatement(statement);
      pos = std::max(end, pos + 1);
    }
    return pos;
  }

  // Past a statement: a line end, ';' or comment outside of brackets.
  size_t StatementEnd(size_t pos) const {
    size_t depth = 0;
    while (pos < text_.size()) {
      const char c = text_[pos];
      if (ByteOf(c) == Byte::kQuote) {
        pos = SkipQuoted(text_, pos);
        continue;
      }
      if (c == '#') {
        if (depth == 0) return pos;
        pos = LineEnd(pos);
        continue;
      }
      if (c == '\\' && pos + 1 < text_.size() && text_[pos + 1] == '\n') {
        pos += 2;
        continue;
      }
      if (ByteOf(c) == Byte::kOpen) ++depth;
      if (ByteOf(c) == Byte::kClose && depth > 0) --depth;
      if (depth == 0 && (c == '\n' || c == ';')) return pos;
      ++pos;
    }
    return depth == 0 ? pos : kNone;
  }

  // `# File: path:12 in forward, code: text`
  void ReadComment(size_t pos) {
    const std::string_view line = text_.substr(pos, LineEnd(pos) - pos);
    const size_t file = line.find("File: ");
    if (file != kNone && line.starts_with('#')) {
      source_line_ = line.substr(file + 6);
    } else if (line.starts_with("# No stacktrace")) {
      source_line_ = {};
    }
  }

  // Positions of '=' outside of brackets that assign.
  std::vector<size_t> Assignments(Span span) const {
    std::vector<size_t> out;
    size_t depth = 0;
    for (size_t pos = span.begin; pos < span.end;) {
      const char c = text_[pos];
      if (ByteOf(c) == Byte::kQuote) {
        pos = SkipQuoted(text_.substr(0, span.end), pos);
        continue;
      }
      if (ByteOf(c) == Byte::kOpen) ++depth;
      if (ByteOf(c) == Byte::kClose && depth > 0) --depth;
      if (c == '=' && depth == 0) {
        const char before = pos > span.begin ? text_[pos - 1] : ' ';
        const char next = pos + 1 < span.end ? text_[pos + 1] : ' ';
        if (next == '=') {
          pos += 2;
          continue;
        }
        if (std::string_view("=!<>").find(before) == kNone) out.push_back(pos);
      }
      ++pos;
    }
    return out;
  }

  void ReadStatement(Span span) {
    const std::vector<size_t> equals = Assignments(span);
    const std::string_view whole = out_.Text(span);
    if (equals.empty()) {
      if (whole == "pass" || whole.starts_with("assert ") ||
          whole.starts_with("del ") || whole.starts_with("import ") ||
          whole.starts_with("from "))
        return;
      // `name: "annotation"` declares an input of a tree.
      size_t pos = span.begin;
      while (pos < span.end && IsNameByte(text_[pos])) ++pos;
      if (pos > span.begin && pos < span.end && text_[pos] == ':') {
        const std::string_view line = RestOfLine(span.end);
        const size_t hash = line.find('#');
        declared_[text_.substr(span.begin, pos - span.begin)] = {
            Unquoted(out_.Trim({pos + 1, span.end})),
            hash != kNone ? line.substr(hash) : std::string_view()};
        return;
      }
      Opaque(span, {});
      return;
    }
    const Span value = out_.Unwrap({equals.back() + 1, span.end});
    if (out_.Text(value) == "None") return;  // deletions
    const Span left = out_.Unwrap({span.begin, equals.front()});
    // `x += y`
    static constexpr std::string_view kInPlace = "+-*/%@&|^<>";
    if (equals.size() == 1 && equals[0] > span.begin &&
        kInPlace.find(text_[equals[0] - 1]) != kNone) {
      size_t op = equals[0];
      while (op > span.begin && kInPlace.find(text_[op - 1]) != kNone) --op;
      const Span target = out_.Trim({span.begin, op});
      iadd_ = out_.Text(target);
      iadd_op_ = text_.substr(op, equals[0] - op);
      iadd_target_ = target;
      iadd_value_ = value;
      iadd_span_ = span;
      return;
    }
    size_t pos = left.begin;
    while (pos < left.end && IsNameByte(text_[pos])) ++pos;
    const std::string_view name = text_.substr(left.begin, pos - left.begin);
    const Span rest = out_.Trim({pos, left.end});
    std::string_view annotation;
    if (!rest.empty() && text_[rest.begin] == ':') {
      annotation = Unquoted(out_.Trim({rest.begin + 1, rest.end}));
    } else if (!rest.empty() || name.empty()) {
      if (out_.Text(value).find("tree_flatten_spec(") != kNone ||
          out_.Text(value).find("tree_leaves(") != kNone) {
        Bind(left);
      } else {
        Opaque(span, {});
      }
      return;
    }
    Expression(span, name, annotation, value);
  }

  // `a, b, = fx_pytree.tree_flatten_spec(...)`: these are the inputs.
  void Bind(Span names) {
    std::vector<Parameter> parameters;
    for (Span piece : out_.SplitAt(names, ',')) {
      piece = out_.Trim(piece);
      const std::string_view name = out_.Text(piece);
      if (name.empty()) continue;
      const auto found = declared_.find(name);
      const Declared declared =
          found == declared_.end() ? Declared() : found->second;
      parameters.push_back(
          {piece, name, declared.annotation, declared.description});
    }
    Inputs(parameters);
  }

  // The path behind `self.` or `getattr(self.`; empty when it is none, or when
  // something follows it.
  std::string SelfPath(std::string_view text) const {
    if (text.starts_with("self.")) {
      const std::string_view path = text.substr(5);
      const bool plain =
          !path.empty() && std::all_of(path.begin(), path.end(), [](char c) {
            return IsNameByte(c) || c == '.';
          });
      return plain ? std::string(path) : std::string();
    }
    if (!text.starts_with("getattr(")) return {};
    const size_t close = FindClose(text, 7, text.size());
    if (close == kNone) return {};
    const std::string_view inside = text.substr(8, close - 8);
    const size_t comma = inside.rfind(',');
    if (comma == kNone) return {};
    std::string_view key = inside.substr(comma + 1);
    while (key.starts_with(' ')) key.remove_prefix(1);
    if (key.size() < 2 || ByteOf(key.front()) != Byte::kQuote) return {};
    key = key.substr(1, key.size() - 2);
    // Nested at most as deep as modules are.
    std::string out = inside.substr(0, comma) == "self"
                          ? std::string()
                          : SelfPath(inside.substr(0, comma));
    if (out.empty() && inside.substr(0, comma) != "self") return {};
    if (!out.empty()) out += '.';
    out += key;
    const std::string_view rest = text.substr(close + 1);
    if (rest.empty()) return out;
    const bool plain = rest.size() > 1 && rest[0] == '.' &&
                       std::all_of(rest.begin(), rest.end(), [](char c) {
                         return IsNameByte(c) || c == '.';
                       });
    return plain ? out + std::string(rest) : std::string();
  }

  void Expression(Span span, std::string_view name, std::string_view annotation,
                  Span value) {
    const std::string_view text = out_.Text(value);
    // A rename, of an input or of what an in-place operator changed.
    const bool bare = !text.empty() && IsNameStart(text[0]) &&
                      std::all_of(text.begin(), text.end(), IsNameByte);
    if (bare && !iadd_.empty() && text == iadd_) {
      InPlace(span, name, annotation);
      return;
    }
    if (bare && out_.Known(text)) {
      out_.Alias(name, out_.Resolve(text));
      return;
    }
    const std::string path = SelfPath(text);
    // Operands that name the graph stay as they are written.
    if (inner_names_.contains(path)) return;
    if (!path.empty()) {
      const std::string dynamo = DynamoPath(path);
      out_.Weight(name, dynamo.empty() ? path : dynamo,
                  ResultOfAnnotation(annotation));
      return;
    }
    if (text.ends_with(')') || text.ends_with(']')) {
      if (Call(span, name, annotation, value)) return;
    }
    if (Operator(span, name, annotation, value)) return;
    // `x.dtype`
    const size_t dot = text.rfind('.');
    if (dot != kNone && dot > 0 && out_.Known(text.substr(0, dot))) {
      out_.ReadOperand({value.begin, value.begin + dot}, NameStyle::kBare);
      out_.AddLiteral(text.substr(dot + 1));
      Node(span, name, annotation, "builtins.getattr", {});
      return;
    }
    Opaque(span, name);
  }

  // A bracket that ends the value and begins behind a callee.
  bool Call(Span span, std::string_view name, std::string_view annotation,
            Span value) {
    // The last bracket at depth 0 that closes at the end.
    size_t open = kNone;
    for (size_t pos = value.begin; pos < value.end;) {
      const Byte byte = ByteOf(text_[pos]);
      if (byte == Byte::kQuote) {
        pos = SkipQuoted(text_.substr(0, value.end), pos);
        continue;
      }
      if (byte == Byte::kOpen) {
        const size_t close = FindClose(text_, pos, value.end);
        if (close == kNone) return false;
        if (close == value.end - 1) {
          open = pos;
          break;
        }
        pos = close + 1;
        continue;
      }
      // Blanks stand around operators only.
      if (IsSpace(text_[pos])) return false;
      ++pos;
    }
    if (open == kNone || open == value.begin) return false;
    const Span callee = out_.Trim({value.begin, open});
    const std::string_view who = out_.Text(callee);
    const Span inside{open + 1, value.end - 1};
    if (text_[open] == '[') {
      if (!out_.Known(who)) return false;
      out_.ReadOperand(callee, NameStyle::kBare);
      out_.ReadOperand(inside, NameStyle::kBare);
      Node(span, name, annotation, "operator.getitem", {});
      return true;
    }
    if (text_[open] != '(') return false;
    const std::string path = SelfPath(who);
    if (!path.empty()) {
      out_.ReadOperands(inside, NameStyle::kBare);
      const std::string_view scope = out_.Keep(
          Underscored(DynamoPath(path).empty() ? path : DynamoPath(path)));
      Node(span, name, annotation, out_.Keep("module." + path), scope);
      return true;
    }
    const size_t dot = who.rfind('.');
    if (dot != kNone && dot > 0 && out_.Known(who.substr(0, dot))) {
      out_.ReadOperand({callee.begin, callee.begin + dot}, NameStyle::kBare);
      out_.ReadOperands(inside, NameStyle::kBare);
      Node(span, name, annotation,
           out_.Keep("method." + std::string(who.substr(dot + 1))), {});
      return true;
    }
    const bool dotted =
        IsNameStart(who[0]) && std::all_of(who.begin(), who.end(), [](char c) {
          return IsNameByte(c) || c == '.';
        });
    if (!dotted) return false;
    out_.ReadOperands(inside, NameStyle::kBare);
    const std::string_view target = who == "getattr"
                                        ? std::string_view("builtins.getattr")
                                        : NormalizedTorch(who);
    Node(span, name, annotation, target, {});
    return true;
  }

  static std::string_view BinaryName(std::string_view op) {
    static constexpr std::pair<std::string_view, std::string_view> kOps[] = {
        {"+", "operator.add"},       {"-", "operator.sub"},
        {"*", "operator.mul"},       {"/", "operator.truediv"},
        {"//", "operator.floordiv"}, {"%", "operator.mod"},
        {"@", "operator.matmul"},    {"**", "operator.pow"},
        {"&", "operator.and_"},      {"|", "operator.or_"},
        {"^", "operator.xor"},       {"<<", "operator.lshift"},
        {">>", "operator.rshift"},   {"<", "operator.lt"},
        {"<=", "operator.le"},       {"==", "operator.eq"},
        {"!=", "operator.ne"},       {">", "operator.gt"},
        {">=", "operator.ge"},       {"is", "operator.is_"},
        {"in", "operator.contains"}};
    for (const auto& [sign, target] : kOps) {
      if (op == sign) return target;
    }
    return {};
  }

  bool Operator(Span span, std::string_view name, std::string_view annotation,
                Span value) {
    const std::string_view text = out_.Text(value);
    for (const auto& [sign, target] :
         {std::pair<std::string_view, std::string_view>{"not ",
                                                        "operator.not_"},
          {"~", "operator.invert"},
          {"-", "operator.neg"}}) {
      if (!text.starts_with(sign) || text.size() <= sign.size() ||
          IsDigit(text[1]))
        continue;
      const Span rest = out_.Unwrap({value.begin + sign.size(), value.end});
      if (!out_.Known(out_.Text(rest))) continue;
      out_.ReadOperand(rest, NameStyle::kBare);
      Node(span, name, annotation, target, {});
      return true;
    }
    // An operator between blanks, outside of brackets.
    size_t depth = 0;
    for (size_t pos = value.begin; pos < value.end;) {
      const char c = text_[pos];
      if (ByteOf(c) == Byte::kQuote) {
        pos = SkipQuoted(text_.substr(0, value.end), pos);
        continue;
      }
      if (ByteOf(c) == Byte::kOpen) ++depth;
      if (ByteOf(c) == Byte::kClose && depth > 0) --depth;
      if (depth == 0 && IsSpace(c) && pos > value.begin) {
        size_t begin = pos;
        while (begin < value.end && IsSpace(text_[begin])) ++begin;
        size_t end = begin;
        while (end < value.end && !IsSpace(text_[end])) ++end;
        const std::string_view target =
            BinaryName(text_.substr(begin, end - begin));
        if (!target.empty() && end < value.end) {
          out_.ReadOperand(out_.Unwrap({value.begin, pos}), NameStyle::kBare);
          out_.ReadOperand(out_.Unwrap({end, value.end}), NameStyle::kBare);
          Node(span, name, annotation, target, {});
          return true;
        }
        pos = begin;
        continue;
      }
      ++pos;
    }
    return false;
  }

  void InPlace(Span span, std::string_view name, std::string_view annotation) {
    out_.ReadOperand(iadd_target_, NameStyle::kBare);
    out_.ReadOperand(iadd_value_, NameStyle::kBare);
    const std::string_view plain = BinaryName(iadd_op_);
    const std::string_view tail =
        plain.empty() ? plain : plain.substr(plain.find('.') + 1);
    std::string target = "operator.i" + std::string(tail);
    if (target.ends_with('_')) target.pop_back();
    Node({iadd_span_.begin, span.end}, name, annotation, out_.Keep(target), {});
    iadd_ = {};
  }

  void Node(Span span, std::string_view name, std::string_view annotation,
            std::string_view target, std::string_view scope) {
    Builder::Statement statement;
    statement.span = span;
    statement.name = name;
    statement.target = target;
    const std::string result = ResultOfAnnotation(annotation);
    if (!result.empty()) statement.result = out_.Keep(result);
    statement.origin = {source_line_, scope};
    out_.Add(statement);
  }

  // What is no statement that FX prints: kept, with the names in it.
  void Opaque(Span span, std::string_view name) {
    out_.Warn(span.begin, "expected a statement of a graph, found '" +
                              EscapeTerminal(out_.Text(span).substr(0, 60)) +
                              "'");
    const std::vector<size_t> equals = Assignments(span);
    const size_t begin = equals.empty() ? span.begin : equals.back() + 1;
    out_.ReadOperand({begin, span.end}, NameStyle::kBare);
    Node(span, name.empty() ? out_.Fresh("opaque") : name, {}, "opaque", {});
  }

  void ReadReturn(Span span) {
    Span value = out_.Trim({span.begin + 6, span.end});
    const std::string_view text = out_.Text(value);
    // `pytree.tree_unflatten([...], self._out_spec)`
    if (text.find("tree_unflatten(") != kNone) {
      const size_t open = text_.find('(', value.begin);
      const size_t close = FindClose(text_, open, value.end);
      if (close != kNone) {
        const std::vector<Span> pieces = out_.SplitAt({open + 1, close}, ',');
        if (!pieces.empty()) value = out_.Trim(pieces[0]);
      }
    }
    // The brackets of the list are no operand.
    if (!value.empty() && ByteOf(text_[value.begin]) == Byte::kOpen &&
        CloseOf(value.begin) == value.end - 1)
      value = {value.begin + 1, value.end - 1};
    out_.ReadOperands(value, NameStyle::kBare);
    Builder::Statement statement;
    statement.kind = NodeKind::kOutput;
    statement.span = span;
    out_.Add(statement);
  }

  // A value with several results has those that its users take.
  void TakeTuples() {
    Graph& graph = out_.graph();
    for (const NodeId id : graph.nodes()) {
      if (graph[id].kind != NodeKind::kOp || graph[id].result != "? : N/A")
        continue;
      std::vector<std::string_view> parts;
      bool indexed = true;
      graph.ForEachUse(id, [&](OperandId, const Operand& use) {
        const NodeId user = use.owner();
        const auto operands = graph.Operands(user);
        if (graph.op(user) != "builtin.getitem" || operands.size() != 2 ||
            !operands[0].IsValue() || operands[0].value() != id ||
            operands[1].kind != OperandKind::kLiteral ||
            operands[1].text().size() > 4 || operands[1].text().empty() ||
            !std::all_of(operands[1].text().begin(), operands[1].text().end(),
                         IsDigit)) {
          indexed = false;
          return;
        }
        const size_t at = std::stoul(std::string(operands[1].text()));
        if (at >= parts.size()) parts.resize(at + 1);
        parts[at] = graph[user].result;
      });
      if (!indexed || parts.empty()) continue;
      std::string shapes;
      std::string dtypes;
      for (const std::string_view part : parts) {
        const ResultText one = SplitResult(part.empty() ? "? : ?" : part);
        shapes += (shapes.empty() ? "(" : ", ") + std::string(one.shape);
        dtypes += (dtypes.empty() ? "(" : ", ") + std::string(one.dtype);
      }
      graph.FillResult(id, graph.Keep(shapes + ") : " + dtypes + ")"));
    }
  }

  const SourceText& source_;
  std::string_view name_;
  Builder& out_;
  std::string_view text_;
  bool exported_ = false;
  Signature signature_;
  std::vector<std::pair<size_t, std::string>> outer_;  // indent, name
  absl::flat_hash_set<std::string_view> inner_names_;
  bool inner_ = false;  // the graph at hand stands in another
  size_t indent_ = 0;
  std::string_view source_line_;
  absl::flat_hash_map<std::string_view, Declared> declared_;
  // `x += y` waits for the name of its result.
  std::string iadd_;
  std::string_view iadd_op_;
  Span iadd_target_;
  Span iadd_value_;
  Span iadd_span_;
};

}  // namespace

void ReadFxText(const SourceText& source, std::string_view name, Builder& out) {
  FxReader(source, name, out).Run();
}

}  // namespace lamina::graph
