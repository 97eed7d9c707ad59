// SPDX-License-Identifier: Apache-2.0
//
// What other analyses know of device work, for the tables of `lamina host` and
// `lamina path`. What is not known leaves cells empty.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace lamina::analysis::host {

// Layers by name, "LlamaDecoderLayer 3", and what work they have.
class WorkLayers {
 public:
  // The work of one more layer; a name may come again, in another pass.
  void Add(const trace::Trace& trace, std::string name,
           std::span<const trace::SliceId> work) {
    if (of_.empty()) of_.assign(trace.device.size(), kNone);
    for (const trace::SliceId s : work)
      of_[trace.slices.detail[s.value]] = static_cast<uint32_t>(names_.size());
    names_.push_back(std::move(name));
  }
  // Nothing for work of no layer. `row`: that of the work's device arguments.
  std::optional<std::string_view> Of(uint32_t row) const {
    if (row >= of_.size() || of_[row] == kNone) return std::nullopt;
    return names_[of_[row]];
  }

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFF;
  std::vector<std::string> names_;
  std::vector<uint32_t> of_;  // by row of device arguments
};

// A collective of this rank beside the same one on the others.
struct RankTimes {
  std::optional<int64_t> wait_ns;      // until the last rank started
  std::optional<int64_t> transfer_ns;  // shortest duration of any rank
};

using RankTimesOf = absl::flat_hash_map<trace::SliceId, RankTimes>;

struct WorkFacts {
  // Time on the chain of last arrivals by row of device arguments; empty: not
  // known.
  std::vector<int64_t> path_ns;
  WorkLayers layers;
  RankTimesOf ranks;

  std::optional<int64_t> PathOf(uint32_t row) const {
    return path_ns.empty() ? std::nullopt : std::optional(path_ns[row]);
  }
};

}  // namespace lamina::analysis::host
