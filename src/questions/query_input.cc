// SPDX-License-Identifier: Apache-2.0
#include "questions/query_input.h"

#include <algorithm>
#include <filesystem>

#include "engine/captures.h"
#include "engine/find_traces.h"

namespace lamina::questions {
namespace {

bool IsFolder(const std::string& path) {
  std::error_code none_there;
  return std::filesystem::is_directory(path, none_there);
}

}  // namespace

Result<sql::SchemaInput> OpenSchema(const std::string& name,
                                    const std::string& path, Asker& asker,
                                    std::vector<std::string>& inputs) {
  sql::SchemaInput out;
  out.name = name;
  inputs.push_back(path);
  std::vector<std::string> files = {path};
  if (IsFolder(path)) {
    auto found = engine::FindTraces({path});
    // A folder may be one trace (rocprofv3 writes several files of CSV).
    if (!found && found.error().file != path) return Fail(found.error());
    if (found && found->size() > 1) files = *std::move(found);
  }
  for (const std::string& file : files) {
    LAMINA_ASSIGN(auto session, asker.OpenTrace(file));
    out.sources.push_back(std::move(session));
  }
  if (files.size() == 1) return out;
  std::vector<std::pair<int64_t, std::shared_ptr<engine::Session>>> ranks;
  for (size_t i = 0; i < files.size(); ++i) {
    ranks.emplace_back(engine::RankOf(out.sources[i]->trace(), files[i])
                           .value_or(static_cast<int64_t>(i)),
                       out.sources[i]);
  }
  std::stable_sort(
      ranks.begin(), ranks.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < ranks.size(); ++i) {
    out.ranks.push_back(ranks[i].first);
    out.sources[i] = ranks[i].second;
  }
  return out;
}

}  // namespace lamina::questions
