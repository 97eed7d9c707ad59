// SPDX-License-Identifier: Apache-2.0
//
// lamina ranks: collectives over all ranks of a job.
#include <algorithm>
#include <array>

#include "cli/commands.h"
#include "dist/inputs.h"
#include "dist/job.h"
#include "dist/tables.h"

namespace lamina::cli {
namespace {

struct Options {
  std::vector<std::string> traces;
  std::string engine = "local";
  bool raw_clocks = false;
  std::vector<std::string> only;
};

Result<int> RunRanks(const Options& options, Common& common) {
  LAMINA_ASSIGN(const auto files, dist::FindTraces(options.traces));
  const auto channel = dist::MakeLocalChannel();
  dist::JobOptions settings;
  settings.load.threads = common.ThreadCount();
  settings.load.rules_dir = common.rules_dir;
  LAMINA_ASSIGN(settings.load.catalog,
                rules::Catalog::Load(rules::DataSet(common.rules_dir)));
  settings.raw_clocks = options.raw_clocks;
  settings.times = &common.times;
  settings.progress = MakeProgress("reading ranks,");
  const auto job = dist::RunJob(*channel, files, settings);
  Document document;
  document.command = "ranks";
  document.inputs = files;
  {
    const ScopedStage stage(&common.times, "tables");
    document.result = dist::MakeResult(*job);
  }
  // On a terminal what answers a question, not what lists everything.
  if (common.format == "table" && common.top == 0) {
    std::erase_if(document.result.tables, [](const Table& table) {
      static constexpr std::array<std::string_view, 4> kLong = {
          "collective_waits", "collectives", "straggler_causes",
          "all_to_all_traffic"};
      return table.rows() == 0 ||
             std::find(kLong.begin(), kLong.end(), table.name()) != kLong.end();
    });
  }
  LAMINA_TRY(Write(document, common));
  if (std::none_of(job->ranks.begin(), job->ranks.end(),
                   [](const auto& rank) { return rank.error.empty(); })) {
    return Fail(InputError(files.front(), "no input can be used",
                           "the table ranks says why"));
  }
  return kFine;
}

Run Add(CLI::App& app, Common& common) {
  auto options = std::make_shared<Options>();
  app.add_option("traces", options->traces,
                 "One trace per rank: files, folders or patterns in quotes")
      ->required();
  app.add_flag("--raw-clocks", options->raw_clocks,
               "Leave times as recorded; clock_offsets still says how clocks "
               "differ");
  common.AddTo(app);
  return [options, &common] { return RunRanks(*options, common); };
}

}  // namespace

CommandInfo RanksCommand() {
  return {"ranks", "Collectives over all ranks: skew, waits, stragglers",
          "lamina ranks traces/", &Add};
}

}  // namespace lamina::cli
