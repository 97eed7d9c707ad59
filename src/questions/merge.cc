// SPDX-License-Identifier: Apache-2.0
//
// lamina merge: many ranks into one trace.
#include "dist/merge.h"

#include "engine/find_traces.h"
#include "questions/bodies.h"
#include "questions/trace_output.h"

namespace lamina::questions {
namespace {

struct MergeOptions {
  std::vector<std::string> traces;
  bool align_clocks = false;
  bool python = false;
};

Result<Answer> RunMerge(const MergeOptions& options, Asker& asker) {
  const std::string& output = asker.output;
  if (output == "-") {
    return Fail(UsageError("⟨merge()⟩ needs ⟨output⟩ OUT.json.gz",
                           "that is where the merged trace goes"));
  }
  LAMINA_ASSIGN(const auto files, engine::FindTraces(options.traces));
  LAMINA_TRY(KeepInputs("⟨output⟩", output, files));
  dist::MergeOptions merge;
  merge.align_clocks = options.align_clocks;
  merge.python = options.python;
  merge.job.load.threads = asker.ThreadCount();
  merge.job.load.rules_dir = asker.rules_dir;
  merge.job.load.open = asker.OpenRank();
  LAMINA_ASSIGN(merge.job.load.catalog,
                rules::Catalog::Load(rules::DataSet(asker.rules_dir)));
  merge.job.times = &asker.times;
  merge.job.progress = asker.Progress("reading ranks,");
  merge.job.read = [&](const dist::RankSummary& rank) {
    asker.SayLosses(rank.file, rank.losses);
  };
  Document document;
  document.command = "merge";
  document.inputs = files;
  LAMINA_TRY(
      WriteTraceAs(output, asker, [&](const std::string& path) -> Status {
        LAMINA_ASSIGN(document.result, dist::MergeTraces(files, path, merge));
        return {};
      }));
  return Answer(std::move(document));
}

}  // namespace

Body DescribeMerge(Description& args, Asker& asker) {
  auto options = std::make_shared<MergeOptions>();
  args.Add("traces", options->traces,
           "One trace per rank: files, folders or patterns in quotes")
      .Required();
  args.Flag("--align-clocks", options->align_clocks,
            "Take the offset and drift of each rank's clock off its times, "
            "as ⟨ranks()⟩ finds them");
  args.Flag("--python", options->python, "Keep Python frames");
  return [options, &asker] { return RunMerge(*options, asker); };
}

}  // namespace lamina::questions
