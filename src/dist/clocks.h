// SPDX-License-Identifier: Apache-2.0
//
// Clocks of ranks against each other.
//
// A synchronising collective ends on all its ranks at about the same moment, so
// the ends of many give the difference of two clocks, and how it grows. Fits
// are by medians (Theil and Sen): a few calls that did not end together do not
// move them. Ranks that share no group are joined over others, along the
// surest fits.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dist/match.h"

namespace lamina::dist {

// Fewer say nothing about drift.
inline constexpr uint64_t kCallsForDrift = 8;

// Clock of `rank` minus clock of `reference`, at a time t of the rank:
// offset_ns + drift * (t - origin_ns).
struct ClockFit {
  int64_t rank = 0;
  int64_t reference = 0;
  int64_t origin_ns = 0;  // first time of the rank's trace
  double offset_ns = 0;
  double drift = 0;        // 0 with fewer than 8 calls
  double drift_error = 0;  // its standard error
  double spread_ns = 0;    // median absolute deviation from the fit
  double largest_ns = 0;   // of the fitted difference over the calls
  uint64_t calls = 0;
  bool pairs = false;  // of sends and receives, not of collectives

  // Below three times its spread a difference says nothing about clocks.
  bool significant() const { return largest_ns > 3 * spread_ns; }
  double error_ns() const;  // standard error of the offset
};

// Mean of the two middle values for an even count; not of none. Reorders them.
double Median(std::vector<double>& values);

// True for kinds that no rank leaves before the last has come. Broadcasts,
// reductions and transfers let some go early.
bool Synchronises(CollectiveKind kind);

// Fits of every rank of a group against the one with the most calls, and of the
// two ends of sends and receives, in both directions.
std::vector<ClockFit> FitClocks(const JoinedGroup& group);

std::string EncodeFits(const std::vector<ClockFit>& fits);
// Adds them to `fits`; false for bytes that EncodeFits did not write.
bool DecodeFits(std::string_view bytes, std::vector<ClockFit>& fits);

struct RankClock {
  int64_t rank = 0;
  int64_t reference = 0;  // lowest rank that it is joined to
  int64_t via = 0;        // the rank that its fit is against
  int64_t origin_ns = 0;
  int64_t offset_ns = 0;  // at origin_ns, against the reference
  double drift = 0;
  double drift_error = 0;
  double spread_ns = 0;       // of the fits on the way to the reference
  double uncertainty_ns = 0;  // standard error of the offset
  uint64_t calls = 0;
  bool known = false;    // joined to the reference, or the reference itself
  bool applied = false;  // some fit on the way was significant

  // A time of this rank on the clock of its reference.
  int64_t Align(int64_t t) const;
};

struct RankOrigin {
  int64_t rank = 0;
  int64_t origin_ns = 0;
};

// One clock per rank, in the order of `ranks` (ascending). With `raw` offsets
// are known but Align() changes nothing.
class Clocks {
 public:
  Clocks(const std::vector<RankOrigin>& ranks, std::vector<ClockFit> fits,
         bool raw);

  const std::vector<RankClock>& ranks() const { return ranks_; }
  int64_t Align(int64_t rank, int64_t t) const;
  bool raw() const { return raw_; }

 private:
  std::vector<RankClock> ranks_;
  std::map<int64_t, size_t> index_;
  bool raw_ = false;
};

}  // namespace lamina::dist
