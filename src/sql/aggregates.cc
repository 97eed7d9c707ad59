// SPDX-License-Identifier: Apache-2.0
//
// Functions of many rows. Durations are integers, so order statistics of them
// are exact; percentile is the nearest rank, as in lamina's tables.
#include <algorithm>
#include <cmath>

#include "base/interval_set.h"
#include "sql/impl.h"

namespace lamina::sql {
namespace {

struct Kept {
  std::vector<double> numbers;
  std::vector<double> weights;
  std::vector<Interval> intervals;
  bool integers = true;
  double percent = -1;
  // max_by, min_by
  bool any = false;
  double key = 0;
  sqlite3_value* value = nullptr;
  ~Kept() { sqlite3_value_free(value); }
};

struct Aggregate {
  const char* name;
  int args;
  const char* signature;
  const char* doc;
  const char* example;
  void (*step)(Kept&, sqlite3_value**);
  void (*final)(Kept&, sqlite3_context*);
};

void KeepNumber(Kept& kept, sqlite3_value* value) {
  const int type = sqlite3_value_numeric_type(value);
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return;
  kept.integers &= type == SQLITE_INTEGER;
  kept.numbers.push_back(sqlite3_value_double(value));
}

// A number as the column has it: integers stay integers.
void Give(const Kept& kept, sqlite3_context* context, double value) {
  if (kept.integers && value == std::floor(value) && std::abs(value) < 9e15) {
    sqlite3_result_int64(context, static_cast<int64_t>(value));
  } else {
    SetResult(context, Value(value), SQLITE_TRANSIENT);
  }
}

double MedianOf(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void KeepBest(Kept& kept, sqlite3_value** values, bool largest) {
  if (sqlite3_value_numeric_type(values[1]) == SQLITE_NULL) return;
  const double key = sqlite3_value_double(values[1]);
  if (kept.any && !(largest ? key > kept.key : key < kept.key)) return;
  kept.any = true;
  kept.key = key;
  sqlite3_value_free(kept.value);
  kept.value = sqlite3_value_dup(values[0]);
}

void GiveBest(Kept& kept, sqlite3_context* context) {
  if (kept.value != nullptr) sqlite3_result_value(context, kept.value);
}

const Aggregate kAggregates[] = {
    {"percentile", 2, "percentile(x, percent)",
     "The value at nearest rank, percent from 0 to 100.",
     "SELECT percentile(dur_ns, 99) FROM kernel",
     [](Kept& k, sqlite3_value** v) {
       KeepNumber(k, v[0]);
       k.percent = sqlite3_value_double(v[1]);
     },
     [](Kept& k, sqlite3_context* c) {
       if (k.numbers.empty() || !(k.percent >= 0 && k.percent <= 100)) return;
       std::sort(k.numbers.begin(), k.numbers.end());
       const double n = static_cast<double>(k.numbers.size());
       const double rank = std::ceil(k.percent / 100.0 * n);
       Give(k, c, k.numbers[static_cast<size_t>(std::clamp(rank, 1.0, n)) - 1]);
     }},
    {"median", 1, "median(x)",
     "The middle value; of an even count the mean of the two.",
     "SELECT median(dur_ns) FROM kernel",
     [](Kept& k, sqlite3_value** v) { KeepNumber(k, v[0]); },
     [](Kept& k, sqlite3_context* c) {
       if (!k.numbers.empty()) Give(k, c, MedianOf(k.numbers));
     }},
    {"stddev", 1, "stddev(x)", "Standard deviation, n - 1 in the denominator.",
     "SELECT stddev(dur_ns) FROM kernel",
     [](Kept& k, sqlite3_value** v) { KeepNumber(k, v[0]); },
     [](Kept& k, sqlite3_context* c) {
       if (k.numbers.size() < 2) return;
       double mean = 0, sum = 0;
       for (const double x : k.numbers) mean += x;
       mean /= static_cast<double>(k.numbers.size());
       for (const double x : k.numbers) sum += (x - mean) * (x - mean);
       sqlite3_result_double(
           c, std::sqrt(sum / static_cast<double>(k.numbers.size() - 1)));
     }},
    {"mad", 1, "mad(x)", "Median of the absolute deviations from the median.",
     "SELECT mad(dur_ns) FROM kernel",
     [](Kept& k, sqlite3_value** v) { KeepNumber(k, v[0]); },
     [](Kept& k, sqlite3_context* c) {
       if (k.numbers.empty()) return;
       const double median = MedianOf(k.numbers);
       for (double& x : k.numbers) x = std::abs(x - median);
       Give(k, c, MedianOf(k.numbers));
     }},
    {"union_ns", 2, "union_ns(start_ns, dur_ns)",
     "Length of the union of spans: overlapping time counts once.",
     "SELECT union_ns(start_ns, dur_ns) FROM kernel",
     [](Kept& k, sqlite3_value** v) {
       if (sqlite3_value_type(v[0]) == SQLITE_NULL ||
           sqlite3_value_type(v[1]) == SQLITE_NULL)
         return;
       const int64_t start = sqlite3_value_int64(v[0]);
       int64_t end = 0;
       if (!__builtin_add_overflow(start, sqlite3_value_int64(v[1]), &end))
         k.intervals.push_back({start, end});
     },
     [](Kept& k, sqlite3_context* c) {
       sqlite3_result_int64(
           c, IntervalSet::Of(std::move(k.intervals)).length_ns());
     }},
    {"max_by", 2, "max_by(value, key)", "The value where the key is largest.",
     "SELECT max_by(name, dur_ns) FROM kernel",
     [](Kept& k, sqlite3_value** v) { KeepBest(k, v, true); }, &GiveBest},
    {"min_by", 2, "min_by(value, key)", "The value where the key is smallest.",
     "SELECT min_by(name, dur_ns) FROM kernel",
     [](Kept& k, sqlite3_value** v) { KeepBest(k, v, false); }, &GiveBest},
    {"geomean", 1, "geomean(x)", "Geometric mean of positive numbers.",
     "SELECT geomean(dur_ns) FROM kernel WHERE dur_ns > 0",
     [](Kept& k, sqlite3_value** v) { KeepNumber(k, v[0]); },
     [](Kept& k, sqlite3_context* c) {
       double sum = 0;
       for (const double x : k.numbers) {
         if (!(x > 0)) return;
         sum += std::log(x);
       }
       if (!k.numbers.empty()) {
         sqlite3_result_double(
             c, std::exp(sum / static_cast<double>(k.numbers.size())));
       }
     }},
    {"weighted_mean", 2, "weighted_mean(x, weight)",
     "Sum of x * weight by "
     "sum of weights.",
     "SELECT weighted_mean(occupancy_percent, dur_ns) FROM kernel",
     [](Kept& k, sqlite3_value** v) {
       const size_t before = k.numbers.size();
       KeepNumber(k, v[0]);
       if (k.numbers.size() > before)
         k.weights.push_back(sqlite3_value_double(v[1]));
     },
     [](Kept& k, sqlite3_context* c) {
       double sum = 0, weight = 0;
       for (size_t i = 0; i < k.numbers.size(); ++i) {
         sum += k.numbers[i] * k.weights[i];
         weight += k.weights[i];
       }
       if (weight != 0) SetResult(c, Value(sum / weight), SQLITE_TRANSIENT);
     }},
};

void Step(sqlite3_context* context, int, sqlite3_value** values) {
  const auto& aggregate =
      *static_cast<const Aggregate*>(sqlite3_user_data(context));
  // A pointer, as SQLite knows no destructors.
  auto** kept =
      static_cast<Kept**>(sqlite3_aggregate_context(context, sizeof(void*)));
  if (kept == nullptr) return;
  if (*kept == nullptr) *kept = new Kept();
  aggregate.step(**kept, values);
}

void Final(sqlite3_context* context) {
  const auto& aggregate =
      *static_cast<const Aggregate*>(sqlite3_user_data(context));
  auto** kept = static_cast<Kept**>(sqlite3_aggregate_context(context, 0));
  if (kept == nullptr || *kept == nullptr) return;
  aggregate.final(**kept, context);
  delete *kept;
  *kept = nullptr;
}

}  // namespace

void RegisterAggregates(Database::Impl& impl) {
  for (const Aggregate& a : kAggregates) {
    sqlite3_create_function_v2(
        impl.db, a.name, a.args,
        SQLITE_UTF8 | SQLITE_INNOCUOUS | SQLITE_DETERMINISTIC,
        const_cast<Aggregate*>(&a),  // NOLINT: never written through
        nullptr, &Step, &Final, nullptr);
  }
}

std::vector<FunctionInfo> AggregateInfos() {
  std::vector<FunctionInfo> out;
  for (const Aggregate& a : kAggregates)
    out.push_back({a.name, "aggregate", a.signature, a.doc, a.example});
  return out;
}

}  // namespace lamina::sql
