// SPDX-License-Identifier: Apache-2.0
//
// What a series of runs says: where the program changed, and whether the newest
// runs are worse than those before.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compare/runs/compare.h"
#include "lamina/result.h"
#include "runstore/store.h"

namespace lamina::runstore {

// Runs of one key in order, with one value each.
struct Series {
  std::string metric, key;
  std::vector<const Run*> runs;  // that have the value
  std::vector<double> values;    // nanoseconds per unit, above 0
  std::vector<const Run*> left;  // that have none
};

// The series of a metric, that of the newest run first. Where units have
// several classes, a value is the mean of logarithms of those that nearly all
// runs have, with the same weights for all, so that another mix moves nothing.
// `runs` are in order and outlive it. Errors: no such metric.
Result<std::vector<Series>> SeriesOf(Store& store, const std::string& metric,
                                     const std::vector<Run>& runs);

// What is looked at where no metric was named: `unit`, or the phases of
// servers.
std::vector<std::string> UsualMetrics(const std::vector<Run>& runs);

struct TrendOptions {
  std::string metric;  // empty: the usual
  size_t last = 0;     // runs of each key; 0: all
  double min_effect = 0.01;
};
// trend, trend_changes, trend_points.
Result<ResultSet> Trend(Store& store, const std::vector<Run>& runs,
                        const TrendOptions& options);

struct CheckOptions {
  std::string metric;
  size_t window = 20;
  double fail_above = 0.02;
  // A run that the newest is held against in place of those before it.
  const Run* against = nullptr;
};
struct Checked {
  runs::Verdict verdict = runs::Verdict::kUnknown;
  bool suspect = false;  // one run alone is outside
  // What people decided about the first runs of what is slower.
  std::vector<Decision> decisions;
  ResultSet result;  // runs_verdict
};
// Of the newest of `runs`, with those of its key.
Result<Checked> Check(Store& store, const std::vector<Run>& runs,
                      const CheckOptions& options);

// Recordings of one program against one run, by their units: a joint interval.
// `metric`: unit (or empty), kernel, busy, or a phase. runs_verdict, and the
// tables of a comparison.
Result<Checked> Judge(Store& store, const Run& against,
                      const std::vector<Run>& recordings,
                      const std::string& metric, double fail_above);

// One standard deviation of a logarithm of what recordings of the program of
// `run` differ by, by the others of its key; nothing below 5.
Result<std::optional<double>> MeasuredNoise(Store& store, const Run& run);

}  // namespace lamina::runstore
