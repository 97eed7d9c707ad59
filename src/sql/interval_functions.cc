// SPDX-License-Identifier: Apache-2.0
//
// Functions over sets of spans of time. A set is the text of a query with the
// columns start_ns and dur_ns and, where wanted, id (to join back) and part
// (spans of different parts never meet: a stream, a device). The query runs on
// the same connection under the same rules. Sweeps over sorted ends,
// O(n log n + rows), in int64.
//
// Why it is longer than 250 lines: eight sweeps that share their reading.
#include <algorithm>
#include <map>
#include <set>

#include "base/interval_set.h"
#include "base/stop.h"
#include "sql/impl.h"

namespace lamina::sql {
namespace {

struct Span {
  int64_t start = 0, end = 0;
  Value id;    // integer, text or null
  Value part;  // the same
};

// Texts of values outlive the inner statement here.
struct Spans {
  std::vector<Span> spans;
  std::vector<std::unique_ptr<std::string>> texts;

  Value Own(const Value& value) {
    if (value.kind() != Value::Kind::kText) return value;
    texts.push_back(std::make_unique<std::string>(value.text()));
    return Value(*texts.back());
  }
};

struct Row {
  int64_t start = 0, dur = 0;
  Value part, id_a, id_b, number;
};
struct Computed {
  std::vector<Row> rows;
  std::vector<std::unique_ptr<std::string>> texts;
};

constexpr int kMaxDepth = 4;

Result<Spans> Read(Database::Impl& impl, const Value& sql) {
  if (sql.kind() != Value::Kind::kText) {
    return Fail(UsageError("a set of spans is the text of a query",
                           "'SELECT uid AS id, start_ns, dur_ns FROM kernel'"));
  }
  if (impl.depth >= kMaxDepth)
    return Fail(UsageError("functions over spans stand 4 deep at most", ""));
  const StopScope none(nullptr);  // nothing may throw through SQLite
  sqlite3_stmt* raw = nullptr;
  const std::string text(sql.text());
  const int code = sqlite3_prepare_v2(impl.db, text.c_str(), -1, &raw, nullptr);
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(
      raw, &sqlite3_finalize);
  if (code != SQLITE_OK || raw == nullptr) {
    return Fail(
        UsageError("in the query of a set of spans: " +
                       std::string(code == SQLITE_OK ? "it is empty"
                                                     : sqlite3_errmsg(impl.db)),
                   "it stands in '...'; a quote inside is doubled"));
  }
  int start = -1, dur = -1, id = -1, part = -1;
  for (int c = 0; c < sqlite3_column_count(raw); ++c) {
    const std::string_view name = sqlite3_column_name(raw, c);
    if (name == "start_ns") start = c;
    if (name == "dur_ns") dur = c;
    if (name == "id" || (name == "uid" && id < 0)) id = c;
    if (name == "part") part = c;
  }
  if (start < 0 || dur < 0) {
    return Fail(
        UsageError("the query of a set of spans has no column " +
                       std::string(start < 0 ? "start_ns" : "dur_ns"),
                   "name it: SELECT time_ns AS start_ns, dur_ns FROM ..."));
  }
  Spans out;
  ++impl.depth;
  int step = SQLITE_ROW;
  while ((step = sqlite3_step(raw)) == SQLITE_ROW) {
    if (sqlite3_column_type(raw, start) == SQLITE_NULL ||
        sqlite3_column_type(raw, dur) == SQLITE_NULL)
      continue;
    Span span;
    span.start = sqlite3_column_int64(raw, start);
    if (__builtin_add_overflow(span.start, sqlite3_column_int64(raw, dur),
                               &span.end) ||
        span.end < span.start)
      continue;
    if (id >= 0) span.id = out.Own(ValueOf(sqlite3_column_value(raw, id)));
    if (part >= 0)
      span.part = out.Own(ValueOf(sqlite3_column_value(raw, part)));
    out.spans.push_back(span);
  }
  --impl.depth;
  if (step != SQLITE_DONE) {
    if (impl.failed) return Fail(*impl.failed);
    return Fail(UsageError("in the query of a set of spans: " +
                               std::string(sqlite3_errmsg(impl.db)),
                           ""));
  }
  std::stable_sort(out.spans.begin(), out.spans.end(),
                   [](const Span& a, const Span& b) {
                     if (const int order = Compare(a.part, b.part); order != 0)
                       return order < 0;
                     return a.start < b.start;
                   });
  return out;
}

// Calls `each(part, spans of it)`; the spans of a part stand together.
template <class F>
void ForEachPart(const std::vector<Span>& spans, F each) {
  for (size_t i = 0; i < spans.size();) {
    size_t j = i;
    while (j < spans.size() && Compare(spans[j].part, spans[i].part) == 0) ++j;
    each(spans[i].part, std::span(spans).subspan(i, j - i));
    i = j;
  }
}

// The spans of the same part in the other set.
std::span<const Span> PartOf(const std::vector<Span>& spans,
                             const Value& part) {
  const auto low = std::partition_point(
      spans.begin(), spans.end(),
      [&](const Span& s) { return Compare(s.part, part) < 0; });
  const auto high = std::partition_point(low, spans.end(), [&](const Span& s) {
    return Compare(s.part, part) == 0;
  });
  return {low, high};
}

// Every pair of spans that overlap, by the start of the overlap.
template <class F>
void ForEachPair(std::span<const Span> a, std::span<const Span> b, F each) {
  // Sweep: spans begun and not ended, of either set.
  std::vector<const Span*> open_a, open_b;
  const auto meet = [&](const Span& now, std::vector<const Span*>& others,
                        bool now_is_a) {
    std::erase_if(others, [&](const Span* s) { return s->end <= now.start; });
    for (const Span* other : others) {
      const int64_t end = std::min(now.end, other->end);
      if (end <= now.start) continue;
      now_is_a ? each(now, *other, now.start, end)
               : each(*other, now, now.start, end);
    }
  };
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j >= b.size() || (i < a.size() && a[i].start <= b[j].start)) {
      meet(a[i], open_b, true);
      if (a[i].end > a[i].start) open_a.push_back(&a[i]);
      ++i;
    } else {
      meet(b[j], open_a, false);
      if (b[j].end > b[j].start) open_b.push_back(&b[j]);
      ++j;
    }
  }
}

IntervalSet SetOf(std::span<const Span> spans) {
  IntervalSet out;
  for (const Span& s : spans) {
    if (s.end > s.start) out.AppendSorted({s.start, s.end});
  }
  return out;
}

const std::vector<ColumnDef>& IntervalColumns() {
  static const std::vector<ColumnDef> columns = {
      {"start_ns", Type::kInt, "Start."},
      {"dur_ns", Type::kInt, "Length."},
      {"part", Type::kInt, "Part, as in the queries."},
      {"id_a", Type::kInt, "id of the span of the first set."},
      {"id_b", Type::kInt, "id of the span of the second set."},
      {"value", Type::kInt,
       "interval_overlap_count: spans that are open; interval_buckets: busy "
       "time in the bucket; interval_flatten: spans around it."}};
  return columns;
}

Result<std::shared_ptr<const Rows>> Finish(std::vector<Row> rows,
                                           std::vector<Spans> sets) {
  using M = Computed;
  M model;
  model.rows = std::move(rows);
  for (Spans& set : sets) {
    for (auto& text : set.texts) model.texts.push_back(std::move(text));
  }
  const size_t count = model.rows.size();
  return std::make_shared<FunctionRows<M>>(
      std::move(model), count,
      FunctionRows<M>::Cells{
          [](const M& m, size_t r) -> Value { return m.rows[r].start; },
          [](const M& m, size_t r) -> Value { return m.rows[r].dur; },
          [](const M& m, size_t r) -> Value { return m.rows[r].part; },
          [](const M& m, size_t r) -> Value { return m.rows[r].id_a; },
          [](const M& m, size_t r) -> Value { return m.rows[r].id_b; },
          [](const M& m, size_t r) -> Value { return m.rows[r].number; }});
}

using Values = std::span<const Value>;
using Answer = Result<std::shared_ptr<const Rows>>;

Result<std::vector<Spans>> ReadSets(Database::Impl& impl, Values args,
                                    size_t count) {
  std::vector<Spans> sets;
  for (size_t i = 0; i < count; ++i) {
    LAMINA_ASSIGN(Spans set, Read(impl, args[i]));
    sets.push_back(std::move(set));
  }
  return sets;
}

Answer Intersect(Database::Impl& impl, Values args) {
  LAMINA_ASSIGN(auto sets, ReadSets(impl, args, 2));
  std::vector<Row> rows;
  ForEachPart(sets[0].spans, [&](const Value& part, std::span<const Span> a) {
    ForEachPair(a, PartOf(sets[1].spans, part),
                [&](const Span& x, const Span& y, int64_t start, int64_t end) {
                  rows.push_back({start, end - start, part, x.id, y.id, {}});
                });
  });
  return Finish(std::move(rows), std::move(sets));
}

// As intersect, and what of a span of the first set nothing overlaps, with a
// null id_b.
Answer LeftIntersect(Database::Impl& impl, Values args) {
  LAMINA_ASSIGN(auto sets, ReadSets(impl, args, 2));
  std::vector<Row> rows;
  ForEachPart(sets[0].spans, [&](const Value& part, std::span<const Span> a) {
    const auto b = PartOf(sets[1].spans, part);
    const size_t first = rows.size();
    ForEachPair(a, b,
                [&](const Span& x, const Span& y, int64_t start, int64_t end) {
                  rows.push_back({start, end - start, part, x.id, y.id, {}});
                });
    const IntervalSet covered = SetOf(b);
    const auto intervals = covered.intervals();
    for (const Span& x : a) {
      int64_t at = x.start;
      auto it = std::partition_point(
          intervals.begin(), intervals.end(),
          [&](const Interval& i) { return i.end_ns <= x.start; });
      for (; it != intervals.end() && it->start_ns < x.end; ++it) {
        if (it->start_ns > at)
          rows.push_back({at, it->start_ns - at, part, x.id, {}, {}});
        at = std::max(at, it->end_ns);
      }
      // One of no length is where it is, when nothing is there.
      if (at < x.end || (x.start == x.end && at == x.start))
        rows.push_back({at, x.end - at, part, x.id, {}, {}});
    }
    std::stable_sort(
        rows.begin() + static_cast<ptrdiff_t>(first), rows.end(),
        [](const Row& l, const Row& r) { return l.start < r.start; });
  });
  return Finish(std::move(rows), std::move(sets));
}

Answer Subtract(Database::Impl& impl, Values args) {
  LAMINA_ASSIGN(auto sets, ReadSets(impl, args, 2));
  std::vector<Row> rows;
  ForEachPart(sets[0].spans, [&](const Value& part, std::span<const Span> a) {
    const IntervalSet covered = SetOf(PartOf(sets[1].spans, part));
    const auto intervals = covered.intervals();
    for (const Span& x : a) {
      int64_t at = x.start;
      auto it = std::partition_point(
          intervals.begin(), intervals.end(),
          [&](const Interval& i) { return i.end_ns <= x.start; });
      for (; it != intervals.end() && it->start_ns < x.end; ++it) {
        if (it->start_ns > at)
          rows.push_back({at, it->start_ns - at, part, x.id, {}, {}});
        at = std::max(at, it->end_ns);
      }
      if (at < x.end) rows.push_back({at, x.end - at, part, x.id, {}, {}});
    }
  });
  return Finish(std::move(rows), std::move(sets));
}

Answer Merged(Database::Impl& impl, Values args) {
  LAMINA_ASSIGN(auto sets, ReadSets(impl, args, 1));
  std::vector<Row> rows;
  ForEachPart(sets[0].spans, [&](const Value& part, std::span<const Span> a) {
    const IntervalSet merged = SetOf(a);
    for (const Interval& i : merged.intervals())
      rows.push_back({i.start_ns, i.length_ns(), part, {}, {}, {}});
  });
  return Finish(std::move(rows), std::move(sets));
}

Answer OverlapCount(Database::Impl& impl, Values args) {
  LAMINA_ASSIGN(auto sets, ReadSets(impl, args, 1));
  std::vector<Row> rows;
  ForEachPart(sets[0].spans, [&](const Value& part, std::span<const Span> a) {
    std::vector<std::pair<int64_t, int64_t>> changes;
    for (const Span& s : a) {
      if (s.end == s.start) continue;
      changes.emplace_back(s.start, 1);
      changes.emplace_back(s.end, -1);
    }
    std::sort(changes.begin(), changes.end());
    int64_t open = 0;
    for (size_t i = 0; i < changes.size();) {
      const int64_t at = changes[i].first;
      for (; i < changes.size() && changes[i].first == at; ++i)
        open += changes[i].second;
      if (i < changes.size())
        rows.push_back({at, changes[i].first - at, part, {}, {}, open});
    }
  });
  return Finish(std::move(rows), std::move(sets));
}

Answer Gaps(Database::Impl& impl, Values args) {
  LAMINA_ASSIGN(auto sets, ReadSets(impl, args, 1));
  std::vector<Row> rows;
  ForEachPart(sets[0].spans, [&](const Value& part, std::span<const Span> a) {
    const IntervalSet busy = SetOf(a);
    if (busy.empty()) return;
    Interval window{busy.intervals().front().start_ns,
                    busy.intervals().back().end_ns};
    if (!args[1].null()) window.start_ns = args[1].integer();
    if (!args[2].null()) window.end_ns = args[2].integer();
    if (window.end_ns <= window.start_ns) return;
    for (const Interval& i : busy.Gaps(window))
      rows.push_back({i.start_ns, i.length_ns(), part, {}, {}, {}});
  });
  return Finish(std::move(rows), std::move(sets));
}

// At every time the span that began last of those open: its own time, as of a
// call stack. Rows of one span are those parts of it.
Answer Flatten(Database::Impl& impl, Values args) {
  LAMINA_ASSIGN(auto sets, ReadSets(impl, args, 1));
  std::vector<Row> rows;
  ForEachPart(sets[0].spans, [&](const Value& part, std::span<const Span> a) {
    // By start and then the longer one first: it stands around the others.
    std::vector<size_t> order(a.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
      if (a[x].start != a[y].start) return a[x].start < a[y].start;
      return a[x].end > a[y].end;
    });
    std::vector<size_t> rank(a.size());
    for (size_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
    std::vector<std::pair<int64_t, size_t>> ends;
    for (size_t i = 0; i < a.size(); ++i) ends.emplace_back(a[i].end, i);
    std::sort(ends.begin(), ends.end());
    std::set<size_t> open;  // ranks
    int64_t at = 0;
    const auto emit = [&](int64_t until) {
      if (!open.empty() && until > at) {
        const Span& top = a[order[*open.rbegin()]];
        rows.push_back({at,
                        until - at,
                        part,
                        top.id,
                        {},
                        static_cast<int64_t>(open.size() - 1)});
      }
      at = until;
    };
    size_t next = 0, over = 0;
    while (next < order.size() || over < ends.size()) {
      if (next < order.size() &&
          (over >= ends.size() || a[order[next]].start < ends[over].first)) {
        emit(a[order[next]].start);
        open.insert(next++);
      } else {
        emit(ends[over].first);
        // A span of no length may end before it began here.
        const size_t ended = rank[ends[over].second];
        if (ended >= next) {
          open.insert(next++);
          continue;
        }
        open.erase(ended);
        ++over;
      }
    }
  });
  return Finish(std::move(rows), std::move(sets));
}

constexpr int64_t kMaxBuckets = 1000000;

Answer Buckets(Database::Impl& impl, Values args) {
  if (args[1].null() || args[2].null() || args[3].null() ||
      args[1].kind() == Value::Kind::kText ||
      args[2].kind() == Value::Kind::kText ||
      args[3].kind() == Value::Kind::kText || args[3].integer() < 1 ||
      args[3].integer() > kMaxBuckets ||
      args[2].integer() <= args[1].integer()) {
    return Fail(
        UsageError("interval_buckets(query, from, to, n): from < to, "
                   "and n from 1 to 1000000",
                   ""));
  }
  const int64_t low = args[1].integer(), high = args[2].integer();
  const int64_t count = args[3].integer();
  LAMINA_ASSIGN(auto sets, ReadSets(impl, args, 1));
  std::vector<Row> rows;
  const auto edge = [&](int64_t i) {
    return low +
           static_cast<int64_t>(static_cast<__int128>(high - low) * i / count);
  };
  ForEachPart(sets[0].spans, [&](const Value& part, std::span<const Span> a) {
    const IntervalSet busy = SetOf(a);
    const auto intervals = busy.intervals();
    auto it = intervals.begin();
    for (int64_t b = 0; b < count; ++b) {
      const int64_t from = edge(b), to = edge(b + 1);
      int64_t sum = 0;
      while (it != intervals.end() && it->end_ns <= from) ++it;
      for (auto k = it; k != intervals.end() && k->start_ns < to; ++k)
        sum += std::min(k->end_ns, to) - std::max(k->start_ns, from);
      rows.push_back({from, to - from, part, {}, {}, sum});
    }
  });
  return Finish(std::move(rows), std::move(sets));
}

}  // namespace

std::span<const TableFunction> IntervalFunctions() {
  static const std::string kKernels =
      "'SELECT uid AS id, start_ns, dur_ns FROM kernel'";
  static const std::string kComms =
      "'SELECT uid AS id, start_ns, dur_ns FROM collective_call'";
  static const std::vector<TableFunction> functions = {
      {"interval_intersect",
       "interval_intersect(a, b)",
       "Where a span of a and one of b overlap: a row per pair.",
       "SELECT sum(dur_ns) FROM interval_intersect(" + kKernels + ", " +
           kComms + ")",
       IntervalColumns(),
       {"query_a", "query_b"},
       2,
       &Intersect},
      {"interval_left_intersect",
       "interval_left_intersect(a, b)",
       "The same, and the rest of the spans of a with a null id_b.",
       "SELECT count(*) FROM interval_left_intersect(" + kKernels + ", " +
           kComms + ") WHERE id_b IS NULL",
       IntervalColumns(),
       {"query_a", "query_b"},
       2,
       &LeftIntersect},
      {"interval_subtract",
       "interval_subtract(a, b)",
       "What of each span of a no span of b overlaps.",
       "SELECT sum(dur_ns) FROM interval_subtract(" + kComms + ", " + kKernels +
           ")",
       IntervalColumns(),
       {"query_a", "query_b"},
       2,
       &Subtract},
      {"interval_merged",
       "interval_merged(a)",
       "The union: spans that overlap or touch are one.",
       "SELECT sum(dur_ns) FROM interval_merged(" + kKernels + ")",
       IntervalColumns(),
       {"query_a"},
       1,
       &Merged},
      {"interval_overlap_count",
       "interval_overlap_count(a)",
       "How many spans are open, between any two changes.",
       "SELECT max(value) FROM interval_overlap_count(" + kKernels + ")",
       IntervalColumns(),
       {"query_a"},
       1,
       &OverlapCount},
      {"interval_gaps",
       "interval_gaps(a[, from_ns, to_ns])",
       "Time that no span covers.",
       "SELECT sum(dur_ns) FROM interval_gaps(" + kKernels + ")",
       IntervalColumns(),
       {"query_a", "from_ns", "to_ns"},
       1,
       &Gaps},
      {"interval_flatten",
       "interval_flatten(a)",
       "The innermost span at every time: its own time without what is inside.",
       "SELECT id_a, sum(dur_ns) FROM interval_flatten('SELECT uid AS id, "
       "start_ns, dur_ns, track_id AS part FROM op') GROUP BY id_a LIMIT 1",
       IntervalColumns(),
       {"query_a"},
       1,
       &Flatten},
      {"interval_buckets",
       "interval_buckets(a, from_ns, to_ns, n)",
       "Busy time in n parts of equal length.",
       "SELECT start_ns, value FROM interval_buckets(" + kKernels +
           ", 0, 1000000, 4)",
       IntervalColumns(),
       {"query_a", "from_ns", "to_ns", "buckets"},
       4,
       &Buckets}};
  return functions;
}

}  // namespace lamina::sql
