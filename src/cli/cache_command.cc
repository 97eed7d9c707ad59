// SPDX-License-Identifier: Apache-2.0
//
// lamina cache: the traces that are kept so that they open fast.
#include <ctime>
#include <fmt/core.h>

#include "base/counted.h"
#include "base/escape.h"
#include "cli/commands.h"
#include "snapshot/cache.h"

namespace lamina::cli {
namespace {

std::string DateOf(int64_t seconds) {
  const auto time = static_cast<time_t>(seconds);
  struct tm utc {};
  gmtime_r(&time, &utc);
  char text[32];
  const size_t size = std::strftime(text, sizeof(text), "%FT%TZ", &utc);
  return {text, size};
}

Table ListOf(const snapshot::Cache& cache) {
  Table table(
      {"cache",
       "Traces that are kept, the one used last first.",
       {{"input", ColumnType::kText, "File that was read."},
        {"state", ColumnType::kText,
         "current; other build: of another lamina; changed or gone: the input "
         "is; damaged. Of the last three nothing will be opened."},
        {"bytes", ColumnType::kInt, "Size in the cache."},
        {"used", ColumnType::kText, "Last use, to the hour, in UTC."},
        {"file", ColumnType::kText, "Name in the cache.", Shown::kHidden}}});
  for (const snapshot::Kept& kept : cache.List())
    table.Add(kept.input, kept.state, kept.bytes, DateOf(kept.used_s),
              kept.file);
  return table;
}

Result<int> RunCache(const std::string& what, Common& common) {
  const snapshot::Cache cache(&common.asker.times);
  if (cache.folder().empty()) {
    return Fail(UsageError("there is no folder for a cache",
                           "set XDG_CACHE_HOME or LAMINA_CACHE_DIR to a path "
                           "from the root"));
  }
  if (what == "path") {
    fmt::print("{}\n", EscapeTerminal(cache.folder()));
    return kFine;
  }
  if (what == "list") {
    Document document;
    document.command = "cache";
    document.result.tables.push_back(ListOf(cache));
    LAMINA_TRY(Write(document, common));
    return kFine;
  }
  uint64_t removed = 0;
  if (what == "prune") {
    removed = cache.Prune();
  } else {
    LAMINA_ASSIGN(removed, cache.Clear());
  }
  fmt::print("{} removed\n", Counted(removed, "file"));
  return kFine;
}

Run Add(questions::Description& args, Common& common) {
  auto what = std::make_shared<std::string>();
  args.Add("what", *what,
           "path: prints the folder; list: what is in it; prune: removes what "
           "is of no more use, and the oldest above the limit; clear: removes "
           "all of it")
      .Required()
      .OneOf({"path", "list", "prune", "clear"});
  common.AddTo(args);
  return [what, &common] { return RunCache(*what, common); };
}

}  // namespace

CommandInfo CacheCommand() {
  return OwnCommand("cache", "Traces that are kept so that they open fast",
                    "lamina cache list", &Add);
}

}  // namespace lamina::cli
