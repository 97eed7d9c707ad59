// SPDX-License-Identifier: Apache-2.0
//
// Commands as tools: a row says which command, which of its options an agent
// may use and which of them are files; names, types, ranges and values come
// from the command itself.
//
// Longer than most: it is a table of many rows.
#include <algorithm>
#include <fmt/format.h>

#include "cli/mcp/tools.h"

namespace lamina::cli {
namespace {

using mcp::Role;

// An argument of a tool, and the option or input of the command that it is.
struct ParamRow {
  const char* option;          // "--min-share", or the name of an input
  const char* name = nullptr;  // of the argument; null: that of the option
  Role role = Role::kValue;
  const char* doc = nullptr;  // null: that of the option
  bool required = false;
  bool single = false;  // one value, where the command takes many
};

struct NextRow {
  const char* tool;
  const char* why;
};

struct ToolRow {
  const char* name;
  std::vector<std::string> command;
  const char* title;
  const char* doc;
  std::vector<ParamRow> params;
  std::vector<NextRow> next = {};  // with the same trace
  bool writes = false;
};

ParamRow Trace(const char* input) {
  return {input, "trace", Role::kPath, "Path or handle of a trace", true};
}

const std::vector<ToolRow>& Rows() {
  static const std::vector<ToolRow> rows = {
      {"report",
       {"report"},
       "Where did the GPU time go?",
       "The verdict, opportunities with worth and claim (measured, bound, "
       "estimate), and tables: timeline, ops, kernels, steps, modules, "
       "collectives, trace_health. Ask this first. `only` names tables.",
       {Trace("trace"),
        {"--only"},
        {"--top"},
        {"--capture", "capture", Role::kPath,
         "Traces in which the replayed graphs were captured"},
        {"--recompute"}},
       {{"diagnose", "what to change next"},
        {"layers", "time by forward pass and layer"}}},
      {"diagnose",
       {"diagnose"},
       "What to change next",
       "Ranked findings: what is wrong, what fixing it saves at least and at "
       "most, how sure that is, events that prove it, what could not be looked "
       "at and how to record it. A folder of ranks is one job.",
       {Trace("trace"),
        {"--category"},
        {"--only", nullptr, Role::kValue, "Rules or tables"},
        {"--min-share"},
        {"--all"}},
       {{"event", "one event of the evidence, by its uid"}}},
      {"layers",
       {"layers"},
       "Forward passes and transformer layers",
       "Passes, stage (prefill, decode), layers per pass, time by kind and by "
       "part, odd layers. `layer` lists the kernels of layers of the first "
       "pass; `variants` shows kinds kernel by kernel.",
       {Trace("trace"),
        {"--stage"},
        {"--layer"},
        {"--variants"},
        {"--only"},
        {"--capture", "capture", Role::kPath,
         "Traces in which the replayed graphs were captured"}},
       {{"diagnose", "what to change next"}}},
      {"event",
       {"event"},
       "One event",
       "One event by its number (columns uid and first_uid): callers, what it "
       "launched or was launched by, forward and backward, its recorded "
       "arguments.",
       {Trace("trace"), {"--uid", nullptr, Role::kValue, nullptr, true}}},
      {"tree",
       {"tree"},
       "Call tree or module tree",
       "Ops or modules as a tree with device time, small branches folded.",
       {Trace("trace"), {"--by"}, {"--depth"}, {"--min-share"}, {"--expand"}},
       {{"layers", "time by forward pass and layer"}}},
      {"diff",
       {"diff"},
       "What changed between two traces",
       "Causes that add up to the difference, matched ops and kernels, totals. "
       "`findings` compares what diagnose says of both.",
       {{"traces", "a", Role::kPath, "The trace before", true, true},
        {"traces", "b", Role::kPath, "The trace after", true, true},
        {"--findings"},
        {"--only"},
        {"--top"}}},
      {"ranks",
       {"ranks"},
       "Many ranks of one job",
       "Collectives matched over ranks: stragglers and their causes, waits, "
       "clock offsets, bandwidth.",
       {{"traces", "paths", Role::kPath,
         "A folder of traces, or one trace per rank", true},
        {"--only"},
        {"--top"}}},
      {"annotate",
       {"annotate"},
       "Ops of replayed graph kernels",
       "Which op, module and line each kernel of a replayed CUDA graph goes "
       "back to, with the level of evidence of each match.",
       {Trace("replay"),
        {"--from", "from", Role::kPath,
         "Traces of the capture or of an eager run"},
        {"--min-evidence"},
        {"--only"}}},
      {"graph_layers",
       {"graph", "layers"},
       "All layers of a graph dump",
       "Kinds of layers, parts, odd layers, boundaries. A folder of dumps: its "
       "last one.",
       {{"dump", nullptr, Role::kPath, nullptr, true},
        {"--section"},
        {"--only"}},
       {}},
      {"graph_layer",
       {"graph", "layer"},
       "One layer of a graph dump",
       "Nodes with ops, shapes, groups and inputs, weights and what comes from "
       "outside; with `trace` the kernels of a replay on each node.",
       {{"dump", nullptr, Role::kPath, nullptr, true},
        {"--layer", nullptr, Role::kValue, nullptr, true},
        {"--section"},
        {"--trace", "trace", Role::kPath, "Trace with replays of the graph"},
        {"--phase"},
        {"--extended"}}},
      {"graph_census",
       {"graph", "census"},
       "Known fusions in dumps",
       "Which fusion rules match, which nearly match and why not, by file and "
       "layer.",
       {{"dump", nullptr, Role::kPath, nullptr, true},
        {"--rule"},
        {"--log", "log", Role::kPath, nullptr},
        {"--explain"},
        {"--only"}}},
      {"graph_candidates",
       {"graph", "candidates"},
       "What could be fused",
       "Known rules, switched-off ones and repeated forms, each with the "
       "kernels that exist for it, support, risk and worth: an estimate, or "
       "with `trace` a bound. `tree` is a source checkout to look kernels up "
       "in; without it nothing is known of kernels.",
       {{"dump", nullptr, Role::kPath, nullptr, true},
        {"--section"},
        {"--tree", "tree", Role::kPath, nullptr},
        {"--log", "log", Role::kPath, nullptr},
        {"--trace", "trace", Role::kPath, nullptr},
        {"--bind"},
        {"--min-layers"},
        {"--without-rule"}}},
      {"graph_review",
       {"graph", "review"},
       "Checklist of a fusion",
       "A fusion pass judged by the dumps of a run before and after it, row by "
       "row.",
       {{"before", nullptr, Role::kPath, nullptr, true},
        {"after", nullptr, Role::kPath, nullptr, true},
        {"--rule", nullptr, Role::kValue, nullptr, true},
        {"--tree", "tree", Role::kPath, nullptr}}},
      {"graph_rewrite",
       {"graph", "rewrite"},
       "What transforms would do",
       "A dump as the transforms of a pipeline configuration leave it: "
       "matches, "
       "ops before and after, savings. Nothing is written.",
       {{"dump", nullptr, Role::kPath, nullptr, true},
        {"--config", "config", Role::kPath, nullptr, true},
        {"--overlay", "overlay", Role::kPath, nullptr},
        {"--assume"}}},
      {"graph_log_diff",
       {"graph", "log-diff"},
       "Transforms that lost matches",
       "The logs of two runs, transform by transform; with `dumps` of both, "
       "which kind of near miss took the matches.",
       {{"log_a", nullptr, Role::kPath, nullptr, true},
        {"log_b", nullptr, Role::kPath, nullptr, true},
        {"--dumps", "dumps", Role::kPath, "Folders of dumps of both runs"}}},
      {"graph_diff",
       {"graph", "diff"},
       "What two dumps compute differently",
       "Nodes that came, went or changed between two dumps, by layer.",
       {{"a", nullptr, Role::kPath, nullptr, true},
        {"b", nullptr, Role::kPath, nullptr, true},
        {"--section"}}},
      {"slice",
       {"slice"},
       "A smaller trace",
       "Writes part of a trace as a file.",
       {Trace("trace"),
        {"--output", "output", Role::kOutput,
         "File to write, which must not be there yet", true},
        {"--step"},
        {"--where"}},
       {},
       true},
  };
  return rows;
}

std::string NameOfOption(std::string_view option) {
  std::string out(option);
  if (out.starts_with("--")) out.erase(0, 2);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

const DescribedOption& OptionOf(const DescribedCommand& command,
                                std::string_view name) {
  const auto found =
      std::find_if(command.options.begin(), command.options.end(),
                   [&](const DescribedOption& option) {
                     return std::find(option.names.begin(), option.names.end(),
                                      name) != option.names.end();
                   });
  LAMINA_CHECK(found != command.options.end());
  return *found;
}

mcp::Type TypeOf(const DescribedOption& option) {
  if (option.value.empty() && !option.positional) return mcp::Type::kFlag;
  if (option.value == "INT" || option.value == "UINT") return mcp::Type::kWhole;
  if (option.value == "FLOAT") return mcp::Type::kReal;
  return mcp::Type::kText;
}

mcp::Param ParamOf(const ParamRow& row, const DescribedOption& option) {
  mcp::Param param;
  param.name = row.name != nullptr ? row.name : NameOfOption(row.option);
  param.doc = row.doc != nullptr ? row.doc : option.doc;
  param.type = TypeOf(option);
  param.role = row.role;
  param.required = row.required;
  param.many = option.many && !row.single;
  param.choices = option.choices;
  param.low = option.low;
  param.high = option.high;
  if (!param.many) param.default_text = option.default_text;
  return param;
}

std::string TextOf(const mcp::Input& value, const mcp::Param& param,
                   const mcp::Inputs& inputs) {
  if (!value.is_string()) return value.dump();
  const auto text = value.get<std::string>();
  return param.role == Role::kPath ? inputs.NameOf(text) : text;
}

// The command line of a call. Options stand before "--", inputs behind it in
// the order of the row.
std::vector<std::string> WordsOf(const ToolRow& row,
                                 const std::vector<mcp::Param>& params,
                                 const mcp::Call& call,
                                 const mcp::Inputs& allowed) {
  std::vector<std::string> words = row.command;
  std::vector<std::string> inputs;
  for (size_t i = 0; i < params.size(); ++i) {
    const auto found = call.arguments.find(params[i].name);
    if (found == call.arguments.end()) continue;
    const std::string option = row.params[i].option;
    if (found->is_boolean()) {
      if (found->get<bool>()) words.push_back(option);
      continue;
    }
    const mcp::Input values =
        found->is_array() ? *found : mcp::Input::array({*found});
    for (const mcp::Input& value : values) {
      const std::string text = TextOf(value, params[i], allowed);
      if (option.starts_with("--")) {
        words.push_back(option + "=" + text);
      } else {
        inputs.push_back(text);
      }
    }
  }
  words.emplace_back("--");
  words.insert(words.end(), inputs.begin(), inputs.end());
  return words;
}

// Which file was read where a folder was given: commands say it on a terminal.
void SayWhatWasRead(const std::vector<std::string>& words, Document& document) {
  std::vector<std::string> read;
  for (const std::string& input : document.inputs) {
    const bool given =
        std::any_of(words.begin(), words.end(), [&](const std::string& word) {
          return word == input || word.ends_with("=" + input);
        });
    if (!given) read.push_back(input);
  }
  constexpr size_t kMost = 4;
  if (read.empty() || read.size() > kMost) return;
  document.result.notes.push_back(
      MakeNote(Severity::kInfo, "inputs",
               fmt::format("Read {}.", fmt::join(read, ", "))));
}

// An agent knows arguments, no options of a command line.
Error InWordsOfTool(Error error, const ToolRow& row,
                    const std::vector<mcp::Param>& params) {
  for (size_t i = 0; i < params.size(); ++i) {
    const std::string_view option = row.params[i].option;
    if (!option.starts_with("--")) continue;
    for (std::string* const text : {&error.what, &error.hint}) {
      for (size_t at = 0; (at = text->find(option, at)) != std::string::npos;) {
        const size_t end = at + option.size();
        const char next = end < text->size() ? (*text)[end] : ' ';
        const bool whole = next != '-' && (next < 'a' || next > 'z');
        if (!whole) {
          at = end;
          continue;
        }
        text->replace(at, option.size(), params[i].name);
        at += params[i].name.size();
      }
    }
  }
  return error;
}

// The calls that make sense behind one on a trace.
std::vector<mcp::Next> NextOf(const ToolRow& row, const mcp::Call& call,
                              const Workshop& workshop) {
  std::vector<mcp::Next> out;
  if (!call.Has("trace")) return out;
  const std::string handle = workshop.inputs->HandleOf(call.Text("trace"));
  for (const NextRow& next : row.next) {
    mcp::Json arguments;
    arguments["trace"] = handle;
    out.push_back({next.tool, std::move(arguments), next.why});
  }
  return out;
}

}  // namespace

Host Workshop::HostFor(const mcp::Call& call) const {
  Host host;
  host.stop = call.stop;
  host.progress = [progress = call.progress](uint64_t done, uint64_t total) {
    if (progress) progress({"reading", done, total});
  };
  host.open = [traces = traces, host](const std::string& path) {
    return traces->Open(path, host);
  };
  return host;
}

void AddCommandTools(const Workshop& workshop, bool writing,
                     std::vector<mcp::Tool>& tools) {
  for (const ToolRow& row : Rows()) {
    if (row.writes && !writing) continue;
    const DescribedCommand command = DescribeCommand(row.command);
    mcp::Tool tool;
    tool.name = row.name;
    tool.title = row.title;
    tool.doc = row.doc;
    tool.writes = row.writes;
    for (const ParamRow& param : row.params)
      tool.params.push_back(ParamOf(param, OptionOf(command, param.option)));
    tool.run = [&row, workshop,
                params = tool.params](const mcp::Call& call) -> mcp::Outcome {
      const auto words = WordsOf(row, params, call, *workshop.inputs);
      auto run = RunInHost(words, workshop.HostFor(call));
      if (!run) return Fail(InWordsOfTool(std::move(run).error(), row, params));
      Document document = *std::move(run);
      SayWhatWasRead(words, document);
      document.command = row.name;
      return mcp::Made{std::move(document), NextOf(row, call, workshop)};
    };
    tools.push_back(std::move(tool));
  }
}

}  // namespace lamina::cli
