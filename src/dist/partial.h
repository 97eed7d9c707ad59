// SPDX-License-Identifier: Apache-2.0
//
// The partial result: summaries of some of the ranks. Partials are joined in
// any order and any grouping with the same result, travel between processes
// and lie in files; a version and a checksum keep those of another program or
// of a killed one out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "dist/rank_summary.h"

namespace lamina::dist {

struct Partial {
  std::vector<RankSummary> ranks;  // by number of the file
};

// Adds the ranks of `other`.
void Merge(Partial& partial, Partial&& other);

std::string EncodePartial(const Partial& partial);
// `name` appears in messages. Errors: not a partial, of another version,
// damaged.
Result<Partial> DecodePartial(std::string_view bytes, const std::string& name);

// The events of the ranks alone, between the processes of a run. Nothing for
// other bytes.
std::string EncodeEvents(const Partial& partial);
std::optional<Partial> DecodeEvents(std::string_view bytes);

// The calls of a rank in some of its groups only, with the texts they need.
// Without any call the rest is kept: that is the head of the rank.
RankSummary SelectGroups(const RankSummary& rank,
                         const std::vector<bool>& groups);

}  // namespace lamina::dist
