// SPDX-License-Identifier: Apache-2.0

#include "dist/partial.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fmt/core.h>
#include <tuple>
#include <zlib.h>

#include "base/byte_sink.h"
#include "base/byte_source.h"
#include "base/opened.h"
#include "dist/archive.h"
#include "dist/rank_events.h"

namespace lamina::dist {

// Found by argument, so in no unnamed namespace.
template <class Archive>
static void Fields(Archive& a, WorkItem& x) {
  a(x.name, x.ns);
}

template <class Archive>
static void Fields(Archive& a, GroupName& x) {
  a(x.name, x.ranks, x.description, x.size, x.calls);
}

template <class Archive>
static void Fields(Archive& a, Call& x) {
  a(x.number, x.group, x.name, x.dtype, x.in_split, x.out_split, x.step, x.kind,
    x.sequence, x.in_elements, x.out_elements, x.source, x.destination,
    x.stream, x.start_ns, x.file_ns, x.dur_ns, x.exposed_ns, x.previous,
    x.gap_start_ns, x.idle_ns, x.device, x.host);
}

template <class Archive>
static void Fields(Archive& a, CallStats& x) {
  a(x.group, x.ranks, x.name, x.dtype, x.in_split, x.out_split, x.size,
    x.in_elements, x.out_elements, x.stream, x.count, x.sum_ns, x.min_ns,
    x.max_ns, x.mean_ns, x.deviation_ns);
}

template <class Archive>
static void Fields(Archive& a, StepTimes& x) {
  a(x.number, x.start_ns, x.device_ns, x.busy_ns, x.compute_ns, x.comm_ns,
    x.exposed_comm_ns, x.peer_ns, x.peer_exposed_ns, x.first_compute_ns,
    x.last_compute_ns);
}

template <class Archive>
static void Fields(Archive& a, SourceFile& x) {
  a(x.path, x.bytes, x.modified_ns, x.rules);
}

template <class Archive>
static void Fields(Archive& a, RankEvents::Event& x) {
  a(x.start_ns, x.dur_ns, x.kernel, x.op, x.family, x.uid, x.call, x.step);
}

template <class Archive>
static void Fields(Archive& a, RankEvents::Lane& x) {
  a(x.process, x.device, x.stream, x.events);
}

template <class Archive>
static void Fields(Archive& a, RankEvents& x) {
  a(x.texts, x.lanes, x.end_of_uids, x.others, x.kept);
}

template <class Archive>
static void Fields(Archive& a, RankSummary& x) {
  a(x.file, x.source, x.error, x.file_number, x.part, x.rank, x.is_position,
    x.world_size, x.devices, x.first_ns, x.events, x.input_bytes,
    x.losses.records, x.losses.damaged, x.losses.first, x.losses.reasons,
    x.texts, x.groups, x.steps, x.calls, x.stats, x.page);
}

namespace {

constexpr std::string_view kMagic = "LAMRANKS";
// Raised by every change of what Fields() list.
constexpr uint32_t kVersion = 4;

uint64_t Checksum(std::string_view bytes) {
  return crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

bool AreConsistent(const RankEvents& events) {
  const size_t texts = events.texts.size();
  uint64_t others = 0;
  for (const RankEvents::Lane& lane : events.lanes) {
    for (const RankEvents::Event& e : lane.events) {
      if (e.kernel >= texts || e.op >= texts || e.family >= texts ||
          e.dur_ns < 0 || int64_t{e.uid} >= events.end_of_uids)
        return false;
      others += e.call == kNoIndex;
    }
  }
  return events.kept == others && others <= events.others;
}

// Every index names something that is there.
bool IsConsistent(const RankSummary& rank) {
  const size_t texts = rank.texts.size();
  const auto names = [&](const std::vector<WorkItem>& items) {
    return std::all_of(items.begin(), items.end(),
                       [&](const WorkItem& i) { return i.name < texts; });
  };
  for (const GroupName& g : rank.groups) {
    if (g.name >= texts || g.ranks >= texts || g.description >= texts)
      return false;
  }
  for (const CallStats& s : rank.stats) {
    if (s.group >= texts || s.ranks >= texts || s.name >= texts ||
        s.dtype >= texts || s.in_split >= texts || s.out_split >= texts)
      return false;
  }
  for (const Call& c : rank.calls) {
    if (c.group >= rank.groups.size() || c.name >= texts || c.dtype >= texts ||
        c.in_split >= texts || c.out_split >= texts || !names(c.device) ||
        !names(c.host) || c.kind > CollectiveKind::kUnknown || c.dur_ns < 0 ||
        (c.step != kNoIndex && c.step >= rank.steps.size()))
      return false;
  }
  return AreConsistent(rank.page);
}

}  // namespace

void Merge(Partial& partial, Partial&& other) {
  for (RankSummary& rank : other.ranks)
    partial.ranks.push_back(std::move(rank));
  std::sort(partial.ranks.begin(), partial.ranks.end(),
            [](const RankSummary& a, const RankSummary& b) {
              return std::tie(a.file_number, a.part) <
                     std::tie(b.file_number, b.part);
            });
}

std::string EncodePartial(const Partial& partial) {
  Encoder body;
  body(partial.ranks);
  const std::string bytes = body.Take();
  Encoder head;
  head(kVersion, Checksum(bytes), static_cast<uint64_t>(bytes.size()));
  return std::string(kMagic) + head.Take() + bytes;
}

Result<Partial> DecodePartial(std::string_view bytes, const std::string& name) {
  const auto fail = [&](const char* what) {
    return Fail(InputError(name, what, "delete it, it will be made again"));
  };
  if (!bytes.starts_with(kMagic)) return fail("this is no partial result");
  bytes.remove_prefix(kMagic.size());
  uint32_t version = 0;
  uint64_t checksum = 0;
  uint64_t size = 0;
  constexpr size_t kHead = sizeof version + sizeof checksum + sizeof size;
  Decoder head(bytes.substr(0, kHead));
  head(version, checksum, size);
  if (!head.ok()) return fail("the partial result is cut");
  if (version != kVersion)
    return fail("the partial result is of another version of lamina");
  bytes.remove_prefix(kHead);
  if (bytes.size() != size || Checksum(bytes) != checksum)
    return fail("the partial result is damaged");
  Partial partial;
  Decoder body(bytes);
  body(partial.ranks);
  if (!body.ok() || !body.at_end() ||
      !std::all_of(partial.ranks.begin(), partial.ranks.end(), IsConsistent))
    return fail("the partial result is damaged");
  return partial;
}

std::string EncodeEvents(const Partial& partial) {
  Encoder body;
  body(static_cast<uint64_t>(partial.ranks.size()));
  for (const RankSummary& rank : partial.ranks)
    body(rank.file_number, rank.part, rank.page);
  return body.Take();
}

std::optional<Partial> DecodeEvents(std::string_view bytes) {
  Partial partial;
  Decoder body(bytes);
  uint64_t ranks = 0;
  body(ranks);
  for (uint64_t i = 0; i < ranks && body.ok(); ++i) {
    RankSummary& rank = partial.ranks.emplace_back();
    body(rank.file_number, rank.part, rank.page);
    if (!AreConsistent(rank.page)) return std::nullopt;
  }
  if (!body.ok() || !body.at_end()) return std::nullopt;
  return partial;
}

RankSummary SelectGroups(const RankSummary& rank,
                         const std::vector<bool>& groups) {
  RankSummary out;
  out.file = rank.file;
  out.error = rank.error;
  out.file_number = rank.file_number;
  out.part = rank.part;
  out.is_position = rank.is_position;
  out.rank = rank.rank;
  out.world_size = rank.world_size;
  out.devices = rank.devices;
  out.first_ns = rank.first_ns;
  out.events = rank.events;
  out.input_bytes = rank.input_bytes;
  out.losses = rank.losses;
  out.groups = rank.groups;
  out.steps = rank.steps;
  std::vector<bool> used(rank.texts.size());
  const auto use = [&](uint32_t text) { used[text] = true; };
  for (const GroupName& g : rank.groups) {
    use(g.name);
    use(g.ranks);
    use(g.description);
  }
  for (const Call& c : rank.calls) {
    if (!groups[c.group]) continue;
    use(c.name);
    use(c.dtype);
    use(c.in_split);
    use(c.out_split);
    for (const WorkItem& item : c.device) use(item.name);
    for (const WorkItem& item : c.host) use(item.name);
    out.calls.push_back(c);
  }
  if (out.calls.empty()) {
    out.stats = rank.stats;
    for (const CallStats& s : out.stats) {
      for (const uint32_t t :
           {s.group, s.ranks, s.name, s.dtype, s.in_split, s.out_split})
        use(t);
    }
  }
  // Texts keep their numbers; those not used become empty.
  out.texts.resize(rank.texts.size());
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) out.texts[i] = rank.texts[i];
  }
  return out;
}

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
