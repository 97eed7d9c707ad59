// SPDX-License-Identifier: Apache-2.0
#include "dist/partial_store.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fmt/core.h>
#include <zlib.h>

#include "base/byte_sink.h"
#include "base/byte_source.h"
#include "base/files_below.h"
#include "base/opened.h"
#include "dist/rank_events.h"

namespace lamina::dist {
namespace {

namespace fs = std::filesystem;

// No summary comes near.
constexpr size_t kMostBytes = size_t{8} << 30;

uint64_t Hash(std::string_view text, uint64_t seed) {
  // Two sums with different seeds: names must not collide by chance.
  const auto* bytes = reinterpret_cast<const Bytef*>(text.data());
  const uint64_t low = crc32_z(seed & 0xFFFFFFFF, bytes, text.size());
  const uint64_t high = crc32_z((seed >> 32) ^ 0x9E3779B9, bytes, text.size());
  return high << 32 | low;
}

uint64_t HashFolder(const std::string& folder) {
  if (folder.empty()) return 0;
  uint64_t hash = 1;
  for (const std::string& file : FilesBelow(folder)) {
    hash = Hash(file, hash);
    if (const auto text = ReadAll(file, kMostBytes)) hash = Hash(*text, hash);
  }
  return hash;
}

SourceFile Describe(const std::string& path, uint64_t rules) {
  SourceFile source;
  std::error_code error;
  source.path = fs::absolute(path, error).lexically_normal().string();
  const auto size = fs::file_size(path, error);
  if (!error) source.bytes = size;
  const auto time = fs::last_write_time(path, error);
  if (!error) source.modified_ns = time.time_since_epoch().count();
  source.rules = rules;
  return source;
}

// With as many events as are asked for.
std::vector<RankSummary> WithEvents(std::vector<RankSummary> ranks,
                                    const LoadOptions& options) {
  for (RankSummary& rank : ranks) {
    if (options.others) {
      KeepLongest(rank.page, *options.others);
    } else {
      rank.page = {};
    }
  }
  return ranks;
}

}  // namespace

Result<PartialStore> PartialStore::Open(const std::string& folder,
                                        const std::string& rules_dir) {
  LAMINA_TRY(MakeDirectory(folder));
  PartialStore store;
  store.folder_ = folder;
  store.rules_ = HashFolder(rules_dir);
  return store;
}

std::string PartialStore::PathOf(const std::string& path) const {
  std::error_code error;
  const std::string whole =
      fs::absolute(path, error).lexically_normal().string();
  return (fs::path(folder_) /
          fmt::format("{:016x}.lamina-partial", Hash(whole, 0)))
      .string();
}

std::vector<RankSummary> PartialStore::Load(const std::string& path,
                                            uint64_t file_number,
                                            const LoadOptions& options) const {
  const std::string name = PathOf(path);
  const SourceFile source = Describe(path, rules_);
  std::error_code error;
  if (fs::exists(name, error)) {
    auto bytes = ReadAll(name, kMostBytes);
    ForgetInput(name);  // one that no longer fits is made anew
    auto kept = bytes ? DecodePartial(*bytes, name)
                      : Result<Partial>(Fail(bytes.error()));
    if (kept && !kept->ranks.empty() && kept->ranks.front().source == source) {
      for (RankSummary& rank : kept->ranks) {
        rank.file = path;
        rank.file_number = file_number;
      }
      return WithEvents(std::move(kept->ranks), options);
    }
  }
  // For any page that is made of them later.
  LoadOptions whole = options;
  whole.others = kMostOthers;
  Partial made;
  made.ranks = LoadRanks(path, file_number, whole);
  for (RankSummary& rank : made.ranks) rank.source = source;
  if (made.ranks.front().error.empty()) {
    // A full disk costs the restart, not the result.
    const auto written = WriteFile(name, EncodePartial(made));
    if (!written) {
      std::fprintf(stderr, "lamina: warning: %s\n",
                   written.error().ToString().c_str());
    }
  }
  return WithEvents(std::move(made.ranks), options);
}

std::vector<size_t> ShareOfFiles(const std::vector<std::string>& files,
                                 size_t share, size_t shares) {
  std::vector<std::pair<uintmax_t, size_t>> order;
  for (size_t i = 0; i < files.size(); ++i) {
    std::error_code error;
    const auto size = fs::file_size(files[i], error);
    order.emplace_back(error ? 0 : size, i);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::vector<size_t> out;
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t round = i / shares;
    const size_t place = i % shares;
    if ((round % 2 == 0 ? place : shares - 1 - place) == share)
      out.push_back(order[i].second);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace lamina::dist
