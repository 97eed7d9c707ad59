// SPDX-License-Identifier: Apache-2.0
//
// lamina ranks: collectives over all ranks of a job.
#include <algorithm>
#include <array>

#include "base/byte_sink.h"
#include "base/decimal.h"
#include "base/parallel.h"
#include "dist/channel.h"
#include "dist/job.h"
#include "dist/partial.h"
#include "dist/rank_events.h"
#include "dist/tables.h"
#include "engine/find_traces.h"
#include "questions/bodies.h"

namespace lamina::questions {
namespace {

struct RanksOptions {
  std::vector<std::string> traces;
  std::string engine = "local";
  std::string partials;
  std::string shard;
  std::string pictures;
  std::string layout = "native";
  bool raw_clocks = false;
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
    return Fail(UsageError("⟨shard⟩: expected K/N with 1 <= K <= N",
                           "for example ⟨shard⟩ 2/8"));
  }
  return Share{static_cast<size_t>(*number - 1), static_cast<size_t>(*count)};
}

Status CheckOptions(const RanksOptions& options, Asker& asker) {
  if (asker.origins != nullptr && options.engine != "local") {
    return Fail(UsageError(
        "⟨redact⟩ must read all traces in the process that writes the page",
        "use ⟨engine⟩ local"));
  }
  const bool files = options.engine == "files";
  if (files && options.partials.empty()) {
    return Fail(UsageError("⟨engine⟩ files needs ⟨partials⟩ DIR",
                           "partial results are kept there"));
  }
  if (!files && (!options.partials.empty() || !options.shard.empty())) {
    return Fail(UsageError("⟨partials⟩ and ⟨shard⟩ belong to ⟨engine⟩ files",
                           "add ⟨engine⟩ files"));
  }
  if (files && !asker.captures.empty()) {
    return Fail(UsageError("partial results know no captures",
                           "leave out ⟨capture⟩, or use ⟨engine⟩ local"));
  }
  return {};
}

// The files as process 0 finds them, so that all agree. Empty on the others
// when it finds none.
Result<std::vector<std::string>> AgreeOnFiles(dist::Channel& channel,
                                              const RanksOptions& options) {
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
Result<Answer> RunShare(const std::vector<std::string>& files,
                        const Share& share, dist::PartialStore& store,
                        const dist::JobOptions& settings) {
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
  return Answer(std::move(document));
}

Result<Answer> AnswerOf(std::shared_ptr<const dist::Job> of,
                        const std::vector<std::string>& files,
                        const dist::JobOptions& settings,
                        const RanksOptions& options, Asker& asker) {
  const dist::Job& job = *of;
  Document document;
  document.command = "ranks";
  document.inputs = files;
  {
    const ScopedStage stage(&asker.times, "tables");
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
  if (asker.for_screen() && asker.Complete()) {
    std::erase_if(document.result.tables, [](const Table& table) {
      static constexpr std::array<std::string_view, 4> kLong = {
          "collective_waits", "collectives", "straggler_causes",
          "all_to_all_traffic"};
      return table.rows() == 0 ||
             std::find(kLong.begin(), kLong.end(), table.name()) != kLong.end();
    });
  }
  Answer answer(std::move(document));
  if (settings.load.others) {
    answer.page = [of, catalog = settings.load.catalog, &asker](
                      Document& shown, const PageRequest& request) {
      return dist::WriteRanksPage(
          *of, *catalog, std::move(shown),
          {request.output, asker.ThreadCount(), asker.page_bytes(),
           request.words.Words(), request.redact});
    };
  }
  if (std::none_of(job.ranks.begin(), job.ranks.end(),
                   [](const auto& rank) { return rank.error.empty(); })) {
    answer.fault = InputError(files.front(), "no input can be used",
                              "the table ranks says why");
  }
  return answer;
}

// Another process says what there is to say.
Answer Nothing() {
  Answer answer;
  answer.nothing = true;
  return answer;
}

Result<Answer> RunRanks(const RanksOptions& options, Asker& asker) {
  LAMINA_TRY(CheckOptions(options, asker));
  dist::JobOptions settings;
  settings.load.threads = asker.ThreadCount();
  settings.load.rules_dir = asker.rules_dir;
  settings.load.origins = asker.origins;
  LAMINA_ASSIGN(settings.load.catalog,
                rules::Catalog::Load(rules::DataSet(asker.rules_dir)));
  settings.load.open = asker.OpenRank();
  settings.raw_clocks = options.raw_clocks;
  settings.times = &asker.times;
  std::unique_ptr<dist::Channel> channel = dist::MakeLocalChannel();
  if (options.engine == "mpi") {
    LAMINA_ASSIGN(channel, dist::OpenMpiChannel());
  }
  if (channel->number() == 0) {
    settings.progress = asker.Progress("reading ranks,");
    settings.read = [&](const dist::RankSummary& rank) {
      asker.SayLosses(rank.file, rank.losses);
    };
  } else {
    asker.quiet = true;
  }
  LAMINA_ASSIGN(const auto files, AgreeOnFiles(*channel, options));
  // Process 0 says why. The others end well, for mpirun stops a job at the
  // first process that fails, process 0 before it has spoken among them.
  if (files.empty()) return Nothing();
  if (options.engine == "files") {
    LAMINA_ASSIGN(auto store,
                  dist::PartialStore::Open(options.partials, asker.rules_dir));
    if (!options.shard.empty()) {
      LAMINA_ASSIGN(const Share share, ParseShare(options.shard));
      return RunShare(files, share, store, settings);
    }
    settings.load_ranks = [store](const std::string& path, uint64_t number,
                                  const dist::LoadOptions& load) {
      return store.Load(path, number, load);
    };
  }
  if (asker.for_page() && options.layout == "native" && asker.Complete()) {
    settings.load.others =
        dist::OthersThatFit(files.size(), asker.page_bytes());
  }
  auto job = dist::RunJob(*channel, files, settings);
  if (!job) return Nothing();
  return AnswerOf(std::make_shared<const dist::Job>(*std::move(job)), files,
                  settings, options, asker);
}

}  // namespace

Body DescribeRanks(Description& args, Asker& asker) {
  auto options = std::make_shared<RanksOptions>();
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
  asker.AddPageSizeTo(args);
  args.Flag("--raw-clocks", options->raw_clocks,
            "Leave times as recorded; clock_offsets still says how clocks "
            "differ");
  asker.AddCapturesTo(args);
  return [options, &asker] { return RunRanks(*options, asker); };
}

}  // namespace lamina::questions
