// SPDX-License-Identifier: Apache-2.0
//
// Longer than most: it is a table of many rows.
#include "questions/questions.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <type_traits>
#include <utility>

#include "base/escape.h"
#include "base/opened.h"
#include "base/stop.h"
#include "engine/report.h"
#include "findings/answer.h"
#include "rules/document.h"

namespace lamina::questions {
namespace {

using Role = ParamRole;

enum class Who : uint8_t { kAll, kNoAgents };

// A parameter, and the option or input of the command that it is.
struct ParamRow {
  const char* option;          // "--min-share", or the name of an input
  const char* name = nullptr;  // null: that of the option
  Role role = Role::kValue;
  const char* doc = nullptr;  // null: that of the option
  bool required = false;
  bool single = false;  // one value, where the command takes many
  Who who = Who::kAll;
};

struct Row {
  const char* name;
  const char* command;
  Body (*describe)(Description& args, Asker& asker);
  const char* title;
  const char* doc;
  std::vector<ParamRow> params;
  std::vector<NextQuestion> next = {};
  bool writes = false;
  Who who = Who::kAll;
};

ParamRow Trace(const char* input) {
  return {input, "trace", Role::kPath, "Path of a trace", true};
}

// What agents do without: it costs them more than it tells.
ParamRow Also(const char* option, const char* name = nullptr) {
  return {option, name, Role::kValue, nullptr, false, false, Who::kNoAgents};
}
ParamRow AlsoPath(const char* option, const char* name = nullptr) {
  ParamRow row = Also(option, name);
  row.role = Role::kPath;
  return row;
}
// What a question of which agents know nothing must be given.
ParamRow Needed(const char* option, Role role = Role::kValue,
                const char* name = nullptr) {
  return {option, name, role, nullptr, true};
}

constexpr const char* kCaptures = "Captures of replayed graphs";

// Agents are shown theirs in this order.
const std::vector<Row>& Rows() {
  static const std::vector<Row> rows = {
      {"report",
       "report",
       DescribeReport,
       "Where did the GPU time go?",
       "The verdict, opportunities with worth and claim (measured, bound, "
       "estimate), and tables: timeline, ops, kernels, steps, modules, "
       "collectives, trace_health. Ask this first. `only` names tables.",
       {Trace("trace"),
        {"--only"},
        {"--top"},
        {"--capture", "capture", Role::kPath, kCaptures},
        {"--recompute"},
        Also("--layout"),
        Also("--rank"),
        AlsoPath("--compiled"),
        Also("--overlaps"),
        Also("--python-stacks"),
        Also("--link"),
        Also("--device"),
        Also("--short-kernel-us"),
        Also("--micro-idle-us"),
        Also("--tokens")},
       {{"diagnose", "what to change next"},
        {"layers", "time by forward pass and layer"}}},
      {"diagnose",
       "diagnose",
       DescribeDiagnose,
       "What to change next",
       "Ranked findings: what is wrong, what fixing it saves at least and at "
       "most, how sure that is, events that prove it, what could not be looked "
       "at and how to record it. A folder of ranks is one job.",
       {{"traces", "trace", Role::kPath, "Path of a trace", true, true},
        {"--category"},
        {"--only", nullptr, Role::kValue, "Rules or tables"},
        {"--min-share"},
        {"--all"},
        Also("--top"),
        Also("--param"),
        Also("--device"),
        AlsoPath("--capture"),
        AlsoPath("--suppress")},
       {{"event", "one event of the evidence, by its uid"}}},
      {"layers",
       "layers",
       DescribeLayers,
       "Forward passes and transformer layers",
       "Passes, stage (prefill, decode), layers per pass, time by kind and by "
       "part, odd layers. `layer` lists the kernels of layers of the first "
       "pass; `variants` shows kinds kernel by kernel.",
       {Trace("trace"),
        {"--stage"},
        {"--layer"},
        {"--variants"},
        {"--only"},
        AlsoPath("--capture"),
        Also("--top"),
        Also("--detector"),
        Also("--profile"),
        Also("--min-layers"),
        Also("--layers-per-pass"),
        Also("--split-half-layers"),
        Also("--grid-threshold"),
        Also("--debug-layers"),
        Also("--layout"),
        Also("--explain"),
        Also("--verbose")},
       {{"diagnose", "what to change next"}}},
      {"event",
       "event",
       DescribeEvent,
       "One event",
       "One event by its number (columns uid and first_uid): callers, what it "
       "launched or was launched by, forward and backward, its recorded "
       "arguments.",
       {Trace("trace"),
        {"--uid", nullptr, Role::kValue, nullptr, true},
        AlsoPath("--capture"),
        Also("--only"),
        Also("--top")}},
      {"tree",
       "tree",
       DescribeTree,
       "Call tree or module tree",
       "Ops or modules as a tree with device time, small branches folded.",
       {Trace("trace"),
        {"--by"},
        {"--depth"},
        {"--min-share"},
        {"--expand"},
        Also("--python-stacks"),
        AlsoPath("--capture"),
        AlsoPath("--compiled"),
        Also("--only"),
        Also("--top")},
       {{"layers", "time by forward pass and layer"}}},
      {"host",
       "host",
       DescribeHost,
       "Why the device waits",
       "Idle time cut by cause to the nanosecond, launches and what they cost, "
       "queues, copies, waits of collectives, counters.",
       {Trace("trace"),
        {"--by"},
        {"--step"},
        {"--ranks", nullptr, Role::kPath},
        {"--no-sync-records"},
        {"--infer"},
        {"--capture", nullptr, Role::kPath},
        {"--only"},
        {"--top"}},
       {},
       false,
       Who::kNoAgents},
      {"path",
       "path",
       DescribePath,
       "The critical path of a run",
       "What host and device spend it on, slack, and the predicted end if "
       "something were faster; also over ranks.",
       {{"traces", "trace", Role::kPath,
         "A trace; or those of several ranks, or a folder of them", true},
        {"--window"},
        {"--by"},
        {"--what-if"},
        {"--no-sync-records"},
        {"--infer"},
        {"--capture", nullptr, Role::kPath},
        {"--only"},
        {"--top"}},
       {},
       false,
       Who::kNoAgents},
      {"diff",
       "diff",
       DescribeDiff,
       "What changed between two traces",
       "By step or pass: verdict, parts, kernels. `findings`: what "
       "diagnose says of both.",
       {{"traces", "a", Role::kPath, "The trace before", true, true},
        {"traces", "b", Role::kPath, "The trace after", true, true},
        {"--findings"},
        {"--capture", "capture", Role::kPath, kCaptures},
        {"--only"},
        {"--top"},
        Also("--unit"),
        Also("--measure"),
        Also("--run-noise"),
        AlsoPath("--capture-a"),
        AlsoPath("--capture-b"),
        AlsoPath("--against"),
        Also("--store"),
        Also("--layout"),
        Also("--python-stacks")}},
      {"requests",
       "requests",
       DescribeRequests,
       "What users of a server waited for",
       "Lays the records of a client's bench on the trace: queue, TTFT and ITL "
       "of each request, whose prefill delayed whom, goodput. `request`: its "
       "path.",
       {Trace("trace"),
        {"--bench", nullptr, Role::kPath, "Records of the bench", true},
        {"--slo", nullptr, Role::kValue,
         "Limits of a request: ttft=200ms,itl=25ms; p99: before one: of all"},
        {"--request"},
        {"--only"},
        {"--top"},
        Also("--clock"),
        Also("--clock-offset"),
        Also("--bench-line"),
        AlsoPath("--log"),
        Also("--findings"),
        Also("--steady")}},
      {"sweep",
       "sweep",
       DescribeSweep,
       "Time over batch or context",
       "Traces at several loads: the time of each part of a layer as a "
       "function, its knee, what one more request costs.",
       {{"traces", "paths", Role::kPath, "One trace per load", true},
        {"--x"},
        {"--group"},
        {"--phase"},
        {"--steady"},
        {"--capture", nullptr, Role::kPath},
        {"--only"},
        {"--top"}},
       {},
       false,
       Who::kNoAgents},
      {"ranks",
       "ranks",
       DescribeRanks,
       "Many ranks of one job",
       "Collectives matched over ranks: stragglers and their causes, waits, "
       "clock offsets, bandwidth.",
       {{"traces", "paths", Role::kPath,
         "A folder of traces, or one trace per rank", true},
        {"--only"},
        {"--top"},
        AlsoPath("--capture"),
        Also("--layout"),
        Also("--raw-clocks")}},
      {"annotate",
       "annotate",
       DescribeAnnotate,
       "Ops of replayed graph kernels",
       "Which op, module and line each kernel of a replayed CUDA graph goes "
       "back to, with the level of evidence of each match.",
       {Trace("replay"),
        {"--from", "from", Role::kPath,
         "Traces of the capture or of an eager run"},
        {"--min-evidence"},
        {"--only"},
        Also("--top"),
        AlsoPath("--compiled"),
        Also("--method"),
        Also("--tags"),
        Also("--levels"),
        Also("--batch"),
        AlsoPath("--kernel-annotations")}},
      {"graph_layers",
       "graph layers",
       DescribeGraphLayers,
       "All layers of a graph dump",
       "Kinds of layers, parts, odd layers, boundaries. A folder of dumps: its "
       "last one.",
       {{"dump", nullptr, Role::kPath, nullptr, true},
        {"--section"},
        Also("--dialect"),
        {"--only"},
        Also("--top")},
       {}},
      {"graph_layer",
       "graph layer",
       DescribeGraphLayer,
       "One layer of a graph dump",
       "Nodes with ops, shapes, groups and inputs, weights and what comes from "
       "outside; with `trace` the kernels of a replay on each node.",
       {{"dump", nullptr, Role::kPath, nullptr, true},
        {"--layer", nullptr, Role::kValue, nullptr, true},
        {"--section"},
        Also("--dialect"),
        {"--trace", "trace", Role::kPath, "Trace with replays of the graph"},
        {"--phase"},
        {"--extended"},
        Also("--graph"),
        Also("--force")}},
      {"graph_census",
       "graph census",
       DescribeGraphCensus,
       "Known fusions in dumps",
       "Which fusion rules match, which nearly match and why not, by file and "
       "layer.",
       {{"dump", nullptr, Role::kPath, nullptr, true},
        {"--rule"},
        Also("--section"),
        Also("--dialect"),
        {"--log", "log", Role::kPath, nullptr},
        {"--explain"},
        {"--only"},
        Also("--top")}},
      {"graph_candidates",
       "graph candidates",
       DescribeGraphCandidates,
       "What could be fused",
       "Known rules, switched-off ones and repeated forms, each with the "
       "kernels that exist for it, support, risk and worth: an estimate, or "
       "with `trace` a bound. `tree` is a source checkout to look kernels up "
       "in; without it nothing is known of kernels.",
       {{"dump", nullptr, Role::kPath, nullptr, true},
        {"--section"},
        Also("--dialect"),
        {"--tree", "tree", Role::kPath, nullptr},
        {"--log", "log", Role::kPath, nullptr},
        {"--trace", "trace", Role::kPath, nullptr},
        {"--bind"},
        {"--min-layers"},
        {"--without-rule"},
        Also("--graph"),
        Also("--phase"),
        Also("--device"),
        Also("--force"),
        Also("--only"),
        Also("--top")}},
      {"graph_review",
       "graph review",
       DescribeGraphReview,
       "Checklist of a fusion",
       "A fusion pass judged by the dumps of a run before and after it, row by "
       "row.",
       {{"before", nullptr, Role::kPath, nullptr, true},
        {"after", nullptr, Role::kPath, nullptr, true},
        {"--rule", nullptr, Role::kValue, nullptr, true},
        {"--tree", "tree", Role::kPath, nullptr},
        AlsoPath("--log"),
        AlsoPath("--config"),
        AlsoPath("--overlay"),
        Also("--only"),
        Also("--top")}},
      {"graph_rewrite",
       "graph rewrite",
       DescribeGraphRewrite,
       "What transforms would do",
       "A dump as the transforms of a pipeline configuration leave it: "
       "matches, "
       "ops before and after, savings. Nothing is written.",
       {{"dump", nullptr, Role::kPath, nullptr, true},
        {"--config", "config", Role::kPath, nullptr, true},
        {"--overlay", "overlay", Role::kPath, nullptr},
        {"--assume"},
        Also("--stage-order"),
        Also("--device"),
        Also("--only"),
        Also("--top")}},
      {"graph_log_diff",
       "graph log-diff",
       DescribeGraphLogDiff,
       "Transforms that lost matches",
       "The logs of two runs, transform by transform; with `dumps` of both, "
       "which kind of near miss took the matches.",
       {{"log_a", nullptr, Role::kPath, nullptr, true},
        {"log_b", nullptr, Role::kPath, nullptr, true},
        {"--dumps", "dumps", Role::kPath, "Folders of dumps of both runs"},
        Also("--max-drop"),
        Also("--layers"),
        Also("--only"),
        Also("--top")}},
      {"graph_diff",
       "graph diff",
       DescribeGraphDiff,
       "What two dumps compute differently",
       "Nodes that came, went or changed between two dumps, by layer.",
       {{"a", nullptr, Role::kPath, nullptr, true},
        {"b", nullptr, Role::kPath, nullptr, true},
        {"--section"},
        Also("--dialect"),
        Also("--only"),
        Also("--top")}},
      {"graph_kernels",
       "graph kernels",
       DescribeGraphKernels,
       "Kernels of a replayed graph",
       "Times of the kernels of a replayed device graph; with `dump` on its "
       "nodes and layers.",
       {Trace("trace"),
        {"--dump", nullptr, Role::kPath},
        {"--section"},
        Also("--dialect"),
        {"--layer"},
        {"--graph"},
        {"--phase"},
        {"--only"},
        {"--top"}},
       {},
       false,
       Who::kNoAgents},
      {"graph_pipeline",
       "graph pipeline",
       DescribeGraphPipeline,
       "What each transform of a run changed",
       "The dumps of a run, stage by stage: nodes and ops that came and went.",
       {Needed("folder", Role::kPath),
        {"--section"},
        Also("--dialect"),
        {"--all"},
        {"--ops"},
        {"--only"},
        {"--top"}},
       {},
       false,
       Who::kNoAgents},
      {"graph_print",
       "graph print",
       DescribeGraphPrint,
       "A graph dump as tables",
       "Graphs, ops by number, nodes, weights and edges of a dump.",
       {Needed("dump", Role::kPath),
        {"--section"},
        Also("--dialect"),
        {"--bind"},
        {"--stats"},
        {"--strict"},
        {"--only"},
        {"--top"}},
       {},
       false,
       Who::kNoAgents},
      {"cost",
       "cost",
       DescribeCost,
       "What one call of an op needs",
       "FLOPs, bytes and roofline of a call by the cost models, without a "
       "trace.",
       {Needed("op"),
        Needed("--shapes"),
        Needed("--dtypes"),
        {"--concrete"},
        {"--step"},
        {"--device"},
        {"--backward"},
        {"--only"},
        {"--top"}},
       {},
       false,
       Who::kNoAgents},
      {"memory",
       "memory",
       DescribeMemory,
       "What fills the GPU",
       "Memory snapshots, or traces with memory events: peaks, who allocated, "
       "fragmentation, leaks, what to free.",
       {Needed("files", Role::kPath),
        {"--device"},
        {"--peak"},
        {"--at"},
        {"--by"},
        {"--trace", nullptr, Role::kPath},
        {"--depth"},
        {"--steps"},
        {"--own"},
        {"--capacity"},
        {"--leak-steps"},
        {"--from"},
        {"--to"},
        {"--diff"},
        {"--all"},
        {"--full"},
        {"--native"},
        {"--explain"},
        {"--salvage"},
        {"--only"},
        {"--top"}},
       {},
       false,
       Who::kNoAgents},
      {"slice",
       "slice",
       DescribeSlice,
       "A smaller trace",
       "Writes part of a trace as a file.",
       {Trace("trace"),
        {"--output", "output", Role::kOutput,
         "File to write, which must not be there yet", true},
        {"--step"},
        {"--where"},
        Also("--time"),
        Also("--layer"),
        Also("--name"),
        Also("--stream"),
        AlsoPath("--capture"),
        Also("--top")},
       {},
       true},
      {"replay",
       "replay",
       DescribeReplay,
       "Scripts that run ops again",
       "Writes a folder with a script for each of the ops that take longest.",
       {Trace("trace"),
        {"--output", "output", Role::kOutput, "Folder to write", true},
        {"--op"},
        {"--shape"},
        {"--id"},
        {"--all"},
        {"--outer"},
        {"--device"},
        {"--capture", nullptr, Role::kPath},
        {"--top"}},
       {},
       true,
       Who::kNoAgents},
      {"annotate_trace",
       "annotate",
       DescribeAnnotate,
       "A replay with its ops",
       "Writes a copy of a trace in which each kernel of a replayed graph has "
       "its op, module and line among its arguments.",
       {Trace("replay"),
        {"--trace", "output", Role::kOutput,
         "File to write; for a folder of replays, a folder", true},
        {"--from", nullptr, Role::kPath},
        {"--compiled", nullptr, Role::kPath},
        {"--method"},
        {"--tags"},
        {"--levels"},
        {"--batch"},
        {"--kernel-annotations", nullptr, Role::kPath},
        {"--min-evidence"},
        {"--only"},
        {"--top"}},
       {},
       true,
       Who::kNoAgents},
      {"convert",
       "convert",
       DescribeConvert,
       "A trace in another form",
       "Writes a trace as a Perfetto trace or as Chrome JSON.",
       {Trace("trace"),
        {"--output", "output", Role::kOutput,
         "File to write: .pftrace or .json, each also with .gz", true},
        {"--no-args"},
        {"--top"}},
       {},
       true,
       Who::kNoAgents},
      {"merge",
       "merge",
       DescribeMerge,
       "Many ranks in one trace",
       "Writes the traces of all ranks as one.",
       {{"traces", "paths", Role::kPath,
         "A folder of traces, or one trace per rank", true},
        {"--output", "output", Role::kOutput,
         "File to write: .json or .pftrace, each also with .gz", true},
        {"--align-clocks"},
        {"--python"},
        {"--top"}},
       {},
       true,
       Who::kNoAgents},
      {"graph_pass",
       "graph pass",
       DescribeGraphPass,
       "A fusion as an AutoDeploy pass",
       "Writes a folder with a rule or a candidate as a transform, its tests, "
       "and what was checked.",
       {Needed("name"),
        Needed("--tree", Role::kPath),
        {"--output", "output", Role::kOutput, "Folder to write", true},
        {"--dump", nullptr, Role::kPath},
        {"--section"},
        Also("--dialect"),
        {"--as", "key"},
        {"--match"},
        {"--kernel"},
        {"--assume"},
        {"--force"},
        {"--only"},
        {"--top"}},
       {},
       true,
       Who::kNoAgents},
  };
  return rows;
}

std::string NameOfOption(std::string_view option) {
  std::string out(option);
  if (out.starts_with("--")) out.erase(0, 2);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

// What every question takes, with what its own description says.
Body Describe(Body (*describe)(Description& args, Asker& asker),
              Description& args, Asker& asker) {
  Body body = describe(args, asker);
  asker.AddOnlyTo(args);
  asker.AddTopTo(args);
  if (args.Find("--output") == nullptr) asker.AddOutputTo(args, "");
  return body;
}

std::string TextOf(const Field& field) {
  return std::visit(
      [](const auto* value) -> std::string {
        using T = std::remove_cvref_t<decltype(*value)>;
        if constexpr (std::is_same_v<T, bool> || std::is_arithmetic_v<T> ||
                      std::is_same_v<T, std::string>) {
          return fmt::format("{}", *value);
        } else {
          return {};
        }
      },
      field);
}

ParamInfo ParamOf(const ParamRow& row, Description& takes) {
  const Param* const found = takes.Find(row.option);
  LAMINA_CHECK(found != nullptr);
  ParamInfo param;
  param.name = row.name != nullptr ? row.name : NameOfOption(row.option);
  param.option = row.option;
  param.doc = row.doc != nullptr ? row.doc : found->doc;  // names follow
  param.type = found->type();
  param.role = row.role;
  param.required = row.required;
  param.many = found->many() && !row.single;
  param.choices = found->choices;
  param.low = found->low;
  param.high = found->high;
  if (found->shows_default) param.default_text = TextOf(found->field);
  return param;
}

Question QuestionOf(const Row& row) {
  Description takes;
  Asker asker;
  const Body body = Describe(row.describe, takes, asker);
  Question out;
  out.info.name = row.name;
  out.info.command = row.command;
  out.info.title = row.title;
  out.info.doc = row.doc;
  out.info.writes = row.writes;
  out.describe = row.describe;
  out.next = row.next;
  out.for_agents = row.who == Who::kAll;
  // A report begins with findings.
  out.reads_beside = out.info.command == "report";
  for (const ParamRow& param : row.params) {
    if (param.who == Who::kAll)
      out.agent_params.push_back(out.info.params.size());
    out.info.params.push_back(ParamOf(param, takes));
    const ParamInfo& info = out.info.params.back();
    out.info.of_trace |= info.name == "trace" && info.required;
  }
  const NamesOf names = ParamsOf(out, false);
  for (ParamInfo& info : out.info.params) {
    info.doc = WithNames(info.doc, names);
    out.reads_beside |= info.option == "--suppress";
    info.at_opening =
        out.info.of_trace && (info.name == "capture" || info.name == "device");
  }
  return out;
}

Error Wrong(const Question& question, const ParamInfo& param,
            const std::string& what) {
  return UsageError(question.info.name + ": " + param.name + ": " + what,
                    param.doc);
}

const char* WantedBy(const ParamInfo& param) {
  switch (param.type) {
    case ParamType::kFlag:
      return "true or false";
    case ParamType::kInt:
      return param.many ? "whole numbers" : "a whole number";
    case ParamType::kReal:
      return param.many ? "numbers" : "a number";
    case ParamType::kText:
      return param.many ? "texts" : "a text";
  }
  return "";
}

const char* GivenAs(const ParamValue& value) {
  static constexpr const char* kNames[] = {
      "true or false", "a whole number", "a number", "a text", "several texts"};
  return kNames[value.index()];
}

Status CheckNumber(const Question& question, const ParamInfo& param,
                   double number, const std::string& text) {
  if (std::isfinite(number) && (!param.low || number >= *param.low) &&
      (!param.high || number <= *param.high))
    return {};
  return Fail(Wrong(
      question, param,
      !std::isfinite(number)
          ? text + " is no number"
          : fmt::format("{} is not from {} to {}", text,
                        param.low ? fmt::format("{}", *param.low) : "any",
                        param.high ? fmt::format("{}", *param.high) : "any")));
}

Status CheckText(const Question& question, const ParamInfo& param,
                 const std::string& text) {
  // An option without a value would take the next word.
  if (text.empty()) {
    return Fail(Wrong(question, param, "the text is empty"));
  }
  if (text.find('\0') != std::string::npos)
    return Fail(Wrong(question, param, "the text has a NUL byte"));
  if (param.choices.empty() ||
      std::find(param.choices.begin(), param.choices.end(), text) !=
          param.choices.end())
    return {};
  const std::vector<std::string_view> known(param.choices.begin(),
                                            param.choices.end());
  const std::string_view near = rules::Nearest(text, known);
  return Fail(UsageError(
      fmt::format("{}: {}: '{}' is none of its values", question.info.name,
                  param.name, EscapeTerminal(text)),
      near.empty() ? fmt::format("one of {}", fmt::join(known, ", "))
                   : fmt::format("did you mean '{}'?", near)));
}

// Sets a field. It has been found out that `value` is of its type.
class Setting {
 public:
  explicit Setting(Param& param) : param_(param) {}

  void Set(bool value) { *std::get<bool*>(param_.field) = value; }
  void Set(double value) { *std::get<double*>(param_.field) = value; }
  // False: the field has no place for it.
  bool Set(int64_t value) {
    return std::visit(
        [&](auto* field) {
          using T = std::remove_cvref_t<decltype(*field)>;
          if constexpr (std::is_same_v<T, std::optional<int64_t>> ||
                        std::is_same_v<T, int64_t>) {
            *field = value;
            return true;
          } else if constexpr (std::is_same_v<T, std::optional<uint32_t>>) {
            if (!std::in_range<uint32_t>(value)) return false;
            *field = static_cast<uint32_t>(value);
            return true;
          } else if constexpr (std::is_integral_v<T> &&
                               !std::is_same_v<T, bool>) {
            if (!std::in_range<T>(value)) return false;
            *field = static_cast<T>(value);
            return true;
          } else {
            return false;
          }
        },
        param_.field);
  }
  void Set(const std::string& text) {
    if (auto* const* one = std::get_if<std::string*>(&param_.field)) {
      **one = text;
      return;
    }
    auto& list = *std::get<std::vector<std::string>*>(param_.field);
    if (!param_.split_at_commas) {
      list.push_back(text);
      return;
    }
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      if (end > at) list.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  }

 private:
  Param& param_;
};

// Sets what `value` says; whether it says anything.
Result<bool> SetField(const Question& question, const ParamInfo& info,
                      const ParamValue& value, Param& param) {
  const auto wrong_type = [&] {
    return Fail(Wrong(
        question, info,
        fmt::format("expected {}, got {}", WantedBy(info), GivenAs(value))));
  };
  Setting field(param);
  if (const auto* const flag = std::get_if<bool>(&value)) {
    if (info.type != ParamType::kFlag) return wrong_type();
    if (*flag) field.Set(true);
    return *flag;
  }
  if (info.type == ParamType::kFlag) return wrong_type();
  if (const auto* const real = std::get_if<double>(&value)) {
    if (info.type != ParamType::kReal) return wrong_type();
    LAMINA_TRY(CheckNumber(question, info, *real, fmt::format("{}", *real)));
    field.Set(*real);
    return true;
  }
  std::vector<std::string> texts;
  if (const auto* const whole = std::get_if<int64_t>(&value)) {
    const std::string digits = std::to_string(*whole);
    if (info.type != ParamType::kText) {
      const auto real = static_cast<double>(*whole);
      LAMINA_TRY(CheckNumber(question, info, real, digits));
      if (info.type == ParamType::kReal) {
        field.Set(real);
      } else if (!field.Set(*whole)) {
        return Fail(Wrong(question, info, digits + " cannot be"));
      }
      return true;
    }
    texts = {digits};
  } else if (info.type != ParamType::kText) {
    return wrong_type();
  } else if (const auto* const text = std::get_if<std::string>(&value)) {
    texts = {*text};
  } else {
    if (!info.many) return wrong_type();
    texts = std::get<std::vector<std::string>>(value);
  }
  for (const std::string& text : texts) {
    LAMINA_TRY(CheckText(question, info, text));
    field.Set(text);
  }
  return !texts.empty();
}

Error UnknownParam(const Question& question, std::string_view name);

// Sets the fields that were described, in the order of the list.
Status Fill(const Question& question, const Params& params,
            Description& takes) {
  const std::vector<ParamInfo>& known = question.info.params;
  for (const auto& [name, value] : params) {
    if (std::none_of(known.begin(), known.end(),
                     [&](const ParamInfo& info) { return info.name == name; }))
      return Fail(UnknownParam(question, name));
  }
  for (const ParamInfo& info : known) {
    Param& param = *takes.Find(info.option);
    bool given = false;
    if (const auto found = params.find(info.name); found != params.end()) {
      LAMINA_ASSIGN(given, SetField(question, info, found->second, param));
    }
    if (!given && info.required) {
      return Fail(UsageError(
          question.info.name + ": " + info.name + " is missing", info.doc));
    }
    param.given |= given;
    if (!given || !param.count || param.is_input()) continue;
    const auto have = static_cast<int>(
        std::get<std::vector<std::string>*>(param.field)->size());
    if (have < param.count->first || have > param.count->second) {
      return Fail(Wrong(
          question, info,
          fmt::format("expected {} texts, got {}", param.count->second, have)));
    }
  }
  const std::string wrong = takes.FailedCheck();
  if (!wrong.empty())
    return Fail(UsageError(question.info.name + ": " + wrong));
  return {};
}

// What is read must not be written, and no output is put in place once it has
// changed.
Status KeepFiles(const Question& question, const std::string& output,
                 Description& takes, WatchedInputs& watched) {
  for (const ParamInfo& info : question.info.params) {
    if (info.role != ParamRole::kPath) continue;
    const Field& field = takes.Find(info.option)->field;
    const auto* const* one = std::get_if<std::string*>(&field);
    const auto paths = one != nullptr
                           ? std::vector<std::string>{**one}
                           : *std::get<std::vector<std::string>*>(field);
    if (output != "-") LAMINA_TRY(KeepInputs("⟨output⟩", output, paths));
    if (!question.info.writes) continue;
    for (const std::string& path : paths) {
      if (!path.empty() && path != "-") watched.Add(path);
    }
  }
  return {};
}

bool Stopped(const Asker& asker) {
  return asker.stop != nullptr && asker.stop->load(std::memory_order_relaxed);
}

// What was told besides stands behind the verdicts.
void AddTold(const Asker& asker, std::vector<Note>& notes) {
  std::vector<Note> told = asker.told;
  // A report says itself what was lost.
  if (std::any_of(notes.begin(), notes.end(), [](const Note& note) {
        return note.id == "lost_records" || note.id == "trace.damaged";
      })) {
    std::erase_if(told,
                  [](const Note& note) { return note.id == "lost_records"; });
  }
  const auto behind = std::find_if(
      notes.begin(), notes.end(),
      [](const Note& note) { return note.severity != Severity::kVerdict; });
  notes.insert(behind, told.begin(), told.end());
}

Error UnknownParam(const Question& question, std::string_view name) {
  std::vector<std::string_view> names;
  for (const ParamInfo& param : question.info.params)
    names.emplace_back(param.name);
  const std::string_view near = rules::Nearest(name, names);
  return UsageError(fmt::format("{}: there is no parameter '{}'",
                                question.info.name, EscapeTerminal(name)),
                    near.empty()
                        ? fmt::format("it takes {}", fmt::join(names, ", "))
                        : fmt::format("did you mean '{}'?", near));
}

}  // namespace

const std::vector<Question>& Questions() {
  static const std::vector<Question> questions = [] {
    std::vector<Question> out;
    for (const Row& row : Rows()) out.push_back(QuestionOf(row));
    return out;
  }();
  return questions;
}

Result<const Question*> FindQuestion(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Question& question : Questions()) {
    if (question.info.name == name) return &question;
    names.emplace_back(question.info.name);
  }
  const std::string_view near = rules::Nearest(name, names);
  return Fail(UsageError(
      fmt::format("there is no question '{}'", EscapeTerminal(name)),
      near.empty() ? fmt::format("questions: {}", fmt::join(names, ", "))
                   : fmt::format("did you mean '{}'?", near)));
}

Result<Answer> Complete(const Body& body, Asker& asker) {
  if (Stopped(asker)) return Fail(CancelledError());
  Answer answer;
  const Status ended = EndedByStop(asker.stop, [&]() -> Status {
    LAMINA_ASSIGN(answer, body());
    return {};
  });
  // What a file or a rank could not do when it was stopped is no answer.
  if (Stopped(asker)) return Fail(CancelledError());
  LAMINA_TRY(ended);
  ResultSet& result = answer.document.result;
  LAMINA_TRY(engine::KeepOnly(result, asker.only));
  for (Table& table : result.tables) {
    if (asker.top > 0) table.Truncate(asker.top);
  }
  AddTold(asker, result.notes);
  if (answer.fault) return Fail(*answer.fault);
  return answer;
}

Result<Answer> Ask(const Question& question, const Params& params,
                   Asker& asker) {
  const NamesOf names = ParamsOf(question, asker.is_agent);
  const auto answered = [&]() -> Result<Answer> {
    Description takes;
    const Body body = Describe(question.describe, takes, asker);
    LAMINA_TRY(Fill(question, params, takes));
    WatchedInputs watched;
    LAMINA_TRY(KeepFiles(question, asker.output, takes, watched));
    return Complete(body, asker);
  };
  auto answer = answered();
  if (!answer) return Fail(WithNames(std::move(answer).error(), names));
  PutNames(*answer, names);
  return answer;
}

NamesOf ParamsOf(const Question& question, bool for_agent) {
  return [&question,
          for_agent](std::string_view name) -> std::optional<std::string> {
    if (name == "lamina" || name.ends_with("()"))
      return for_agent ? AgentNames()(name) : PlainNames(name);
    const std::vector<size_t>& shown = question.agent_params;
    for (size_t i = 0; i < question.info.params.size(); ++i) {
      const ParamInfo& info = question.info.params[i];
      if (NameOfOption(info.option) != name) continue;
      if (for_agent && std::find(shown.begin(), shown.end(), i) == shown.end())
        return std::nullopt;
      return info.name;
    }
    return std::nullopt;
  };
}

NamesOf AgentNames() {
  return [](std::string_view name) -> std::optional<std::string> {
    if (!name.ends_with("()")) return std::nullopt;
    name.remove_suffix(2);
    const auto found = FindQuestion(name);
    if (!found || !(*found)->for_agents) return std::nullopt;
    return std::string(name);
  };
}

void PutNames(Document& document, const NamesOf& names) {
  for (Note& note : document.result.notes)
    note.text = WithNames(note.text, names);
}

void PutNames(Answer& answer, const NamesOf& names) {
  PutNames(answer.document, names);
  for (std::string& miss : answer.misses) miss = WithNames(miss, names);
  if (answer.first != nullptr) {
    for (auto& warning : answer.first->warnings)
      warning.title = WithNames(warning.title, names);
  }
  if (answer.fault) answer.fault = WithNames(*std::move(answer.fault), names);
}

}  // namespace lamina::questions
