// SPDX-License-Identifier: Apache-2.0
//
// A trace file to the summary of its rank.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dist/rank_summary.h"
#include "dist/summarize.h"
#include "rules/catalog.h"

namespace lamina::engine {
class Origins;
struct OpenOptions;
class Session;
}  // namespace lamina::engine

namespace lamina::dist {

struct LoadOptions {
  int threads = 1;
  std::string rules_dir;
  std::shared_ptr<const rules::Catalog> catalog;
  // For a page: how many device events of a rank that are no collective.
  std::optional<uint64_t> others;
  engine::Origins* origins = nullptr;
  // Opens a trace, for who wants to keep it open; called from any thread. The
  // session is let go on the same thread. `open` is how it would be opened.
  std::function<Result<std::shared_ptr<engine::Session>>(
      const std::string& path, uint64_t file_number,
      const engine::OpenOptions& open)>
      open;
  // Sees every rank of every trace before the trace is closed; called from any
  // thread.
  std::function<void(const analysis::Context& context, const Lanes& lanes,
                     uint64_t file_number, uint64_t part)>
      inspect;
};

// The ranks in a file, mostly one. A file that cannot be used gives one with
// `error` set. The rank is the one that the trace says, else that of the file
// name; else it is only a position, and so it is of the ranks of a file with
// several.
std::vector<RankSummary> LoadRanks(const std::string& path,
                                   uint64_t file_number,
                                   const LoadOptions& options);

}  // namespace lamina::dist
