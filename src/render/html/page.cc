// SPDX-License-Identifier: Apache-2.0
//
// The report page as bytes: texts as they are or redacted, the placeholders of
// the template filled, the file written in one piece.

#include "render/html/page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/counted.h"
#include "base/cpp_name.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/scan.h"
#include "base/json/writer.h"
#include "base/packed.h"
#include "lamina/version.h"
#include "render/redact/paths.h"
#include "render/redact/redactor.h"

namespace lamina::render {

// The one way of texts into a page: as they are, or redacted. A page that is
// redacted learns all of its texts first.

class PageText {
 public:
  // Of a page with all its tables, strings and facts.
  explicit PageText(const Page& page);

  std::string operator()(std::string_view text);
  std::string File(const std::string& path);
  // A word of a command line, which may be a file.
  std::string Argument(const std::string& word);
  // A JSON value with its texts replaced; keys, and what the engine itself
  // writes, stay.
  std::string Json(std::string_view json);

  bool redacted() const { return redactor_.has_value(); }
  // What the page says about names in it, when all texts have passed.
  std::string Privacy() const;

 private:
  std::optional<Redactor> redactor_;
};

Status WritePageFile(Page& page, const std::string& output, int threads) {
  LAMINA_ASSIGN(const auto sink, CreateFileSink(output));
  LAMINA_TRY(WritePage(page, *sink, threads));
  return sink->Close();
}

namespace {

using std::string_view;

// Values of these keys are words of the engine, by which the page knows what
// it reads.
bool IsOwnWord(string_view key) {
  constexpr std::array<string_view, 4> kKeys = {"kind", "format", "left_out",
                                                "dropped"};
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

bool IsFile(const std::string& word) {
  return !word.starts_with('-') &&
         (word.find('/') != std::string::npos || !ExtensionOf(word).empty());
}

// Calls `text` with each text of a JSON value that is not a key, and the key
// it belongs to, and writes the value with what it returns.
template <typename Text>
std::string WithTexts(string_view json, const Text& text) {
  std::string out, key;
  for (size_t i = 0; i < json.size();) {
    if (json[i] != '"') {
      out += json[i++];
      continue;
    }
    size_t end = i + 1;
    while (end < json.size() && json[end] != '"')
      end += json[end] == '\\' ? 2 : 1;
    const std::string value =
        json::DecodeString(json.substr(i + 1, end - i - 1));
    i = std::min(end + 1, json.size());
    if (i < json.size() && json[i] == ':') {
      key = value;
      AppendJsonQuoted(out, value);
    } else {
      AppendJsonQuoted(out, text(key, value));
    }
  }
  return out;
}

}  // namespace

PageText::PageText(const Page& page) {
  if (page.redact == nullptr) return;
  redactor_.emplace(*page.redact);
  const auto learn = [&](string_view, const std::string& value) {
    redactor_->Learn(value);
    return value;
  };
  for (const std::string& input : page.document.inputs)
    redactor_->LearnFile(input);
  for (const PageCommand& command : page.commands) {
    for (const std::string& word : command.words) {
      if (IsFile(word)) redactor_->LearnFile(word);
    }
  }
  for (const Note& note : page.document.result.notes) {
    redactor_->Learn(note.text);
    for (const Evidence& evidence : note.evidence)
      redactor_->Learn(evidence.value);
  }
  page.strings.ForEach([&](string_view text) { redactor_->Learn(text); });
  for (const auto& [name, json] : page.facts) WithTexts(json, learn);
  redactor_->Ready();
}

std::string PageText::operator()(string_view text) {
  return redactor_ ? redactor_->Apply(text) : std::string(text);
}

std::string PageText::File(const std::string& path) {
  return redactor_ ? redactor_->ApplyFile(path) : path;
}

std::string PageText::Argument(const std::string& word) {
  return IsFile(word) ? File(word) : (*this)(word);
}

std::string PageText::Json(string_view json) {
  if (!redactor_) return std::string(json);
  return WithTexts(json, [&](string_view key, const std::string& value) {
    if (IsOwnWord(key)) return value;
    return key == "input" ? File(value) : (*this)(value);
  });
}

std::string PageText::Privacy() const {
  if (!redactor_) {
    return "This page holds names, shapes, paths and hosts of the trace; "
           "--redact replaces paths, host and user names by tokens.";
  }
  const Redactor::Counts counts = redactor_->counts();
  std::string text =
      "This page is redacted: " + Counted(counts.paths, "path") + ", " +
      Counted(counts.hosts, "host name") +
      (counts.keys > 0
           ? ", " + Counted(counts.keys, "key or token", "keys and tokens")
           : std::string()) +
      " and " + Counted(counts.users, "user name") +
      " are replaced by tokens. Names of kernels, ops, modules "
      "and functions, shapes and times are those of the trace.";
  if (counts.common > 0) {
    text += " " +
            Counted(counts.common, "name of a host or user is",
                    "names of hosts or users are") +
            " also a common word, which stays outside of paths.";
  }
  return text;
}

}  // namespace lamina::render

// The templates that web/build.py made, packed (base/packed.h); empty in a
// build without node.
LAMINA_EMBED(pages, LAMINA_PAGE_PACK)

namespace lamina::render {

namespace {

constexpr int kSchemaVersion = 2;

// Names are cut: a page shows at most this much of one.
constexpr size_t kMostTextBytes = 10000;

// What views of graph dumps show. A page with one of these tables has their
// program, which lays graphs out; all others have that of traces.
constexpr std::string_view kGraphTables[] = {"graph_layers", "census_rules",
                                             "near_misses",  "candidates",
                                             "pipeline",     "review"};

// What the view of all ranks shows.
constexpr std::string_view kRankTables[] = {"collective_waits", "rank_steps"};

// "trace_page.html".
std::string_view Template(std::string_view name) {
  static const PackedFiles pages({lamina_pages_begin, lamina_pages_end});
  return pages.Find(name).value_or("");
}

std::string_view Template(const Page& page) {
  // Allocations of a snapshot have a program of their own.
  if (std::any_of(page.facts.begin(), page.facts.end(),
                  [](const auto& fact) { return fact.first == "memory"; }))
    return Template("memory_page.html");
  const auto& tables = page.document.result.tables;
  const bool graph = std::any_of(tables.begin(), tables.end(), [](auto& table) {
    return std::find(std::begin(kGraphTables), std::end(kGraphTables),
                     table.name()) != std::end(kGraphTables);
  });
  if (graph) return Template("graph_page.html");
  const bool ranks = std::any_of(tables.begin(), tables.end(), [](auto& table) {
    return std::find(std::begin(kRankTables), std::end(kRankTables),
                     table.name()) != std::end(kRankTables);
  });
  return Template(ranks ? "ranks_page.html" : "trace_page.html");
}

// JSON inside <script>: no text can close the element or open a comment.
std::string ForScript(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

using json::Writer;

std::string_view TypeName(ColumnType type) {
  switch (type) {
    case ColumnType::kText:
      return "text";
    case ColumnType::kInt:
      return "int";
    case ColumnType::kReal:
      return "real";
    case ColumnType::kBool:
      return "bool";
    case ColumnType::kTime:
      return "time";
  }
  return "";
}

std::string_view ShownName(Shown shown) {
  switch (shown) {
    case Shown::kPlain:
      return "plain";
    case Shown::kPercent:
      return "percent";
    case Shown::kBytes:
      return "bytes";
    case Shown::kCount:
      return "count";
    case Shown::kBar:
      return "bar";
    case Shown::kHidden:
      return "hidden";
  }
  return "";
}

// One column of a table: its numbers, and beside them which rows hold none.
// Integers that a double cannot hold travel as text.
void AddTableColumn(const Table& table, size_t c, PageStrings& strings,
                    Block& block, Writer& w) {
  const size_t rows = table.rows();
  const Column& column = table.schema().columns[c];
  bool nulls = false;
  bool as_text = column.type == ColumnType::kText;
  for (size_t r = 0; r < rows; ++r) {
    nulls = nulls || table.IsNull(r, c);
    if (column.type == ColumnType::kInt || column.type == ColumnType::kTime)
      as_text = as_text || (!table.IsNull(r, c) && !Exact(table.Int(r, c)));
  }
  const std::string name = std::to_string(c);
  if (column.type == ColumnType::kReal) {
    std::vector<double> values(rows);
    for (size_t r = 0; r < rows; ++r)
      values[r] = table.IsNull(r, c) ? 0.0 : table.At(r, c).real();
    block.AddReals(name, values);
  } else {
    std::vector<int64_t> values(rows);
    std::string text;
    for (size_t r = 0; r < rows; ++r) {
      if (table.IsNull(r, c)) continue;
      if (!as_text) {
        values[r] = table.Int(r, c);
        continue;
      }
      text.clear();
      AppendCellText(text, table, r, c);
      values[r] = strings.Id(text);
    }
    const bool negative = std::any_of(values.begin(), values.end(),
                                      [](int64_t v) { return v < 0; });
    block.Add(name, values, negative);
  }
  if (nulls) {
    std::vector<int64_t> missing(rows);
    for (size_t r = 0; r < rows; ++r) missing[r] = table.IsNull(r, c) ? 1 : 0;
    block.Add(name + "?", missing);
  }
  w.Object();
  w.Text("name", column.name);
  w.Text("type", TypeName(column.type));
  w.Text("shown", ShownName(column.shown));
  w.Text("doc", column.doc);
  if (as_text) w.Int("text", 1);
  if (nulls) w.Int("nulls", 1);
  w.Close();
}

// The array of tables.
std::string TablesJson(Page& page) {
  std::string out;
  Writer w(out);
  w.Array();
  const auto& tables = page.document.result.tables;
  for (size_t t = 0; t < tables.size(); ++t) {
    const Table& table = tables[t];
    Block block("t" + std::to_string(t), table.rows());
    w.Object();
    w.Text("name", table.name());
    w.Text("doc", table.schema().doc);
    w.Int("rows", table.rows());
    w.Array("columns");
    for (size_t c = 0; c < table.columns(); ++c)
      AddTableColumn(table, c, page.strings, block, w);
    w.Close();
    w.Close();
    page.blocks.push_back(std::move(block));
  }
  w.Close();
  return out;
}

void WriteNotes(Writer& w, const ResultSet& result, PageText& text) {
  w.Array("notes");
  for (const Note& note : result.notes) {
    w.Object();
    w.Text("severity", SeverityName(note.severity));
    w.Text("id", note.id);
    w.Text("text", text(note.text));
    if (note.worth_ns) w.Int("worth_ns", *note.worth_ns);
    w.Text("claim", note.claim);
    w.Array("evidence");
    for (const Evidence& evidence : note.evidence) {
      w.Object();
      w.Text("table", evidence.table);
      w.Text("column", evidence.column);
      w.Text("value", text(evidence.value));
      w.Ints("events", evidence.events);
      w.Close();
    }
    w.Close();
    w.Close();
  }
  w.Close();
}

void WriteBlocks(Writer& w, const std::vector<Block>& blocks) {
  w.Array("blocks");
  for (const Block& block : blocks) {
    w.Object();
    w.Text("name", block.name());
    w.Int("rows", block.rows());
    w.Int("bytes", block.raw().size());
    w.Array("columns");
    for (const PackedColumn& column : block.columns()) {
      w.Object();
      w.Text("name", column.name);
      w.Int("width", column.width);
      if (column.delta) w.Int("delta", 1);
      if (!column.wide.empty()) {
        w.Array("wide");
        for (const auto& [row, value] : column.wide) {
          w.Array();
          w.Int(row);
          w.Int(value);
          w.Close();
        }
        w.Close();
      }
      w.Close();
    }
    w.Close();
    w.Close();
  }
  w.Close();
}

void WriteCommands(Writer& w, const std::vector<PageCommand>& commands,
                   PageText& text) {
  w.Array("commands");
  for (const PageCommand& command : commands) {
    std::vector<std::string> words;
    for (const std::string& word : command.words)
      words.push_back(text.Argument(word));
    w.Object();
    w.Text("name", command.name);
    w.Texts("words", words);
    w.Texts("tables", command.tables);
    w.Texts("where", command.where);
    w.Close();
  }
  w.Close();
}

std::string Title(const Document& document, PageText& text) {
  std::string title = "lamina " + document.command;
  if (!document.inputs.empty()) {
    const std::string input = text.File(document.inputs[0]);
    title += ": " + input.substr(input.find_last_of('/') + 1);
  }
  return EscapeXml(Shorten(title, 200));
}

// What a reader without script sees: the notes and the first tables.
std::string Summary(const Document& document, PageText& page_text) {
  std::string out = "<h1>" + Title(document, page_text) + "</h1>\n";
  for (const Note& note : document.result.notes) {
    if (note.severity == Severity::kInfo) continue;
    out += "<p>" + EscapeXml(Shorten(page_text(note.text), 1000));
    if (note.worth_ns) out += " (" + HumanTime(*note.worth_ns) + ")";
    out += "</p>\n";
  }
  size_t shown = 0;
  for (const Table& table : document.result.tables) {
    if (table.rows() == 0) continue;
    if (++shown > 2) break;
    out += "<h2>" + EscapeXml(table.name()) + "</h2>\n<table><thead><tr>";
    for (const Column& column : table.schema().columns)
      out += "<th scope=\"col\">" + EscapeXml(column.name) + "</th>";
    out += "</tr></thead><tbody>\n";
    for (size_t r = 0; r < std::min<size_t>(table.rows(), 20); ++r) {
      out += "<tr>";
      for (size_t c = 0; c < table.columns(); ++c) {
        const Shown as = table.schema().columns[c].shown;
        std::string text = page_text(CellText(table, r, c));
        if (!table.IsNull(r, c) && (as == Shown::kPercent || as == Shown::kBar))
          text = std::to_string(std::lround(table.At(r, c).real()));
        out += "<td>" + EscapeXml(Shorten(text, 200)) + "</td>";
      }
      out += "</tr>\n";
    }
    out += "</tbody></table>\n";
  }
  return out + "<p>" + EscapeXml(page_text.Privacy()) + "</p>\n";
}

// Which names of kernels the page shows shortened. A column of kernels is one
// whose name says so.
void AddShortNames(Page& page) {
  std::vector<int64_t> names, shorts;
  std::set<int64_t> seen;
  for (const Table& table : page.document.result.tables) {
    for (size_t c = 0; c < table.columns(); ++c) {
      const Column& column = table.schema().columns[c];
      if (column.type != ColumnType::kText ||
          column.name.find("kernel") == std::string::npos)
        continue;
      for (size_t r = 0; r < table.rows(); ++r) {
        if (table.IsNull(r, c)) continue;
        const std::string_view name = table.At(r, c).text();
        const int64_t id = page.strings.Id(name);
        if (!seen.insert(id).second) continue;
        const std::string text = ShortCppName(name);
        if (text == name) continue;
        names.push_back(id);
        shorts.push_back(page.strings.Id(text));
      }
    }
  }
  page.blocks.emplace_back("short_names", names.size());
  page.blocks.back().Add("name", names);
  page.blocks.back().Add("short", shorts);
}

// The texts as blocks of lengths and of UTF-8 bytes.
void AddStrings(Page& page, PageText& page_text) {
  std::vector<int64_t> lengths;
  std::string bytes;
  page.strings.ForEach([&](std::string_view raw) {
    const std::string text = Shorten(page_text(raw), kMostTextBytes);
    lengths.push_back(static_cast<int64_t>(text.size()));
    bytes += text;
  });
  page.blocks.emplace_back("string_lengths", lengths.size());
  page.blocks.back().Add("length", lengths);
  page.blocks.emplace_back("string_bytes", bytes.size());
  page.blocks.back().AddBytes("bytes", bytes);
}

std::string Manifest(Page& page, std::string_view tables, PageText& text) {
  const Document& document = page.document;
  std::vector<std::string> inputs;
  for (const std::string& input : document.inputs)
    inputs.push_back(text.File(input));
  std::string out;
  Writer w(out);
  w.Object();
  w.Int("schema", kSchemaVersion);
  w.Text("version", Version());
  w.Text("command", document.command);
  w.Texts("inputs", inputs);
  WriteCommands(w, page.commands, text);
  for (const auto& [key, value] : page.facts) w.Raw(key, text.Json(value));
  WriteNotes(w, document.result, text);
  w.Raw("tables", tables);
  AddStrings(page, text);
  WriteBlocks(w, page.blocks);
  if (text.redacted()) w.Int("redacted", 1);
  w.Text("privacy", text.Privacy());
  w.Close();
  return out;
}

// Template text up to a placeholder, which it must hold.
std::string_view Until(std::string_view& text, std::string_view mark) {
  const size_t at = text.find(mark);
  LAMINA_CHECK(at != std::string_view::npos);
  const std::string_view before = text.substr(0, at);
  text.remove_prefix(at + mark.size());
  return before;
}

}  // namespace

int64_t PageStrings::Id(std::string_view text) {
  if (text.size() > kMostTextBytes)
    return pool_.Intern(Shorten(text, kMostTextBytes - 4)).value;
  return pool_.Intern(text).value;
}

std::vector<std::string> TableNames(const ResultSet& result) {
  std::vector<std::string> names;
  for (const Table& table : result.tables) names.push_back(table.name());
  return names;
}

bool HasPage() { return !Template("trace_page.html").empty(); }

std::string LivePage(LiveProgram program, std::string_view data) {
  std::string_view rest =
      program == LiveProgram::kLibrary  ? Template("library_page.html")
      : program == LiveProgram::kMemory ? Template("memory_page.html")
                                        : Template("trace_page.html");
  std::string out;
  if (rest.empty()) return out;
  out += Until(rest, "{{connect}}");
  out += "'self'";
  out += Until(rest, "{{title}}");
  out += "lamina";
  out += Until(rest, "{{summary}}");
  out += "<p>Loading. This page needs scripts.</p>";
  out += Until(rest, "{{data}}");
  if (!data.empty()) {
    out += "<script type=\"application/json\" id=\"live\">";
    out += ForScript(data);
    out += "</script>";
  }
  out += rest;
  return out;
}

Status WritePage(Page& page, ByteSink& sink, int threads) {
  if (!HasPage()) {
    return Fail(UsageError("this build of lamina has no report page",
                           "build it where node and npm are installed"));
  }
  // Tables fill the strings of the page.
  const std::string tables = TablesJson(page);
  AddShortNames(page);
  PageText text(page);
  const std::string json = Manifest(page, tables, text);

  std::string_view rest = Template(page);
  sink.Write(Until(rest, "{{connect}}"));
  sink.Write("'none'");
  sink.Write(Until(rest, "{{title}}"));
  sink.Write(Title(page.document, text));
  sink.Write(Until(rest, "{{summary}}"));
  sink.Write(Summary(page.document, text));
  sink.Write(Until(rest, "{{data}}"));
  sink.Write("<script type=\"application/json\" id=\"manifest\">");
  sink.Write(ForScript(json));
  sink.Write("</script>\n");
  for (const Block& block : page.blocks) {
    sink.Write("<script type=\"application/json\" id=\"block-" + block.name() +
               "\">\"");
    sink.Write(Base64(Gzip(block.raw(), threads)));
    sink.Write("\"</script>\n");
  }
  sink.Write(rest);
  return {};
}

}  // namespace lamina::render
