// SPDX-License-Identifier: Apache-2.0
#include "dist/load.h"

#include "dist/rank_events.h"
#include "dist/summarize.h"
#include "engine/session.h"

namespace lamina::dist {
namespace {

Result<std::vector<RankSummary>> Load(const std::string& path,
                                      uint64_t file_number,
                                      const LoadOptions& options) {
  engine::OpenOptions open;
  open.threads = options.threads;
  open.rules_dir = options.rules_dir;
  open.catalog = options.catalog;
  open.origins = options.origins;
  std::shared_ptr<engine::Session> session;
  if (options.open) {
    LAMINA_ASSIGN(session, options.open(path, file_number, open));
  } else {
    LAMINA_ASSIGN(session, engine::Session::Open(path, open));
  }
  analysis::Settings settings;
  settings.threads = options.threads;
  LAMINA_ASSIGN(const analysis::Context* const context,
                session->ContextFor(tree::LinkMode::kAuto, false, settings));
  std::optional<int64_t> rank = session->trace().info.rank;
  if (!rank) rank = RankOfName(path);
  const std::vector<Lanes> parts = FindRanks(*context);
  std::vector<RankSummary> out;
  for (const Lanes& lanes : parts) {
    out.push_back(Summarize(*context, lanes, rank.value_or(0)));
    out.back().is_position = !rank || parts.size() > 1;
    if (options.others)
      out.back().page = FindEvents(*context, lanes, *options.others);
    if (options.inspect)
      options.inspect(*context, lanes, file_number, out.size() - 1);
  }
  return out;
}

}  // namespace

std::vector<RankSummary> LoadRanks(const std::string& path,
                                   uint64_t file_number,
                                   const LoadOptions& options) {
  std::vector<RankSummary> ranks;
  auto loaded = Load(path, file_number, options);
  if (loaded) {
    ranks = std::move(*loaded);
  } else {
    RankSummary& rank = ranks.emplace_back();
    rank.error = loaded.error().what;
    rank.texts.assign(1, "");
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].file = path;
    ranks[i].file_number = file_number;
    ranks[i].part = i;
  }
  return ranks;
}

}  // namespace lamina::dist
