// SPDX-License-Identifier: Apache-2.0
#include "runstore/record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <fstream>
#include <new>
#include <sodium.h>
#include <zstd.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/packed.h"
#include "base/text.h"
#include "compare/runs/match.h"

namespace lamina::runstore {
namespace {

using runs::Context;
using runs::Unit;
using runs::Units;

// Units of one class that are kept: a sample of 2,000 has the quantiles of a
// million to 1 %.
constexpr size_t kMostUnits = 2000;

std::string Hex(const unsigned char* bytes, size_t size) {
  std::string out(2 * size + 1, '\0');
  sodium_bin2hex(out.data(), out.size(), bytes, size);
  out.pop_back();
  return out;
}

// --- units ---

ClassTimes TimesOf(const std::vector<const Unit*>& units,
                   runs::Measure measure) {
  std::vector<int64_t> times;
  double sum = 0;
  for (const Unit* unit : units) {
    times.push_back(unit->Time(measure));
    sum += static_cast<double>(times.back());
  }
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<size_t>(
        std::lround(share * static_cast<double>(times.size() - 1)))];
  };
  const size_t n = times.size();
  return {n, at(0.1), (times[(n - 1) / 2] + times[n / 2]) / 2, at(0.9),
          sum / static_cast<double>(n)};
}

void KeepUnits(const runs::Matching& matching, Record& record) {
  Units& out = record.units;
  out.settled = true;
  const auto keep = [&](const Unit& unit, std::string_view left_out) {
    Unit& kept = out.units.emplace_back(unit);
    kept.context = nullptr;
    kept.work.clear();
    kept.left_out = left_out;
    kept.start_ns -= unit.context->trace.first_ns;
  };
  for (const runs::MatchedClass& one : matching.classes) {
    const auto& units = one.matched[0];
    const size_t n = std::min(units.size(), kMostUnits);
    for (size_t i = 0; i < n; ++i) keep(*units[i * units.size() / n], "");
    ClassRecord& of_class = record.classes.emplace_back();
    of_class.phase = one.phase;
    of_class.name = one.name;
    of_class.unit = TimesOf(units, runs::Measure::kUnit);
    of_class.kernel_time = TimesOf(units, runs::Measure::kKernelTime);
    of_class.busy = TimesOf(units, runs::Measure::kBusy);
    of_class.share = one.share;
  }
  size_t left = 0;
  for (const runs::LeftOut& one : matching.left_out) {
    if (++left > kMostUnits) break;
    keep(*one.unit, one.reason);
    const auto same = [&](const ClassRecord& of_class) {
      return of_class.phase == one.unit->phase &&
             of_class.name == one.unit->load_name;
    };
    const auto found =
        std::find_if(record.classes.begin(), record.classes.end(), same);
    if (found != record.classes.end()) {
      ++found->left_out;
      continue;
    }
    ClassRecord& of_class = record.classes.emplace_back();
    of_class.phase = one.unit->phase;
    of_class.name = one.unit->load_name;
    of_class.left_out = 1;
  }
  std::stable_sort(
      out.units.begin(), out.units.end(),
      [](const Unit& x, const Unit& y) { return x.number < y.number; });
}

// --- bytes ---

void PutNumber(uint64_t n, std::string& out) {
  for (; n >= 128; n >>= 7) out += static_cast<char>(128 | (n & 127));
  out += static_cast<char>(n);
}
// Small numbers of either sign are short.
uint64_t Folded(int64_t n) {
  return static_cast<uint64_t>(n) << 1 ^ static_cast<uint64_t>(n >> 63);
}
int64_t Unfolded(uint64_t n) {
  return static_cast<int64_t>(n >> 1) ^ -static_cast<int64_t>(n & 1);
}

class NumberReader {
 public:
  explicit NumberReader(std::string_view bytes) : bytes_(bytes) {}
  uint64_t Next() {
    uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) {
        failed_ = true;
        return 0;
      }
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      out |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return out;
    }
    failed_ = true;
    return 0;
  }
  bool ok() const { return !failed_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool failed_ = false;
};

constexpr std::string_view kReasons[] = {"", "partial_first", "partial_last",
                                         "warmup", "other"};

uint64_t ReasonNumber(std::string_view reason) {
  const auto found =
      std::find(std::begin(kReasons), std::end(kReasons) - 1, reason);
  return static_cast<uint64_t>(found - std::begin(kReasons));
}

// The fields of a unit, each as far from that of the unit before. One list for
// both ways.
template <class Field>
void EachField(Unit& unit, const Field& field) {
  const auto optional = [&](std::optional<int64_t>& value) {
    constexpr int64_t kMost = int64_t{1} << 62;
    int64_t coded = value ? std::clamp<int64_t>(*value, 0, kMost) + 1 : 0;
    field(coded);
    value = coded <= 0 ? std::nullopt : std::optional(coded - 1);
  };
  auto number = static_cast<int64_t>(unit.number);
  auto events = static_cast<int64_t>(unit.events);
  field(number);
  field(unit.start_ns);
  field(unit.unit_ns);
  field(unit.kernel_ns);
  field(unit.busy_ns);
  field(events);
  optional(unit.tokens);
  optional(unit.load.generating);
  optional(unit.load.generating_context);
  unit.number = static_cast<size_t>(number);
  unit.events = static_cast<size_t>(events);
}
constexpr size_t kFields = 9;

// --- the commit ---

// The first line of a small file; empty: none.
std::string FirstLine(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  constexpr size_t kLongest = 1000;
  for (char c = 0; line.size() < kLongest && file.get(c) && c != '\n';)
    line += c;
  return line;
}

bool IsCommit(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// What a reference like refs/heads/main stands for.
std::string CommitOf(const std::filesystem::path& git,
                     const std::string& reference) {
  // Work trees beside the first share its references.
  std::filesystem::path common = git;
  if (const std::string line = FirstLine(git / "commondir"); !line.empty())
    common = git / line;
  for (const auto& folder : {git, common}) {
    if (std::string line = FirstLine(folder / reference); IsCommit(line))
      return line;
  }
  std::ifstream packed(common / "packed-refs");
  for (std::string line; std::getline(packed, line);) {
    const size_t space = line.find(' ');
    if (space != std::string::npos && line.substr(space + 1) == reference &&
        IsCommit(line.substr(0, space)))
      return line.substr(0, space);
  }
  return {};
}

void AddGitTags(const std::string& path, Tags& tags) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(path, error);
  if (error) return;
  constexpr int kDeepest = 64;
  for (int i = 0; i < kDeepest && folder.has_relative_path(); ++i) {
    folder = folder.parent_path();
    std::filesystem::path git = folder / ".git";
    if (!std::filesystem::exists(git, error)) continue;
    if (std::filesystem::is_regular_file(git, error)) {
      const std::string line = FirstLine(git);
      constexpr std::string_view kWord = "gitdir: ";
      if (!line.starts_with(kWord)) return;
      git = folder / line.substr(kWord.size());
    }
    const std::string head = FirstLine(git / "HEAD");
    constexpr std::string_view kRef = "ref: ", kHeads = "refs/heads/";
    std::string commit = head;
    if (head.starts_with(kRef)) {
      const std::string reference = head.substr(kRef.size());
      if (Contains(reference, "..") || reference.starts_with('/')) return;
      if (reference.starts_with(kHeads))
        tags.emplace("branch", reference.substr(kHeads.size()));
      commit = CommitOf(git, reference);
    }
    if (IsCommit(commit)) tags.emplace("commit", commit);
    return;
  }
}

}  // namespace

Tags CommitTags(const std::string& path) {
  // Variables of GitHub, GitLab, Jenkins and Buildkite.
  constexpr std::pair<const char*, const char*> kVariables[] = {
      {"GITHUB_SHA", "commit"},      {"CI_COMMIT_SHA", "commit"},
      {"GIT_COMMIT", "commit"},      {"BUILDKITE_COMMIT", "commit"},
      {"GITHUB_REF_NAME", "branch"}, {"CI_COMMIT_REF_NAME", "branch"},
      {"GIT_BRANCH", "branch"},      {"BUILDKITE_BRANCH", "branch"},
      {"GITHUB_RUN_ID", "job"},      {"CI_JOB_ID", "job"},
      {"BUILD_TAG", "job"},          {"BUILDKITE_JOB_ID", "job"},
  };
  Tags tags;
  for (const auto& [variable, name] : kVariables) {
    const char* const value = std::getenv(variable);
    if (value != nullptr && *value != '\0') tags.emplace(name, value);
  }
  AddGitTags(path, tags);
  return tags;
}

Result<std::string> ContentOf(const std::vector<std::string>& files) {
  if (sodium_init() < 0)
    return Fail(InputError("libsodium", "cannot be initialised"));
  std::vector<std::string> digests;
  for (const std::string& name : files) {
    std::ifstream file(name, std::ios::binary);
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    std::vector<char> block(size_t{1} << 20);
    while (file) {
      file.read(block.data(), static_cast<std::streamsize>(block.size()));
      crypto_hash_sha256_update(
          &state, reinterpret_cast<const unsigned char*>(block.data()),
          static_cast<uint64_t>(file.gcount()));
    }
    if (!file.eof()) return Fail(InputError(name, "cannot be read"));
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_final(&state, digest);
    digests.push_back(Hex(digest, sizeof(digest)));
  }
  if (digests.size() == 1) return digests.front();
  const std::string all = fmt::format("{}", fmt::join(digests, "\n"));
  unsigned char digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(digest, reinterpret_cast<const unsigned char*>(all.data()),
                     all.size());
  return Hex(digest, sizeof(digest));
}

std::string NameOf(const std::string& path) {
  static constexpr std::string_view kEndings[] = {
      ".gz",      ".zst",    ".zip",      ".json", ".trace", ".pt",
      ".pftrace", ".sqlite", ".nsys-rep", ".db",   ".pb",    ".xplane"};
  std::string name = std::filesystem::path(path).lexically_normal().filename();
  if (name.empty())
    name =
        std::filesystem::path(path).lexically_normal().parent_path().filename();
  for (bool cut = true; cut;) {
    cut = false;
    for (const std::string_view ending : kEndings) {
      if (name.size() <= ending.size() || !name.ends_with(ending)) continue;
      name.resize(name.size() - ending.size());
      cut = true;
    }
  }
  return name;
}

Result<Record> RecordOf(const std::vector<const Context*>& ranks) {
  const Context& first = *ranks.front();
  const trace::Info& info = first.trace.info;
  Record out;
  std::vector<Units> of_rank;
  for (const Context* rank : ranks) {
    LAMINA_ASSIGN(Units units, runs::FindUnits(*rank, true, true));
    of_rank.push_back(std::move(units));
  }
  Units units = runs::SlowestRanks(std::move(of_rank));
  if (units.units.empty()) {
    of_rank.clear();
    for (const Context* rank : ranks) of_rank.push_back(runs::WindowOf(*rank));
    units = runs::SlowestRanks(std::move(of_rank));
  }
  if (units.units.empty())
    return Fail(InputError(info.file, "has no device work"));
  const runs::Matching matching = runs::ClassesOf(units, runs::Measure::kUnit);
  if (matching.classes.empty()) {
    return Fail(InputError(info.file, "has no whole step or pass",
                           "record more of them"));
  }
  LAMINA_ASSIGN(out.account, runs::AccountOf(first, matching));
  std::vector<const Unit*> all;
  for (const runs::MatchedClass& one : matching.classes)
    all.insert(all.end(), one.matched[0].begin(), one.matched[0].end());
  out.type = runs::MainType(all);
  out.basis = units.basis;
  KeepUnits(matching, out);
  out.format = info.format;
  if (info.base_time_ns.value_or(0) > 0)
    out.recorded_ns = *info.base_time_ns + first.trace.first_ns;
  out.model = runs::ModelOf(first);
  if (!info.devices.empty()) out.device = info.devices.front().name;
  out.devices = info.devices.size();
  out.ranks = ranks.size();
  out.world = info.world_size;
  out.environment = runs::EnvironmentOf(first.trace);
  return out;
}

runs::KeptSide SideOf(Record record) {
  runs::KeptSide out;
  out.units = std::move(record.units);
  out.units.basis = std::move(record.basis);
  out.model = std::move(record.model);
  out.device = std::move(record.device);
  out.type = std::move(record.type);
  if (record.ranks > 1) out.ranks = fmt::format("{} ranks", record.ranks);
  out.parts = std::move(record.account.parts);
  return out;
}

std::string KeyOf(const Record& record) {
  std::string text;
  const auto add = [&](std::string_view word) {
    text += word;
    text += '\n';
  };
  add(record.model);
  add(record.device);
  add(record.type);
  add(std::to_string(record.ranks));
  add(std::to_string(record.world.value_or(0)));
  std::vector<std::string_view> phases;
  for (const ClassRecord& one : record.classes) {
    if (one.unit.units > 0) phases.push_back(runs::PhaseName(one.phase));
  }
  std::sort(phases.begin(), phases.end());
  phases.erase(std::unique(phases.begin(), phases.end()), phases.end());
  for (const std::string_view phase : phases) add(phase);
  for (const char* name : {"model", "config"}) {
    const auto tag = record.tags.find(name);
    add(tag == record.tags.end() ? std::string_view() : tag->second);
  }
  return fmt::format("{:012x}", Fnv1a(text) >> 16);
}

std::string PackUnits(const std::vector<ClassRecord>& classes,
                      const Units& units) {
  std::string numbers;
  PutNumber(units.units.size(), numbers);
  std::array<int64_t, kFields> before{};
  for (Unit unit : units.units) {
    size_t of_class = 0;
    while (of_class < classes.size() &&
           (classes[of_class].phase != unit.phase ||
            classes[of_class].name != unit.load_name))
      ++of_class;
    PutNumber(of_class, numbers);
    PutNumber(ReasonNumber(unit.left_out), numbers);
    size_t field = 0;
    EachField(unit, [&](int64_t& value) {
      PutNumber(
          Folded(static_cast<int64_t>(static_cast<uint64_t>(value) -
                                      static_cast<uint64_t>(before[field]))),
          numbers);
      before[field++] = value;
    });
  }
  std::string out(ZSTD_compressBound(numbers.size()), '\0');
  constexpr int kLevel = 6;
  const size_t size = ZSTD_compress(out.data(), out.size(), numbers.data(),
                                    numbers.size(), kLevel);
  // There is room for any result, so memory is all that can be missing.
  if (ZSTD_isError(size)) throw std::bad_alloc();
  out.resize(size);
  return out;
}

Result<Units> UnpackUnits(const std::vector<ClassRecord>& classes,
                          std::string_view bytes) {
  const auto damaged = [] {
    return Fail(InputError("", "the units of a run are damaged"));
  };
  constexpr uint64_t kMost = uint64_t{64} << 20;
  const uint64_t size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size > kMost) return damaged();  // also of what is no frame
  std::string numbers(size, '\0');
  if (!Unpack(bytes, numbers)) return damaged();
  NumberReader reader(numbers);
  const uint64_t count = reader.Next();
  if (count > size) return damaged();
  Units out;
  out.settled = true;
  std::array<int64_t, kFields> before{};
  for (uint64_t i = 0; i < count; ++i) {
    Unit& unit = out.units.emplace_back();
    const uint64_t of_class = reader.Next();
    const uint64_t reason = reader.Next();
    size_t field = 0;
    EachField(unit, [&](int64_t& value) {
      value =
          static_cast<int64_t>(static_cast<uint64_t>(before[field]) +
                               static_cast<uint64_t>(Unfolded(reader.Next())));
      before[field++] = value;
    });
    if (!reader.ok() || of_class >= classes.size() ||
        reason >= std::size(kReasons) ||
        (reason == 0 && (unit.unit_ns <= 0 || unit.kernel_ns <= 0)))
      return damaged();
    unit.phase = classes[of_class].phase;
    unit.load_name = classes[of_class].name;
    unit.left_out = kReasons[reason];
  }
  if (!reader.at_end()) return damaged();
  return out;
}

}  // namespace lamina::runstore
