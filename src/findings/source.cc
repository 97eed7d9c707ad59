// SPDX-License-Identifier: Apache-2.0
#include "findings/source.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>

#include "analysis/host/idle.h"
#include "base/decimal.h"
#include "sql/table_def.h"

namespace lamina::findings {
namespace {

namespace host = analysis::host;
using trace::SliceId;

constexpr size_t kMostClaims = 3;

using Tiers = std::shared_ptr<const rules::PatternTable>;

Result<Tiers> TiersOf(engine::Session& session) {
  return session.kept().Get<rules::PatternTable>(
      "tiers of frames",
      [&]() -> Result<Tiers> { return LoadFrameTiers(session.data()); });
}

// A moment of a thread, and the Python frames around it, the outermost first.
struct Moment {
  trace::TrackId track;
  int64_t time_ns = 0;
  AnswerFix* fix = nullptr;
  std::vector<SliceId> stack = {};
};

// "path.py(12): function"
std::optional<SourceLine> LineOf(std::string_view name) {
  const size_t close = name.find("): ");
  if (close == std::string_view::npos) return std::nullopt;
  const size_t open = name.rfind('(', close);
  if (open == std::string_view::npos || open == 0) return std::nullopt;
  const auto line = ParseInt(name.substr(open + 1, close - open - 1));
  if (!line) return std::nullopt;
  return SourceLine{std::string(name.substr(0, open)), *line,
                    std::string(name.substr(close + 3))};
}

class Finder {
 public:
  Finder(const analysis::Context& context, const host::Idle& idle,
         const rules::PatternTable& tiers)
      : context_(context), idle_(idle), tiers_(tiers) {}

  void Find(std::span<const FixOf> fixes) {
    FindEvents(fixes);
    std::vector<Moment> moments;
    for (const auto& [finding, fix] : fixes) {
      size_t found = 0;
      for (const Claim& claim : finding->top) {
        if (found == kMostClaims) break;
        if (auto moment = MomentOf(claim)) {
          moment->fix = fix;
          moments.push_back(*std::move(moment));
          ++found;
        }
      }
    }
    FindStacks(moments);
    for (const Moment& moment : moments) {
      if (!moment.fix->own && !moment.fix->library)
        Place(moment.stack, *moment.fix);
    }
  }

 private:
  // The device work of all claims.
  void FindEvents(std::span<const FixOf> fixes) {
    for (const auto& [finding, fix] : fixes) {
      for (const Claim& claim : finding->top) {
        if (claim.uid >= 0) events_.try_emplace(claim.uid);
      }
    }
    if (events_.empty()) return;
    for (const SliceId s : context_.trace.device_slices()) {
      const auto wanted = events_.find(context_.trace.Uid(s));
      if (wanted != events_.end()) wanted->second = s;
    }
  }

  // When and where the host launched an event, or what it did in the middle of
  // an idle span that its launch ended.
  std::optional<Moment> MomentOf(const Claim& claim) const {
    const auto& trace = context_.trace;
    const SliceId work = claim.uid >= 0 ? events_.at(claim.uid) : EndOf(claim);
    if (!work.valid()) return std::nullopt;
    const tree::NodeId launch = context_.tree.launch(work);
    if (!launch.valid()) return std::nullopt;
    const SliceId call = context_.tree.slice(launch);
    const int64_t middle = claim.start_ns + trace.first_ns +
                           std::max<int64_t>(0, claim.dur_ns) / 2;
    return Moment{trace.slices.track[call.value],
                  claim.uid >= 0 ? trace.Start(call) : middle};
  }

  SliceId EndOf(const Claim& claim) const {
    const auto& gaps = idle_.gaps;
    const auto key =
        std::pair(claim.device, claim.start_ns + context_.trace.first_ns);
    auto it = std::partition_point(
        gaps.begin(), gaps.end(), [&](const host::Gap& gap) {
          return std::pair(gap.device, gap.interval.start_ns) <= key;
        });
    if (it == gaps.begin() || (--it)->device != claim.device ||
        it->interval.end_ns <= key.second)
      return {};
    return it->next;
  }

  void FindStacks(std::vector<Moment>& moments) const {
    const auto& trace = context_.trace;
    if (moments.empty()) return;
    for (uint32_t i = 0; i < trace.slices.size(); ++i) {
      if (trace.slices.kind[i] != trace::Kind::kPython) continue;
      const SliceId s(i);
      for (Moment& moment : moments) {
        if (trace.slices.track[i] == moment.track &&
            trace.Start(s) <= moment.time_ns && moment.time_ns < trace.End(s))
          moment.stack.push_back(s);
      }
    }
    for (Moment& moment : moments) {
      std::stable_sort(moment.stack.begin(), moment.stack.end(),
                       [&](SliceId a, SliceId b) {
                         return std::pair(trace.Start(a), -trace.End(a)) <
                                std::pair(trace.Start(b), -trace.End(b));
                       });
    }
  }

  void Place(const std::vector<SliceId>& stack, AnswerFix& fix) const {
    fix.framework_frames = 0;
    for (const SliceId s : stack) {
      const std::string_view name = context_.trace.Name(s);
      const int rule = tiers_.Find(name);
      auto line = LineOf(name);
      if (!line) continue;
      if (rule == rules::PatternTable::kNone) {
        fix.own = std::move(line);
        // A library below what is innermost of the user.
        fix.library.reset();
      } else if (tiers_.rule(rule).value == "library") {
        fix.library = std::move(line);
      } else {
        ++fix.framework_frames;
      }
    }
  }

  const analysis::Context& context_;
  const host::Idle& idle_;
  const rules::PatternTable& tiers_;
  absl::flat_hash_map<int64_t, SliceId> events_;  // by number
};

}  // namespace

Result<Tiers> LoadFrameTiers(const rules::DataSet& data) {
  LAMINA_ASSIGN(const auto files, data.Load("host"));
  LAMINA_ASSIGN(auto table, rules::ReadPatternTable(files, "frames", "tier"));
  return std::make_shared<const rules::PatternTable>(std::move(table));
}

Status FindSources(engine::Session& session, std::span<const FixOf> fixes) {
  if (fixes.empty()) return {};
  const sql::Asked asked{session, {}};
  LAMINA_ASSIGN(const auto* const context, asked.Context());
  LAMINA_ASSIGN(const auto* const idle, asked.Get<host::Idle>());
  LAMINA_ASSIGN(const auto tiers, TiersOf(session));
  Finder(*context, *idle, *tiers).Find(fixes);
  return {};
}

}  // namespace lamina::findings
