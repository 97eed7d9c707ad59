// SPDX-License-Identifier: Apache-2.0

#include "graph/dump.h"

#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <cstring>
#include <fmt/core.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "graph/line_parser.h"
#include "rules/document.h"

namespace lamina::graph {

namespace {

constexpr size_t kLongLine = 200;
constexpr size_t kWindow = 160;

// Moves forward to the start of a character.
size_t CharacterStart(std::string_view text, size_t pos) {
  while (pos < text.size() && (static_cast<uint8_t>(text[pos]) & 0xC0) == 0x80)
    ++pos;
  return pos;
}

}  // namespace

void Diagnostics::Add(Diagnostic diagnostic) {
  const bool wanted = Wants(diagnostic.level);
  CountOnly(diagnostic.level);
  if (wanted) kept_.push_back(std::move(diagnostic));
}

std::string Excerpt(std::string_view line, size_t column) {
  column = std::min(column, line.size());
  size_t begin = 0;
  size_t end = line.size();
  if (line.size() > kLongLine) {
    begin = column > kWindow / 2 ? column - kWindow / 2 : 0;
    end = std::min(begin + kWindow, line.size());
    begin = end > kWindow ? std::min(begin, end - kWindow) : 0;
    begin = std::min(CharacterStart(line, begin), column);
    end = std::max(CharacterStart(line, end), column);
  }
  std::string out = begin > 0 ? "  ..." : "  ";
  const std::string before = EscapeTerminal(line.substr(begin, column - begin));
  const size_t caret = out.size() + DisplayWidth(before);
  out += before;
  out += EscapeTerminal(line.substr(column, end - column));
  if (end < line.size()) out += "...";
  return out + "\n" + std::string(caret, ' ') + "^";
}

std::string Format(const Diagnostic& diagnostic, std::string_view file) {
  std::string out = EscapeTerminal(file);
  if (diagnostic.line > 0) {
    out += ":" + std::to_string(diagnostic.line) + ":" +
           std::to_string(diagnostic.column);
  }
  out += diagnostic.level == Level::kError ? ": error: " : ": warning: ";
  out += diagnostic.what + "\n";
  if (!diagnostic.excerpt.empty()) out += diagnostic.excerpt + "\n";
  if (!diagnostic.note.empty()) out += "  note: " + diagnostic.note + "\n";
  return out;
}

std::string Format(const Diagnostics& diagnostics, std::string_view file) {
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics.kept())
    out += Format(diagnostic, file);
  for (const Level level : {Level::kError, Level::kWarning}) {
    const size_t count = diagnostics.Count(level);
    if (count <= Diagnostics::kKept) continue;
    out += EscapeTerminal(file) + ": " +
           std::to_string(count - Diagnostics::kKept) + " more " +
           (level == Level::kError ? "errors\n" : "warnings\n");
  }
  return out;
}

Error ToError(const Diagnostic& diagnostic, std::string_view file) {
  Error error = InputError(std::string(file), diagnostic.what);
  error.line = diagnostic.line;
  error.column = diagnostic.column;
  error.excerpt = diagnostic.excerpt;
  if (!diagnostic.note.empty()) error.excerpt += "\n  note: " + diagnostic.note;
  return error;
}

namespace {

constexpr std::string_view kModule = "# GraphModule: ";

// A line and where it stands.
struct Line {
  std::string_view text;  // without its end
  size_t begin = 0;
  size_t end = 0;  // past the line end
  uint32_t number = 0;
  uint8_t line_end = 0;
};

class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}

  bool Next(Line& line) {
    if (pos_ >= text_.size()) return false;
    line.begin = pos_;
    const void* found =
        std::memchr(text_.data() + pos_, '\n', text_.size() - pos_);
    size_t stop = text_.size();
    line.line_end = 0;
    line.end = stop;
    if (found != nullptr) {
      stop =
          static_cast<size_t>(static_cast<const char*>(found) - text_.data());
      line.end = stop + 1;
      line.line_end = 1;
      if (stop > pos_ && text_[stop - 1] == '\r') {
        --stop;
        line.line_end = 2;
      }
    }
    line.text = text_.substr(pos_, stop - pos_);
    line.number = ++number_;
    pos_ = line.end;
    return true;
  }
  size_t position() const { return pos_; }

 private:
  std::string_view text_;
  size_t pos_ = 0;
  uint32_t number_ = 0;
};

bool IsRuler(std::string_view line) {
  return line.size() >= 20 &&
         line.find_first_not_of('=') == std::string_view::npos;
}

class Reader {
 public:
  Reader(Dump& dump, const ParseOptions& options)
      : dump_(dump),
        options_(options),
        ops_(options.ops ? options.ops : std::make_shared<StringPool>()),
        text_(*dump.text) {}

  Status Read() {
    Lines lines(text_);
    Line line;
    while (lines.Next(line)) {
      if (!IsRuler(line.text)) {
        LAMINA_TRY(ReadLine(line));
        continue;
      }
      // A head is ruler, name, ruler; a ruler alone is a bad line.
      const Line ruler = line;
      Lines ahead = lines;
      Line name;
      Line second;
      if (ahead.Next(name) && name.text.starts_with(kModule) &&
          ahead.Next(second) && IsRuler(second.text)) {
        lines = ahead;
        // The empty line behind the head is part of it.
        if (ahead.Next(second) && second.text.empty()) lines = ahead;
        Begin(std::string(name.text.substr(kModule.size())), ruler.begin,
              lines.position());
      } else {
        LAMINA_TRY(Bad(
            ruler, 0, "expected '# GraphModule: NAME' between two rulers", {}));
      }
    }
    Finish(text_.size());
    for (Graph& graph : dump_.graphs) LAMINA_TRY(CheckDeleted(graph));
    return CheckCounts();
  }

 private:
  Graph* graph() {
    return dump_.graphs.empty() ? nullptr : &dump_.graphs.back();
  }

  void Begin(std::string name, size_t head, size_t body) {
    Finish(head);
    if (dump_.graphs.empty()) dump_.preamble = text_.substr(0, head);
    const bool again = dump_.Find(name) != nullptr;
    dump_.graphs.emplace_back(std::move(name), ops_, dump_.text);
    graph()->head = text_.substr(head, body - head);
    free_ = body;
    if (again) {
      Warn({}, 0,
           "a graph of the name '" + EscapeTerminal(graph()->name()) +
               "' stands in the file already");
    }
  }

  // What is left up to `end` is the tail of the graph at hand.
  void Finish(size_t end) {
    if (graph() != nullptr) graph()->tail = text_.substr(free_, end - free_);
  }

  Status ReadLine(const Line& line) {
    if (line.text.empty()) return {};
    if (graph() == nullptr) {
      if (ReadHeader(line.text)) return {};
      // Lines without a section: a fragment.
      if (!line.text.starts_with('%') && !line.text.starts_with("output"))
        return Bad(line, 0, "expected '# Transform: NAME' or a ruler of '='",
                   {});
      Begin("(root)", line.begin, line.begin);
    }
    LineError wrong;
    if (!ParseLine(line.text, parsed_, wrong))
      return Bad(line, wrong.column, std::move(wrong.what), wrong.note);
    if (graph()->output().valid() && parsed_.kind != NodeKind::kOutput)
      Warn(line, 0, "a line behind the output");
    Graph::LinePlace place;
    place.line = line.number;
    place.gap = static_cast<uint32_t>(line.begin - free_);
    place.line_end = line.line_end;
    if (line.line_end == 2) graph()->new_line = "\r\n";
    Graph::Added added = Graph::Added::kFine;
    const NodeId id = graph()->Append(parsed_, place, &added);
    free_ = line.end;
    if (parsed_.kind == NodeKind::kOutput) CheckOutput(line, id);
    if (added == Graph::Added::kFine) {
      if (parsed_.ambiguous)
        Warn(line, 0, "a string without quotes makes the operands a guess");
      return {};
    }
    const std::string name = "'%" + EscapeTerminal(parsed_.name) + "'";
    const std::string what = added == Graph::Added::kDuplicate
                                 ? name + " is defined a second time"
                                 : name + " is used before this definition";
    if (options_.strict) return Bad(line, 0, what, {});
    Warn(line, 0, what);
    return {};
  }

  // A file that was cut inside of the output line shows here only.
  void CheckOutput(const Line& line, NodeId id) {
    const std::span<const Operand> operands = graph()->Operands(id);
    if (operands.empty()) Warn(line, 6, "the output names no value");
    for (const Operand& operand : operands) {
      if (!operand.IsValue()) continue;
      const NodeId value = operand.value();
      if ((*graph())[value].kind != NodeKind::kWeight ||
          graph()->UseCount(value) > 1)
        continue;
      Warn(line, static_cast<size_t>(operand.text().data() - line.text.data()),
           "the output names '" + EscapeTerminal((*graph())[value].name) +
               "', which nothing defines or uses");
    }
  }

  bool ReadHeader(std::string_view line) {
    const auto value = [&](std::string_view key, std::string& to) {
      if (!line.starts_with(key)) return false;
      to = line.substr(key.size());
      return true;
    };
    std::string modules;
    if (value("# Transform: ", dump_.header.transform) ||
        value("# Stage: ", dump_.header.stage))
      return true;
    if (!value("# GraphModules found: ", modules)) return false;
    dump_.header.modules = ParseInt(modules);
    return true;
  }

  Diagnostic Make(Level level, const Line& line, size_t column,
                  std::string what) const {
    Diagnostic out;
    out.level = level;
    out.line = line.number;
    out.column = static_cast<uint32_t>(column + 1);
    out.what = std::move(what);
    if (line.number > 0) out.excerpt = Excerpt(line.text, column);
    return out;
  }

  Status Bad(const Line& line, size_t column, std::string what,
             std::string note) {
    if (graph() != nullptr) graph()->set_incomplete();
    if (!dump_.diagnostics.Wants(Level::kError)) {
      dump_.diagnostics.CountOnly(Level::kError);
      return {};
    }
    Diagnostic out = Make(Level::kError, line, column, std::move(what));
    out.note = std::move(note);
    if (options_.strict) return Fail(ToError(out, dump_.name));
    dump_.diagnostics.Add(std::move(out));
    return {};
  }

  void Warn(const Line& line, size_t column, std::string what) {
    if (dump_.diagnostics.Wants(Level::kWarning)) {
      dump_.diagnostics.Add(
          Make(Level::kWarning, line, column, std::move(what)));
    } else {
      dump_.diagnostics.CountOnly(Level::kWarning);
    }
  }

  // A name without a definition is a weight. When it is named like the ops of
  // the graph (%mul_7 beside %mul_6 = aten.mul...), its line is missing.
  Status CheckDeleted(Graph& graph) {
    const auto base = [](std::string_view name) {
      const size_t end = name.find_last_not_of("0123456789");
      if (end == std::string_view::npos || end + 1 == name.size() ||
          name[end] != '_')
        return name;
      return name.substr(0, end);
    };
    absl::flat_hash_set<std::string_view> bases;
    for (const NodeId id : graph.nodes()) {
      if (graph[id].kind != NodeKind::kOp) continue;
      const std::string_view own = base(graph[id].name);
      std::string_view op = graph.op(id);
      op.remove_prefix(std::min(op.find('.') + 1, op.size()));
      // Names come from ops: aten.mul.Tensor gives mul, mul_1 ...
      if (op.starts_with(own.substr(0, own.find('_'))) && own.size() > 1)
        bases.insert(own);
    }
    for (const NodeId id : graph.Weights()) {
      const std::string_view name = graph[id].name;
      if (!bases.contains(base(name))) continue;
      OperandId use;
      graph.ForEachUse(id, [&](OperandId operand, const Operand&) {
        if (!use.valid()) use = operand;
      });
      if (!use.valid()) continue;
      const NodeId owner = graph.operand(use).owner();
      Line line;
      line.text = graph.Line(owner);
      line.number = graph[owner].line;
      const auto column = static_cast<size_t>(graph.operand(use).text().data() -
                                              line.text.data());
      LAMINA_TRY(Bad(line, std::min(column, line.text.size()),
                     "'%" + EscapeTerminal(name) +
                         "' is used and defined nowhere, and other ops are "
                         "called '" +
                         EscapeTerminal(base(name)) + "'",
                     "was its line deleted?"));
      graph.set_incomplete();
    }
    return {};
  }

  Status CheckCounts() {
    if (dump_.graphs.empty()) {
      if (!dump_.diagnostics.kept().empty())
        return Fail(ToError(dump_.diagnostics.kept()[0], dump_.name));
      return Fail(InputError(dump_.name, "no graph in the file",
                             "a dump holds '# GraphModule: NAME' between two "
                             "rulers of '='"));
    }
    const auto found = static_cast<int64_t>(dump_.graphs.size());
    if (dump_.header.modules && *dump_.header.modules != found) {
      Warn({}, 0,
           std::string(found < *dump_.header.modules ? "truncated: " : "") +
               "the header promises " + std::to_string(*dump_.header.modules) +
               (*dump_.header.modules == 1 ? " graph" : " graphs") +
               ", the file holds " + std::to_string(found));
    }
    for (const Graph& one : dump_.graphs) {
      if (one.output().valid()) continue;
      Warn({}, 0,
           "truncated: graph '" + EscapeTerminal(one.name()) +
               "' has no output line");
    }
    return {};
  }

  Dump& dump_;
  const ParseOptions& options_;
  std::shared_ptr<StringPool> ops_;
  std::string_view text_;
  ParsedLine parsed_;
  size_t free_ = 0;  // end of what belongs to a node or head
};

}  // namespace

bool LooksLikeDump(std::string_view head) {
  Lines lines(head);
  Line line;
  for (int i = 0; i < 64 && lines.Next(line); ++i) {
    if (line.text.starts_with("# Transform: ") ||
        line.text.starts_with(kModule) || line.text.starts_with("output") ||
        (line.text.starts_with('%') &&
         line.text.find(" : ") != std::string_view::npos))
      return true;
  }
  return false;
}

Graph* Dump::Find(std::string_view graph) {
  const auto found =
      std::find_if(graphs.begin(), graphs.end(),
                   [&](const Graph& one) { return one.name() == graph; });
  return found == graphs.end() ? nullptr : &*found;
}

const Graph* Dump::Find(std::string_view graph) const {
  return const_cast<Dump*>(this)->Find(graph);
}

Result<Dump> ParseDump(std::string name, std::string text,
                       const ParseOptions& options) {
  if (text.size() > kMaxDumpBytes) {
    return Fail(InputError(std::move(name), "the dump is larger than 1 GiB",
                           "cut it into its graphs"));
  }
  Dump dump;
  dump.name = std::move(name);
  dump.text = std::make_shared<const std::string>(std::move(text));
  LAMINA_TRY(Reader(dump, options).Read());
  return dump;
}

const Graph* DefaultGraph(const Dump& dump) {
  for (const std::string_view name :
       {std::string_view(dump.main), std::string_view("monolithic.model")}) {
    const Graph* model = name.empty() ? nullptr : dump.Find(name);
    if (model != nullptr) return model;
  }
  const Graph* best = nullptr;
  size_t most = 0;
  for (const Graph& graph : dump.graphs) {
    size_t ops = 0;
    for (const NodeId id : graph.nodes())
      ops += graph[id].kind == NodeKind::kOp ? 1 : 0;
    if (best != nullptr && ops <= most) continue;
    best = &graph;
    most = ops;
  }
  return best;
}

Result<const Graph*> ChooseGraph(const Dump& dump, std::string_view name) {
  const Graph* graph = name.empty() ? DefaultGraph(dump) : dump.Find(name);
  if (graph != nullptr) return graph;
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(dump.graphs.size(), 10); ++i) {
    if (!names.empty()) names += ", ";
    names += EscapeTerminal(dump.graphs[i].name());
  }
  if (dump.graphs.size() > 10)
    names += fmt::format(" and {} more", dump.graphs.size() - 10);
  std::vector<std::string_view> all;
  for (const Graph& one : dump.graphs) all.push_back(one.name());
  const std::string_view near = rules::Nearest(name, all);
  return Fail(UsageError(
      EscapeTerminal(dump.name) + ": no graph is called '" +
          EscapeTerminal(name) + "'",
      (near.empty() ? std::string()
                    : "did you mean '" + EscapeTerminal(near) + "'? ") +
          "the file has " + names));
}

}  // namespace lamina::graph
