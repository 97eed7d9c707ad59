// SPDX-License-Identifier: Apache-2.0

#include "trace/diagnostics.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "base/counted.h"
#include "base/decimal.h"
#include "base/text.h"
#include "trace/losses.h"
#include "trace/repair_times.h"

namespace lamina::trace {

std::string_view EffectName(Effect effect) {
  switch (effect) {
    case Effect::kInfo:
      return "info";
    case Effect::kOddity:
      return "oddity";
    case Effect::kRepaired:
      return "repaired";
    case Effect::kLost:
      return "lost";
  }
  return "info";
}

void Diagnostics::Add(Effect effect, std::string_view reason,
                      std::string_view text, uint64_t offset, uint64_t count,
                      uint64_t bytes) {
  auto it =
      std::find_if(entries_.begin(), entries_.end(),
                   [&](const Diagnostic& d) { return d.reason == reason; });
  if (it == entries_.end()) {
    entries_.push_back(
        {std::string(reason), effect, std::string(text), 0, 0, {}});
    it = std::prev(entries_.end());
  }
  it->count += count;
  it->bytes += bytes;
  if (offset == kNoOffset) return;
  auto& offsets = it->first_offsets;
  offsets.insert(std::upper_bound(offsets.begin(), offsets.end(), offset),
                 offset);
  if (offsets.size() > kMaxOffsets) offsets.pop_back();
}

void Diagnostics::Merge(const Diagnostics& other) {
  for (const Diagnostic& d : other.entries_) {
    Add(d.effect, d.reason, d.text, kNoOffset, d.count, d.bytes);
    for (const uint64_t offset : d.first_offsets)
      Add(d.effect, d.reason, d.text, offset, 0, 0);
  }
}

std::vector<Diagnostic> Diagnostics::Sorted() const {
  std::vector<Diagnostic> out = entries_;
  std::sort(out.begin(), out.end(),
            [](const Diagnostic& a, const Diagnostic& b) {
              if (a.effect != b.effect) return a.effect > b.effect;
              return a.reason < b.reason;
            });
  return out;
}

uint64_t Diagnostics::Count(std::string_view reason) const {
  for (const Diagnostic& d : entries_) {
    if (d.reason == reason) return d.count;
  }
  return 0;
}

uint64_t Diagnostics::lost() const {
  uint64_t sum = 0;
  for (const Diagnostic& d : entries_) {
    if (d.effect == Effect::kLost) sum += d.count;
  }
  return sum;
}

namespace {

constexpr size_t kMostReasons = 3;

// Reasons that readers give for bytes of which nobody knows what they held.
bool IsDamage(const Diagnostic& d) {
  const std::string_view reason = d.reason;
  // All records were read before what follows, or are beside it.
  if (d.text.find("nknown bytes follow") != std::string::npos ||
      reason.starts_with("input_a_value_larger"))
    return false;
  static constexpr std::string_view kReasons[] = {
      "another_database", "file_cut_off", "table_unreadable",
      "table_breaks_off", "rows_damaged", "trace_cut",
      "packet_damaged",   "line_damaged", "plane_damaged"};
  return reason.starts_with("input_") ||
         std::find(std::begin(kReasons), std::end(kReasons), reason) !=
             std::end(kReasons);
}

// "The last record is cut off." as a part of a sentence.
std::string Part(const Diagnostic& d) {
  std::string text = d.text;
  if (text.ends_with('.')) text.pop_back();
  // "JSON" stays as it is.
  if (text.size() > 1 && std::isupper(static_cast<unsigned char>(text[1])) == 0)
    text[0] = LowerCase(text[0]);
  return text + " (" + GroupDigits(static_cast<int64_t>(d.count)) + ")";
}

}  // namespace

Losses FindLosses(const Diagnostics& diagnostics) {
  Losses losses;
  std::vector<Diagnostic> lost = diagnostics.Sorted();
  std::erase_if(lost, [](const Diagnostic& d) {
    return d.effect != Effect::kLost || d.count == 0;
  });
  // What is damaged says more than how many records that was.
  std::stable_sort(lost.begin(), lost.end(),
                   [](const Diagnostic& a, const Diagnostic& b) {
                     const bool x = IsDamage(a), y = IsDamage(b);
                     return x != y ? x : a.count > b.count;
                   });
  for (size_t i = 0; i < lost.size(); ++i) {
    losses.records += lost[i].count;
    losses.damaged |= IsDamage(lost[i]);
    if (i < kMostReasons) {
      losses.reasons += (i > 0 ? "; " : "") + Part(lost[i]);
    }
  }
  if (lost.size() > kMostReasons) {
    losses.reasons +=
        " and " + Counted(lost.size() - kMostReasons, "other reason");
  }
  if (!lost.empty()) losses.first = lost.front().text;
  for (const Doubt& doubt : FindDoubts(diagnostics))
    losses.doubts += (losses.doubts.empty() ? "" : " ") + doubt.text;
  return losses;
}

std::vector<Doubt> FindDoubts(const Diagnostics& diagnostics) {
  static constexpr std::string_view kReasons[] = {
      kImpossibleDuration, kTimeOutlier, kClocksDisagree, kClocksDrift};
  const std::vector<Diagnostic> all = diagnostics.Sorted();
  std::vector<Doubt> doubts;
  for (const std::string_view reason : kReasons) {
    for (const Diagnostic& d : all) {
      if (d.reason == reason && d.count > 0)
        doubts.push_back(
            {reason, d.text.substr(0, d.text.find(kAsRecorded)), d.count});
    }
  }
  return doubts;
}

std::string LossText(const Losses& losses) {
  return Counted(losses.records, "record") + " of the input could not be used";
}

}  // namespace lamina::trace
