// SPDX-License-Identifier: Apache-2.0
#include "findings/ranks.h"

#include <algorithm>
#include <fmt/core.h>

namespace lamina::findings {
namespace {

// The better-known state of a rule over ranks: one that looked counts.
int Weight(State state) {
  switch (state) {
    case State::kFound:
      return 4;
    case State::kSuppressed:
      return 3;
    case State::kSilent:
      return 2;
    case State::kFailed:
      return 1;
    case State::kAbstained:
      return 0;
  }
  return 0;
}

}  // namespace

Diagnosis JoinRanks(std::vector<std::pair<int64_t, Diagnosis>> ranks,
                    Diagnosis job, const Options& options) {
  const auto asked = [&](const Rule* rule) {
    return options.only.empty() || options.only.contains(rule->id);
  };
  const auto count = static_cast<int64_t>(ranks.size());
  Diagnosis out;
  out.rules = ranks[0].second.rules;
  struct Seen {
    size_t at = 0;
    int64_t largest_ns = 0;
    int64_t ranks = 0;
  };
  std::map<std::string, Seen> seen;
  std::map<std::string, uint32_t> device_of;  // the first, by rank
  for (auto& [rank, d] : ranks) {
    const auto first_device = static_cast<uint32_t>(out.device_names.size());
    device_of.emplace(fmt::format("rank {}", rank), first_device);
    for (const std::string& name : d.device_names)
      out.device_names.push_back(fmt::format("rank {} {}", rank, name));
    out.window_ns += d.window_ns / count;
    out.idle_ns += d.idle_ns;
    out.owned_idle_ns += d.owned_idle_ns;
    out.busy_ns += d.busy_ns;
    for (Finding& f : d.findings) {
      if (!asked(f.rule)) continue;
      for (auto* claims : {&f.spans, &f.top}) {
        for (Claim& claim : *claims) claim.device += first_device;
      }
      f.what = fmt::format("Rank {}: {}", rank, f.what);
      const auto [it, is_new] = seen.try_emplace(f.id);
      Seen& known = it->second;
      ++known.ranks;
      if (is_new) {
        known.at = out.findings.size();
        known.largest_ns = f.gain_ns;
        out.findings.push_back(std::move(f));
        continue;
      }
      Finding& into = out.findings[known.at];
      const bool larger = f.gain_ns > known.largest_ns;
      if (larger) {
        known.largest_ns = f.gain_ns;
        std::swap(into.what, f.what);
        std::swap(into.spans, f.spans);
        std::swap(into.top, f.top);
        std::swap(into.values, f.values);
        std::swap(into.confidence, f.confidence);
        std::swap(into.reason, f.reason);
      }
      into.gain_ns += f.gain_ns;
      into.gain_low_ns += f.gain_low_ns;
      into.gain_high_ns += f.gain_high_ns;
      into.gain_after_ns += f.gain_after_ns;
      into.open_ns += f.open_ns;
      into.owned_ns += f.owned_ns;
      into.claims += f.claims;
      into.suppressed = into.suppressed && f.suppressed;
    }
    for (const RuleRun& run : d.runs) {
      if (run.rule->over_ranks) continue;
      const auto same = std::find_if(
          out.runs.begin(), out.runs.end(),
          [&](const RuleRun& known) { return known.rule == run.rule; });
      if (same == out.runs.end()) {
        out.runs.push_back(run);
        continue;
      }
      const int64_t owned = same->owned_ns + run.owned_ns;
      if (Weight(run.state) > Weight(same->state)) *same = run;
      same->owned_ns = owned;
    }
    for (const auto& overlap : d.overlaps) {
      const auto same = std::find_if(
          out.overlaps.begin(), out.overlaps.end(),
          [&](const auto& known) { return known.first == overlap.first; });
      if (same == out.overlaps.end()) {
        out.overlaps.push_back(overlap);
      } else {
        same->second += overlap.second;
      }
    }
  }
  out.runs.insert(out.runs.end(), job.runs.begin(), job.runs.end());
  for (Finding& f : out.findings) {
    const int64_t shown = seen[f.id].ranks;
    for (int64_t* ns : {&f.gain_ns, &f.gain_low_ns, &f.gain_high_ns,
                        &f.gain_after_ns, &f.open_ns})
      *ns /= count;
    f.share = out.window_ns == 0 ? 0
                                 : static_cast<double>(f.gain_ns) /
                                       static_cast<double>(out.window_ns);
    f.what += fmt::format(" On {} of {} ranks.", shown, count);
    const auto least = static_cast<int64_t>(options.min_share *
                                            static_cast<double>(out.window_ns));
    f.small = f.share < options.min_share && f.rule->severity.empty() &&
              f.gain_after_ns < std::max<int64_t>(1, least) &&
              (f.rule->open.empty() || f.open_ns < least);
  }
  // A rank whose trace is damaged makes what all ranks show less sure.
  CapConfidence(out.runs, job.findings);
  std::erase_if(out.runs, [&](const RuleRun& run) { return !asked(run.rule); });
  for (Finding& f : job.findings) {
    for (auto* claims : {&f.spans, &f.top}) {
      for (Claim& claim : *claims) {
        const auto it = device_of.find(job.device_names[claim.device]);
        if (it != device_of.end()) claim.device = it->second;
      }
    }
    out.findings.push_back(std::move(f));
  }
  for (const Finding& f : out.findings) {
    if (f.suppressed) {
      ++out.suppressed;
    } else if (f.small) {
      ++out.small;
    } else {
      out.together_ns += f.gain_ns;
    }
  }
  std::stable_sort(out.findings.begin(), out.findings.end(), Before);
  return out;
}

}  // namespace lamina::findings
