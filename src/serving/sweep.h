// SPDX-License-Identifier: Apache-2.0
//
// The same model at several loads: the time of each part of a layer as a
// function of the load, with its knee.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compare/runs/units.h"
#include "lamina/result.h"

namespace lamina::serving {

// How a time grows over a load.
struct SweepFit {
  enum class Kind : uint8_t { kFlat, kLinear, kKnee } kind = Kind::kFlat;
  double floor = 0;  // at the low end; of a line, where it meets load 0
  double slope = 0;  // per unit of load; of a knee above it
  std::optional<double> knee, low, high;  // with the loads that enclose it
  double error = 0;                       // root mean square, relative

  double At(double load) const;
};
std::string_view SweepKindName(SweepFit::Kind kind);

// Which of a constant, a line, and a constant up to a knee with a line behind
// it explains the points best: errors count relative to the time, a model by n
// log(RSS / n) + 1.5 k log n with k of 1, 2 and 3.5; half a percent is as good
// as exact. Points are (load, time), times above 0, at least one.
SweepFit FitSweep(std::vector<std::pair<double, double>> points);

struct SweepOptions {
  enum class Load : uint8_t {
    kAuto,
    kBatch,     // requests that get a token
    kContext,   // tokens of context per request that generates
    kTokens,    // of the pass
    kRequests,  // prompts
  } load = Load::kAuto;
  enum class Group : uint8_t {
    kHalf,
    kFamily,
    kModule,
    kKernel
  } group = Group::kHalf;
  std::optional<runs::Phase> phase;  // else that with most time
  bool steady = false;               // of each trace its even load alone
};

struct SweptTrace {
  std::string name;
  const analysis::Context* context = nullptr;
};

std::vector<Schema> SweepSchemas();

// Errors: kInput where no trace has passes that say their load, or all have the
// same one; data files that cannot be used.
Result<ResultSet> SweepTraces(const std::vector<SweptTrace>& traces,
                              const SweepOptions& options);

}  // namespace lamina::serving
