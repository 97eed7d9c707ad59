// SPDX-License-Identifier: Apache-2.0
//
// The partial result: summaries of some of the ranks. Partials are joined in
// any order and any grouping with the same result, travel between processes
// and lie in files; a version and a checksum keep those of another program or
// of a killed one out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "dist/rank_summary.h"
#include "dist/summarize.h"

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

// Partial results in a folder, one per trace. A run that was killed goes on
// where it stopped; many runs, on many machines, may fill one folder together.

class PartialStore {
 public:
  // Makes the folder. `rules_dir` as in LoadOptions: partials that other rules
  // made do not count.
  static Result<PartialStore> Open(const std::string& folder,
                                   const std::string& rules_dir);

  // The summaries of a trace: from the folder, unless the trace or the rules
  // have changed since or the partial is damaged; else made and kept there.
  // Traces that cannot be read are tried again each time.
  std::vector<RankSummary> Load(const std::string& path, uint64_t file_number,
                                const LoadOptions& options) const;

  // Where the partial of a trace lies.
  std::string PathOf(const std::string& path) const;

 private:
  std::string folder_;
  uint64_t rules_ = 0;  // fingerprint
};

// Files of share `share` (from 0) of `shares`: the largest first, dealt out to
// and fro, so that shares are about equal in bytes.
std::vector<size_t> ShareOfFiles(const std::vector<std::string>& files,
                                 size_t share, size_t shares);

}  // namespace lamina::dist
