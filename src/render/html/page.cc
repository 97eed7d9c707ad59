// SPDX-License-Identifier: Apache-2.0
#include "render/html/page.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/cpp_name.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "lamina/version.h"
#include "render/html/page_text.h"

// The templates that web/build.mjs made; empty in a build without node.
#define LAMINA_TEMPLATE(name)                      \
  asm(".section .rodata\n"                         \
      ".global lamina_" #name                      \
      "_begin\n"                                   \
      ".global lamina_" #name                      \
      "_end\n"                                     \
      "lamina_" #name                              \
      "_begin:\n"                                  \
      ".incbin \"" LAMINA_PAGE_TEMPLATES "/" #name \
      ".html\"\n"                                  \
      "lamina_" #name                              \
      "_end:\n"                                    \
      ".byte 0\n"                                  \
      ".previous\n");                              \
  extern "C" {                                     \
  extern const char lamina_##name##_begin[];       \
  extern const char lamina_##name##_end[];         \
  }

LAMINA_TEMPLATE(trace_page)
LAMINA_TEMPLATE(graph_page)

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

std::string_view Between(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

std::string_view Template(const Page& page) {
  const auto& tables = page.document.result.tables;
  const bool graph = std::any_of(tables.begin(), tables.end(), [](auto& table) {
    return std::find(std::begin(kGraphTables), std::end(kGraphTables),
                     table.name()) != std::end(kGraphTables);
  });
  return graph ? Between(lamina_graph_page_begin, lamina_graph_page_end)
               : Between(lamina_trace_page_begin, lamina_trace_page_end);
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

void AppendJson(std::string& out, std::string_view key, std::string_view text) {
  AppendJsonQuoted(out, key);
  out += ':';
  AppendJsonQuoted(out, text);
}

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
                    Block& block, std::string& json) {
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
  json += '{';
  AppendJson(json, "name", column.name);
  json += ',';
  AppendJson(json, "type", TypeName(column.type));
  json += ',';
  AppendJson(json, "shown", ShownName(column.shown));
  json += ',';
  AppendJson(json, "doc", column.doc);
  json += as_text ? ",\"text\":1" : "";
  json += nulls ? ",\"nulls\":1}" : "}";
}

void AppendTables(Page& page, std::string& json) {
  json += "\"tables\":[";
  const auto& tables = page.document.result.tables;
  for (size_t t = 0; t < tables.size(); ++t) {
    const Table& table = tables[t];
    Block block("t" + std::to_string(t), table.rows());
    json += t > 0 ? ",{" : "{";
    AppendJson(json, "name", table.name());
    json += ',';
    AppendJson(json, "doc", table.schema().doc);
    json += ",\"rows\":" + std::to_string(table.rows()) + ",\"columns\":[";
    for (size_t c = 0; c < table.columns(); ++c) {
      if (c > 0) json += ',';
      AddTableColumn(table, c, page.strings, block, json);
    }
    json += "]}";
    page.blocks.push_back(std::move(block));
  }
  json += ']';
}

void AppendNotes(const ResultSet& result, PageText& text, std::string& json) {
  json += "\"notes\":[";
  for (size_t i = 0; i < result.notes.size(); ++i) {
    const Note& note = result.notes[i];
    json += i > 0 ? ",{" : "{";
    AppendJson(json, "severity", SeverityName(note.severity));
    json += ',';
    AppendJson(json, "id", note.id);
    json += ',';
    AppendJson(json, "text", text(note.text));
    if (note.worth_ns)
      json += ",\"worth_ns\":" + std::to_string(*note.worth_ns);
    json += ',';
    AppendJson(json, "claim", note.claim);
    json += ",\"evidence\":[";
    for (size_t k = 0; k < note.evidence.size(); ++k) {
      const Evidence& evidence = note.evidence[k];
      json += k > 0 ? ",{" : "{";
      AppendJson(json, "table", evidence.table);
      json += ',';
      AppendJson(json, "column", evidence.column);
      json += ',';
      AppendJson(json, "value", text(evidence.value));
      json += ",\"events\":[";
      for (size_t e = 0; e < evidence.events.size(); ++e)
        json += (e > 0 ? "," : "") + std::to_string(evidence.events[e]);
      json += "]}";
    }
    json += "]}";
  }
  json += ']';
}

void AppendBlocks(const std::vector<Block>& blocks, std::string& json) {
  json += "\"blocks\":[";
  for (size_t b = 0; b < blocks.size(); ++b) {
    const Block& block = blocks[b];
    json += b > 0 ? ",{" : "{";
    AppendJson(json, "name", block.name());
    json += ",\"rows\":" + std::to_string(block.rows()) +
            ",\"bytes\":" + std::to_string(block.raw().size()) +
            ",\"columns\":[";
    for (size_t c = 0; c < block.columns().size(); ++c) {
      const PackedColumn& column = block.columns()[c];
      json += c > 0 ? ",{" : "{";
      AppendJson(json, "name", column.name);
      json += ",\"width\":" + std::to_string(column.width);
      if (column.delta) json += ",\"delta\":1";
      if (!column.wide.empty()) {
        json += ",\"wide\":[";
        for (size_t w = 0; w < column.wide.size(); ++w) {
          json += (w > 0 ? ",[" : "[") + std::to_string(column.wide[w].first) +
                  "," + std::to_string(column.wide[w].second) + "]";
        }
        json += ']';
      }
      json += '}';
    }
    json += "]}";
  }
  json += ']';
}

void AppendTexts(std::string& json, std::string_view key,
                 const std::vector<std::string>& texts) {
  AppendJsonQuoted(json, key);
  json += ":[";
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) json += ',';
    AppendJsonQuoted(json, texts[i]);
  }
  json += ']';
}

void AppendCommands(const std::vector<PageCommand>& commands, PageText& text,
                    std::string& json) {
  json += "\"commands\":[";
  for (size_t i = 0; i < commands.size(); ++i) {
    const PageCommand& command = commands[i];
    json += i > 0 ? ",{" : "{";
    AppendJson(json, "name", command.name);
    std::vector<std::string> words;
    for (const std::string& word : command.words)
      words.push_back(text.Argument(word));
    json += ',';
    AppendTexts(json, "words", words);
    json += ',';
    AppendTexts(json, "tables", command.tables);
    json += ',';
    AppendTexts(json, "where", command.where);
    json += '}';
  }
  json += ']';
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
  std::string json = "{\"schema\":" + std::to_string(kSchemaVersion) + ",";
  AppendJson(json, "version", Version());
  json += ',';
  AppendJson(json, "command", document.command);
  json += ',';
  std::vector<std::string> inputs;
  for (const std::string& input : document.inputs)
    inputs.push_back(text.File(input));
  AppendTexts(json, "inputs", inputs);
  json += ',';
  AppendCommands(page.commands, text, json);
  json += ',';
  for (const auto& [key, value] : page.facts)
    json += JsonQuote(key) + ":" + text.Json(value) + ",";
  AppendNotes(document.result, text, json);
  json += ',';
  json += tables;
  json += ',';
  AddStrings(page, text);
  AppendBlocks(page.blocks, json);
  json += text.redacted() ? ",\"redacted\":1," : ",";
  AppendJson(json, "privacy", text.Privacy());
  return json + '}';
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

bool HasPage() {
  return !Between(lamina_trace_page_begin, lamina_trace_page_end).empty();
}

Status WritePage(Page& page, ByteSink& sink, int threads) {
  if (!HasPage()) {
    return Fail(UsageError("this build of lamina has no report page",
                           "build it where node and npm are installed"));
  }
  // Tables fill the strings of the page.
  std::string tables;
  AppendTables(page, tables);
  AddShortNames(page);
  PageText text(page);
  const std::string json = Manifest(page, tables, text);

  std::string_view rest = Template(page);
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
