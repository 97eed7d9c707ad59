// SPDX-License-Identifier: Apache-2.0
//
// Longer than most: columns of the events, what is kept of a filter, and the
// three questions share one walk over them.
#include "page/live.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/leftovers.h"
#include "base/parallel.h"

namespace lamina::page {
namespace {

constexpr size_t kBlock = 1024;            // rows between looks at ends
constexpr size_t kLook = size_t{1} << 16;  // rows between looks at the watch
constexpr size_t kMostBuckets = 65'536;    // that are kept of a lane
constexpr size_t kEventsPerBucket = 64;
constexpr int64_t kLeastWidth = 1024;  // ns, of buckets that are kept

constexpr LiveColumn kColumns[] = {
    {"lane", &DeviceRow::lane},     {"kernel", &DeviceRow::kernel},
    {"family", &DeviceRow::family}, {"op", &DeviceRow::op},
    {"module", &DeviceRow::module}, {"layer", &DeviceRow::layer},
    {"pass", &DeviceRow::pass},     {"step", &DeviceRow::step},
    {"call", &DeviceRow::call},     {"place", &DeviceRow::place},
    {"graph", &DeviceRow::graph},   {"rule", &DeviceRow::rule}};
constexpr size_t kLane = 0, kFamily = 2;
constexpr uint64_t kMostSumBytes = uint64_t{256} << 20;  // of one question

// Bytes of integers from 0 to `most`.
int WidthOf(int64_t least, int64_t most) {
  if (least < 0 || most > UINT32_MAX) return 8;
  return most > UINT16_MAX ? 4 : most > UINT8_MAX ? 2 : 1;
}

int64_t FloorDivide(int64_t a, int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

int64_t Inside(int64_t start, int64_t end, Interval of) {
  return std::max<int64_t>(
      0, std::min(end, of.end_ns) - std::max(start, of.start_ns));
}

// Writes the file from its begin to its end.
class LiveWriter {
 public:
  explicit LiveWriter(int file) : file_(file) {}
  void Add(int64_t value, int width) {
    const size_t at = buffer_.size();
    buffer_.resize(at + static_cast<size_t>(width));
    std::memcpy(buffer_.data() + at, &value, static_cast<size_t>(width));
    if (buffer_.size() >= kFull) Flush();
  }
  void Flush() {
    for (size_t at = 0; at < buffer_.size() && error_ == 0;) {
      const ssize_t wrote =
          ::write(file_, buffer_.data() + at, buffer_.size() - at);
      if (wrote >= 0)
        at += static_cast<size_t>(wrote);
      else if (errno != EINTR)
        error_ = errno;
    }
    buffer_.clear();
  }
  int error() const { return error_; }

 private:
  static constexpr size_t kFull = size_t{1} << 20;
  const int file_;
  std::string buffer_;
  int error_ = 0;
};

static_assert(std::endian::native == std::endian::little);

// Whoever waits for another one's work still ends when it is told to.
Status WaitFor(std::unique_lock<std::timed_mutex>& lock,
               const LiveWatch& watch) {
  while (!lock.try_lock_for(std::chrono::milliseconds(10)))
    LAMINA_TRY(Looked(watch));
  return {};
}

}  // namespace

Status Looked(const LiveWatch& watch) {
  if (watch.stop != nullptr && watch.stop->load(std::memory_order_relaxed))
    return Fail(CancelledError());
  if (std::chrono::steady_clock::now() > watch.until) {
    Error error = UsageError("the time limit is over",
                             "a shorter window or fewer events need less");
    error.kind = ErrorKind::kLimit;
    return Fail(std::move(error));
  }
  return {};
}

std::span<const LiveColumn> LiveColumns() { return kColumns; }

// Times of a lane in buckets of one width, by group, without empty ones.
struct LiveEvents::Buckets {
  struct Entry {
    uint32_t bucket = 0;  // behind the first one
    uint32_t group = 0;
    int64_t ns = 0;
  };
  int64_t width_ns = 0;
  int64_t first = 0;           // number of the first one from time 0 on
  std::vector<Entry> entries;  // by bucket, group
};

class LiveEvents::Selection {
 public:
  bool all() const { return bits_.empty(); }
  bool Has(size_t row) const {
    return bits_.empty() || (bits_[row / 64] >> (row % 64) & 1) != 0;
  }
  // The part of an event that counts, of that inside of a window.
  int64_t TimeOf(int64_t start, int64_t end, Interval window) const {
    if (clip_.empty()) return Inside(start, end, window);
    int64_t sum = 0;
    for (const Interval& one : clip_.intervals()) {
      sum += Inside(start, end,
                    {std::max(one.start_ns, window.start_ns),
                     std::min(one.end_ns, window.end_ns)});
    }
    return sum;
  }

 private:
  friend class LiveEvents;
  std::vector<uint64_t> bits_;  // empty: all rows
  IntervalSet clip_;            // empty: all of the time
  std::vector<std::shared_ptr<const Buckets>> buckets_;  // by lane
};

int64_t LiveEvents::Column::operator[](size_t i) const {
  switch (width) {
    case 1:
      return static_cast<uint8_t>(at[i]);
    case 2: {
      uint16_t value = 0;
      std::memcpy(&value, at + 2 * i, 2);
      return value;
    }
    case 4: {
      uint32_t value = 0;
      std::memcpy(&value, at + 4 * i, 4);
      return value;
    }
    default: {
      int64_t value = 0;
      std::memcpy(&value, at + 8 * i, 8);
      return value;
    }
  }
}

Result<std::shared_ptr<LiveEvents>> LiveEvents::Make(
    std::span<const DeviceRow> rows, size_t lanes,
    std::vector<uint8_t> group_of, size_t groups, int threads) {
  std::shared_ptr<LiveEvents> events(new LiveEvents);
  events->count_ = rows.size();
  events->threads_ = threads;
  events->group_of_ = std::move(group_of);
  events->groups_ = std::max<size_t>(1, groups);
  events->lanes_.resize(lanes);
  for (size_t begin = 0; begin < rows.size();) {
    Lane& lane = events->lanes_.at(rows[begin].lane);
    size_t end = begin;
    lane.begin = begin;
    while (end < rows.size() && rows[end].lane == rows[begin].lane) {
      if ((end - begin) % kBlock == 0) lane.block_end.push_back(INT64_MIN);
      lane.block_end.back() = std::max(lane.block_end.back(),
                                       rows[end].start_ns + rows[end].dur_ns);
      ++end;
    }
    lane.end = begin = end;
  }
  if (!rows.empty()) LAMINA_TRY(events->Store(rows));
  return events;
}

Status LiveEvents::Store(std::span<const DeviceRow> rows) {
  columns_.resize(std::size(kColumns) + 1);
  // In the order of the file.
  const auto each = [&](const auto& visit) {
    visit(start_, [](const DeviceRow& row) { return row.start_ns; });
    visit(dur_, [](const DeviceRow& row) { return row.dur_ns; });
    for (size_t i = 0; i < std::size(kColumns); ++i) {
      visit(columns_[i], [of = kColumns[i].of](const DeviceRow& row) {
        return int64_t{row.*of};
      });
    }
    visit(columns_.back(),
          [](const DeviceRow& row) { return int64_t{row.slice.value}; });
  };
  std::vector<int64_t> most_of;
  each([&](Column& to, const auto& get) {
    int64_t least = 0, most = 0;
    for (const DeviceRow& row : rows) {
      const int64_t value = get(row);
      least = std::min(least, value);
      most = std::max(most, value);
    }
    to.width = WidthOf(least, most);
    mapped_bytes_ += static_cast<size_t>(to.width) * rows.size();
    most_of.push_back(most);
  });
  most_.assign(most_of.begin() + 2, most_of.end() - 1);
  LAMINA_ASSIGN(const int number, MakeTemporaryFile());
  const Descriptor file(number);
  LiveWriter writer(file.get());
  each([&](const Column& to, const auto& get) {
    for (const DeviceRow& row : rows) writer.Add(get(row), to.width);
  });
  writer.Flush();
  void* at = MAP_FAILED;
  if (writer.error() == 0) {
    at = ::mmap(nullptr, mapped_bytes_, PROT_READ, MAP_SHARED, file.get(), 0);
    if (at == MAP_FAILED) errno = ENOMEM;
  } else {
    errno = writer.error();
  }
  if (at == MAP_FAILED) {
    return Fail(InputError("a temporary file of events",
                           std::string("cannot be made: ") + strerror(errno),
                           "set TMPDIR to a folder with more room"));
  }
  mapped_ = static_cast<char*>(at);
  const char* next = mapped_;
  each([&](Column& to, const auto&) {
    to.at = next;
    next += static_cast<size_t>(to.width) * rows.size();
  });
  return {};
}

LiveEvents::~LiveEvents() {
  if (mapped_ != nullptr) ::munmap(mapped_, mapped_bytes_);
}

DeviceRow LiveEvents::Row(size_t row) const {
  DeviceRow out;
  out.start_ns = start_[row];
  out.dur_ns = dur_[row];
  for (size_t i = 0; i < std::size(kColumns); ++i)
    out.*kColumns[i].of = static_cast<uint32_t>(columns_[i][row]);
  out.slice = trace::SliceId(static_cast<uint32_t>(columns_.back()[row]));
  return out;
}

Interval LiveEvents::Span() const {
  Interval span{INT64_MAX, INT64_MIN};
  for (const Lane& lane : lanes_) {
    if (lane.begin == lane.end) continue;
    span.start_ns = std::min(span.start_ns, Start(lane.begin));
    for (const int64_t end : lane.block_end)
      span.end_ns = std::max(span.end_ns, end);
  }
  return span.start_ns <= span.end_ns ? span : Interval{0, 0};
}

size_t LiveEvents::FirstStartingAt(const Lane& lane, int64_t t) const {
  size_t low = lane.begin, high = lane.end;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (Start(middle) < t)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

template <typename See>
Status LiveEvents::ForWindow(const Lane& lane, Interval window,
                             const LiveWatch& watch, const See& see) const {
  const size_t last = FirstStartingAt(lane, window.end_ns);
  size_t looked = 0;
  for (size_t block = 0; block < lane.block_end.size(); ++block) {
    const size_t begin = lane.begin + block * kBlock;
    if (begin >= last) break;
    // Nothing of it reaches the window.
    if (lane.block_end[block] < window.start_ns) continue;
    const size_t end = std::min(last, begin + kBlock);
    if ((looked += kBlock) % kLook == 0) LAMINA_TRY(Looked(watch));
    for (size_t row = begin; row < end; ++row) {
      const bool meets =
          End(row) > window.start_ns || Start(row) == window.start_ns;
      if (meets && !see(row)) return {};
    }
  }
  return {};
}

LiveEvents::SelectionPointer LiveEvents::Kept(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto at =
      std::find_if(kept_.begin(), kept_.end(),
                   [&](const auto& one) { return one.first == key; });
  if (at == kept_.end()) return nullptr;
  std::rotate(at, at + 1, kept_.end());
  return kept_.back().second;
}

Result<LiveEvents::SelectionPointer> LiveEvents::Select(
    const std::string& key, const RowTest& test, IntervalSet clip,
    const LiveWatch& watch) {
  if (auto found = Kept(key)) return found;
  // Whoever asks for the same meanwhile waits for it.
  std::unique_lock making(making_, std::defer_lock);
  LAMINA_TRY(WaitFor(making, watch));
  if (auto found = Kept(key)) return found;
  auto made = std::make_shared<Selection>();
  made->clip_ = std::move(clip);
  made->buckets_.resize(lanes_.size());
  if (test) {
    made->bits_.assign(count_ / 64 + 1, 0);
    std::atomic<bool> stopped = false;
    // Parts of whole words: no two threads write to one.
    ParallelRanges(threads_, made->bits_.size(), kLook / 64,
                   [&](size_t begin, size_t end, size_t) {
                     if (stopped || !Looked(watch)) {
                       stopped = true;
                       return;
                     }
                     const size_t last = std::min(count_, end * 64);
                     for (size_t row = begin * 64; row < last; ++row) {
                       if (test(Row(row)))
                         made->bits_[row / 64] |= uint64_t{1} << (row % 64);
                     }
                   });
    if (stopped) {
      LAMINA_TRY(Looked(watch));
      return Fail(CancelledError());
    }
  }
  {
    const std::lock_guard lock(mutex_);
    kept_.emplace_back(key, made);
  }
  Trim();
  return made;
}

uint64_t LiveEvents::KeptBytes() const {
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& [key, one] : kept_) {
    bytes += key.size() + one->bits_.size() * sizeof(uint64_t) +
             one->clip_.intervals().size_bytes() +
             one->buckets_.size() * sizeof(one->buckets_[0]);
    for (const auto& lane : one->buckets_) {
      if (lane != nullptr)
        bytes += lane->entries.capacity() * sizeof(Buckets::Entry);
    }
  }
  return bytes;
}

// Keeps the last one, and others as long as they fit.
void LiveEvents::Trim() {
  while (KeptBytes() > most_kept_) {
    const std::lock_guard lock(mutex_);
    if (kept_.size() < 2) return;
    kept_.erase(kept_.begin());
  }
}

Result<std::shared_ptr<const LiveEvents::Buckets>> LiveEvents::BucketsOf(
    uint32_t number, Selection& selection, const LiveWatch& watch) {
  const auto known = [&] {
    const std::lock_guard lock(mutex_);
    return selection.buckets_[number];
  };
  if (auto found = known()) return found;
  std::unique_lock making(making_, std::defer_lock);
  LAMINA_TRY(WaitFor(making, watch));
  if (auto found = known()) return found;
  const Lane& lane = lanes_[number];
  auto made = std::make_shared<Buckets>();
  const int64_t from = Start(lane.begin);
  int64_t to = from + 1;
  for (const int64_t end : lane.block_end) to = std::max(to, end);
  const auto most = static_cast<int64_t>(
      std::min(kMostBuckets, (lane.end - lane.begin) / kEventsPerBucket + 64));
  made->width_ns = kLeastWidth;
  while ((to - from) / made->width_ns + 2 > most) made->width_ns *= 2;
  const int64_t width = made->width_ns;
  made->first = FloorDivide(from, width);
  const auto count =
      static_cast<size_t>(FloorDivide(to - 1, width) - made->first + 1);
  std::vector<int64_t> time(count * groups_);
  LAMINA_TRY(ForWindow(lane, {INT64_MIN, INT64_MAX}, watch, [&](size_t row) {
    if (!selection.Has(row)) return true;
    const size_t group = group_of_[static_cast<size_t>(columns_[kFamily][row])];
    int64_t bucket = FloorDivide(Start(row), width);
    const int64_t end = End(row);
    for (int64_t at = Start(row); at < end; ++bucket) {
      const int64_t next = std::min(end, (bucket + 1) * width);
      time[static_cast<size_t>(bucket - made->first) * groups_ + group] +=
          next - at;
      at = next;
    }
    return true;
  }));
  for (size_t i = 0; i < time.size(); ++i) {
    if (time[i] == 0) continue;
    made->entries.push_back({static_cast<uint32_t>(i / groups_),
                             static_cast<uint32_t>(i % groups_), time[i]});
  }
  made->entries.shrink_to_fit();
  {
    const std::lock_guard lock(mutex_);
    selection.buckets_[number] = made;
  }
  Trim();
  return made;
}

Result<LiveEvents::Tile> LiveEvents::MakeTile(uint32_t number, Interval window,
                                              size_t columns, size_t most_rows,
                                              const SelectionPointer& selection,
                                              const LiveWatch& watch) {
  Tile tile;
  const Lane& lane = lanes_.at(number);
  tile.exact = true;
  // Those that start in the window are all of it.
  if (FirstStartingAt(lane, window.end_ns) -
          FirstStartingAt(lane, window.start_ns) >
      most_rows) {
    tile.exact = false;
  } else {
    LAMINA_TRY(ForWindow(lane, window, watch, [&](size_t row) {
      tile.exact = tile.rows.size() < most_rows;
      if (!tile.exact) return false;
      tile.rows.push_back(static_cast<uint32_t>(row));
      tile.passes.push_back(selection->Has(row) ? 1 : 0);
      return true;
    }));
  }
  if (tile.exact) return tile;
  tile.rows = {};
  tile.passes = {};
  int64_t width = 1;
  // Counted from multiples of the width on; the last one is not beyond int64
  // even where the length of the window is.
  const auto behind = [&] {
    return FloorDivide(window.end_ns - 1, width) -
           FloorDivide(window.start_ns, width);
  };
  while (behind() > static_cast<int64_t>(columns)) width *= 2;
  tile.width_ns = width;
  const int64_t first = FloorDivide(window.start_ns, width);
  const auto count =
      static_cast<size_t>(FloorDivide(window.end_ns - 1, width) - first + 1);
  tile.first_ns = first * width;
  std::vector<int64_t> time(count * groups_);
  std::vector<int64_t> passing(selection->all() ? 0 : time.size());
  LAMINA_ASSIGN(const auto everything, Select("", nullptr, {}, watch));
  LAMINA_ASSIGN(const auto kept, BucketsOf(number, *everything, watch));
  if (width >= kept->width_ns) {
    const auto add = [&](const Buckets& from, std::vector<int64_t>& to) {
      const int64_t per = width / from.width_ns;
      const int64_t begin = first * per - from.first;
      auto at =
          std::lower_bound(from.entries.begin(), from.entries.end(), begin,
                           [](const Buckets::Entry& one, int64_t bucket) {
                             return int64_t{one.bucket} < bucket;
                           });
      for (; at != from.entries.end(); ++at) {
        const auto bucket = static_cast<size_t>(
            FloorDivide(at->bucket + from.first, per) - first);
        if (bucket >= count) break;
        to[bucket * groups_ + at->group] += at->ns;
      }
    };
    add(*kept, time);
    if (!selection->all()) {
      LAMINA_ASSIGN(const auto of, BucketsOf(number, *selection, watch));
      add(*of, passing);
    }
  } else {
    const Interval whole{tile.first_ns,
                         tile.first_ns + static_cast<int64_t>(count) * width};
    LAMINA_TRY(ForWindow(lane, whole, watch, [&](size_t row) {
      const size_t group =
          group_of_[static_cast<size_t>(columns_[kFamily][row])];
      const bool passes = !selection->all() && selection->Has(row);
      const int64_t end = std::min(End(row), whole.end_ns);
      int64_t at = std::max(Start(row), whole.start_ns);
      for (int64_t bucket = FloorDivide(at, width) - first; at < end;
           ++bucket) {
        const int64_t next = std::min(end, (first + bucket + 1) * width);
        const size_t slot = static_cast<size_t>(bucket) * groups_ + group;
        time[slot] += next - at;
        if (passes) passing[slot] += next - at;
        at = next;
      }
      return true;
    }));
  }
  const auto sum_of = [&](const std::vector<int64_t>& of, size_t bucket) {
    int64_t sum = 0;
    for (size_t g = 0; g < groups_; ++g) sum += of[bucket * groups_ + g];
    return sum;
  };
  const std::vector<int64_t>& shown = selection->all() ? time : passing;
  for (size_t b = 0; b < count; ++b) {
    tile.busy_ns.push_back(sum_of(time, b));
    if (!selection->all()) tile.pass_ns.push_back(sum_of(passing, b));
    const auto at = shown.begin() + static_cast<ptrdiff_t>(b * groups_);
    tile.group.push_back(static_cast<uint8_t>(
        std::max_element(at, at + static_cast<ptrdiff_t>(groups_)) - at));
  }
  if (selection->all()) tile.pass_ns = tile.busy_ns;
  return tile;
}

Result<LiveEvents::Sums> LiveEvents::SumUp(std::span<const size_t> columns,
                                           const SelectionPointer& selection,
                                           const LiveWatch& watch) {
  const auto empty = [&] {
    Sums sums;
    for (const size_t column : columns) {
      sums.by.emplace_back(
          count_ == 0 ? 0 : static_cast<size_t>(most_.at(column)) + 1);
    }
    return sums;
  };
  uint64_t bytes = 1;
  for (const size_t column : columns) {
    if (count_ > 0)
      bytes += (static_cast<uint64_t>(most_.at(column)) + 1) * sizeof(Sum);
  }
  // One of the answer, and one of each thread.
  const uint64_t fit = kMostSumBytes / bytes;
  if (fit < 2) {
    Error error =
        UsageError("sums by so many rows are larger than " +
                       std::to_string(kMostSumBytes >> 20) + " MiB",
                   "ask for sums by fewer columns at a time, or by SQL");
    error.kind = ErrorKind::kLimit;
    return Fail(std::move(error));
  }
  const int threads = static_cast<int>(
      std::min<uint64_t>(static_cast<uint64_t>(threads_), fit - 1));
  Sums total = empty();
  std::atomic<size_t> next = 0;
  std::atomic<bool> stopped = false;
  std::mutex joining;
  RunWorkers(threads, [&](int) {
    Sums own = empty();
    for (size_t begin = 0;
         !stopped && (begin = kLook * next.fetch_add(1)) < count_;) {
      if (!Looked(watch)) {
        stopped = true;
        break;
      }
      const size_t end = std::min(count_, begin + kLook);
      for (size_t row = begin; row < end; ++row) {
        if (!selection->Has(row)) continue;
        const int64_t ns = selection->clip_.empty()
                               ? dur_[row]
                               : selection->TimeOf(Start(row), End(row),
                                                   {INT64_MIN, INT64_MAX});
        ++own.all.events;
        own.all.time_ns += ns;
        for (size_t c = 0; c < columns.size(); ++c) {
          Sum& sum = own.by[c][static_cast<size_t>(columns_[columns[c]][row])];
          ++sum.events;
          sum.time_ns += ns;
        }
      }
    }
    const std::lock_guard lock(joining);
    const auto add = [](Sum& to, const Sum& from) {
      to.events += from.events;
      to.time_ns += from.time_ns;
    };
    add(total.all, own.all);
    for (size_t c = 0; c < columns.size(); ++c) {
      for (size_t i = 0; i < own.by[c].size(); ++i)
        add(total.by[c][i], own.by[c][i]);
    }
  });
  if (stopped) {
    LAMINA_TRY(Looked(watch));
    return Fail(CancelledError());
  }
  return total;
}

Result<LiveEvents::Found> LiveEvents::Find(Interval window, Order order,
                                           size_t limit,
                                           std::optional<uint32_t> after,
                                           const SelectionPointer& selection,
                                           const LiveWatch& watch) {
  if (after && *after >= count_)
    return Fail(UsageError("there is no row to go on behind"));
  Found found;
  const auto before = [&](uint32_t a, uint32_t b) {
    const int64_t x = order == Order::kLongest ? -dur_[a] : Start(a);
    const int64_t y = order == Order::kLongest ? -dur_[b] : Start(b);
    return x != y ? x < y : a < b;
  };
  // A heap with the last of those that are kept on top.
  auto& rows = found.rows;
  for (const Lane& lane : lanes_) {
    LAMINA_TRY(ForWindow(lane, window, watch, [&](size_t at) {
      if (!selection->Has(at)) return true;
      ++found.all.events;
      found.all.time_ns += selection->TimeOf(Start(at), End(at), window);
      const auto row = static_cast<uint32_t>(at);
      if (limit == 0 || (after && !before(*after, row))) return true;
      if (rows.size() == limit) {
        if (!before(row, rows.front())) return true;
        std::pop_heap(rows.begin(), rows.end(), before);
        rows.pop_back();
      }
      rows.push_back(row);
      std::push_heap(rows.begin(), rows.end(), before);
      return true;
    }));
  }
  std::sort_heap(rows.begin(), rows.end(), before);
  return found;
}

}  // namespace lamina::page
