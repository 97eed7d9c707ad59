// SPDX-License-Identifier: Apache-2.0

#include "graph/dialects/builder.h"

#include <algorithm>
#include <cstring>

#include "base/escape.h"
#include "graph/line_parser.h"
#include "graph/types.h"

namespace lamina::graph {

Result<std::shared_ptr<const OpsMap>> OpsMap::Load(const rules::DataSet& data) {
  LAMINA_ASSIGN(const auto files, data.Load("dialects"));
  auto out = std::make_shared<OpsMap>();
  for (const auto& file : files) {
    const rules::Node* list = file->root.Find("ops");
    if (list == nullptr || !list->IsList())
      return Fail(file->ErrorAt(file->root, "expected a list 'ops'"));
    for (const rules::Node& item : list->items) {
      static constexpr std::string_view kKeys[] = {"from", "to", "when", "else",
                                                   "args"};
      LAMINA_ASSIGN(const rules::Members members,
                    rules::Members::Of(*file, item, kKeys));
      OpMapping row;
      LAMINA_ASSIGN(row.to, members.Text("to"));
      row.otherwise = members.TextOr("else", "");
      const std::string when = members.TextOr("when", "");
      if (!when.empty() && when != "tensor")
        return Fail(members.ErrorAt("expected 'when: tensor'"));
      row.tensor = !when.empty();
      LAMINA_ASSIGN(row.args, members.Texts("args"));
      LAMINA_ASSIGN(const std::vector<std::string> from, members.Texts("from"));
      for (const std::string& target : from) {
        if (!out->by_target_.try_emplace(target, out->mappings_.size()).second)
          return Fail(members.ErrorAt("'" + target + "' has two mappings"));
      }
      out->mappings_.push_back(std::move(row));
    }
  }
  return out;
}

const OpsMap& OpsMap::Builtin() {
  static const std::shared_ptr<const OpsMap> map = [] {
    auto loaded = Load(rules::DataSet());
    LAMINA_CHECK(loaded.has_value());
    return *loaded;
  }();
  return *map;
}

const OpMapping* OpsMap::Find(std::string_view target) const {
  const auto found = by_target_.find(target);
  return found == by_target_.end() ? nullptr : &mappings_[found->second];
}

// The shared half of all readers of other dialects; they differ in statements,
// not in operands, types and places, which are all here.

namespace {

bool IsBlank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\\';
}

// Attributes beyond this are not operands: constants of megabytes.
constexpr size_t kMaxLiteral = 4096;

struct DTypeName {
  std::string_view brief;
  std::string_view torch;
};
constexpr DTypeName kNames[] = {{"f64", "float64"},
                                {"f32", "float32"},
                                {"f16", "float16"},
                                {"bf16", "bfloat16"},
                                {"f8e4m3fn", "float8_e4m3fn"},
                                {"f8E4M3FN", "float8_e4m3fn"},
                                {"f8e5m2", "float8_e5m2"},
                                {"f8E5M2", "float8_e5m2"},
                                {"f8e4m3fnuz", "float8_e4m3fnuz"},
                                {"f8E4M3FNUZ", "float8_e4m3fnuz"},
                                {"f8e5m2fnuz", "float8_e5m2fnuz"},
                                {"f8E5M2FNUZ", "float8_e5m2fnuz"},
                                {"f8e8m0fnu", "float8_e8m0fnu"},
                                {"f8E8M0FNU", "float8_e8m0fnu"},
                                {"f4e2m1fnx2", "float4_e2m1fn_x2"},
                                {"s4", "int4"},
                                {"i4", "int4"},
                                {"u4", "uint4"},
                                {"ui4", "uint4"},
                                {"i64", "int64"},
                                {"i32", "int32"},
                                {"i16", "int16"},
                                {"i8", "int8"},
                                {"s64", "int64"},
                                {"s32", "int32"},
                                {"s16", "int16"},
                                {"s8", "int8"},
                                {"u8", "uint8"},
                                {"u16", "uint16"},
                                {"u32", "uint32"},
                                {"u64", "uint64"},
                                {"ui8", "uint8"},
                                {"ui16", "uint16"},
                                {"ui32", "uint32"},
                                {"ui64", "uint64"},
                                {"b8", "bool"},
                                {"i1", "bool"},
                                {"pred", "bool"},
                                {"c64", "complex64"},
                                {"c128", "complex128"},
                                {"complex<f32>", "complex64"},
                                {"complex<f64>", "complex128"}};

}  // namespace

size_t FindClose(std::string_view text, size_t open, size_t end) {
  size_t depth = 0;
  for (size_t pos = open; pos < end;) {
    const Byte c = ByteOf(text[pos]);
    if (c == Byte::kQuote) {
      pos = SkipQuoted(text.substr(0, end), pos);
      continue;
    }
    if (c == Byte::kOpen) ++depth;
    if (c == Byte::kClose && (depth == 0 || --depth == 0)) return pos;
    ++pos;
  }
  return kNone;
}

std::string ShapeOf(const std::vector<std::string_view>& dims) {
  if (dims.empty()) return "scalar";
  std::string out;
  for (const std::string_view dim : dims) {
    if (!out.empty()) out += 'x';
    // A dimension must end with a digit or a bracket: "x" stands between.
    const bool plain =
        !dim.empty() &&
        (IsDigit(dim.back()) || dim.back() == ')' || dim == "?") &&
        dim.find(' ') == kNone;
    if (plain) {
      out += dim;
    } else {
      out += '(';
      out += dim;
      out += ')';
    }
  }
  return IsShape(out) ? out : "?";
}

std::string DTypeOf(std::string_view name) {
  for (const DTypeName& row : kNames) {
    if (name == row.brief) return "torch." + std::string(row.torch);
  }
  if (IsDType(name)) return std::string(name);
  return "?";
}

std::string TupleResult(const std::vector<std::string>& results) {
  std::string shapes = "(";
  std::string dtypes = "(";
  for (const std::string& one : results) {
    const ResultText parts = SplitResult(one);
    if (shapes.size() > 1) {
      shapes += ", ";
      dtypes += ", ";
    }
    shapes += parts.shape;
    dtypes += parts.dtype;
  }
  return shapes + ") : " + dtypes + ")";
}

std::string ResultOfAnnotation(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  if (text.starts_with("Sym(")) return "scalar : SymInt";
  const size_t open = text.find('[');
  if (open == kNone || open == 0) return {};
  // A subclass: Class(f32[8, 16]).
  const size_t call = text.find('(');
  if (call < open) {
    const size_t close = FindClose(text, call, text.size());
    if (close == kNone) return {};
    return ResultOfAnnotation(text.substr(call + 1, close - call - 1));
  }
  const size_t close = FindClose(text, open, text.size());
  if (close == kNone) return {};
  std::vector<std::string_view> dims;
  size_t depth = 0;
  size_t begin = open + 1;
  for (size_t i = open + 1; i <= close; ++i) {
    if (i < close && ByteOf(text[i]) == Byte::kOpen) ++depth;
    if (i < close && ByteOf(text[i]) == Byte::kClose && depth > 0) --depth;
    if (i < close && (text[i] != ',' || depth > 0)) continue;
    std::string_view dim = text.substr(begin, i - begin);
    while (!dim.empty() && dim.front() == ' ') dim.remove_prefix(1);
    while (!dim.empty() && dim.back() == ' ') dim.remove_suffix(1);
    if (!dim.empty()) dims.push_back(dim);
    begin = i + 1;
  }
  return ShapeOf(dims) + " : " + DTypeOf(text.substr(0, open));
}

std::string Underscored(std::string_view path) {
  std::string out(path);
  std::replace(out.begin(), out.end(), '.', '_');
  return out;
}

std::string DottedPath(std::string_view keys) {
  std::string out;
  for (const char c : keys) {
    if (IsNameByte(c)) {
      out += c;
    } else if (!out.empty() && out.back() != '.') {
      out += '.';
    }
  }
  while (out.ends_with('.')) out.pop_back();
  return out;
}

std::string_view NormalizedTorch(std::string_view target) {
  if (target.starts_with("torch.ops.")) target.remove_prefix(10);
  return target;
}

// --- sections ---

void Builder::Begin(const SourceText& source, std::string name,
                    size_t head_end) {
  End();
  source_ = &source;
  const size_t end = source.EndToFile(head_end);
  name.insert(0, prefix);
  if (const size_t count = section_names_[name]++; count > 0)
    name += "_" + std::to_string(count);
  const std::string_view file = *dump_.text;
  dump_.graphs.emplace_back(std::move(name), ops_, dump_.text);
  graph().dialect = dialect_;
  graph().head = file.substr(free_, std::max(end, free_) - free_);
  if (source.buffer()) graph().KeepAlive(source.buffer());
  free_ = std::max(end, free_);
  names_.clear();
  results_.clear();
  fresh_ = 0;
}

void Builder::End() {
  if (source_ == nullptr) return;
  source_ = nullptr;
  // What follows up to the next graph is its head, or the tail of the file.
  graph().tail = std::string_view(*dump_.text).substr(free_, 0);
}

void Builder::Finish() {
  End();
  if (any()) graph().tail = std::string_view(*dump_.text).substr(free_);
}

// --- names ---

void Builder::Alias(std::string_view name, std::string_view target) {
  names_[name] = target;
}

void Builder::Weight(std::string_view name, std::string_view path,
                     std::string_view result) {
  std::string_view own = Keep(Underscored(path));
  if (own.empty() || results_.contains(own)) own = name;
  results_[own] = result.empty() ? result : Keep(result);
  names_[name] = own;
}

std::string_view Builder::Resolve(std::string_view name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? std::string_view() : found->second;
}

std::string_view Builder::Fresh(std::string_view base) {
  std::string name;
  do {
    name = std::string(base) + "_" + std::to_string(++fresh_);
  } while (Known(name));
  return Keep(name);
}

// --- nodes ---

uint32_t Builder::LineAt(size_t file_pos) {
  const std::string_view file = *dump_.text;
  if (file_pos < line_pos_) {
    line_pos_ = 0;
    line_ = 1;
  }
  const auto begin = file.begin() + static_cast<ptrdiff_t>(line_pos_);
  line_ += static_cast<uint32_t>(
      std::count(begin, file.begin() + static_cast<ptrdiff_t>(file_pos), '\n'));
  line_pos_ = file_pos;
  return line_;
}

// An operand that nests deeper than kMaxDepth stays one text without parts:
// whoever walks over operands may recurse. False: there was one.
bool Builder::LimitDepth() {
  if (operands.size() <= kMaxDepth) return true;
  std::vector<ParsedOperand> kept;
  std::vector<size_t> open;  // where the operands around end
  bool all = true;
  for (size_t top = 0; top < operands.size();) {
    const size_t end = top + 1 + operands[top].extent;
    size_t deepest = 0;
    for (size_t i = top; i < end; ++i) {
      while (!open.empty() && open.back() <= i) open.pop_back();
      if (operands[i].extent > 0) open.push_back(i + 1 + operands[i].extent);
      deepest = std::max(deepest, open.size());
    }
    open.clear();
    const auto first = operands.begin() + static_cast<ptrdiff_t>(top);
    if (deepest <= kMaxDepth) {
      kept.insert(kept.end(), first,
                  operands.begin() + static_cast<ptrdiff_t>(end));
    } else {
      kept.push_back(*first);
      kept.back().extent = 0;
      all = false;
    }
    top = end;
  }
  if (!all) operands = std::move(kept);
  return all;
}

NodeId Builder::Add(const Statement& statement) {
  if (!LimitDepth()) {
    Error(statement.span.begin, "brackets are nested more than " +
                                    std::to_string(kMaxDepth) + " deep");
  }
  const std::string_view file = *dump_.text;
  size_t begin = source_->ToFile(statement.span.begin);
  size_t end =
      statement.span.empty() ? begin : source_->EndToFile(statement.span.end);
  // A node without text of its own stands where the last one ends.
  if (begin < free_ || statement.span.empty()) begin = free_;
  end = std::max(begin, end);

  ParsedLine line;
  line.kind = statement.kind;
  line.text = file.substr(begin, end - begin);
  line.name = statement.name;
  line.target = statement.target;
  line.result = statement.result.empty() ? "? : N/A" : statement.result;
  const OpMapping* map = statement.kind == NodeKind::kOp
                             ? OpsMap::Builtin().Find(statement.target)
                             : nullptr;
  if (map != nullptr) {
    bool tensor = !map->tensor;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].kind != OperandKind::kValue || operands[i].nested)
        continue;
      const NodeId id = graph().Find(operands[i].name);
      tensor =
          tensor || !id.valid() || graph()[id].result.find("SymInt") == kNone;
    }
    if (tensor) {
      line.op = map->to;
    } else if (!map->otherwise.empty()) {
      line.op = map->otherwise;
    }
    // Keywords that come next in order are positions.
    size_t position = 0;
    for (size_t i = 0; i < operands.size();) {
      ParsedOperand& operand = operands[i];
      const uint32_t below = operand.extent;
      if (operand.kind == OperandKind::kKeyword && below > 0) {
        const std::string_view key =
            operand.text.substr(0, operand.text.find_first_of(" =:'"));
        if (position >= map->args.size() || key != map->args[position]) break;
        operands[i + 1].nested = false;
        operands.erase(operands.begin() + static_cast<ptrdiff_t>(i));
        i += below;
      } else {
        i += below + 1;
      }
      ++position;
    }
  }
  std::string family;
  if (statement.target.starts_with("module.")) {
    // Modules of all layers are one op.
    for (const char c : statement.target) {
      if (!IsDigit(c)) {
        family += c;
      } else if (!family.ends_with('#')) {
        family += '#';
      }
    }
    line.op = family;
  }
  if (!line.op.empty()) line.op = Keep(line.op);
  line.operands = std::move(operands);
  operands.clear();
  for (ParsedOperand& operand : line.operands) {
    if (operand.kind != OperandKind::kValue) continue;
    const auto found = results_.find(operand.name);
    if (found != results_.end()) operand.annotation = found->second;
  }

  Graph::LinePlace place;
  // What was read before already has its line all the same.
  place.line = LineAt(
      statement.span.end == 0 ? begin : source_->ToFile(statement.span.begin));
  place.gap = static_cast<uint32_t>(begin - free_);
  Graph::Added added = Graph::Added::kFine;
  const NodeId id = graph().Append(line, place, &added);
  free_ = end;
  if (!statement.name.empty()) names_[statement.name] = statement.name;
  if (!statement.origin.source.empty() || !statement.origin.scope.empty())
    graph().SetOrigin(id, statement.origin);
  if (added == Graph::Added::kDuplicate) {
    Warn(statement.span.begin,
         "'" + EscapeTerminal(statement.name) + "' is defined a second time");
  }
  return id;
}

void Builder::AddLiteral(std::string_view text) {
  if (text.size() > kMaxLiteral) return;
  ParsedOperand operand;
  operand.text = text;
  operands.push_back(operand);
}

void Builder::AddValue(std::string_view name, std::string_view text,
                       bool nested) {
  ParsedOperand operand;
  operand.kind = OperandKind::kValue;
  operand.nested = nested;
  operand.text = text;
  operand.name = name;
  operands.push_back(operand);
}

Span Builder::Trim(Span span) const {
  const std::string_view all = text();
  while (!span.empty() && IsBlank(all[span.begin])) ++span.begin;
  while (!span.empty() && IsBlank(all[span.end - 1])) --span.end;
  return span;
}

Span Builder::Unwrap(Span span) const {
  span = Trim(span);
  while (!span.empty() && text()[span.begin] == '(' &&
         FindClose(text(), span.begin, span.end) == span.end - 1) {
    const Span inner = Trim({span.begin + 1, span.end - 1});
    // A tuple keeps its parentheses.
    if (inner.empty() || SplitAt(inner, ',').size() > 1 ||
        text()[inner.end - 1] == ',')
      break;
    span = inner;
  }
  return span;
}

std::vector<Span> Builder::SplitAt(Span span, char separator) const {
  std::vector<Span> out;
  const std::string_view all = text().substr(0, span.end);
  size_t depth = 0;
  size_t begin = span.begin;
  for (size_t pos = span.begin; pos < span.end;) {
    const char c = all[pos];
    const Byte byte = ByteOf(c);
    if (byte == Byte::kQuote) {
      pos = SkipQuoted(all, pos);
      continue;
    }
    if (c == '#') {  // a comment inside of a broken statement
      const size_t end = all.find('\n', pos);
      pos = end == kNone ? span.end : end;
      continue;
    }
    if (byte == Byte::kOpen) ++depth;
    if (byte == Byte::kClose && depth > 0) --depth;
    if (c == separator && depth == 0) {
      out.push_back({begin, pos});
      begin = pos + 1;
    }
    ++pos;
  }
  if (!Trim({begin, span.end}).empty()) out.push_back({begin, span.end});
  return out;
}

void Builder::ReadOperands(Span span, NameStyle style) {
  for (Span piece : SplitAt(span, ',')) {
    piece = Trim(piece);
    // Comments behind the item before.
    while (!piece.empty() && text()[piece.begin] == '#') {
      const size_t end = text().find('\n', piece.begin);
      piece = Trim({std::min(end, piece.end), piece.end});
    }
    if (piece.empty()) continue;
    // `name = value`, in dictionaries `name: value`.
    size_t pos = piece.begin;
    const bool quoted = text()[pos] == '\'';
    if (quoted) ++pos;
    while (pos < piece.end && IsNameByte(text()[pos])) ++pos;
    size_t after = pos;
    if (quoted && after < piece.end && text()[after] == '\'') ++after;
    while (after < piece.end && text()[after] == ' ') ++after;
    const bool keyword =
        pos > piece.begin && after + 1 < piece.end &&
        ((!quoted && text()[after] == '=' && text()[after + 1] != '=') ||
         (text()[after] == ':' && text()[after + 1] == ' '));
    if (!keyword) {
      ReadOperand(piece, style);
      continue;
    }
    const size_t at = operands.size();
    ParsedOperand operand;
    operand.kind = OperandKind::kKeyword;
    operand.text = Text(piece);
    if (quoted) operand.text.remove_prefix(1);
    operands.push_back(operand);
    ReadOperand({after + 1, piece.end}, style);
    if (operands.size() > at + 1) operands[at + 1].nested = true;
    operands[at].extent = static_cast<uint32_t>(operands.size() - at - 1);
  }
}

void Builder::ReadOperand(Span span, NameStyle style) {
  span = Trim(span);
  if (span.empty()) return;
  const size_t at = operands.size();
  ReadTokens(span, style);
  // One token, or one container that spans all, is the operand.
  if (operands.size() > at && operands[at].text.size() == Text(span).size() &&
      operands.size() - at - 1 == (operands[at].kind == OperandKind::kValue
                                       ? 0
                                       : operands[at].extent)) {
    operands[at].nested = false;
    return;
  }
  // Else a text that holds what was found.
  ParsedOperand whole;
  whole.kind =
      operands.size() == at ? OperandKind::kLiteral : OperandKind::kText;
  whole.text = Text(span);
  if (whole.text.size() > kMaxLiteral) whole.text = whole.text.substr(0, 0);
  whole.extent = static_cast<uint32_t>(operands.size() - at);
  operands.insert(operands.begin() + static_cast<ptrdiff_t>(at), whole);
}

void Builder::ReadTokens(Span span, NameStyle style) {
  const std::string_view all = text().substr(0, span.end);
  stack_.clear();
  const auto add = [&](OperandKind kind, size_t begin, size_t end) {
    ParsedOperand operand;
    operand.kind = kind;
    operand.nested = !stack_.empty() || begin != span.begin;
    operand.text = all.substr(begin, end - begin);
    operands.push_back(operand);
  };
  const auto close = [&](size_t end) {
    ParsedOperand& operand = operands[stack_.back()];
    const auto begin = static_cast<size_t>(operand.text.data() - all.data());
    operand.text = all.substr(begin, end - begin);
    operand.extent = static_cast<uint32_t>(operands.size() - stack_.back() - 1);
    stack_.pop_back();
  };
  const auto open = [&](OperandKind kind, size_t begin) {
    add(kind, begin, begin);
    stack_.push_back(static_cast<uint32_t>(operands.size() - 1));
  };
  size_t pos = span.begin;
  while (pos < span.end) {
    const char c = all[pos];
    const size_t start = pos;
    if (ByteOf(c) == Byte::kOpen) {
      open(c == '['   ? OperandKind::kList
           : c == '(' ? OperandKind::kTuple
                      : OperandKind::kDict,
           pos);
      ++pos;
    } else if (ByteOf(c) == Byte::kClose) {
      ++pos;
      if (!stack_.empty()) close(pos);
    } else if (ByteOf(c) == Byte::kQuote) {
      pos = SkipQuoted(all, pos);
      add(OperandKind::kLiteral, start, pos);
    } else if (c == '#' && style == NameStyle::kBare) {
      pos = std::min(all.find('\n', pos), span.end);
    } else if (c == '%' && style == NameStyle::kPercent) {
      ++pos;
      while (pos < span.end &&
             (IsNameByte(all[pos]) || all[pos] == '.' || all[pos] == '-'))
        ++pos;
      const std::string_view name = all.substr(start + 1, pos - start - 1);
      const std::string_view known = Resolve(name);
      add(known.empty() ? OperandKind::kText : OperandKind::kValue, start, pos);
      if (!known.empty()) {
        operands.back().name = known;
      } else {
        Warn(start, "'%" + EscapeTerminal(name) +
                        "' is used before a "
                        "definition");
      }
    } else if (IsNameStart(c)) {
      while (pos < span.end && (IsNameByte(all[pos]) || all[pos] == '.')) ++pos;
      const std::string_view word = all.substr(start, pos - start);
      const char next = pos < span.end ? all[pos] : ' ';
      if (next == '(') {
        open(OperandKind::kCall, start);
        ++pos;
        continue;
      }
      const std::string_view known =
          style == NameStyle::kBare ? Resolve(word) : std::string_view();
      add(known.empty() ? OperandKind::kLiteral : OperandKind::kValue, start,
          pos);
      if (!known.empty()) operands.back().name = known;
    } else if (IsDigit(c) || ((c == '-' || c == '.') && pos + 1 < span.end &&
                              (IsDigit(all[pos + 1]) || all[pos + 1] == '.' ||
                               all.substr(pos + 1).starts_with("inf")))) {
      ++pos;
      while (pos < span.end && (IsNameByte(all[pos]) || all[pos] == '.' ||
                                ((all[pos] == '-' || all[pos] == '+') &&
                                 (all[pos - 1] | 32) == 'e')))
        ++pos;
      add(OperandKind::kLiteral, start, pos);
    } else {
      ++pos;
    }
  }
  while (!stack_.empty()) close(span.end);
}

void Builder::Say(Level level, size_t pos, const std::string& what) {
  if (level == Level::kError && any()) graph().set_incomplete();
  if (!dump_.diagnostics.Wants(level)) {
    dump_.diagnostics.CountOnly(level);
    return;
  }
  const std::string_view file = *dump_.text;
  const size_t at =
      std::min(source_ == nullptr ? pos : source_->ToFile(pos), file.size());
  Diagnostic out;
  out.level = level;
  out.line =
      1 + static_cast<uint32_t>(std::count(
              file.begin(), file.begin() + static_cast<ptrdiff_t>(at), '\n'));
  size_t begin = at == 0 ? kNone : file.rfind('\n', at - 1);
  begin = begin == kNone ? 0 : begin + 1;
  const size_t end = std::min(file.find('\n', at), file.size());
  out.column = static_cast<uint32_t>(at - begin + 1);
  out.what = what;
  out.excerpt = Excerpt(file.substr(begin, end - begin), at - begin);
  dump_.diagnostics.Add(std::move(out));
}

}  // namespace lamina::graph
