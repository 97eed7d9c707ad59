// SPDX-License-Identifier: Apache-2.0
#include "compare/runs/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <re2/re2.h>

#include "analysis/common/cost_view.h"
#include "analysis/common/stats.h"
#include "analysis/common/timeline.h"
#include "analysis/layers/layers.h"
#include "analysis/layers/stages.h"
#include "trace/categories.h"

namespace lamina::runs {
namespace {

using analysis::layers::ReadRange;
using analysis::layers::Stage;

Phase PhaseOf(Stage stage) {
  return stage == Stage::kPrefill  ? Phase::kPrefill
         : stage == Stage::kDecode ? Phase::kDecode
         : stage == Stage::kMixed  ? Phase::kMixed
                                   : Phase::kPass;
}

// Indices of the first embedding that looks up words.
std::optional<int64_t> EmbeddedTokens(const Context& context,
                                      const std::vector<SliceId>& work) {
  for (const SliceId s : work) {
    const tree::NodeId launcher = context.device.launcher(s);
    if (!launcher.valid()) continue;
    const auto tokens = analysis::LookedUpTokens(context.tree, launcher);
    if (tokens) return tokens;
  }
  return std::nullopt;
}

std::string NumberOf(const std::optional<int64_t>& n, std::string_view what) {
  return n ? fmt::format("{} {}", *n, what) : std::string();
}

// Equal for units that may be compared; empty: the load is not known.
std::string LoadName(const Unit& unit) {
  std::vector<std::string> parts;
  const auto add = [&](std::string text) {
    if (!text.empty()) parts.push_back(std::move(text));
  };
  switch (unit.phase) {
    case Phase::kTrain:
    case Phase::kEval:
      add(NumberOf(unit.tokens, "tokens"));
      if (unit.optimizer) add("optimizer");
      if (unit.communication) add("communication");
      if (parts.empty()) add("step");
      break;
    case Phase::kDecode:
      add(NumberOf(unit.load.generating, "requests"));
      break;
    case Phase::kPrefill:
    case Phase::kMixed:
      add(NumberOf(unit.load.context_requests, "prompts"));
      if (unit.load.context_tokens) {
        const int64_t from = *unit.load.context_tokens / 256 * 256;
        add(fmt::format("{} to {} tokens", from, from + 255));
      }
      if (unit.phase == Phase::kMixed)
        add(NumberOf(unit.load.generating, "generating"));
      break;
    case Phase::kPass:
      break;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Kernels of a unit by family, for units whose load is not known.
using FamilyCounts = std::vector<int64_t>;
FamilyCounts FamiliesOf(const Context& context, const Unit& unit) {
  FamilyCounts counts(context.catalog.families().size(), 0);
  for (const SliceId s : unit.work) ++counts[context.device.family(s)];
  return counts;
}

std::string KernelsName(const FamilyCounts& counts) {
  int64_t all = 0;
  uint64_t hash = 1469598103934665603u;  // FNV-1a
  for (const int64_t n : counts) {
    all += n;
    hash = (hash ^ static_cast<uint64_t>(n)) * 1099511628211u;
  }
  return fmt::format("{} kernels, kind {:04x}", all, hash & 0xffff);
}

// Fills what follows from the work of a unit; it must have some.
void AddWork(const Context& context, std::vector<SliceId> work, Unit& unit) {
  const trace::Trace& trace = context.trace;
  const size_t optimizer = context.catalog.FamilyIndex("optimizer");
  std::sort(work.begin(), work.end(), [&](SliceId x, SliceId y) {
    return std::pair(trace.Start(x), x.value) <
           std::pair(trace.Start(y), y.value);
  });
  std::vector<Interval> spans;
  for (const SliceId s : work) {
    unit.kernel_ns += trace.Duration(s);
    spans.push_back({trace.Start(s), trace.End(s)});
    unit.optimizer |= context.device.family(s) == optimizer;
    unit.communication |=
        context.device.bucket(s) == analysis::Bucket::kCommunication;
    const tree::NodeId launch = context.tree.launch(s);
    unit.replayed |=
        launch.valid() && trace::IsGraphLaunch(context.tree.name(launch));
  }
  const IntervalSet busy = IntervalSet::Of(std::move(spans));
  unit.busy_ns = busy.length_ns();
  unit.start_ns = trace.Start(work.front());
  int64_t end_ns = unit.start_ns;
  for (const SliceId s : work) end_ns = std::max(end_ns, trace.End(s));
  unit.unit_ns = end_ns - unit.start_ns;
  const auto said = [](const std::optional<int64_t>& n) {
    return n.value_or(0);
  };
  unit.tokens = EmbeddedTokens(context, work);
  if (!unit.tokens && (unit.load.context_tokens || unit.load.generating)) {
    unit.tokens = said(unit.load.context_tokens) + said(unit.load.generating);
    if (*unit.tokens == 0) unit.tokens.reset();
  }
  unit.work = std::move(work);
  unit.context = &context;
  unit.events = unit.work.size();
  unit.load_name = LoadName(unit);
  if (unit.load_name.empty())
    unit.load_name = KernelsName(FamiliesOf(context, unit));
}

bool IsTraining(const Context& context) {
  const size_t optimizer = context.catalog.FamilyIndex("optimizer");
  for (const SliceId s : context.trace.device_slices()) {
    if (context.device.family(s) == optimizer) return true;
    const tree::NodeId launch = context.tree.launch(s);
    if (launch.valid() && context.modules.OwnerOf(launch).backward) return true;
  }
  // Nodes of autograd, by what PyTorch calls them.
  static const RE2 kBackward(R"(Backward\d*$|_backward|^autograd::engine)");
  const auto& strings = context.trace.strings;
  for (uint32_t i = 0; i < strings.size(); ++i) {
    const std::string_view name = strings[StringId(i)];
    if (RE2::PartialMatch(re2::StringPiece(name.data(), name.size()),
                          kBackward))
      return true;
  }
  return false;
}

// Work without a launch joins the step whose device work began last before it;
// what comes before all of that may be of a step that was not recorded. Gives
// how many are of no step.
size_t AddByPlace(const trace::Trace& trace, const std::vector<SliceId>& slices,
                  std::vector<std::vector<SliceId>>& work) {
  std::vector<std::pair<int64_t, size_t>> begins;
  for (size_t i = 0; i < work.size(); ++i) {
    if (work[i].empty()) continue;
    int64_t begin = INT64_MAX;
    for (const SliceId s : work[i]) begin = std::min(begin, trace.Start(s));
    begins.emplace_back(begin, i);
  }
  std::sort(begins.begin(), begins.end());
  size_t none = 0;
  for (const SliceId s : slices) {
    const auto behind = std::upper_bound(begins.begin(), begins.end(),
                                         std::pair(trace.Start(s), SIZE_MAX));
    if (behind == begins.begin()) {
      ++none;
    } else {
      work[(behind - 1)->second].push_back(s);
    }
  }
  return none;
}

Units UnitsOfSteps(const Context& context) {
  const trace::Trace& trace = context.trace;
  const auto& steps = context.steps.steps();
  Units out;
  out.basis = context.steps.basis();
  std::vector<std::vector<SliceId>> work(steps.size());
  std::vector<SliceId> without_launch;
  for (const SliceId s : trace.device_slices()) {
    const uint32_t step = context.steps.StepOf(s);
    if (step != tree::Steps::kOutside) {
      work[step].push_back(s);
    } else if (context.tree.launch(s).valid()) {
      ++out.unclaimed;
    } else {
      without_launch.push_back(s);
    }
  }
  out.unclaimed += AddByPlace(trace, without_launch, work);
  const Phase others = IsTraining(context) ? Phase::kTrain : Phase::kEval;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (work[i].empty()) continue;
    Unit unit;
    const auto load = ReadRange(trace.Name(steps[i].slice));
    if (load) unit.load = *load;
    unit.phase = load ? PhaseOf(load->stage) : others;
    AddWork(context, std::move(work[i]), unit);
    unit.host = steps[i].host;
    if (!load) {
      // The host runs ahead of the device: of a step its period counts.
      const bool next = i + 1 < steps.size() &&
                        steps[i + 1].host.start_ns > steps[i].host.start_ns;
      unit.unit_ns = next ? steps[i + 1].host.start_ns - steps[i].host.start_ns
                          : steps[i].host.length_ns();
      unit.start_ns = steps[i].host.start_ns;
      unit.host = {unit.start_ns, unit.start_ns + unit.unit_ns};
    }
    unit.number = out.units.size();
    out.units.push_back(std::move(unit));
  }
  return out;
}

// The host does a pass from its first launch to that of the next one; of the
// last one nobody knows its end.
void AddHostRanges(const Context& context, std::vector<Unit>& units) {
  std::vector<std::pair<int64_t, Unit*>> begins;
  for (Unit& unit : units) {
    int64_t begin = INT64_MAX;
    for (const SliceId s : unit.work) {
      const tree::NodeId launch = context.tree.launch(s);
      if (launch.valid())
        begin =
            std::min(begin, context.trace.Start(context.tree.slice(launch)));
    }
    if (begin != INT64_MAX) begins.emplace_back(begin, &unit);
  }
  std::sort(begins.begin(), begins.end(), [](const auto& x, const auto& y) {
    return std::pair(x.first, x.second->number) <
           std::pair(y.first, y.second->number);
  });
  for (size_t i = 0; i + 1 < begins.size(); ++i)
    begins[i].second->host = {begins[i].first, begins[i + 1].first};
}

Result<Units> UnitsOfPasses(const Context& context) {
  LAMINA_ASSIGN(const auto* const model,
                context.Get<analysis::layers::LayerModel>());
  Units out;
  out.basis = kPassBasis;
  out.unclaimed = model->no_pass.size();
  for (const auto& pass : model->passes) {
    std::vector<SliceId> work = pass.outside;
    for (const uint32_t l : pass.layers) {
      const auto& own = model->layers[l].work;
      work.insert(work.end(), own.begin(), own.end());
    }
    if (work.empty()) continue;
    Unit unit;
    unit.phase = PhaseOf(pass.stage);
    if (const auto load = ReadRange(pass.annotation)) unit.load = *load;
    AddWork(context, std::move(work), unit);
    unit.number = out.units.size();
    out.units.push_back(std::move(unit));
  }
  AddHostRanges(context, out.units);
  // One pass is no repetition.
  if (out.units.size() < 2) out.units.clear();
  return out;
}

}  // namespace

Units SlowestRanks(std::vector<Units> ranks) {
  Units out = std::move(ranks.front());
  for (size_t r = 1; r < ranks.size(); ++r) {
    out.unclaimed += ranks[r].unclaimed;
    out.units.resize(std::min(out.units.size(), ranks[r].units.size()));
    for (size_t i = 0; i < out.units.size(); ++i) {
      Unit& other = ranks[r].units[i];
      if (other.unit_ns > out.units[i].unit_ns) out.units[i] = std::move(other);
    }
  }
  return out;
}

Units OneAfterTheOther(std::vector<Units> recordings) {
  Units out;
  for (size_t r = 0; r < recordings.size(); ++r) {
    if (out.basis.empty()) out.basis = recordings[r].basis;
    out.unclaimed += recordings[r].unclaimed;
    for (Unit& unit : recordings[r].units) {
      unit.recording = r;
      unit.number = out.units.size();
      out.units.push_back(std::move(unit));
    }
  }
  return out;
}

std::string_view PhaseName(Phase phase) {
  static constexpr std::string_view kNames[] = {"train",  "eval",  "prefill",
                                                "decode", "mixed", "pass"};
  return kNames[static_cast<size_t>(phase)];
}

Units WindowOf(const Context& context) {
  Units out;
  out.basis = kWindowBasis;
  const auto slices = context.trace.device_slices();
  std::vector<SliceId> work(slices.begin(), slices.end());
  if (work.empty()) return out;
  Unit unit;
  AddWork(context, std::move(work), unit);
  unit.load_name = "window";
  out.units.push_back(std::move(unit));
  return out;
}

Result<Units> FindUnits(const Context& context, bool steps, bool passes) {
  if (steps && context.steps.steps().size() >= 2) {
    Units units = UnitsOfSteps(context);
    if (units.units.size() >= 2) return units;
  }
  if (passes && !context.trace.device_slices().empty())
    return UnitsOfPasses(context);
  return Units();
}

}  // namespace lamina::runs
