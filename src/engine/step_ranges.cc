// SPDX-License-Identifier: Apache-2.0
#include "engine/step_ranges.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>
#include <map>
#include <optional>
#include <re2/re2.h>
#include <utility>
#include <vector>

#include "base/cpp_name.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "trace/categories.h"

namespace lamina::engine {
namespace {

using trace::Kind;
using trace::SliceId;
using trace::Trace;

constexpr size_t kLongestName = 1024;
// What nobody names is a step where it comes so often and holds so much of
// the launches.
constexpr size_t kFewestRepeats = 3;
constexpr double kLaunchShare = 0.9;

bool IsRange(Kind kind) { return kind == Kind::kAnnotation; }

// The first number in a name.
std::optional<int64_t> NumberIn(std::string_view name) {
  const size_t begin = name.find_first_of("0123456789");
  if (begin == name.npos) return std::nullopt;
  const size_t end = name.find_first_not_of("0123456789", begin);
  return ParseInt(name.substr(begin, std::min(end, name.size()) - begin));
}

// Numbers as they stand in the names if they rise, else positions.
tree::StepRanges Numbered(const Trace& trace, std::vector<SliceId> ranges,
                          std::string basis, bool asked) {
  std::sort(ranges.begin(), ranges.end(), [&](SliceId a, SliceId b) {
    return std::pair(trace.Start(a), trace.Uid(a)) <
           std::pair(trace.Start(b), trace.Uid(b));
  });
  tree::StepRanges out;
  out.asked = asked;
  out.basis = std::move(basis);
  std::map<StringId, int64_t> last;  // by process: ranks count the same
  bool rises = true;
  for (const SliceId s : ranges) {
    const auto number = NumberIn(trace.Name(s));
    const auto [it, is_new] =
        last.try_emplace(trace.TrackOf(s).pid, number.value_or(0));
    rises = rises && number && (is_new || *number > it->second);
    it->second = number.value_or(0);
  }
  std::map<StringId, int64_t> position;
  for (const SliceId s : ranges) {
    const int64_t place = position[trace.TrackOf(s).pid]++;
    out.ranges.emplace_back(s, rises ? *NumberIn(trace.Name(s)) : place);
  }
  return out;
}

// Ranges of one kind of name on one thread.
struct Group {
  std::vector<SliceId> ranges;  // by start; those inside others left out
  size_t launches = 0;          // within them
  size_t graph_launches = 0;    // of these
  int64_t length_ns = 0;
  int rule = rules::PatternTable::kNone;
  std::string text;
  uint32_t track = 0;
};

class Search {
 public:
  Search(const Trace& trace, const rules::Catalog& catalog,
         const rules::MarkerTable& modules)
      : trace_(trace), catalog_(catalog), modules_(modules) {}

  tree::StepRanges Run() {
    FindGroups();
    if (groups_.empty()) return {};
    CountLaunches();
    const Group* best = nullptr;
    for (const auto& [key, group] : groups_) {
      if (!Qualifies(group)) continue;
      if (best == nullptr || IsBetter(group, *best)) best = &group;
    }
    if (best == nullptr) return {};
    const bool named = best->rule != rules::PatternTable::kNone;
    // Other threads have ranges of the same name: ranks in one file.
    std::vector<SliceId> ranges;
    for (const auto& [key, group] : groups_) {
      if (group.text == best->text)
        ranges.insert(ranges.end(), group.ranges.begin(), group.ranges.end());
    }
    return Numbered(trace_, std::move(ranges),
                    (named ? "ranges named '" : "repeated ranges, '") +
                        Shorten(best->text, 60) + "'",
                    false);
  }

 private:
  void FindGroups() {
    struct Name {
      bool asked = false;
      bool candidate = false;
      int rule = rules::PatternTable::kNone;
      uint32_t text = 0;
    };
    std::vector<Name> names(trace_.strings.size());
    std::vector<std::string> texts;
    std::map<std::string, uint32_t> known;
    const trace::Slices& slices = trace_.slices;
    for (uint32_t i = 0; i < slices.size(); ++i) {
      if (!IsRange(slices.kind[i])) continue;
      Name& name = names[slices.name[i].value];
      if (!name.asked) {
        name.asked = true;
        const std::string_view text = trace_.strings[slices.name[i]];
        if (text.empty() || text.size() > kLongestName) continue;
        name.rule = catalog_.step_table().Find(text);
        const bool other =
            name.rule != rules::PatternTable::kNone &&
            catalog_.step_table().rule(name.rule).value != "step";
        if (other || modules_.Find(text) != rules::MarkerTable::kNone) continue;
        name.candidate = true;
        const auto [it, is_new] = known.try_emplace(
            WithoutNumbers(text), static_cast<uint32_t>(texts.size()));
        if (is_new) texts.push_back(it->first);
        name.text = it->second;
      }
      if (!name.candidate) continue;
      Group& group = groups_[{slices.track[i].value, name.text}];
      group.rule = name.rule;
      group.text = texts[name.text];
      group.track = slices.track[i].value;
      group.ranges.emplace_back(i);
    }
    for (auto& [key, group] : groups_) {
      std::sort(group.ranges.begin(), group.ranges.end(),
                [&](SliceId a, SliceId b) {
                  if (trace_.Start(a) != trace_.Start(b))
                    return trace_.Start(a) < trace_.Start(b);
                  return trace_.End(a) > trace_.End(b);
                });
      int64_t reached = std::numeric_limits<int64_t>::min();
      std::erase_if(group.ranges, [&](SliceId s) {
        if (trace_.End(s) <= reached) return true;
        reached = trace_.End(s);
        return false;
      });
      for (const SliceId s : group.ranges)
        group.length_ns += trace_.Duration(s);
    }
  }

  void CountLaunches() {
    struct Launches {
      std::vector<int64_t> all, of_graphs;  // starts
    };
    std::map<uint32_t, Launches> by_track;
    std::vector<int8_t> is_launch(trace_.strings.size(), -1);
    const trace::Slices& slices = trace_.slices;
    for (uint32_t i = 0; i < slices.size(); ++i) {
      if (!trace::IsApiCall(slices.kind[i])) continue;
      int8_t& known = is_launch[slices.name[i].value];
      if (known < 0) {
        const std::string_view name = trace_.strings[slices.name[i]];
        known = trace::IsGraphLaunch(name)                      ? 2
                : name.find("Launch") != std::string_view::npos ? 1
                                                                : 0;
      }
      if (known == 0) continue;
      Launches& launches = by_track[slices.track[i].value];
      launches.all.push_back(slices.start_ns[i]);
      if (known == 2) launches.of_graphs.push_back(slices.start_ns[i]);
      ++launches_;
    }
    for (auto& [track, launches] : by_track) {
      std::sort(launches.all.begin(), launches.all.end());
      std::sort(launches.of_graphs.begin(), launches.of_graphs.end());
    }
    for (auto& [key, group] : groups_) {
      const auto of = by_track.find(group.track);
      if (of == by_track.end()) continue;
      const auto within = [&](const std::vector<int64_t>& starts, SliceId s) {
        const auto begin =
            std::lower_bound(starts.begin(), starts.end(), trace_.Start(s));
        const auto end = std::lower_bound(begin, starts.end(), trace_.End(s));
        return static_cast<size_t>(end - begin);
      };
      for (const SliceId s : group.ranges) {
        group.launches += within(of->second.all, s);
        group.graph_launches += within(of->second.of_graphs, s);
      }
    }
  }

  bool Qualifies(const Group& group) const {
    if (group.rule != rules::PatternTable::kNone)
      return launches_ == 0 || group.launches > 0;
    // A range around each launch says what is launched ("line_12"), no step; a
    // step may replay one graph.
    return group.ranges.size() >= kFewestRepeats && launches_ > 0 &&
           group.launches + group.graph_launches >= 2 * group.ranges.size() &&
           static_cast<double>(group.launches) >=
               kLaunchShare * static_cast<double>(launches_);
  }

  // What a rule knows before what comes again; then what holds more launches,
  // then the outer one.
  static bool IsBetter(const Group& a, const Group& b) {
    const auto known = [](const Group& g) {
      return g.rule != rules::PatternTable::kNone;
    };
    if (known(a) != known(b)) return known(a);
    if (a.launches != b.launches) return a.launches > b.launches;
    return a.length_ns > b.length_ns;
  }

  const Trace& trace_;
  const rules::Catalog& catalog_;
  const rules::MarkerTable& modules_;
  std::map<std::pair<uint32_t, uint32_t>, Group> groups_;  // track, name
  size_t launches_ = 0;
};

Result<tree::StepRanges> ByPattern(const Trace& trace,
                                   const std::string& pattern) {
  RE2::Options quiet;
  quiet.set_log_errors(false);
  const RE2 match(pattern, quiet);
  if (!match.ok()) {
    return Fail(UsageError("⟨step⟩: " + match.error(),
                           "give a pattern in RE2 syntax, as in '^iteration'"));
  }
  std::vector<int8_t> known(trace.strings.size(), -1);
  std::vector<SliceId> ranges;
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    const Kind kind = trace.slices.kind[i];
    if (!IsRange(kind) && kind != Kind::kOp && kind != Kind::kPython) continue;
    const StringId name = trace.slices.name[i];
    int8_t& is = known[name.value];
    if (is < 0) {
      const std::string_view text = trace.strings[name];
      is = RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), match);
    }
    if (is > 0) ranges.emplace_back(i);
  }
  if (ranges.empty()) {
    return Fail(UsageError(
        "⟨step⟩: no range of the trace matches '" + pattern + "'",
        "⟨lamina⟩ query TRACE 'SELECT DISTINCT name FROM annotation' lists "
        "them"));
  }
  return Numbered(trace, std::move(ranges), "ranges of the given name", true);
}

}  // namespace

Result<tree::StepRanges> FindStepRanges(const Trace& trace,
                                        const rules::Catalog& catalog,
                                        const rules::MarkerTable& modules,
                                        const std::string& pattern) {
  if (!pattern.empty()) return ByPattern(trace, pattern);
  return Search(trace, catalog, modules).Run();
}

}  // namespace lamina::engine
