// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/log.h"

#include <cmath>
#include <fmt/format.h>
#include <map>

#include "base/byte_source.h"
#include "base/decimal.h"
#include "base/text.h"

namespace lamina::graph {
namespace {

constexpr size_t kMaxLog = size_t{1} << 30;

// Without escape sequences (ESC [ ... letter).
void StripColors(std::string_view line, std::string& out) {
  out.clear();
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      if (line[i] != '\r') out.push_back(line[i]);
      continue;
    }
    if (i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && (line[i] < '@' || line[i] > '~')) ++i;
    }
  }
}

// The text between `key` and the next delimiter; empty when absent.
std::string_view After(std::string_view text, std::string_view key,
                       std::string_view stop = ",] |()") {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find_first_of(stop));
}

std::optional<int64_t> Seconds(std::string_view text) {
  if (!text.empty() && text.back() == 's') text.remove_suffix(1);
  const auto seconds = ParseDouble(text);
  if (!seconds || !(std::fabs(*seconds) < 1e9)) return std::nullopt;
  return static_cast<int64_t>(std::llround(*seconds * 1e9));
}

class Reader {
 public:
  explicit Reader(TransformLog& log) : log_(log) {}

  void Line(std::string_view line, uint32_t number) {
    const int64_t rank = ParseInt(After(line, "[RANK ")).value_or(-1);
    const size_t at = line.find("[stage=");
    if (at == std::string_view::npos) {
      Message(line, rank);
      return;
    }
    const std::string_view stage = After(line.substr(at), "[stage=");
    const std::string_view transform = After(line.substr(at), "transform=");
    const size_t end = line.find(']', at);
    if (transform.empty() || end == std::string_view::npos) return;
    std::string_view rest = line.substr(end + 1);
    const size_t text = rest.find_first_not_of(' ');
    rest.remove_prefix(text == std::string_view::npos ? rest.size() : text);
    if (!first_rank_) first_rank_ = rank;
    if (rank != *first_rank_) {
      if (Starts(rest, "[SUMMARY]") || Starts(rest, "enabled="))
        ++log_.other_ranks;
      return;
    }
    if (Starts(rest, "[SUMMARY]")) {
      Newer(stage, transform, rest.substr(9), number);
    } else if (Starts(rest, "enabled=")) {
      Older(stage, transform, rest, number);
    } else if (Starts(rest, "elapsed time:")) {
      LogEntry* const last = Last(transform);
      if (last != nullptr && !last->total_ns)
        last->total_ns = Seconds(After(rest, "total="));
    } else {
      Message(line, rank);
    }
  }

 private:
  static bool Starts(std::string_view text, std::string_view head) {
    return text.substr(0, head.size()) == head;
  }

  LogEntry& Add(std::string_view stage, std::string_view transform,
                uint32_t number) {
    LogEntry entry;
    entry.stage = stage;
    entry.transform = transform;
    entry.line = number;
    std::vector<size_t>& same = by_name_[entry.transform];
    entry.occurrence = static_cast<uint32_t>(same.size());
    same.push_back(log_.entries.size());
    // A message in front of its entry explains it.
    const auto pending = pending_.find(entry.transform);
    if (pending != pending_.end()) {
      entry.message = pending->second;
      pending_.erase(pending);
    }
    log_.entries.push_back(std::move(entry));
    return log_.entries.back();
  }

  LogEntry* Last(std::string_view transform) {
    const auto found = by_name_.find(transform);
    if (found == by_name_.end() || found->second.empty()) return nullptr;
    return &log_.entries[found->second.back()];
  }

  void SetCount(LogEntry& entry, std::optional<int64_t> count) {
    entry.status = count ? TransformStatus::kApplied : TransformStatus::kFailed;
    entry.matches = count;
    if (Contains(entry.message, " failed")) {
      entry.status = TransformStatus::kFailed;
      entry.matches.reset();
    }
  }

  void Newer(std::string_view stage, std::string_view transform,
             std::string_view rest, uint32_t number) {
    LogEntry& entry = Add(stage, transform, number);
    entry.total_ns = Seconds(After(rest, "time: "));
    if (Contains(rest, "disabled")) {
      entry.status = TransformStatus::kDisabled;
    } else if (Contains(rest, "skipped")) {
      entry.status = TransformStatus::kSkipped;
      entry.matches = 0;
    } else {
      SetCount(entry, ParseInt(After(rest, "matches=")));
    }
  }

  void Older(std::string_view stage, std::string_view transform,
             std::string_view rest, uint32_t number) {
    LogEntry& entry = Add(stage, transform, number);
    const std::string_view shapes = After(rest, "has_valid_shapes=");
    if (!shapes.empty()) entry.has_valid_shapes = shapes == "True";
    if (After(rest, "enabled=") == "False") {
      entry.status = TransformStatus::kDisabled;
    } else if (After(rest, "skipped=") == "True") {
      entry.status = TransformStatus::kSkipped;
      entry.matches = 0;
    } else {
      SetCount(entry, ParseInt(After(rest, "num_matches=")));
    }
  }

  // "Transform T failed: why", "Skipping T ...", "Falling back ...": belongs
  // to the transform that it names.
  void Message(std::string_view line, int64_t rank) {
    if (first_rank_ && rank != *first_rank_) return;
    std::string_view transform = After(line, "transform=");
    const size_t failed = line.find("Transform ");
    const bool fails = failed != std::string_view::npos &&
                       Contains(line.substr(failed), " failed");
    if (!fails && !Contains(line, "Skipping ") &&
        !Contains(line, "Falling back"))
      return;
    std::string_view text = line;
    if (fails) {
      text = line.substr(failed);
      transform = After(text, "Transform ", " ");
    } else if (transform.empty()) {
      transform = After(line, "Skipping ", " :,.");
    } else {
      text = line.substr(line.find(']', line.find("transform=")) + 1);
      if (Starts(text, " ")) text.remove_prefix(1);
    }
    LogEntry* const last = Last(transform);
    if (fails && last != nullptr && last == &log_.entries.back()) {
      last->status = TransformStatus::kFailed;
      last->matches.reset();
      last->message = text;
    } else {
      pending_[std::string(transform)] = text;
    }
  }

  TransformLog& log_;
  std::map<std::string, std::vector<size_t>, std::less<>> by_name_;
  std::map<std::string, std::string, std::less<>> pending_;
  std::optional<int64_t> first_rank_;
};

}  // namespace

std::string_view Name(TransformStatus status) {
  switch (status) {
    case TransformStatus::kApplied:
      return "applied";
    case TransformStatus::kSkipped:
      return "skipped";
    case TransformStatus::kDisabled:
      return "disabled";
    case TransformStatus::kFailed:
      return "failed";
  }
  return {};
}

const LogEntry* TransformLog::Find(std::string_view transform,
                                   uint32_t occurrence) const {
  for (const LogEntry& entry : entries) {
    if (entry.transform == transform && entry.occurrence == occurrence)
      return &entry;
  }
  return nullptr;
}

Result<TransformLog> ParseTransformLog(std::string name,
                                       std::string_view text) {
  TransformLog log;
  log.name = std::move(name);
  Reader reader(log);
  std::string line;
  uint32_t number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    ++number;
    StripColors(text.substr(0, end), line);
    reader.Line(line, number);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  if (log.entries.empty()) {
    return Fail(InputError(
        log.name, "no line of a transform in it",
        "expected lines like '[stage=S, transform=T] [SUMMARY] matches=N'"));
  }
  return log;
}

Result<TransformLog> ReadTransformLog(const std::string& path) {
  LAMINA_ASSIGN(const std::string text, ReadAll(path, kMaxLog));
  return ParseTransformLog(path, text);
}

std::string SummaryLine(const LogEntry& entry, const PassTime& time) {
  std::string line = fmt::format("[stage={}, transform={}] [SUMMARY] ",
                                 entry.stage, entry.transform);
  if (entry.status == TransformStatus::kDisabled) return line + "disabled";
  line += entry.status == TransformStatus::kApplied
              ? fmt::format("matches={}", entry.matches.value_or(0))
              : std::string(Name(entry.status));
  const auto seconds = [](int64_t ns) { return static_cast<double>(ns) / 1e9; };
  return line + fmt::format(
                    " | time: {:.3f}s (pre={:.3f}s, apply={:.3f}s, "
                    "post={:.3f}s)",
                    seconds(time.pre_ns + time.apply_ns + time.post_ns),
                    seconds(time.pre_ns), seconds(time.apply_ns),
                    seconds(time.post_ns));
}

}  // namespace lamina::graph
