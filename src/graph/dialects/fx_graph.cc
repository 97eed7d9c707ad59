// SPDX-License-Identifier: Apache-2.0
//
// Graph.__str__ and print_tabular of FX: a node per line, no shapes.
#include <algorithm>

#include "base/escape.h"
#include "graph/dialects/readers.h"
#include "graph/line_parser.h"

namespace lamina::graph {
namespace {

// The common part of both forms: opcode, name, target, then operands.
void AddNode(Span span, std::string_view opcode, std::string_view name,
             std::string_view target, std::string_view result, Builder& out) {
  Builder::Statement statement;
  statement.span = span;
  statement.name = name;
  statement.result = result.empty() ? result : out.Keep(result);
  if (opcode == "placeholder" || opcode == "PlaceHolder") {
    out.operands.clear();
    statement.kind = NodeKind::kPlaceholder;
  } else if (opcode == "get_attr") {
    out.operands.clear();
    out.Weight(name, target, result);
    return;
  } else if (opcode == "call_method") {
    statement.target = out.Keep("method." + std::string(target));
  } else if (opcode == "call_module") {
    statement.target = out.Keep("module." + std::string(target));
    statement.origin.scope = out.Keep(Underscored(target));
  } else {
    statement.target = NormalizedTorch(target);
  }
  out.Add(statement);
}

// The inside of the brackets behind `key` ("args = ("); empty when missing.
Span Inside(std::string_view text, size_t from, size_t end,
            std::string_view key) {
  const size_t at = text.substr(0, end).find(key, from);
  if (at == kNone) return {};
  const size_t open = at + key.size() - 1;
  const size_t close = FindClose(text, open, end);
  if (close == kNone) return {end + 1, end};
  return {open + 1, close};
}

// "<built-in function add>", "<built-in method rsqrt of type object at 0x..>",
// "<function relu at 0x..>" as dotted names.
std::string TableTarget(std::string_view target) {
  for (const std::string_view prefix :
       {"<built-in function ", "<built-in method ", "<function "}) {
    if (!target.starts_with(prefix)) continue;
    std::string_view rest = target.substr(prefix.size());
    rest = rest.substr(0, rest.find_first_of(" >"));
    const std::string name(rest);
    if (name == "getattr") return "builtins.getattr";
    static constexpr std::string_view kOperators[] = {
        "add",  "sub",  "mul",      "truediv", "floordiv", "matmul", "getitem",
        "neg",  "pow",  "mod",      "eq",      "ne",       "lt",     "le",
        "gt",   "ge",   "and_",     "or_",     "xor",      "invert", "iadd",
        "imul", "isub", "itruediv", "not_",    "lshift",   "rshift"};
    const bool is_operator =
        prefix == "<built-in function " &&
        std::find(std::begin(kOperators), std::end(kOperators), rest) !=
            std::end(kOperators);
    if (is_operator) return "operator." + name;
    if (name == "linear" || name == "gelu" ||
        name == "scaled_dot_product_attention")
      return "torch._C._nn." + name;
    return (prefix == "<function " ? "torch.nn.functional." : "torch.") + name;
  }
  return std::string(NormalizedTorch(target));
}

}  // namespace

bool ReadFxStatement(Span line, Builder& out) {
  const std::string_view text = out.text();
  size_t pos = line.begin;
  if (pos >= line.end || text[pos] != '%') return false;
  size_t name_end = ++pos;
  while (name_end < line.end && IsNameByte(text[name_end])) ++name_end;
  const std::string_view name = text.substr(pos, name_end - pos);
  const std::string_view head = text.substr(0, line.end);
  if (name.empty() || head.substr(name_end, 3) != " : ") return false;
  const size_t equals = head.find("] = ", name_end);
  if (equals == kNone) return false;
  // ` : Tensor "f32[8, 16][16, 1]cuda:0"[num_users=1] = `
  std::string result;
  const size_t quote = head.find('"', name_end);
  if (quote < equals) {
    const size_t end = SkipQuoted(head, quote);
    result = ResultOfAnnotation(head.substr(quote + 1, end - quote - 2));
  }
  const size_t opcode = equals + 4;
  const size_t bracket = head.find("[target=", opcode);
  if (bracket == kNone) return false;
  const size_t close = FindClose(head, bracket, line.end);
  if (close == kNone) return false;
  const std::string_view kind = head.substr(opcode, bracket - opcode);
  const std::string_view target = head.substr(bracket + 8, close - bracket - 8);
  const bool call = kind.starts_with("call_");
  const Span args = call ? Inside(text, close, line.end, "args = (") : Span();
  if (args.begin > line.end) {
    out.Error(line.begin, "truncated: expected ')' at the end of the operands");
    return true;
  }
  if (call) {
    out.ReadOperands(args, NameStyle::kPercent);
    const Span kwargs =
        Inside(text, std::max(args.end, close), line.end, "kwargs = {");
    if (kwargs.begin <= line.end && !kwargs.empty())
      out.ReadOperands(kwargs, NameStyle::kPercent);
  }
  AddNode(line, kind, name, target, result, out);
  return true;
}

void ReadFxGraph(const SourceText& source, std::string_view name,
                 Builder& out) {
  const std::string_view text = source.text();
  size_t pos = 0;
  bool inside = false;
  while (pos < text.size()) {
    size_t end = std::min(text.find('\n', pos), text.size());
    const size_t next = end + 1;
    if (end > pos && text[end - 1] == '\r') --end;
    size_t begin = pos;
    while (begin < end && (text[begin] == ' ' || text[begin] == '\t')) ++begin;
    const std::string_view line = text.substr(begin, end - begin);
    if (line.starts_with("graph(") && line.ends_with("):")) {
      out.Begin(source, name.empty() ? "graph" : std::string(name), end);
      inside = true;
    } else if (inside && line.starts_with("return")) {
      Builder::Statement statement;
      statement.kind = NodeKind::kOutput;
      statement.span = {begin, end};
      Span value = out.Trim({begin + 6, end});
      if (!value.empty() && ByteOf(text[value.begin]) == Byte::kOpen)
        value = {value.begin + 1, value.end - 1};
      // Names stand without % here.
      if (value.begin <= value.end) out.ReadOperands(value, NameStyle::kBare);
      out.Add(statement);
      out.End();
      inside = false;
    } else if (inside && !line.empty()) {
      if (!ReadFxStatement({begin, end}, out)) {
        out.Error(begin,
                  "expected '%NAME : [num_users=N] = OPCODE[...]', "
                  "found '" +
                      EscapeTerminal(line.substr(0, 60)) + "'");
      }
    }
    pos = next;
  }
  if (inside) {
    out.Warn(text.size() - 1, "truncated: the graph has no return");
    out.End();
  }
}

void ReadFxTable(const SourceText& source, std::string_view name,
                 Builder& out) {
  const std::string_view text = source.text();
  size_t pos = 0;
  std::vector<size_t> columns;  // where each begins in a line
  while (pos < text.size()) {
    size_t end = std::min(text.find('\n', pos), text.size());
    const size_t next = end + 1;
    if (end > pos && text[end - 1] == '\r') --end;
    const std::string_view line = text.substr(pos, end - pos);
    if (line.starts_with("-----") && line.find_first_not_of("- ") == kNone) {
      columns.clear();
      for (size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '-' && (i == 0 || line[i - 1] == ' '))
          columns.push_back(i);
      }
      if (columns.size() == 5) {
        out.Begin(source, name.empty() ? "graph" : std::string(name), end);
      } else {
        columns.clear();
      }
    } else if (!columns.empty() && line.empty()) {
      columns.clear();
      out.End();
    } else if (!columns.empty()) {
      Span cells[5];
      bool good = line.size() > columns[4];
      for (size_t i = 0; good && i < 5; ++i) {
        // A cell that is wider than its column moves the rest.
        const size_t stop =
            i + 1 < 5 ? std::min(columns[i + 1], line.size()) : line.size();
        cells[i] = out.Trim({pos + columns[i], pos + stop});
        good = i == 0 || columns[i] == 0 || line[columns[i] - 1] == ' ';
      }
      if (!good) {
        out.Error(pos, "expected the five columns of print_tabular");
      } else {
        const std::string_view opcode = out.Text(cells[0]);
        for (const size_t i : {size_t{3}, size_t{4}}) {
          Span cell = cells[i];
          if (cell.end - cell.begin < 2) continue;
          cell = {cell.begin + 1, cell.end - 1};
          // What is returned is one operand, mostly a tuple of all.
          const std::vector<Span> pieces =
              opcode == "output" ? out.SplitAt(cell, ',') : std::vector<Span>();
          if (pieces.size() == 1) {
            const Span only = out.Trim(pieces[0]);
            if (only.end - only.begin > 2 &&
                ByteOf(text[only.begin]) == Byte::kOpen)
              cell = {only.begin + 1, only.end - 1};
          }
          out.ReadOperands(cell, NameStyle::kBare);
        }
        if (opcode == "output") {
          Builder::Statement statement;
          statement.kind = NodeKind::kOutput;
          statement.span = {pos, end};
          out.Add(statement);
        } else {
          const std::string target = TableTarget(out.Text(cells[2]));
          AddNode({pos, end}, opcode, out.Text(cells[1]), out.Keep(target), {},
                  out);
        }
      }
    }
    pos = next;
  }
  out.End();
}

}  // namespace lamina::graph
