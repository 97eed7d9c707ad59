// SPDX-License-Identifier: Apache-2.0
//
// Events of all ranks for a page: of each its collectives and its longest
// other device events, found while its trace is open. They travel and lie in
// files with the summary of the rank, so a page does not depend on who read
// the traces.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/host/work_facts.h"
#include "base/status.h"
#include "dist/job.h"
#include "dist/rank_summary.h"
#include "dist/summarize.h"
#include "lamina/result.h"
#include "rules/catalog.h"

namespace lamina::render {
struct Secrets;
}

namespace lamina::dist {

// More others of one rank are not looked at; 8 ranks stay below 1 MB.
inline constexpr uint64_t kMostOthers = 8000;
// How many of each rank fit into a page.
uint64_t OthersThatFit(size_t files, uint64_t max_bytes);

RankEvents FindEvents(const analysis::Context& context, const Lanes& lanes,
                      uint64_t most_others);
// Keeps the `most` longest others, which FindEvents() would have found.
void KeepLongest(RankEvents& events, uint64_t most);

struct PageOptions {
  std::string output = "-";
  int threads = 1;
  uint64_t max_bytes = uint64_t{25} << 20;
  std::vector<std::string> words;  // of the command line; empty: not known
  const render::Secrets* redact = nullptr;  // what the page must not show
};

// The page of a job that was run with LoadOptions::others; `document` holds
// its tables.
Status WriteRanksPage(const Job& job, const rules::Catalog& catalog,
                      Document document, const PageOptions& options);

// The collectives of one trace beside those of the other ranks of its job: how
// long it waited for them, how long the transfer took.

// `context` is that of `file`; `others` are traces of other ranks, and may name
// `file` again. The numbers are those of `lamina ranks`; a collective that
// could not be joined without doubt has none. Errors: a trace that cannot be
// used, no rank but one.
Result<analysis::host::RankTimesOf> TimesAmongRanks(
    const analysis::Context& context, const std::string& file,
    const std::vector<std::string>& others, const LoadOptions& load);

}  // namespace lamina::dist
