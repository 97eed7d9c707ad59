// SPDX-License-Identifier: Apache-2.0
#include "findings/what_if.h"

#include <algorithm>
#include <optional>

#include "analysis/path/what_if.h"
#include "sql/table_def.h"

namespace lamina::findings {
namespace {

namespace path = analysis::path;

bool OwnsBusy(const Finding& f) {
  return f.rule->kind == ClaimKind::kBusy && !f.spans.empty();
}

// The end nodes of device work by event number.
class DeviceNodes {
 public:
  explicit DeviceNodes(const path::Graph& graph) : graph_(graph) {
    const auto& trace = graph.model().trace();
    for (size_t i = 0; i < graph.work().size(); ++i) {
      node_[trace.Uid(graph.work()[i])] =
          graph.first_device() + 2 * static_cast<uint32_t>(i) + 1;
    }
  }

  // Device work without the time that the findings own.
  path::Scenario Without(const std::vector<const Finding*>& findings) const {
    absl::flat_hash_map<uint32_t, int64_t> less;
    for (const Finding* f : findings) {
      for (const Claim& claim : f->spans) {
        const auto node = node_.find(claim.uid);
        if (node != node_.end()) less[node->second] += claim.owned_ns;
      }
    }
    path::Scenario scenario;
    for (const auto& [node, ns] : less) {
      scenario.chains.emplace_back(
          node, std::max<int64_t>(0, graph_.chain_work(node) - ns));
    }
    // The order of a hash map must not decide anything.
    std::sort(scenario.chains.begin(), scenario.chains.end());
    return scenario;
  }

  // Without what the findings own, and with another change.
  path::Saved Saved(const std::vector<const Finding*>& findings,
                    const path::Scenario& also) const {
    path::Scenario scenario = Without(findings);
    scenario.Add(also);
    return SavedIn(scenario);
  }

  path::Saved SavedIn(const path::Scenario& scenario) const {
    // What kernels lose moves most of what comes behind them.
    const path::Outcome outcome(graph_, scenario, path::Outcome::Pass::kFull);
    path::ByReading saved = outcome.Ends(graph_.sink());
    for (int64_t& ns : saved)
      ns = std::max<int64_t>(0, graph_.time(graph_.sink()) - ns);
    return path::RangeOf(saved);
  }

 private:
  const path::Graph& graph_;
  absl::flat_hash_map<int64_t, uint32_t> node_;
};

bool IsOfHost(const Finding& f) {
  return f.rule->kind == ClaimKind::kIdle && f.rule->category != "trace" &&
         f.gain_ns > 0;
}

// A fix of the host: nothing waits for it any more.
constexpr const char* kNoHost = "scale:class=host:0";

Result<const path::Graph*> GraphFor(engine::Session& session,
                                    const Diagnosis& diagnosis, int64_t least) {
  const bool any = std::any_of(
      diagnosis.findings.begin(), diagnosis.findings.end(),
      [&](const Finding& f) {
        return (OwnsBusy(f) || IsOfHost(f) || !f.rule->gain_what_if.empty()) &&
               f.unbound_ns >= least;
      });
  if (!any) return nullptr;
  LAMINA_ASSIGN(const analysis::Context* const context,
                (sql::Asked{session, {}}.Context()));
  LAMINA_ASSIGN(const path::Graph* const graph, context->Get<path::Graph>());
  return graph->sink() == path::kNoNode ? nullptr : graph;
}

// Of busy time what the path says; idle time is saved as it is. The formula
// may say that less than the owned time can be saved.
void BoundByPath(Finding& f, const path::Saved& saved, int64_t devices) {
  int64_t busy = 0;
  for (const Claim& claim : f.spans)
    busy += claim.uid >= 0 ? claim.owned_ns : 0;
  if (busy == 0) return;
  const int64_t idle = f.owned_ns - busy;
  // Of a gain the part that the path leaves if so much is saved.
  const auto part = [&](int64_t gain, int64_t saved_ns) {
    const int64_t kept = std::min(busy, saved_ns * devices) + idle;
    return std::min(gain, static_cast<int64_t>(static_cast<__int128>(gain) *
                                               kept / f.owned_ns));
  };
  f.gain_ns = part(f.gain_ns, saved.best_ns);
  f.gain_low_ns = std::min(f.gain_ns, part(f.gain_low_ns, saved.low_ns));
  f.gain_high_ns = std::max(f.gain_ns, part(f.gain_high_ns, saved.high_ns));
}

// Idle time that the host is blamed for: where the path cannot tell whether no
// host time at all would save as much, a gain is not measured.
void DoubtByHost(Finding& f, const path::Saved& without_host, int64_t devices) {
  if (without_host.high_ns * devices >= f.gain_ns)
    f.gain_low_ns = std::min(f.gain_low_ns, without_host.low_ns * devices);
}

}  // namespace

Result<std::map<std::string, int64_t>> AskPath(engine::Session& session,
                                               double min_share,
                                               Diagnosis& diagnosis) {
  std::map<std::string, int64_t> alone;
  const auto least = static_cast<int64_t>(
      min_share * static_cast<double>(diagnosis.window_ns));
  LAMINA_ASSIGN(const path::Graph* const graph,
                GraphFor(session, diagnosis, least));
  if (graph == nullptr) return alone;
  const DeviceNodes nodes(*graph);
  const auto devices =
      std::max<int64_t>(1, static_cast<int64_t>(diagnosis.device_names.size()));
  std::optional<path::Saved> without_host;
  for (Finding& f : diagnosis.findings) {
    if (f.gain_ns < least) continue;
    if (IsOfHost(f)) {
      if (!without_host) {
        LAMINA_ASSIGN(const path::Scenario scenario,
                      path::ParseScenario(*graph, kNoHost));
        without_host = nodes.SavedIn(scenario);
      }
      DoubtByHost(f, *without_host, devices);
    }
    if (!f.rule->gain_what_if.empty()) {
      LAMINA_ASSIGN(const path::Scenario scenario,
                    path::ParseScenario(*graph, f.rule->gain_what_if));
      f.gain_high_ns =
          std::max(f.gain_high_ns, nodes.SavedIn(scenario).best_ns);
    }
    if (!OwnsBusy(f) || f.rule->past_path) continue;
    const path::Saved saved = nodes.Saved({&f}, {});
    alone[f.id] = saved.best_ns;
    BoundByPath(f, saved, devices);
  }
  return alone;
}

Status AskPathInOrder(engine::Session& session,
                      const std::map<std::string, int64_t>& alone,
                      int64_t least, Diagnosis& diagnosis) {
  for (Finding& f : diagnosis.findings) f.gain_after_ns = f.gain_ns;
  LAMINA_ASSIGN(const path::Graph* const graph,
                GraphFor(session, diagnosis, std::max<int64_t>(1, least)));
  if (graph == nullptr) return {};
  const DeviceNodes nodes(*graph);
  std::vector<const Finding*> fixed;
  path::Scenario host;
  int64_t before = 0, mended_idle_ns = 0;
  for (Finding& f : diagnosis.findings) {
    if (f.suppressed) continue;
    if (IsOfHost(f) && f.gain_ns >= least) {
      mended_idle_ns += f.owned_ns;
      // With most of the idle time gone the host holds nothing up any more.
      if (2 * mended_idle_ns < diagnosis.idle_ns || host.size() > 0) continue;
      LAMINA_ASSIGN(host, path::ParseScenario(*graph, kNoHost));
      before = nodes.Saved(fixed, host).best_ns;
      continue;
    }
    if (!OwnsBusy(f) || f.unbound_ns < std::max<int64_t>(1, least)) continue;
    fixed.push_back(&f);
    // Of the first it is known.
    const auto known =
        fixed.size() == 1 && host.size() == 0 ? alone.find(f.id) : alone.end();
    const int64_t saved =
        known != alone.end() ? known->second : nodes.Saved(fixed, host).best_ns;
    f.gain_after_ns = std::clamp<int64_t>(
        saved - before, 0, std::max(f.gain_high_ns, f.unbound_ns));
    before = saved;
  }
  return {};
}

}  // namespace lamina::findings
