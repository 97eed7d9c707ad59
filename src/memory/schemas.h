// SPDX-License-Identifier: Apache-2.0
//
// Rows of the tables about memory. Times are in nanoseconds; what the columns
// mean stands in schemas.cc.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "memory/attribution.h"
#include "table/row_columns.h"

namespace lamina::memory {

// Rows that other sources of memory events fill, too; times in nanoseconds.
struct SummaryRow {
  std::string_view measure;
  int64_t peak_bytes;
  std::optional<int64_t> peak_moment = {}, peak_time = {};
  std::optional<int64_t> at_start_bytes = {}, at_end_bytes = {};
  std::optional<int64_t> at_peak_bytes = {};
};
const RowColumns<SummaryRow>& SummaryColumns();

struct PeakRow {
  std::string_view key_kind, key;
  std::optional<std::string_view> category = {};
  std::optional<std::string> confidence = {};
  int64_t bytes;
  double percent;
  std::optional<int64_t> requested_bytes = {}, rounding_bytes = {};
  std::optional<size_t> blocks = {};
  std::optional<int64_t> largest_bytes = {}, first_event = {};
  int64_t fact_bytes = 0, high_bytes = 0, medium_bytes = 0, low_bytes = 0;
};
// Tables of this form have names of their own.
const RowColumns<PeakRow>& PeakColumns();

struct SavingRow {
  std::string_view change, where;
  int64_t saves_bytes;
  double percent;
  int64_t new_peak_bytes;
  std::optional<int64_t> recompute_bytes;
  size_t blocks;
  std::string_view bound, confidence;
};
const RowColumns<SavingRow>& SavingColumns();

struct LeakRow {
  std::string_view line, op;
  uint32_t stack;
  int64_t first_bytes, last_bytes;
  double bytes_per_step;
  int64_t blocks_per_step;
  size_t grown_steps, steps;
  std::string_view confidence, class_;
  std::optional<int64_t> steps_left;
  std::string_view category;
};
const RowColumns<LeakRow>& LeakColumns();

struct OutOfMemoryRow {
  int64_t event;
  std::optional<int64_t> time;
  int64_t asked_bytes, segment_bytes;
  std::optional<int64_t> device_free_bytes;
  int64_t free_bytes;
  size_t free_ranges;
  int64_t largest_free_bytes, whole_free_bytes, split_free_bytes;
  std::string_view cause, line, category, text;
};
const RowColumns<OutOfMemoryRow>& OutOfMemoryColumns();

struct RoomRow {
  int64_t oom_event;
  std::string_view change, line, category;
  int64_t bytes_freed;
  std::optional<int64_t> range_bytes;
};
const RowColumns<RoomRow>& RoomColumns();

struct FragmentationRow {
  std::string_view class_;
  int64_t reserved_bytes, free_bytes;
  size_t free_ranges;
  int64_t largest_free_bytes;
  double fragmentation_percent;
  int64_t whole_free_bytes, split_free_bytes, rounding_bytes, unsplit_bytes;
  double score;
};
const RowColumns<FragmentationRow>& FragmentationColumns();

struct SegmentRow {
  std::string address;
  int64_t stream;
  std::string pool;
  std::string_view type;
  bool expandable;
  int64_t total_bytes, active_bytes, requested_bytes;
  size_t blocks;
  int64_t free_bytes;
  size_t free_ranges;
  int64_t largest_free_bytes, stuck_bytes, rounding_bytes;
  std::string pinned_by;
  std::optional<int64_t> born_event;
};
const RowColumns<SegmentRow>& SegmentColumns();

struct PoolRow {
  int64_t stream;
  std::string_view pool, type;
  int64_t reserved_bytes, active_bytes;
};
const RowColumns<PoolRow>& PoolColumns();

struct StepRow {
  size_t step;
  std::string_view name;
  int64_t start_event, end_event, peak_bytes, end_bytes, delta_bytes;
};
const RowColumns<StepRow>& StepColumns();

struct AliveRow {
  std::string_view line, category;
  int64_t bytes;
  size_t blocks;
  std::optional<int64_t> oldest_step;
};
const RowColumns<AliveRow>& AliveColumns();

struct AllocationRow {
  uint32_t id;
  std::string_view address;
  int64_t bytes, requested_bytes;
  bool exact;
  std::optional<int64_t> start_event, free_event, end_event, start, lifetime;
  int64_t lifetime_events;
  std::string_view category, confidence;
  std::optional<std::string_view> rule;
  std::string_view op, module, line;
  std::optional<std::string_view> file;
  std::optional<int64_t> line_number;
  std::optional<std::string_view> function, freed_line;
  int64_t stream;
  std::string_view pool, origin, end_kind;
  std::optional<int64_t> step;
  uint32_t stack;
  std::optional<std::string_view> compile_context, user_metadata, trace_step,
      trace_thread;
};
const RowColumns<AllocationRow>& AllocationColumns();

struct TreeRow {
  size_t depth;
  std::string_view name;
  int64_t bytes, self_bytes;
  size_t blocks;
  double percent;
};
const RowColumns<TreeRow>& TreeColumns();

struct HealthRow {
  std::string_view check;
  int64_t value;
  std::optional<int64_t> first_event;
  std::string_view level, text;
};
const RowColumns<HealthRow>& HealthColumns();

struct OverTimeRow {
  int64_t moment;
  std::optional<int64_t> time;
  int64_t cached_bytes, whole_free_bytes, stuck_bytes;
};
const RowColumns<OverTimeRow>& OverTimeColumns();

struct ExplainRow {
  std::string_view what, value;
};
const RowColumns<ExplainRow>& ExplainColumns();

struct SettingRow {
  std::string_view key, value;
  bool default_;
};
const RowColumns<SettingRow>& SettingColumns();

struct TimelineRow {
  int64_t moment;
  std::optional<int64_t> time, requested;
  int64_t allocated;
  std::optional<int64_t> active, reserved;
  std::array<int64_t, kCategories> categories;
};
// With a column for each category.
const RowColumns<TimelineRow>& TimelineColumns();

}  // namespace lamina::memory
