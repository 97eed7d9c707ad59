// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/lost_work.h"

#include <algorithm>
#include <fmt/core.h>
#include <string_view>
#include <vector>

#include "base/counted.h"
#include "base/decimal.h"
#include "trace/categories.h"

namespace lamina::analysis {
namespace {

// Below it the end of a recording explains what is missing.
constexpr double kDoubtfulShare = 0.05;
constexpr size_t kDoubtfulLaunches = 5;

// By string: whether calls of the name launch work that a profiler records.
class LaunchNames {
 public:
  explicit LaunchNames(const tree::Tree& tree)
      : tree_(tree), known_(tree.trace().strings.size(), kNotAsked) {}

  bool IsLaunch(tree::NodeId n) { return Of(n) == kLaunch; }
  bool BeginsCapture(tree::NodeId n) { return Of(n) == kBegin; }
  bool EndsCapture(tree::NodeId n) { return Of(n) == kEnd; }

 private:
  enum What : uint8_t { kNotAsked, kOther, kLaunch, kBegin, kEnd };

  What Of(tree::NodeId n) {
    uint8_t& known =
        known_[tree_.trace().slices.name[tree_.slice(n).value].value];
    if (known == kNotAsked) known = Classify(tree_.name(n));
    return static_cast<What>(known);
  }
  static What Classify(std::string_view name) {
    if (trace::IsGraphLaunch(name) || name.find("LaunchKernel") != name.npos)
      return kLaunch;
    if (name.find("StreamBeginCapture") != name.npos) return kBegin;
    return name.find("StreamEndCapture") != name.npos ? kEnd : kOther;
  }

  const tree::Tree& tree_;
  std::vector<uint8_t> known_;
};

}  // namespace

bool LaunchesWithoutWork::Doubtful() const {
  return without >= kDoubtfulLaunches &&
         static_cast<double>(without) >=
             kDoubtfulShare * static_cast<double>(launches);
}

std::string LaunchesWithoutWork::Text() const {
  std::string text =
      fmt::format("{} of {} ({:.0f} %) {} no device record",
                  GroupDigits(static_cast<int64_t>(without)),
                  Counted(launches, "launch", "launches"),
                  100.0 * static_cast<double>(without) /
                      static_cast<double>(std::max<size_t>(1, launches)),
                  without == 1 ? "has" : "have");
  if (without == launches) return text;
  const auto in_a_row = [&](size_t count, const char* where) {
    if (2 * count <= without) return;
    text += count == without
                ? fmt::format(": they are the {}", where)
                : fmt::format(": {} of them are the {}",
                              GroupDigits(static_cast<int64_t>(count)), where);
  };
  in_a_row(leading, "first");
  in_a_row(trailing, "last");
  return text;
}

LaunchesWithoutWork FindLaunchesWithoutWork(const tree::Tree& tree) {
  const trace::Trace& trace = tree.trace();
  LaunchesWithoutWork out;
  if (trace.device_slices().empty()) return out;
  LaunchNames names(tree);
  struct Launch {
    int64_t start_ns;
    bool works;
  };
  std::vector<Launch> launches;
  // Of each thread, while it captures: what it launches runs later.
  std::vector<int> capturing(trace.tracks.size(), 0);
  for (uint32_t i = 0; i < tree.size(); ++i) {
    const tree::NodeId n(i);
    if (!trace::IsApiCall(tree.kind(n))) continue;
    const tree::SliceId s = tree.slice(n);
    int& depth = capturing[trace.slices.track[s.value].value];
    if (names.BeginsCapture(n)) ++depth;
    if (names.EndsCapture(n) && depth > 0) --depth;
    if (!names.IsLaunch(n) || trace.captured.Has(s)) continue;
    const bool works = tree.HasDeviceWork(n);
    if (depth > 0 && !works) continue;
    // A call of the driver inside a call of the runtime is the same launch.
    const tree::NodeId up = tree.parent(n);
    if (up.valid() && trace::IsApiCall(tree.kind(up)) && names.IsLaunch(up))
      continue;
    launches.push_back({trace.Start(s), works});
  }
  std::stable_sort(
      launches.begin(), launches.end(),
      [](const Launch& a, const Launch& b) { return a.start_ns < b.start_ns; });
  out.launches = launches.size();
  const auto works = [](const Launch& l) { return l.works; };
  out.without = out.launches - static_cast<size_t>(std::count_if(
                                   launches.begin(), launches.end(), works));
  out.leading = static_cast<size_t>(
      std::find_if(launches.begin(), launches.end(), works) - launches.begin());
  if (out.without < out.launches) {
    out.trailing = static_cast<size_t>(
        std::find_if(launches.rbegin(), launches.rend(), works) -
        launches.rbegin());
  }
  return out;
}

}  // namespace lamina::analysis
