// SPDX-License-Identifier: Apache-2.0
//
// All device events of an opened trace, for a page that holds only some of
// them: those in a window as they are or in buckets of time, sums by the rows
// of the tables that count them, and single events by length or start.
//
// Events stand in a file without a name, some 40 bytes each, so that many of
// them need no memory that cannot be taken back. What is kept of a filter is
// bounded. All of it may be asked from many threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/interval_set.h"
#include "base/status.h"
#include "page/device.h"

namespace lamina::page {

using RowTest = std::function<bool(const DeviceRow&)>;

// When to give up.
struct LiveWatch {
  const std::atomic<bool>* stop = nullptr;
  std::chrono::steady_clock::time_point until =
      std::chrono::steady_clock::time_point::max();
};

// Errors: kCancelled, kLimit when it is time to.
Status Looked(const LiveWatch& watch);

// Columns of events: rows + 1 of the tables that count them. Sums can be by
// each.
struct LiveColumn {
  std::string_view name;
  uint32_t DeviceRow::*of;
};
std::span<const LiveColumn> LiveColumns();

class LiveEvents {
 public:
  // `rows` lane by lane, by start, of lanes below `lanes`; `group_of` says the
  // colour group of each family, below `groups`. Errors: kInput when there is
  // no room for the file.
  static Result<std::shared_ptr<LiveEvents>> Make(
      std::span<const DeviceRow> rows, size_t lanes,
      std::vector<uint8_t> group_of, size_t groups, int threads);
  ~LiveEvents();

  size_t size() const { return count_; }
  size_t lanes() const { return lanes_.size(); }
  DeviceRow Row(size_t row) const;
  // The least time that all events lie in; of no events that of no length.
  Interval Span() const;

  // Events that pass a filter.
  class Selection;
  using SelectionPointer = std::shared_ptr<Selection>;
  // All of them for a null test. One of a `key` that was asked for before is
  // kept for a while. `clip`: times count inside of these spans alone.
  Result<SelectionPointer> Select(const std::string& key, const RowTest& test,
                                  IntervalSet clip, const LiveWatch& watch);

  // What Select() keeps of a key, null when it does not.
  SelectionPointer Kept(const std::string& key);

  struct Tile {
    // The events that overlap the window or start in it, by start, if there are
    // at most as many as allowed.
    bool exact = false;
    std::vector<uint32_t> rows;
    std::vector<uint8_t> passes;  // 1 for those that pass the filter
    // Else times inside of buckets of this width, from a multiple of it on,
    // that cover the window: of all events, of those that pass, and the group
    // with most of that time.
    int64_t width_ns = 0;
    int64_t first_ns = 0;
    std::vector<int64_t> busy_ns, pass_ns;
    std::vector<uint8_t> group;
  };
  // At most `columns` buckets and one; at most `most_rows` events.
  Result<Tile> MakeTile(uint32_t lane, Interval window, size_t columns,
                        size_t most_rows, const SelectionPointer& selection,
                        const LiveWatch& watch);

  struct Sum {
    uint64_t events = 0;
    int64_t time_ns = 0;
  };
  struct Sums {
    Sum all;
    std::vector<std::vector<Sum>> by;  // of each column, by its value
  };
  // `columns` of LiveColumns(). Errors: also kLimit when the sums by them would
  // need too much memory.
  Result<Sums> SumUp(std::span<const size_t> columns,
                     const SelectionPointer& selection, const LiveWatch& watch);

  enum class Order { kLongest, kStart };
  struct Found {
    Sum all;                     // in the window; times inside of it
    std::vector<uint32_t> rows;  // in the order asked for
  };
  // The first `limit` rows behind `after` in the order.
  Result<Found> Find(Interval window, Order order, size_t limit,
                     std::optional<uint32_t> after,
                     const SelectionPointer& selection, const LiveWatch& watch);

  // Bytes that filters and buckets take now. They are at most so many, but for
  // those of the last filter.
  uint64_t KeptBytes() const;
  void KeepAtMost(uint64_t bytes) { most_kept_ = bytes; }

 private:
  struct Column {
    const char* at = nullptr;
    int width = 8;
    int64_t operator[](size_t i) const;
  };
  struct Lane {
    size_t begin = 0, end = 0;       // rows
    std::vector<int64_t> block_end;  // last end in each kBlock of its rows
  };
  struct Buckets;

  LiveEvents() = default;
  Status Store(std::span<const DeviceRow> rows);
  int64_t Start(size_t row) const { return start_[row]; }
  int64_t End(size_t row) const { return start_[row] + dur_[row]; }
  size_t FirstStartingAt(const Lane& lane, int64_t t) const;
  // Calls see(row) for each that overlaps the window, by start; stops when it
  // says false.
  template <typename See>
  Status ForWindow(const Lane& lane, Interval window, const LiveWatch& watch,
                   const See& see) const;
  Result<std::shared_ptr<const Buckets>> BucketsOf(uint32_t lane,
                                                   Selection& selection,
                                                   const LiveWatch& watch);
  void Trim();

  size_t count_ = 0;
  int threads_ = 1;
  uint64_t most_kept_ = uint64_t{64} << 20;
  std::vector<Lane> lanes_;
  std::vector<uint8_t> group_of_;
  size_t groups_ = 1;
  char* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
  Column start_, dur_;
  std::vector<Column> columns_;  // those of kColumns
  std::vector<int64_t> most_;    // the greatest value of each

  mutable std::mutex mutex_;  // of what follows
  std::timed_mutex making_;   // one filter is made at a time
  std::vector<std::pair<std::string, SelectionPointer>>
      kept_;  // last used last
};

}  // namespace lamina::page
