// SPDX-License-Identifier: Apache-2.0

#include "cli/commands.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fmt/core.h>

#include "analysis/analyses.h"
#include "base/byte_source.h"
#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/text.h"
#include "cli/manual.h"
#include "cost/device.h"
#include "emit/perfetto/trace_writer.h"
#include "engine/find_traces.h"
#include "engine/memory.h"
#include "findings/rule.h"
#include "graph/dialects/read.h"
#include "graph/folder.h"
#include "lamina/version.h"
#include "rules/document.h"
#include "snapshot/cache.h"

namespace lamina::cli {

namespace {

// Options that name the same file as -o.
bool IsGiven(questions::Description& args, const char* option) {
  return args.Find(option)->given;
}

// The annotated trace, but for the document where a format is asked for.
bool OwnsAnnotated(questions::Description& args, const Common& common) {
  const std::string& name = common.output;
  return common.format == "table" && !IsGiven(args, "--trace") &&
         (name.ends_with(".json") || name.ends_with(".json.gz") ||
          emit::perfetto::IsPerfettoName(name));
}

// A JSON file by layer is what other programs read.
bool OwnsKernels(questions::Description&, const Common& common) {
  return common.format == "table" && common.output.ends_with(".json");
}

bool OwnsDumps(questions::Description& args, const Common& common) {
  return common.format == "table" && !IsGiven(args, "--dump-dir");
}

bool Owns(questions::Description&, const Common&) { return true; }

// In the order of --help.
const CommandInfo kGraphCommands[] = {
    {"print", "Read a dump, check it, print it back",
     "lamina graph print dumps/001_export_export_to_gm.txt --check",
     questions::DescribeGraphPrint},
    {"pipeline", "What each transform of a run changed",
     "lamina graph pipeline dumps/", questions::DescribeGraphPipeline},
    {"layers", "All layers of a graph: kinds, groups, odd ones out",
     "lamina graph layers dumps/", questions::DescribeGraphLayers},
    {"layer", "One layer as a graph of its own",
     "lamina graph layer dumps/ -n 5", questions::DescribeGraphLayer,
     Output::kFiles},
    {"kernels", "Times of the kernels of a replayed graph, by layer and node",
     "lamina graph kernels decode.sqlite --dump dumps/ -o kernels.json",
     questions::DescribeGraphKernels, Output::kDocumentOrOwn, nullptr,
     OwnsKernels},
    {"diff", "What two dumps compute differently",
     "lamina graph diff before.txt after.txt", questions::DescribeGraphDiff},
    {"census", "Known fusions: which match, which nearly match, and why",
     "lamina graph census dumps/ --rule fuse_rmsnorm",
     questions::DescribeGraphCensus},
    {"candidates", "What could be fused, with existing kernels and worth",
     "lamina graph candidates dumps/001_export_export_to_gm.txt",
     questions::DescribeGraphCandidates},
    {"rewrite", "A dump as the transforms of a configuration leave it",
     "lamina graph rewrite dumps/001_export_export_to_gm.txt --config "
     "default.yaml -o out/",
     questions::DescribeGraphRewrite, Output::kDocument, nullptr, OwnsDumps},
    {"pass", "A rule or a candidate as an AutoDeploy pass with tests",
     "lamina graph pass fuse_add_rms_norm --dump dumps/ --tree "
     "TensorRT-LLM -o out/",
     questions::DescribeGraphPass, Output::kDocument, nullptr, Owns},
    {"log-diff", "Transforms that lost matches between two runs",
     "lamina graph log-diff before/transform.log after/transform.log",
     questions::DescribeGraphLogDiff},
    {"review", "The checklist for a fusion, answered from two runs",
     "lamina graph review before/ after/ --rule fuse_rmsnorm --note",
     questions::DescribeGraphReview},
};

const CommandInfo kBaselineCommands[] = {
    {"set", "A run becomes the baseline of a name",
     "lamina runs baseline set main latest --reason 'release 1.4'",
     questions::DescribeRunsBaselineSet},
    {"show", "What a baseline is, and was before",
     "lamina runs baseline show main", questions::DescribeRunsBaselineShow},
    {"list", "All baselines, with those of before", "lamina runs baseline list",
     questions::DescribeRunsBaselineList},
    {"unset", "A baseline holds no more; its history stays",
     "lamina runs baseline unset main", questions::DescribeRunsBaselineUnset},
};

Run AddJudge(questions::Description& args, Common& common) {
  const auto judge = questions::DescribeRunsJudge(args, common.asker);
  common.AddTo(args);
  return [judge, &args, &common]() -> Result<int> {
    auto judged = judge();
    if (!judged) return Fail(WithNames(judged.error(), args.Options()));
    LAMINA_TRY(Write(judged->document, common));
    return judged->status;
  };
}

const CommandInfo kRunsCommands[] = {
    {"add", "Add recordings to the store",
     "lamina runs add trace.json.gz --tag commit=c02e6f8 --tag config=bf16",
     questions::DescribeRunsAdd},
    {"import", "Add every trace of a folder, with a table of tags",
     "lamina runs import traces/ --tags runs.tsv",
     questions::DescribeRunsImport},
    {"list", "The runs of the store", "lamina runs list --where branch=main",
     questions::DescribeRunsList},
    {"show", "What is kept of one run", "lamina runs show latest",
     questions::DescribeRunsShow},
    {"trend", "Where the program changed, against the noise from run to run",
     "lamina runs trend --metric decode -o trend.html",
     questions::DescribeRunsTrend},
    {"compare", "What changed between two runs, without their traces",
     "lamina runs compare baseline:main latest --fail-above 3%",
     questions::DescribeRunsCompare},
    {"check", "Is the newest run worse than those before?",
     "lamina runs check --fail-above 2%", questions::DescribeRunsCheck},
    {"judge", "Record until it is sure whether this is slower than a run",
     "lamina runs judge --against baseline:main -- ./profile.sh", nullptr,
     Output::kDocument, nullptr, nullptr, &AddJudge},
    {"baseline", "Runs with a name, which others are held against",
     "lamina runs baseline set main latest", nullptr, Output::kDocument,
     nullptr, nullptr, nullptr, kBaselineCommands},
    {"decide", "A run that is slower is accepted, or rejected",
     "lamina runs decide latest accept --against baseline:main --reason 'new "
     "checks'",
     questions::DescribeRunsDecide},
    {"recompute", "Make the numbers of old runs anew from their traces",
     "lamina runs recompute", questions::DescribeRunsRecompute},
    {"prune", "Remove old runs", "lamina runs prune --older 90d --dry-run",
     questions::DescribeRunsPrune},
};

}  // namespace

std::span<const CommandInfo> Commands(std::span<const CommandInfo> fronts) {
  static const std::vector<CommandInfo> commands = [&] {
    std::vector<CommandInfo> out = {
        {"report", "Where did the GPU time go?",
         "lamina report trace.json.gz --format csv -o tables",
         questions::DescribeReport},
        {"tree", "The call tree or the module tree with GPU time",
         "lamina tree trace.json.gz --by module --depth 4",
         questions::DescribeTree},
        {"layers", "Forward passes, transformer layers and stages",
         "lamina layers trace.json.gz --layer 0", questions::DescribeLayers},
        {"host", "Why the device waits: idle causes, launches, queues",
         "lamina host trace.json.gz --by step", questions::DescribeHost},
        {"path", "What the time of a run is made of, and what would change it",
         "lamina path trace.json.gz --what-if scale:class=compute:0.5",
         questions::DescribePath},
        {"diagnose", "What to change next, how sure, and what it buys",
         "lamina diagnose trace.json.gz --fail-on any:5",
         questions::DescribeDiagnose, Output::kDocument, "sarif"},
        {"annotate", "Op, module and source line of replayed graph kernels",
         "lamina annotate replay.json.gz --from capture.json.gz -o "
         "annotated.json.gz",
         questions::DescribeAnnotate, Output::kDocumentOrOwn, nullptr,
         OwnsAnnotated},
        {"diff", "What changed between two traces, and why",
         "lamina diff before.json.gz after.json.gz --fail-above 3%",
         questions::DescribeDiff},
        {"requests", "What users of a server waited for: TTFT, ITL, and why",
         "lamina requests server.json.gz --bench bench.json --slo ttft=200ms",
         questions::DescribeRequests},
        {"sweep", "Time of parts of a layer over batch, context or tokens",
         "lamina sweep b1.json.gz b16.json.gz b64.json.gz --x batch",
         questions::DescribeSweep},
        {"runs", "Keep runs: baselines, trends, and a check of the newest",
         "lamina runs add trace.json.gz", nullptr, Output::kDocument, nullptr,
         nullptr, nullptr, kRunsCommands},
        {"slice", "A small trace out of a large one",
         "lamina slice trace.json.gz --step 12 -o step12.json.gz",
         questions::DescribeSlice, Output::kOwn},
        {"replay", "Scripts that run single ops of a trace again",
         "lamina replay trace.json.gz --op aten::mm -o replay",
         questions::DescribeReplay, Output::kOwn},
        {"ranks", "Collectives over all ranks: skew, waits, stragglers",
         "lamina ranks traces/\n"
         "  mpirun -n 16 lamina ranks --engine mpi --threads 4 traces/",
         questions::DescribeRanks},
        {"merge", "Many ranks in one trace for Perfetto",
         "lamina merge traces/ --align-clocks -o job.json.gz",
         questions::DescribeMerge, Output::kOwn},
        {"graph", "Graph dumps of a compiler: print, compare, cut out layers",
         "lamina graph print dumps/ --stats", nullptr, Output::kDocument,
         nullptr, nullptr, nullptr, kGraphCommands},
        {"convert", "A trace as a Perfetto trace or as Chrome JSON",
         "lamina convert profile.xplane.pb -o profile.pftrace",
         questions::DescribeConvert, Output::kOwn},
        {"event", "Everything about one event: arguments, callers, launches",
         "lamina event trace.json.gz --uid 4711", questions::DescribeEvent},
        QueryCommand(),
        {"cost", "FLOPs, bytes and roofline of one call of an op",
         "lamina cost aten::mm --shapes '[[8192,4096],[4096,4096]]' "
         "--dtypes bf16 --device h100",
         questions::DescribeCost},
        {"memory",
         "What fills the GPU, who put it there, what would free memory",
         "lamina memory snapshot.pickle --by line --top 10",
         questions::DescribeMemory},
    };
    out.insert(out.end(), fronts.begin(), fronts.end());
    out.push_back(ListCommand());
    out.push_back(CacheCommand());
    return out;
  }();
  return commands;
}

// lamina cache: the traces that are kept so that they open fast.

namespace {

std::string DateOf(int64_t seconds) {
  const auto time = static_cast<time_t>(seconds);
  struct tm utc {};
  gmtime_r(&time, &utc);
  char text[32];
  const size_t size = std::strftime(text, sizeof(text), "%FT%TZ", &utc);
  return {text, size};
}

Table ListOf(const snapshot::Cache& cache) {
  Table table(
      {"cache",
       "Traces that are kept, the one used last first.",
       {{"input", ColumnType::kText, "File that was read."},
        {"state", ColumnType::kText,
         "current; other build: of another lamina; changed or gone: the input "
         "is; damaged. Of the last three nothing will be opened."},
        {"bytes", ColumnType::kInt, "Size in the cache."},
        {"used", ColumnType::kText, "Last use, to the hour, in UTC."},
        {"file", ColumnType::kText, "Name in the cache.", Shown::kHidden}}});
  for (const snapshot::Kept& kept : cache.List())
    table.Add(kept.input, kept.state, kept.bytes, DateOf(kept.used_s),
              kept.file);
  return table;
}

Result<int> RunCache(const std::string& what, Common& common) {
  const snapshot::Cache cache(&common.asker.times);
  if (cache.folder().empty()) {
    return Fail(UsageError("there is no folder for a cache",
                           "set XDG_CACHE_HOME or LAMINA_CACHE_DIR to a path "
                           "from the root"));
  }
  if (what == "path") {
    fmt::print("{}\n", EscapeTerminal(cache.folder()));
    return kFine;
  }
  if (what == "list") {
    Document document;
    document.command = "cache";
    document.result.tables.push_back(ListOf(cache));
    LAMINA_TRY(Write(document, common));
    return kFine;
  }
  uint64_t removed = 0;
  if (what == "prune") {
    removed = cache.Prune();
  } else {
    LAMINA_ASSIGN(removed, cache.Clear());
  }
  fmt::print("{} removed\n", Counted(removed, "file"));
  return kFine;
}

Run Add(questions::Description& args, Common& common) {
  auto what = std::make_shared<std::string>("list");
  args.Add("what", *what,
           "path: prints the folder; list: what is in it (default); prune: "
           "removes what "
           "is of no more use, and the oldest above the limit; clear: removes "
           "all of it")
      .OneOf({"path", "list", "prune", "clear"});
  common.AddTo(args);
  return [what, &common] { return RunCache(*what, common); };
}

}  // namespace

CommandInfo CacheCommand() {
  return OwnCommand("cache", "Traces that are kept so that they open fast",
                    "lamina cache list", &Add);
}

namespace {

using Fronts = std::span<const CommandInfo>;

// What shells offer for options that take a device, a table or a rule.
Status OfferNames(DescribedCommand& command) {
  const rules::DataSet data;
  LAMINA_ASSIGN(const auto devices, cost::DeviceSet::Load(data));
  LAMINA_ASSIGN(const auto rules, findings::RuleSet::Load(data));
  std::vector<std::string> device_names, rule_names, tables;
  for (const cost::Device& device : devices->devices()) {
    device_names.push_back(device.name);
    device_names.insert(device_names.end(), device.aliases.begin(),
                        device.aliases.end());
  }
  for (const findings::Rule& rule : rules->rules())
    rule_names.push_back(rule.id);
  for (const analysis::AnalysisInfo& info : analysis::Analyses()) {
    for (const Schema& schema : info.schemas()) tables.push_back(schema.name);
  }
  const auto offer = [&](const auto& self, DescribedCommand& of) -> void {
    for (DescribedOption& option : of.options) {
      for (const std::string& name : option.names) {
        if (name == "--device") option.offered = device_names;
        if (of.name == "report" && name == "--only") option.offered = tables;
        if (of.name == "diagnose" && (name == "--only" || name == "--explain"))
          option.offered = rule_names;
      }
    }
    for (DescribedCommand& sub : of.commands) self(self, sub);
  };
  offer(offer, command);
  return {};
}

void PrintTiming(const Common& common) {
  for (const StageTimes::Stage& stage : common.asker.times.stages()) {
    std::fprintf(stderr, "%-12s %8.3f s", stage.name.c_str(), stage.seconds);
    if (stage.times > 1) std::fprintf(stderr, ", %d times", stage.times);
    std::fputc('\n', stderr);
  }
  for (const auto& [name, text] : common.asker.times.notes()) {
    std::fprintf(stderr, "%-12s %s\n", name.c_str(),
                 EscapeTerminal(text).c_str());
  }
  std::fprintf(stderr, "%-12s %s\n", "peak memory",
               HumanBytes(static_cast<double>(PeakMemoryBytes())).c_str());
}

bool IsCommand(std::string_view word, Fronts fronts);

// An unknown command: names the nearest one.
int UnknownCommand(const std::string& word, Fronts fronts) {
  std::vector<std::string_view> names;
  for (const CommandInfo& command : Commands(fronts))
    names.push_back(command.name);
  // What looks like a path was meant as one.
  const bool path = word.find_first_of("/.*?") != std::string::npos;
  std::string message =
      (path ? "there is no file and no command '" : "unknown command '") +
      EscapeTerminal(word) + "'";
  const std::string_view near = rules::Nearest(word, names);
  if (!near.empty()) message += "; did you mean '" + std::string(near) + "'?";
  std::fprintf(stderr, "lamina: error: %s\n", message.c_str());
  return kUsage;
}

// The command that takes a file or a folder, by what is in it; empty: none
// does.
std::string CommandFor(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    if (graph::ListDumps(path)) return "graph layers";
    const auto found = engine::FindTracesAndSnapshots({path});
    if (!found) return "";
    const auto snapshots = static_cast<size_t>(std::count_if(
        found->begin(), found->end(),
        [](const std::string& file) { return engine::HasSnapshotName(file); }));
    const size_t others = found->size() - snapshots;
    return snapshots > 0 && snapshots >= others ? "memory"
           : others > 1                         ? "ranks"
                                                : "report";
  }
  if (!fs::is_regular_file(path, error)) return "";
  if (engine::IsMemorySnapshot(path)) return "memory";
  constexpr size_t kHead = size_t{64} << 10;
  const auto head = ReadHead(path, kHead);
  return head && !graph::RecogniseDialect(*head).empty() ? "graph layers"
                                                         : "report";
}

// "lamina TRACE" is "lamina report TRACE": the command that takes the first
// input stands before all words. A folder with one trace is that trace.
void NameCommand(std::vector<std::string>& words, Fronts fronts) {
  if (words.empty() || words[0] == "help" || words[0] == "--manual") return;
  for (std::string& word : words) {
    if (IsCommand(word, fronts) || word == "-h" || word == "--help" ||
        word == "-V" || word == "--version")
      return;
    std::string command = word == "-" ? "report" : "";
    if (!word.starts_with('-')) command = CommandFor(word);
    if (command.empty()) continue;
    std::error_code error;
    if (command == "report" && std::filesystem::is_directory(word, error)) {
      const auto found = engine::FindTraces({word});
      if (found && found->size() == 1) word = found->front();
    }
    std::vector<std::string> named;
    while (!command.empty()) {
      std::string_view rest = command;
      named.emplace_back(TakeUntil(rest, ' '));
      command = std::string(rest);
    }
    words.insert(words.begin(), named.begin(), named.end());
    return;
  }
}

// A command was given what another one takes: says which.
Error WithCommand(Error error, const Common& common) {
  const auto& inputs = common.words.inputs();
  if (error.kind != ErrorKind::kInput ||
      std::find(inputs.begin(), inputs.end(), error.file) == inputs.end())
    return error;
  const std::string takes = CommandFor(error.file);
  const std::vector<std::string> words = common.words.Words();
  // That a file is a trace is not known before it is read.
  if (takes.empty() || takes == "report" || words.empty() ||
      takes.starts_with(words[0]))
    return error;
  error.hint = "lamina " + takes + " takes it";
  return error;
}

bool IsCommand(std::string_view word, Fronts fronts) {
  for (const CommandInfo& command : Commands(fronts)) {
    if (word == command.name) return true;
  }
  return false;
}

}  // namespace

int RunProgram(int argc, char** argv, const std::string& version,
               Fronts fronts) {
  CommandLine line("Where did my GPU time go, and what do I change next?",
                   version);
  Common common;
  Run run;
  std::vector<std::string> words(argv + 1, argv + argc);
  NameCommand(words, fronts);
  // Those of the others would only take memory (0.6 MiB).
  const std::string_view first = words.empty() ? "" : words[0];
  for (const CommandInfo& command : Commands(fronts)) {
    if (!IsCommand(first, fronts) || first == command.name)
      AddCommand(line.root(), command, common, run);
  }
  // For those who install: `lamina --manual FOLDER` writes what man and the
  // completion of shells read.
  if (argc == 3 && std::string_view(argv[1]) == "--manual") {
    DescribedCommand program = line.Describe();
    Status status = OfferNames(program);
    if (status) status = WriteManual(program, std::string(Version()), argv[2]);
    if (status) return kFine;
    PrintError(status.error());
    return ExitStatusOf(status.error());
  }
  const size_t at = !words.empty() && words[0] == "help" ? 1 : 0;
  if (at < words.size() && !words[at].starts_with('-') &&
      !IsCommand(words[at], fronts))
    return UnknownCommand(words[at], fronts);
  if (at == 1 && words.size() > 1) {
    const DescribedCommand program = line.Describe();
    const std::vector<std::string> named(words.begin() + 1, words.end());
    if (const DescribedCommand* command = FindCommand(program, named)) {
      std::fputs(TextPage(*command, OutputWidth()).c_str(), stdout);
      return kFine;
    }
  }
  if (const std::optional<int> ended = line.Parse(std::move(words)))
    return *ended;
  if (!run) {
    std::fputs(line.Help().c_str(), stdout);
    return kFine;
  }
  if (const std::string limit = snapshot::WrongLimit(); !limit.empty()) {
    std::fprintf(stderr,
                 "lamina: warning: LAMINA_CACHE_LIMIT: '%s' is no size (2G, "
                 "500M, 0), so the usual limit holds\n",
                 EscapeTerminal(limit).c_str());
  }
  common.words = questions::CommandWords(line.Given());
  using questions::KeepInputs;
  Status kept = KeepInputs("-o", common.output, common.words.inputs());
  if (kept) kept = KeepInputs("-o", common.output, common.asker.captures);
  if (kept) kept = common.Prepare();
  const Result<int> status = kept ? run() : Fail(kept.error());
  if (common.timing && !common.asker.quiet) PrintTiming(common);
  if (status) return *status;
  // Where it says nothing another process does.
  if (!status.error().what.empty())
    PrintError(WithCommand(WithNames(status.error(), OptionNames), common));
  return ExitStatusOf(status.error());
}

}  // namespace lamina::cli
