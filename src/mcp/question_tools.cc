// SPDX-License-Identifier: Apache-2.0
//
// Questions as tools: what an agent is shown of each.

#include <algorithm>
#include <fmt/format.h>

#include "findings/answer.h"
#include "mcp/tools.h"
#include "questions/questions.h"
#include "sql/table_def.h"

namespace lamina::mcp {

namespace {

using questions::NextQuestion;
using questions::Question;

Param ParamOf(const ParamInfo& info) {
  static constexpr Type kTypes[] = {Type::kFlag, Type::kWhole, Type::kReal,
                                    Type::kText};
  static constexpr Role kRoles[] = {Role::kValue, Role::kPath, Role::kOutput};
  const bool trace = info.name == "trace" && info.required;
  return {.name = info.name,
          .doc = trace ? "Path or handle of a trace" : info.doc,
          .type = kTypes[static_cast<size_t>(info.type)],
          .role = kRoles[static_cast<size_t>(info.role)],
          .required = info.required,
          .many = info.many,
          .choices = info.choices,
          .low = info.low,
          .high = info.high,
          .default_text = info.default_text};
}

ParamValue ValueOf(const Input& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  return value.get<std::string>();
}

// What a call says, with the names of files as the command is to read them.
Params ParamsOf(const Call& call, const std::vector<Param>& params,
                const Inputs& inputs) {
  Params out;
  for (const Param& param : params) {
    const auto found = call.arguments.find(param.name);
    if (found == call.arguments.end()) continue;
    const auto text = [&](const Input& value) {
      const auto given = value.get<std::string>();
      return param.role == Role::kPath ? inputs.NameOf(given) : given;
    };
    if (found->is_array()) {
      std::vector<std::string> texts;
      for (const Input& value : *found) texts.push_back(text(value));
      out[param.name] = std::move(texts);
    } else {
      out[param.name] =
          found->is_string() ? ParamValue(text(*found)) : ValueOf(*found);
    }
  }
  return out;
}

bool Names(const ParamValue& value, const std::string& input) {
  if (const auto* const text = std::get_if<std::string>(&value))
    return *text == input;
  const auto* const texts = std::get_if<std::vector<std::string>>(&value);
  return texts != nullptr &&
         std::find(texts->begin(), texts->end(), input) != texts->end();
}

// Which file was read where a folder was given.
void SayWhatWasRead(const Params& params, Document& document) {
  std::vector<std::string> read;
  for (const std::string& input : document.inputs) {
    if (std::none_of(params.begin(), params.end(), [&](const auto& param) {
          return Names(param.second, input);
        }))
      read.push_back(input);
  }
  constexpr size_t kMost = 4;
  if (read.empty() || read.size() > kMost) return;
  document.result.notes.push_back(
      MakeNote(Severity::kInfo, "inputs",
               fmt::format("Read {}.", fmt::join(read, ", "))));
}

// The calls that make sense behind one on a trace.
std::vector<Next> NextOf(const Question& question, const Call& call,
                         const Workshop& workshop) {
  std::vector<Next> out;
  if (!call.Has("trace")) return out;
  const std::string handle = workshop.inputs->HandleOf(call.Text("trace"));
  for (const NextQuestion& next : question.next) {
    Json arguments;
    arguments["trace"] = handle;
    out.push_back({next.question, std::move(arguments), next.why});
  }
  return out;
}

}  // namespace

questions::OpenTraces::Opening Workshop::OpeningFor(const Call& call) const {
  return {[progress = call.progress](uint64_t done, uint64_t total) {
            if (progress) progress({"reading", done, total});
          },
          call.stop};
}

Caller::Caller(const Workshop& workshop, const Call& call) {
  const questions::OpenTraces::Opening how = workshop.OpeningFor(call);
  traces.open = [open = workshop.traces, how](const std::string& path) {
    return open->Open(path, how);
  };
  asker.threads = workshop.threads;
  asker.is_agent = true;
  asker.traces = &traces;
  asker.stop = how.stop;
  asker.progress = [progress = how.progress](const std::string&) {
    return progress;
  };
}

void AddQuestionTools(const Workshop& workshop, bool writing,
                      std::vector<Tool>& tools) {
  for (const Question& question : questions::Questions()) {
    if (!question.for_agents || (question.info.writes && !writing)) continue;
    Tool tool;
    tool.name = question.info.name;
    tool.title = question.info.title;
    tool.doc = question.info.doc;
    tool.writes = question.info.writes;
    for (const size_t i : question.agent_params)
      tool.params.push_back(ParamOf(question.info.params[i]));
    tool.run = [&question, workshop,
                params = tool.params](const Call& call) -> Outcome {
      const Params asked = ParamsOf(call, params, *workshop.inputs);
      Caller caller(workshop, call);
      auto answer = questions::Ask(question, asked, caller.asker);
      if (!answer) return Fail(std::move(answer).error());
      Document document = std::move(answer->document);
      SayWhatWasRead(asked, document);
      document.command = question.info.name;
      Made made{std::move(document), NextOf(question, call, workshop), {}, {}};
      if (answer->first != nullptr) {
        made.answer = Json::parse(findings::AnswerJson(*answer->first));
        made.answer_text = findings::AnswerText(*answer->first);
      }
      return made;
    };
    tools.push_back(std::move(tool));
  }
}

// What an agent can read without a tool: the pages of skills/lamina, tables
// with their columns, and prompts.

namespace {

struct Guide {
  const char* file;  // below skills/
  const char* text;
};
constexpr Guide kGuides[] = {
#include "guides.inc"
};

// "lamina/workflows/ranks.md" is lamina://guide/ranks, what is below references
// lamina://docs/NAME.
Page PageOf(const Guide& guide) {
  const std::string_view file = guide.file;
  const size_t slash = file.rfind('/') + 1;
  std::string name(file.substr(slash, file.size() - slash - 3));
  if (name == "SKILL") name = "start";
  Page page;
  page.text = guide.text;
  // The first heading.
  const size_t head = page.text.find("# ");
  page.title =
      page.text.substr(head + 2, page.text.find('\n', head) - head - 2);
  page.uri = (file.find("/references/") != std::string_view::npos
                  ? "lamina://docs/"
                  : "lamina://guide/") +
             name;
  page.name = std::move(name);
  return page;
}

std::optional<std::string> TablePage(const std::string& name) {
  const sql::TableDef* const table = sql::FindTable(name);
  if (table == nullptr) return std::nullopt;
  std::string out = fmt::format(
      "# {}\n\n{}\n\nKind: {}. First use: {}.\n\n", table->name, table->doc,
      sql::TableKindName(table->kind), sql::CostName(table->cost));
  for (const sql::ColumnDef& column : table->columns) {
    if (column.hidden) continue;
    const std::string unit = column.unit();
    out += fmt::format("* `{}` ({}{}{}): {}\n", column.name,
                       sql::TypeName(column.type), unit.empty() ? "" : ", ",
                       unit, column.doc);
  }
  return out;
}

Param Required(const char* name, const char* doc) {
  return {.name = name, .doc = doc, .required = true};
}

std::vector<Prompt> Prompts() {
  constexpr const char* kFinish =
      "Finish with numbers with units, the calls that give them again, and the "
      "warnings of the answers. Say what cannot be known.\n";
  const Param trace = Required("trace", "Path or handle of a trace");
  return {
      {"why_slow",
       "Why is it slow?",
       "Where the time of a trace went and what to change",
       {trace},
       std::string("Why is {trace} slow, and what should change first?\n"
                   "Read lamina://guide/where-did-time-go. Call open_trace, "
                   "then report and diagnose; trace_health comes first. Quote "
                   "the claim of each worth.\n") +
           kFinish},
      {"what_changed",
       "What changed?",
       "Two traces compared by cause",
       {Required("a", "The trace before"), Required("b", "The trace after")},
       std::string("What changed from {a} to {b}?\nRead "
                   "lamina://guide/compare and call diff; its causes add up to "
                   "the difference.\n") +
           kFinish},
      {"straggler",
       "Which rank is late?",
       "A job of many ranks",
       {Required("dir", "Folder with a trace per rank")},
       std::string("Which rank of {dir} do the others wait for, and why?\nRead "
                   "lamina://guide/ranks and call ranks.\n") +
           kFinish},
      {"layer_picture",
       "One layer of a graph",
       "A layer of a graph dump with kernels on its nodes",
       {Required("dump", "Dump or folder of dumps"),
        Required("layer", "Number of the layer"),
        {.name = "trace", .doc = "Trace with replays of the graph"}},
       std::string("Show layer {layer} of {dump}.\n"
                   "Put the kernels of {trace} on its nodes.\n"
                   "Read lamina://guide/graph-layer; call graph_layers for odd "
                   "layers, then graph_layer. Cut nothing by eye.\n") +
           kFinish},
      {"fusion_candidates",
       "What could be fused?",
       "Fusions of a graph dump with kernels that exist",
       {Required("dump", "Dump or folder of dumps"),
        {.name = "tree", .doc = "Source checkout to look kernels up in"},
        {.name = "trace", .doc = "Trace with replays of the graph"}},
       std::string("What could be fused in {dump}?\n"
                   "Look kernels up in {tree}.\n"
                   "Bound the worth by {trace}.\n"
                   "Read lamina://guide/fusions; call graph_census, then "
                   "graph_candidates. Recommend no new kernel where none was "
                   "looked up.\n") +
           kFinish},
      {"write_query",
       "A question as SQL",
       "SQL that answers a question about a trace",
       {Required("question", "The question"), trace},
       std::string("Answer by SQL over {trace}: {question}\nRead "
                   "lamina://docs/sql; look tables and columns up with tables "
                   "before query.\n") +
           kFinish}};
}

}  // namespace

Library MakeLibrary() {
  Library library;
  for (const Guide& guide : kGuides) library.pages.push_back(PageOf(guide));
  PageFamily tables;
  tables.prefix = "lamina://table/";
  tables.argument = "name";
  tables.title = "A table of lamina query and its columns";
  tables.text = TablePage;
  tables.values = [] {
    std::vector<std::string> names;
    for (const sql::TableDef& table : sql::Tables())
      names.push_back(table.name);
    return names;
  };
  library.families.push_back(std::move(tables));
  library.prompts = Prompts();
  return library;
}

}  // namespace lamina::mcp
