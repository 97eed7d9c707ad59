// SPDX-License-Identifier: Apache-2.0
#include "engine/captures.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/byte_source.h"
#include "base/decimal.h"
#include "engine/find_traces.h"

namespace lamina::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDetails = "execution_details.json";

// Batches of the captures in a folder, by file name; empty when the folder
// does not say, or says it in another form.
std::map<std::string, int64_t> BatchesOf(const fs::path& folder) {
  std::map<std::string, int64_t> batches;
  constexpr size_t kLimit = size_t{64} << 20;
  const auto text = ReadAll((folder / kDetails).string(), kLimit);
  if (!text) return batches;
  const auto list = nlohmann::json::parse(*text, nullptr, false);
  if (!list.is_array()) return batches;
  for (const auto& entry : list) {
    if (!entry.is_object()) continue;
    const auto file = entry.find("file");
    const auto batch = entry.find("batch_size");
    if (file != entry.end() && file->is_string() && batch != entry.end() &&
        batch->is_number_integer())
      batches[file->get<std::string>()] = batch->get<int64_t>();
  }
  return batches;
}

}  // namespace

std::optional<int64_t> RankOf(const trace::Trace& trace,
                              const std::string& path) {
  if (trace.info.rank) return trace.info.rank;
  const std::string name = fs::path(path).filename().string();
  const size_t word = name.find("rank");
  if (word == std::string::npos) return std::nullopt;
  size_t begin = word + 4;
  while (begin < name.size() && (name[begin] == '_' || name[begin] == '-'))
    ++begin;
  size_t end = begin;
  while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
  return ParseInt(std::string_view(name).substr(begin, end - begin));
}

Result<Captures> OpenCaptures(const std::vector<std::string>& paths,
                              const std::string& tags,
                              const OpenOptions& options) {
  Captures captures;
  LAMINA_ASSIGN(captures.files, FindTraces(paths));
  OpenOptions open = options;
  open.captures.clear();
  analysis::Settings settings;
  settings.threads = options.threads;
  std::map<fs::path, std::map<std::string, int64_t>> details;
  for (uint32_t i = 0; i < captures.files.size(); ++i) {
    const fs::path file = captures.files[i];
    LAMINA_ASSIGN(auto session, Session::Open(captures.files[i], open));
    LAMINA_ASSIGN(const analysis::Context* const context,
                  session->ContextFor(tree::LinkMode::kAuto, true, settings));
    LAMINA_ASSIGN(auto own, cudagraph::CollectSegments(*context, i, tags));
    auto [folder, is_new] = details.try_emplace(file.parent_path());
    if (is_new) folder->second = BatchesOf(file.parent_path());
    const auto batch = folder->second.find(file.filename().string());
    for (cudagraph::Segment& segment : own) {
      if (batch != folder->second.end()) segment.batch = batch->second;
      captures.segments.push_back(std::move(segment));
    }
    open.catalog = session->shared_catalog();
    captures.sessions.push_back(std::move(session));
    captures.contexts.push_back(context);
  }
  return captures;
}

}  // namespace lamina::engine
