// SPDX-License-Identifier: Apache-2.0
//
// Why this file is long: the columns of eighteen tables, and nothing else.
#include "memory/schemas.h"

namespace lamina::memory {
namespace {

constexpr auto kText = ColumnType::kText;
constexpr auto kInt = ColumnType::kInt;
constexpr auto kReal = ColumnType::kReal;
constexpr auto kBool = ColumnType::kBool;
constexpr auto kTime = ColumnType::kTime;
constexpr auto kBytes = Shown::kBytes;
constexpr auto kHidden = Shown::kHidden;

}  // namespace

const RowColumns<SummaryRow>& SummaryColumns() {
  static const RowColumns<SummaryRow> columns{
      "memory_summary",
      "Peaks of what was requested, allocated (blocks), active (with blocks "
      "that wait for streams) and reserved (with the cache).",
      {{"measure", kText,
        "requested, allocated, active, reserved; viewer: the maximum that "
        "PyTorch's viewer shows.",
        &SummaryRow::measure},
       {"peak_bytes", kInt, "Highest value.", &SummaryRow::peak_bytes, kBytes},
       {"peak_moment", kInt, "After this many events, the first time.",
        &SummaryRow::peak_moment},
       {"peak_time_us", kTime, "When, from the first event.",
        &SummaryRow::peak_time},
       {"at_start_bytes", kInt, "Before the first event.",
        &SummaryRow::at_start_bytes, kBytes},
       {"at_end_bytes", kInt, "After the last event.",
        &SummaryRow::at_end_bytes, kBytes},
       {"at_peak_bytes", kInt, "At the moment that is looked at.",
        &SummaryRow::at_peak_bytes, kBytes}}};
  return columns;
}

const RowColumns<PeakRow>& PeakColumns() {
  static const RowColumns<PeakRow> columns{
      "memory_peak",
      "What is active at the moment that is looked at; with the cache it is "
      "what is reserved.",
      {{"key_kind", kText, "What the rows are.", &PeakRow::key_kind, kHidden},
       {"key", kText, "Of these allocations.", &PeakRow::key},
       {"category", kText, "What they were for.", &PeakRow::category, kHidden},
       {"confidence", kText, "How well that is known, by bytes.",
        &PeakRow::confidence},
       {"bytes", kInt, "Bytes of blocks.", &PeakRow::bytes, kBytes},
       {"percent", kReal, "Share of what is reserved.", &PeakRow::percent,
        Shown::kBar},
       {"requested_bytes", kInt, "Bytes that were asked for.",
        &PeakRow::requested_bytes, kHidden},
       {"rounding_bytes", kInt, "Lost to rounding and unsplit blocks.",
        &PeakRow::rounding_bytes, kBytes},
       {"blocks", kInt, "Blocks; of the cache, its free ranges.",
        &PeakRow::blocks},
       {"largest_bytes", kInt, "The largest block.", &PeakRow::largest_bytes,
        kBytes},
       {"first_event", kInt, "The first event that made one of them.",
        &PeakRow::first_event, kHidden},
       {"fact_bytes", kInt, "Bytes whose category is a fact.",
        &PeakRow::fact_bytes, kHidden},
       {"high_bytes", kInt, "... is known with high confidence.",
        &PeakRow::high_bytes, kHidden},
       {"medium_bytes", kInt, "... with medium confidence.",
        &PeakRow::medium_bytes, kHidden},
       {"low_bytes", kInt, "... with low confidence.", &PeakRow::low_bytes,
        kHidden}}};
  return columns;
}

const RowColumns<SavingRow>& SavingColumns() {
  static const RowColumns<SavingRow> columns{
      "memory_savings",
      "What would lower the peak, each alone and at most: savings "
      "do not add up.",
      {{"change", kText, "What to change.", &SavingRow::change},
       {"where", kText, "Where.", &SavingRow::where},
       {"saves_bytes", kInt, "How much lower the peak is.",
        &SavingRow::saves_bytes, kBytes},
       {"percent", kReal,
        "Share of the peak: of active, or of reserved where the bound says "
        "so.",
        &SavingRow::percent, Shown::kPercent},
       {"new_peak_bytes", kInt, "The peak then.", &SavingRow::new_peak_bytes,
        kBytes},
       {"recompute_bytes", kInt,
        "What is back while one run of the module is recomputed.",
        &SavingRow::recompute_bytes, kBytes},
       {"blocks", kInt, "Blocks taken out.", &SavingRow::blocks},
       {"bound", kText,
        "at most: the true saving is not larger; information: "
        "nothing to change.",
        &SavingRow::bound},
       {"confidence", kText, "How well the blocks are known.",
        &SavingRow::confidence}}};
  return columns;
}

const RowColumns<LeakRow>& LeakColumns() {
  static const RowColumns<LeakRow> columns{
      "memory_leaks",
      "Stacks whose bytes at the ends of steps never fall and mostly grow.",
      {{"line", kText, "Who allocates.", &LeakRow::line},
       {"op", kText, "Op that asked for it.", &LeakRow::op},
       {"stack", kInt, "Number of the stack.", &LeakRow::stack, kHidden},
       {"first_bytes", kInt, "At the end of the first step.",
        &LeakRow::first_bytes, kBytes},
       {"last_bytes", kInt, "At the end of the last step.",
        &LeakRow::last_bytes, kBytes},
       {"bytes_per_step", kReal, "Mean growth.", &LeakRow::bytes_per_step,
        kBytes},
       {"blocks_per_step", kInt, "Usual growth in blocks.",
        &LeakRow::blocks_per_step},
       {"grown_steps", kInt, "Steps in which it grew.", &LeakRow::grown_steps},
       {"steps", kInt, "Steps that were looked at.", &LeakRow::steps},
       {"confidence", kText,
        "high: every step adds as many blocks; medium: all but one.",
        &LeakRow::confidence},
       {"class", kText, "leak; grows: meant to stay.", &LeakRow::class_},
       {"steps_left", kInt, "Steps until the capacity is reached.",
        &LeakRow::steps_left},
       {"category", kText, "What it was for.", &LeakRow::category, kHidden}}};
  return columns;
}

const RowColumns<OutOfMemoryRow>& OutOfMemoryColumns() {
  static const RowColumns<OutOfMemoryRow> columns{
      "memory_oom",
      "Allocations that failed, and why.",
      {{"event", kInt, "Event.", &OutOfMemoryRow::event},
       {"time_us", kTime, "When, from the first event.", &OutOfMemoryRow::time},
       {"asked_bytes", kInt, "Rounded bytes that were asked.",
        &OutOfMemoryRow::asked_bytes, kBytes},
       {"segment_bytes", kInt, "Segment that it would need.",
        &OutOfMemoryRow::segment_bytes, kHidden},
       {"device_free_bytes", kInt, "Free bytes of the driver.",
        &OutOfMemoryRow::device_free_bytes, kBytes},
       {"free_bytes", kInt, "Free in its stream, pool and size class.",
        &OutOfMemoryRow::free_bytes, kBytes},
       {"free_ranges", kInt, "In how many ranges.",
        &OutOfMemoryRow::free_ranges},
       {"largest_free_bytes", kInt, "The largest of them.",
        &OutOfMemoryRow::largest_free_bytes, kBytes},
       {"whole_free_bytes", kInt, "Segments without active blocks.",
        &OutOfMemoryRow::whole_free_bytes, kHidden},
       {"split_free_bytes", kInt, "Free in split segments: stuck.",
        &OutOfMemoryRow::split_free_bytes, kHidden},
       {"cause", kText, "Why it failed.", &OutOfMemoryRow::cause},
       {"line", kText, "Who asked.", &OutOfMemoryRow::line},
       {"category", kText, "Empty: nothing tells.", &OutOfMemoryRow::category,
        kHidden},
       {"text", kText, "The cause in words.", &OutOfMemoryRow::text, kHidden}}};
  return columns;
}

const RowColumns<RoomRow>& RoomColumns() {
  static const RowColumns<RoomRow> columns{
      "memory_room",
      "What would have made room for an allocation that failed.",
      {{"oom_event", kInt, "Event that failed.", &RoomRow::oom_event},
       {"change", kText,
        "free_run: neighbouring blocks of a segment; empty_segments: "
        "the emptiest segments, given back.",
        &RoomRow::change},
       {"line", kText, "Whose blocks.", &RoomRow::line},
       {"category", kText, "What they were for.", &RoomRow::category},
       {"bytes_freed", kInt, "Active bytes that go.", &RoomRow::bytes_freed,
        kBytes},
       {"range_bytes", kInt, "The range that this leaves.",
        &RoomRow::range_bytes, kBytes}}};
  return columns;
}

const RowColumns<FragmentationRow>& FragmentationColumns() {
  static const RowColumns<FragmentationRow> columns{
      "memory_fragmentation",
      "Free space at the moment that is looked at. A request can only use "
      "its own stream, pool and size class.",
      {{"class", kText, "Stream, pool and size class.",
        &FragmentationRow::class_},
       {"reserved_bytes", kInt, "Bytes of segments.",
        &FragmentationRow::reserved_bytes, kBytes},
       {"free_bytes", kInt, "Free bytes in them.",
        &FragmentationRow::free_bytes, kBytes},
       {"free_ranges", kInt, "In how many ranges.",
        &FragmentationRow::free_ranges},
       {"largest_free_bytes", kInt, "The largest range.",
        &FragmentationRow::largest_free_bytes, kBytes},
       {"fragmentation_percent", kReal, "100 (1 - largest / free).",
        &FragmentationRow::fragmentation_percent, Shown::kPercent},
       {"whole_free_bytes", kInt, "Segments that could be given back.",
        &FragmentationRow::whole_free_bytes, kBytes},
       {"split_free_bytes", kInt, "Free, and stuck in used segments.",
        &FragmentationRow::split_free_bytes, kBytes},
       {"rounding_bytes", kInt, "Blocks beyond what was asked.",
        &FragmentationRow::rounding_bytes, kBytes},
       {"unsplit_bytes", kInt, "Of it, blocks that were not split.",
        &FragmentationRow::unsplit_bytes, kHidden},
       {"score", kReal,
        "Squares of the free ranges / square of the reserved bytes, as "
        "PyTorch's viewer prints.",
        &FragmentationRow::score, kHidden}}};
  return columns;
}

const RowColumns<SegmentRow>& SegmentColumns() {
  static const RowColumns<SegmentRow> columns{
      "memory_segments",
      "Segments at the moment that is looked at, most stuck bytes first.",
      {{"address", kText, "Where it begins.", &SegmentRow::address},
       {"stream", kInt, "Its stream.", &SegmentRow::stream, kHidden},
       {"pool", kText, "Private pool; 0,0 is the default one.",
        &SegmentRow::pool, kHidden},
       {"type", kText, "small or large.", &SegmentRow::type},
       {"expandable", kBool, "Whether it can grow.", &SegmentRow::expandable,
        kHidden},
       {"total_bytes", kInt, "Its bytes.", &SegmentRow::total_bytes, kBytes},
       {"active_bytes", kInt, "Active in it.", &SegmentRow::active_bytes,
        kBytes},
       {"requested_bytes", kInt, "Requested in it.",
        &SegmentRow::requested_bytes, kHidden},
       {"blocks", kInt, "Active blocks.", &SegmentRow::blocks},
       {"free_bytes", kInt, "Free in it.", &SegmentRow::free_bytes, kBytes},
       {"free_ranges", kInt, "Free ranges.", &SegmentRow::free_ranges},
       {"largest_free_bytes", kInt, "The largest free range.",
        &SegmentRow::largest_free_bytes, kBytes},
       {"stuck_bytes", kInt, "Free, and not to be given back.",
        &SegmentRow::stuck_bytes, kBytes},
       {"rounding_bytes", kInt, "Lost to rounding.",
        &SegmentRow::rounding_bytes, kHidden},
       {"pinned_by", kText, "Its largest active block.",
        &SegmentRow::pinned_by},
       {"born_event", kInt, "Event that got it; empty: before all.",
        &SegmentRow::born_event, kHidden}}};
  return columns;
}

const RowColumns<PoolRow>& PoolColumns() {
  static const RowColumns<PoolRow> columns{
      "memory_pools",
      "Who pays for streams and private pools, at the moment that is "
      "looked at.",
      {{"stream", kInt, "Stream.", &PoolRow::stream},
       {"pool", kText, "Private pool; 0,0 is the default one.", &PoolRow::pool},
       {"type", kText, "small or large.", &PoolRow::type},
       {"reserved_bytes", kInt, "Reserved.", &PoolRow::reserved_bytes, kBytes},
       {"active_bytes", kInt, "Active.", &PoolRow::active_bytes, kBytes}}};
  return columns;
}

const RowColumns<StepRow>& StepColumns() {
  static const RowColumns<StepRow> columns{
      "memory_steps",
      "Memory by step.",
      {{"step", kInt, "Number.", &StepRow::step},
       {"name", kText, "Name.", &StepRow::name},
       {"start_event", kInt, "First event.", &StepRow::start_event},
       {"end_event", kInt, "Event behind the last one.", &StepRow::end_event},
       {"peak_bytes", kInt, "Highest active.", &StepRow::peak_bytes, kBytes},
       {"end_bytes", kInt, "Active at its end.", &StepRow::end_bytes, kBytes},
       {"delta_bytes", kInt, "More than at its start.", &StepRow::delta_bytes,
        kBytes}}};
  return columns;
}

const RowColumns<AliveRow>& AliveColumns() {
  static const RowColumns<AliveRow> columns{
      "memory_alive",
      "Recorded allocations that were never freed, by line.",
      {{"line", kText, "Who allocated.", &AliveRow::line},
       {"category", kText, "What for.", &AliveRow::category},
       {"bytes", kInt, "Bytes of blocks.", &AliveRow::bytes, kBytes},
       {"blocks", kInt, "Blocks.", &AliveRow::blocks},
       {"oldest_step", kInt, "Step of the oldest one.",
        &AliveRow::oldest_step}}};
  return columns;
}

const RowColumns<AllocationRow>& AllocationColumns() {
  static const RowColumns<AllocationRow> columns{
      "memory_allocations",
      "Allocations that are active at the moment that is looked at, by bytes.",
      {{"id", kInt, "Number of the allocation.", &AllocationRow::id, kHidden},
       {"address", kText, "Where its block begins.", &AllocationRow::address,
        kHidden},
       {"bytes", kInt, "Bytes of its block.", &AllocationRow::bytes, kBytes},
       {"requested_bytes", kInt, "Bytes that were asked for.",
        &AllocationRow::requested_bytes, kBytes},
       {"exact", kBool,
        "Whether the block is in the final state, not replayed.",
        &AllocationRow::exact, kHidden},
       {"start_event", kInt, "Event that made it; empty: before all.",
        &AllocationRow::start_event},
       {"free_event", kInt, "Event that asked for its free.",
        &AllocationRow::free_event, kHidden},
       {"end_event", kInt, "Event after which others can use it.",
        &AllocationRow::end_event},
       {"start_us", kTime, "When, from the first event.", &AllocationRow::start,
        kHidden},
       {"lifetime_us", kTime, "How long it was active.",
        &AllocationRow::lifetime, kHidden},
       {"lifetime_events", kInt, "For how many events it was active.",
        &AllocationRow::lifetime_events},
       {"category", kText, "What it was for.", &AllocationRow::category},
       {"confidence", kText, "How well that is known.",
        &AllocationRow::confidence},
       {"rule", kText, "Rule that says so.", &AllocationRow::rule, kHidden},
       {"op", kText, "Op that asked for it.", &AllocationRow::op},
       {"module", kText, "Calls of modules, file@line of the call.",
        &AllocationRow::module, kHidden},
       {"line", kText, "Line of the program's own code.", &AllocationRow::line},
       {"file", kText, "Path of that line.", &AllocationRow::file, kHidden},
       {"line_number", kInt, "Number of that line.",
        &AllocationRow::line_number, kHidden},
       {"function", kText, "Function of that line.", &AllocationRow::function,
        kHidden},
       {"freed_line", kText, "Line that freed it.", &AllocationRow::freed_line,
        kHidden},
       {"stream", kInt, "Stream of its segment.", &AllocationRow::stream,
        kHidden},
       {"pool", kText, "Private pool; 0,0 is the default one.",
        &AllocationRow::pool, kHidden},
       {"origin", kText, "recorded, or before the recording.",
        &AllocationRow::origin, kHidden},
       {"end_kind", kText,
        "freed; alive or pending in the final state; lost: its free was not "
        "recorded; unknown: neither freed nor in the final state.",
        &AllocationRow::end_kind, kHidden},
       {"step", kInt, "Step in which it was made.", &AllocationRow::step,
        kHidden},
       {"stack", kInt, "Number of its stack; equal numbers, equal stacks.",
        &AllocationRow::stack, kHidden},
       {"compile_context", kText, "Compiled graph, as recorded.",
        &AllocationRow::compile_context, kHidden},
       {"user_metadata", kText, "The user's text, as recorded.",
        &AllocationRow::user_metadata, kHidden},
       {"trace_step", kText, "Step of the joined trace.",
        &AllocationRow::trace_step, kHidden},
       {"trace_thread", kText, "Thread of the joined trace.",
        &AllocationRow::trace_thread, kHidden}}};
  return columns;
}

const RowColumns<TreeRow>& TreeColumns() {
  static const RowColumns<TreeRow> columns{
      "memory_tree",
      "Stacks of what is active, outermost frame first.",
      {{"depth", kInt, "Depth.", &TreeRow::depth},
       {"name", kText, "Frame, or op.", &TreeRow::name},
       {"bytes", kInt, "Bytes of it and below.", &TreeRow::bytes, kBytes},
       {"self_bytes", kInt, "Bytes of it alone.", &TreeRow::self_bytes, kBytes},
       {"blocks", kInt, "Blocks.", &TreeRow::blocks},
       {"percent", kReal, "Share of active.", &TreeRow::percent, Shown::kBar}}};
  return columns;
}

const RowColumns<HealthRow>& HealthColumns() {
  static const RowColumns<HealthRow> columns{
      "memory_health",
      "What the recording holds, lacks and contradicts.",
      {{"check", kText, "What was looked at.", &HealthRow::check},
       {"amount", kInt, "How much of it.", &HealthRow::value},
       {"first_event", kInt, "Where first.", &HealthRow::first_event},
       {"level", kText, "info or warning.", &HealthRow::level},
       {"text", kText, "What it means.", &HealthRow::text}}};
  return columns;
}

const RowColumns<OverTimeRow>& OverTimeColumns() {
  static const RowColumns<OverTimeRow> columns{
      "memory_fragmentation_over_time",
      "Cache and what of it is stuck, over time.",
      {{"moment", kInt, "After this many events.", &OverTimeRow::moment},
       {"time_us", kTime, "When, from the first event.", &OverTimeRow::time},
       {"cached_bytes", kInt, "Reserved and free.", &OverTimeRow::cached_bytes,
        kBytes},
       {"whole_free_bytes", kInt, "In empty segments.",
        &OverTimeRow::whole_free_bytes, kBytes},
       {"stuck_bytes", kInt, "In used ones.", &OverTimeRow::stuck_bytes,
        kBytes}}};
  return columns;
}

const RowColumns<ExplainRow>& ExplainColumns() {
  static const RowColumns<ExplainRow> columns{
      "memory_explain",
      "Why the largest allocation of a line has its category.",
      {{"what", kText, "What.", &ExplainRow::what},
       {"value", kText, "Value.", &ExplainRow::value}}};
  return columns;
}

const RowColumns<SettingRow>& SettingColumns() {
  static const RowColumns<SettingRow> columns{
      "memory_settings",
      "Settings of the allocator.",
      {{"key", kText, "Setting.", &SettingRow::key},
       {"value", kText, "Its value.", &SettingRow::value},
       {"default", kBool, "Whether the file does not say it.",
        &SettingRow::default_}}};
  return columns;
}

const RowColumns<TimelineRow>& TimelineColumns() {
  static const RowColumns<TimelineRow> columns = [] {
    RowColumns<TimelineRow> out{
        "memory_timeline",
        "Memory over time: of each run of events the moment with most active.",
        {{"moment", kInt, "After this many events.", &TimelineRow::moment},
         {"time_us", kTime, "When, from the first event.", &TimelineRow::time},
         {"requested", kInt, "Requested bytes.", &TimelineRow::requested,
          kBytes},
         {"allocated", kInt, "Allocated bytes.", &TimelineRow::allocated,
          kBytes},
         {"active", kInt, "Active bytes.", &TimelineRow::active, kBytes},
         {"reserved", kInt, "Reserved bytes.", &TimelineRow::reserved,
          kBytes}}};
    for (size_t k = 0; k < kCategories; ++k) {
      out.columns.emplace_back(
          CategoryName(static_cast<Category>(k)).data(), kInt,
          "Active bytes of this category.",
          [k](const TimelineRow& row) { return row.categories[k]; }, kHidden);
    }
    return out;
  }();
  return columns;
}

}  // namespace lamina::memory
