// SPDX-License-Identifier: Apache-2.0
//
// The frames of Holistic Trace Analysis 0.6.1 (HTA), with its names and its
// rules, which differ from lamina's own: microseconds as doubles, times rounded
// inwards when any has a fraction, links by correlation alone, gaps from the
// event before and not from the latest end, no last step. This folder reads
// the JSON itself, because the rules are about its rows and not about a trace.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lamina/result.h"

namespace lamina::compat::hta {

// "hta" and "hta:exact", which leaves times as they are.
bool IsLayout(std::string_view layout);

// A row of HTA's frame: an event with a duration and a category.
struct Row {
  int64_t index = 0;  // position in traceEvents
  std::string_view name;
  std::string_view category;
  double ts = 0;
  double dur = 0;
  int64_t stream = -1;
  int64_t correlation = -1;
  int64_t link = -1;  // index of the partner; 0: none; -1: no correlation
  double bandwidth = 0;

  double end() const { return ts + dur; }
  bool Gpu() const {
    return (stream >= 0 && correlation >= 0) || name == "Event Sync" ||
           name == "Context Sync";
  }
};

struct Rank {
  int64_t rank = 0;
  std::vector<Row> rows;  // GPU rows first when steps were cut
};

// Texts of rows live as long as this.
class Loaded {
 public:
  // One file, or all traces of a directory as ranks. Errors: a file that cannot
  // be read, is no JSON or has no events with a duration.
  static Result<Loaded> Open(const std::string& path, bool exact);

  Loaded();
  Loaded(Loaded&&) noexcept;
  Loaded& operator=(Loaded&&) noexcept;
  ~Loaded();

  const std::vector<Rank>& ranks() const { return ranks_; }

 private:
  struct Files;
  std::unique_ptr<Files> files_;
  std::vector<Rank> ranks_;
};

// All frames. Temporal breakdown, overlap and kernel types are of all ranks,
// the others of `rank`, or of the first one if it is below 0.
Result<ResultSet> MakeFrames(const Loaded& loaded, int64_t rank);

}  // namespace lamina::compat::hta
