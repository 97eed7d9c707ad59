// SPDX-License-Identifier: Apache-2.0
//
// Device events folded into rows of a table that a page joins to its events.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace lamina::analysis {

// `Info` is what a row says beside its sums.
template <class Key, class Info>
class DeviceFold {
 public:
  struct Row {
    Info info;
    int64_t kernels = 0;
    int64_t ns = 0;
  };

  explicit DeviceFold(const trace::Trace& trace)
      : trace_(trace), row_of_(trace.device.size()) {}

  // Adds a device event to the row of `key`. Rows stand in the order of their
  // first events, whose `info` they have.
  void Add(trace::SliceId s, const Key& key, Info info) {
    const auto [it, is_new] =
        known_.try_emplace(key, static_cast<uint32_t>(rows_.size()));
    if (is_new) rows_.push_back({std::move(info)});
    Row& row = rows_[it->second];
    ++row.kernels;
    row.ns += trace_.Duration(s);
    row_of_[trace_.slices.detail[s.value]] = it->second + 1;
  }

  const std::vector<Row>& rows() const { return rows_; }
  // By row of device arguments: row + 1 of the event; 0: it is in none.
  std::vector<uint32_t> TakeRowOf() { return std::move(row_of_); }

 private:
  const trace::Trace& trace_;
  std::map<Key, uint32_t> known_;
  std::vector<Row> rows_;
  std::vector<uint32_t> row_of_;
};

}  // namespace lamina::analysis
