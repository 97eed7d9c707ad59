// SPDX-License-Identifier: Apache-2.0
#include "trace/diagnostics.h"

#include <algorithm>

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

}  // namespace lamina::trace
