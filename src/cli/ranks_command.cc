// SPDX-License-Identifier: Apache-2.0
//
// lamina ranks: collectives over all ranks of a job.
#include <algorithm>
#include <array>

#include "base/byte_sink.h"
#include "base/decimal.h"
#include "base/parallel.h"
#include "cli/commands.h"
#include "cli/host.h"
#include "cli/page_size.h"
#include "dist/job.h"
#include "dist/mpi_plugin.h"
#include "dist/partial_store.h"
#include "dist/rank_events.h"
#include "dist/tables.h"
#include "engine/find_traces.h"

namespace lamina::cli {
namespace {

struct Options {
  std::vector<std::string> traces;
  std::string engine = "local";
  std::string partials;
  std::string shard;
  std::string pictures;
  std::string layout = "native";
  bool raw_clocks = false;
  PageSize page_size;
};

struct Share {
  size_t number = 0;  // from 0
  size_t count = 1;
};

// "2/8": the second of eight.
Result<Share> ParseShare(const std::string& text) {
  const size_t slash = text.find('/');
  const auto number = ParseInt(text.substr(0, slash));
  const auto count =
      ParseInt(slash == std::string::npos ? "" : text.substr(slash + 1));
  if (!number || !count || *number < 1 || *number > *count) {
    return Fail(UsageError("--shard: expected K/N with 1 <= K <= N",
                           "for example --shard 2/8"));
  }
  return Share{static_cast<size_t>(*number - 1), static_cast<size_t>(*count)};
}

Status CheckOptions(const Options& options, const Common& common) {
  if (common.redact && options.engine != "local") {
    return Fail(UsageError(
        "--redact must read all traces in the process that writes the page",
        "use --engine local"));
  }
  const bool files = options.engine == "files";
  if (files && options.partials.empty()) {
    return Fail(UsageError("--engine files needs --partials DIR",
                           "partial results are kept there"));
  }
  if (!files && (!options.partials.empty() || !options.shard.empty())) {
    return Fail(UsageError("--partials and --shard belong to --engine files",
                           "add --engine files"));
  }
  return {};
}

// The files as process 0 finds them, so that all agree. Empty on the others
// when it finds none.
Result<std::vector<std::string>> AgreeOnFiles(dist::Channel& channel,
                                              const Options& options) {
  Result<std::vector<std::string>> found;
  std::string list;
  if (channel.number() == 0) {
    found = engine::FindTraces(options.traces);
    for (const std::string& file : found ? *found : std::vector<std::string>())
      list += file + '\0';
  }
  list = Broadcast(channel, list);
  if (channel.number() == 0) return found;
  std::vector<std::string> files;
  for (size_t pos = 0; pos < list.size();) {
    const size_t end = list.find('\0', pos);
    files.push_back(list.substr(pos, end - pos));
    pos = end + 1;
  }
  return files;
}

// Makes the partials of one share and lists them.
Result<int> RunShare(const std::vector<std::string>& files, const Share& share,
                     dist::PartialStore& store,
                     const dist::JobOptions& settings, const Common& common) {
  const auto own = dist::ShareOfFiles(files, share.number, share.count);
  std::vector<std::string> errors(own.size());
  dist::LoadOptions load = settings.load;
  load.threads = 1;
  ParallelFor(settings.load.threads, own.size(), [&](size_t i) {
    errors[i] = store.Load(files[own[i]], own[i], load).front().error;
  });
  Table table({"partials",
               "Partial results of this share.",
               {{"file", ColumnType::kText, "Input."},
                {"partial", ColumnType::kText, "Where its summary lies."},
                {"error", ColumnType::kText, "Why there is none."}}});
  for (size_t i = 0; i < own.size(); ++i) {
    const std::string& file = files[own[i]];
    table.Add(file, errors[i].empty() ? store.PathOf(file) : "", errors[i]);
  }
  Document document;
  document.command = "ranks";
  document.inputs = files;
  document.result.tables.push_back(std::move(table));
  LAMINA_TRY(Write(document, common));
  return kFine;
}

Status WriteResult(const dist::Job& job, const std::vector<std::string>& files,
                   const dist::JobOptions& settings, const Options& options,
                   Common& common) {
  Document document;
  document.command = "ranks";
  document.inputs = files;
  {
    const ScopedStage stage(&common.times, "tables");
    document.result = dist::MakeResult(job, !options.pictures.empty());
    if (options.layout == "tracelens") {
      document.result.tables.clear();
      dist::AddTracelensTables(job, dist::FindBlame(job.measured),
                               document.result);
    }
  }
  if (!options.pictures.empty()) {
    LAMINA_TRY(MakeDirectory(options.pictures));
    for (const Diagram& diagram : document.result.diagrams) {
      LAMINA_TRY(WriteFile(options.pictures + "/" + diagram.name + ".svg",
                           diagram.svg));
    }
  }
  // On a terminal what answers a question, not what lists everything.
  if (common.format == "table" && common.Complete()) {
    std::erase_if(document.result.tables, [](const Table& table) {
      static constexpr std::array<std::string_view, 4> kLong = {
          "collective_waits", "collectives", "straggler_causes",
          "all_to_all_traffic"};
      return table.rows() == 0 ||
             std::find(kLong.begin(), kLong.end(), table.name()) != kLong.end();
    });
  }
  if (settings.load.others) {
    const auto secrets = common.SecretsOf(files);
    LAMINA_TRY(dist::WriteRanksPage(
        job, *settings.load.catalog, std::move(document),
        {common.output, common.ThreadCount(), options.page_size.max_bytes(),
         common.given.Words(), secrets.get()}));
  } else {
    LAMINA_TRY(Write(document, common));
  }
  if (std::none_of(job.ranks.begin(), job.ranks.end(),
                   [](const auto& rank) { return rank.error.empty(); })) {
    return Fail(InputError(files.front(), "no input can be used",
                           "the table ranks says why"));
  }
  return {};
}

Result<int> RunRanks(const Options& options, Common& common) {
  LAMINA_TRY(CheckOptions(options, common));
  dist::JobOptions settings;
  settings.load.threads = common.ThreadCount();
  settings.load.rules_dir = common.rules_dir;
  settings.load.origins = common.OriginsToLearn();
  LAMINA_ASSIGN(settings.load.catalog,
                rules::Catalog::Load(rules::DataSet(common.rules_dir)));
  settings.load.open = common.OpenRank();
  settings.raw_clocks = options.raw_clocks;
  settings.times = &common.times;
  std::unique_ptr<dist::Channel> channel = dist::MakeLocalChannel();
  if (options.engine == "mpi") {
    LAMINA_ASSIGN(channel, dist::OpenMpiChannel());
  }
  if (channel->number() == 0) {
    settings.progress = common.Progress("reading ranks,");
    settings.read = [&](const dist::RankSummary& rank) {
      common.SayLosses(rank.file, rank.losses);
    };
  } else {
    common.timing = false;
  }
  LAMINA_ASSIGN(const auto files, AgreeOnFiles(*channel, options));
  if (files.empty()) return kBadInput;  // process 0 says why
  LAMINA_TRY(KeepInputs("-o", common.output, files));
  if (options.engine == "files") {
    LAMINA_ASSIGN(auto store,
                  dist::PartialStore::Open(options.partials, common.rules_dir));
    if (!options.shard.empty()) {
      LAMINA_ASSIGN(const Share share, ParseShare(options.shard));
      return RunShare(files, share, store, settings, common);
    }
    settings.load_ranks = [store](const std::string& path, uint64_t number,
                                  const dist::LoadOptions& load) {
      return store.Load(path, number, load);
    };
  }
  if (common.format == "html" && options.layout == "native" &&
      common.Complete()) {
    settings.load.others =
        dist::OthersThatFit(files.size(), options.page_size.max_bytes());
  }
  const auto job = dist::RunJob(*channel, files, settings);
  if (job) LAMINA_TRY(WriteResult(*job, files, settings, options, common));
  return kFine;
}

Run Add(questions::Description& args, Common& common) {
  auto options = std::make_shared<Options>();
  args.Add("traces", options->traces,
           "One trace per rank: files, folders or patterns in quotes")
      .Required();
  args.Add("--engine", options->engine,
           "Who reads the traces: threads of this process (local), runs "
           "that share a folder of partial results (files), or processes "
           "under mpirun (mpi)")
      .OneOf({"local", "files", "mpi"})
      .ShowDefault();
  args.Add("--partials", options->partials,
           "Folder of partial results; a run that was stopped goes on "
           "from what is there");
  args.Add("--shard", options->shard,
           "K/N: only make the partial results of share K of N");
  args.Add("--pictures", options->pictures,
           "Folder for pictures (SVG): heat maps rank by step, "
           "stragglers, bandwidth by size");
  args.Add("--layout", options->layout,
           "native, or the tables of TraceLens's report over ranks")
      .OneOf({"native", "tracelens"})
      .ShowDefault();
  options->page_size.AddTo(args);
  args.Flag("--raw-clocks", options->raw_clocks,
            "Leave times as recorded; clock_offsets still says how clocks "
            "differ");
  common.AddTo(args);
  return [options, &common] { return RunRanks(*options, common); };
}

}  // namespace

CommandInfo RanksCommand() {
  return {"ranks", "Collectives over all ranks: skew, waits, stragglers",
          "lamina ranks traces/\n"
          "  mpirun -n 16 lamina ranks --engine mpi --threads 4 traces/",
          &Add};
}

}  // namespace lamina::cli
