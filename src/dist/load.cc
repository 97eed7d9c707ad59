// SPDX-License-Identifier: Apache-2.0
#include "dist/load.h"

#include "dist/summarize.h"
#include "engine/session.h"

namespace lamina::dist {
namespace {

Result<RankSummary> Load(const std::string& path, uint64_t file_number,
                         const LoadOptions& options) {
  engine::OpenOptions open;
  open.threads = options.threads;
  open.rules_dir = options.rules_dir;
  open.catalog = options.catalog;
  LAMINA_ASSIGN(const auto session, engine::Session::Open(path, open));
  analysis::Settings settings;
  settings.threads = options.threads;
  LAMINA_ASSIGN(const analysis::Context* const context,
                session->ContextFor(tree::LinkMode::kAuto, false, settings));
  const int64_t rank = session->trace().info.rank.value_or(
      RankOfName(path).value_or(static_cast<int64_t>(file_number)));
  return Summarize(*context, rank);
}

}  // namespace

RankSummary LoadRank(const std::string& path, uint64_t file_number,
                     const LoadOptions& options) {
  RankSummary rank;
  auto loaded = Load(path, file_number, options);
  if (loaded) {
    rank = std::move(*loaded);
  } else {
    rank.error = loaded.error().what;
    rank.rank = RankOfName(path).value_or(static_cast<int64_t>(file_number));
    rank.texts.assign(1, "");
  }
  rank.file = path;
  rank.file_number = file_number;
  return rank;
}

}  // namespace lamina::dist
