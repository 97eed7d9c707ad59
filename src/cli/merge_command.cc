// SPDX-License-Identifier: Apache-2.0
//
// lamina merge: many ranks into one trace.
#include "cli/commands.h"
#include "cli/perfetto_output.h"
#include "dist/merge.h"
#include "engine/find_traces.h"

namespace lamina::cli {
namespace {

struct Options {
  std::vector<std::string> traces;
  bool align_clocks = false;
  bool python = false;
};

Result<int> RunMerge(const Options& options, Common& common) {
  // -o is the trace; the table goes to the terminal.
  const std::string output = common.output;
  if (output == "-") {
    return Fail(UsageError("lamina merge needs -o OUT.json.gz",
                           "that is where the merged trace goes"));
  }
  common.output = "-";
  LAMINA_ASSIGN(const auto files, engine::FindTraces(options.traces));
  LAMINA_TRY(KeepInputs("-o", output, files));
  dist::MergeOptions merge;
  merge.align_clocks = options.align_clocks;
  merge.python = options.python;
  merge.job.load.threads = common.ThreadCount();
  merge.job.load.rules_dir = common.rules_dir;
  merge.job.load.open = common.OpenRank();
  LAMINA_ASSIGN(merge.job.load.catalog,
                rules::Catalog::Load(rules::DataSet(common.rules_dir)));
  merge.job.times = &common.times;
  merge.job.progress = common.Progress("reading ranks,");
  merge.job.read = [&](const dist::RankSummary& rank) {
    common.SayLosses(rank.file, rank.losses);
  };
  Document document;
  document.command = "merge";
  document.inputs = files;
  LAMINA_TRY(
      WriteTraceAs(output, common, [&](const std::string& path) -> Status {
        LAMINA_ASSIGN(document.result, dist::MergeTraces(files, path, merge));
        return {};
      }));
  LAMINA_TRY(Write(document, common));
  return kFine;
}

Run Add(questions::Description& args, Common& common) {
  auto options = std::make_shared<Options>();
  args.Add("traces", options->traces,
           "One trace per rank: files, folders or patterns in quotes")
      .Required();
  args.Flag("--align-clocks", options->align_clocks,
            "Take the offset and drift of each rank's clock off its times, "
            "as lamina ranks finds them");
  args.Flag("--python", options->python, "Keep Python frames");
  common.AddTo(args, Output::kOwn);
  return [options, &common] { return RunMerge(*options, common); };
}

}  // namespace

CommandInfo MergeCommand() {
  return {"merge", "Many ranks in one trace for Perfetto",
          "lamina merge traces/ --align-clocks -o job.json.gz", &Add};
}

}  // namespace lamina::cli
