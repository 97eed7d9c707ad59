// SPDX-License-Identifier: Apache-2.0
//
// What may be said of a replayed kernel, from its match.
#include <algorithm>

#include "compare/cudagraph/annotate.h"
#include "compare/cudagraph/calls.h"

namespace lamina::cudagraph {

using trace::SliceId;

namespace {

// The longest common start of two paths, cut at a separator.
std::string Common(const std::string& a, const std::string& b,
                   std::string_view separator) {
  size_t end = 0;
  for (size_t pos = 0;;) {
    const size_t x = std::min(a.find(separator, pos), a.size());
    const size_t y = std::min(b.find(separator, pos), b.size());
    if (x != y || a.compare(pos, x - pos, b, pos, y - pos) != 0) break;
    end = x;
    if (x == a.size() || y == b.size()) break;
    pos = x + separator.size();
  }
  return a.substr(0, end);
}

}  // namespace

std::vector<std::string> Annotation::OpsByName(const trace::Trace& trace,
                                               SliceId kernel) const {
  const auto it = ops_by_name.find(TokenOfWork(trace, kernel));
  return it == ops_by_name.end() ? std::vector<std::string>() : it->second;
}

const Tags* Annotation::PartnerOf(const Replay& replay, size_t position) const {
  const Match& match = MatchesOf(replay)[position];
  if (match.partner == Match::kNoPartner || replay.segment < 0) return nullptr;
  return &segments[static_cast<size_t>(replay.segment)].launches[match.partner];
}

Tags Annotation::TagsOf(const Replay& replay, size_t position) const {
  if (const Tags* partner = PartnerOf(replay, position)) return *partner;
  const Match& match = MatchesOf(replay)[position];
  if (replay.segment < 0) return {};
  const auto& launches = segments[static_cast<size_t>(replay.segment)].launches;
  if (match.level != Level::kScope) return {};
  const Tags& before = launches[match.before];
  const Tags& after = launches[match.after];
  Tags tags;
  tags.module = Common(before.module, after.module, "/");
  tags.layer = before.layer == after.layer ? before.layer : -1;
  return tags;
}

double Annotation::FactShare() const {
  size_t all = 0;
  size_t facts = 0;
  for (const Replay& replay : replays) {
    for (const Match& match : MatchesOf(replay)) {
      ++all;
      facts += ConfidenceOf(match.level) == Confidence::kFact;
    }
  }
  return all > 0 ? static_cast<double>(facts) / static_cast<double>(all) : 0;
}

}  // namespace lamina::cudagraph
