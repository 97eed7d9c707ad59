// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include "emit/perfetto/trace_writer.h"

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
        {"memory", "What fills the GPU, who put it there, what makes room",
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

}  // namespace lamina::cli
