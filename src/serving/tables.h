// SPDX-License-Identifier: Apache-2.0
//
// What the time of requests is made of: to the nanosecond, parts add up to the
// time of the client. TTFT = queue + prefill + after; the gap between two
// tokens = the pass that made the second + its gap + passes between that served
// others
// + what prompts in its pass cost + the rest.
#pragma once

#include <string>
#include <vector>

#include "base/interval_set.h"
#include "lamina/result.h"
#include "serving/join.h"

namespace lamina::serving {

// A limit of one measure of a request: ttft=200ms; or of a percentile of all
// requests: p99:ttft=200ms.
struct Limit {
  std::string text;
  enum class Of : uint8_t { kTtft, kItl, kTpot, kEndToEnd } of = Of::kTtft;
  int64_t most_ns = 0;
  std::optional<double> percentile;  // 99
};
// "ttft=200ms,p99:itl=25ms". Errors: kUsage.
Result<std::vector<Limit>> ParseLimits(const std::string& text);

// The stretch of a trace with even load; what is outside ramps up or drains.
struct SteadyWindow {
  int64_t start_ns = 0, end_ns = 0;
  size_t passes = 0;
};
// Nothing where the load is not known, or never even. Adds a table with a row
// per part of the trace, in times since `first_ns`.
std::optional<SteadyWindow> FindSteadyWindow(
    const std::vector<ServedPass>& passes, int64_t first_ns,
    std::vector<Table>* tables);

// What a fix would take out of the time of the device: where, and how much of
// it is gained, at least and at most.
struct FixGain {
  std::string finding, fix;
  std::vector<Interval> spans;                   // in the time of the trace
  int64_t gain_ns = 0, low_ns = 0, high_ns = 0;  // of all of them
};

struct AccountOptions {
  std::vector<FixGain> gains;  // that are told in times of requests
  std::vector<Limit> limits;
  std::string request;                 // whose path is wanted; empty: of none
  std::optional<SteadyWindow> window;  // summaries of what lies in it
  int64_t first_ns = 0;                // time 0 of the tables
};

struct Account {
  ResultSet result;
  bool missed = false;  // a limit of a percentile
};

std::vector<Schema> RequestSchemas();

// Of requests that are placed. Errors: kUsage for a request that is not there.
Result<Account> AccountRequests(const runs::Units& units,
                                const std::vector<ServedPass>& passes,
                                const Records& records, const Join& join,
                                const AccountOptions& options);

// Of requests that are not: what the records alone say, and why.
Account AccountRecords(const Records& records, const Join& join);

// A pass of a request's own: what it cost without the prompts that it also
// read; nothing where no decode says so.
class DecodeTimes {
 public:
  explicit DecodeTimes(const std::vector<ServedPass>& passes);
  std::optional<int64_t> Of(int64_t generating) const;

 private:
  std::vector<std::pair<int64_t, int64_t>> median_;  // batch, ns; by batch
};

double Milliseconds(int64_t ns);

// The value below which a share of values lies, by linear interpolation between
// the two next to it. `sorted` is not empty.
double Quantile(const std::vector<double>& sorted, double share);

}  // namespace lamina::serving
