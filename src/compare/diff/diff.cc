// SPDX-License-Identifier: Apache-2.0
#include "compare/diff/diff.h"

#include "analysis/common/launchers.h"
#include "analysis/common/timeline.h"
#include "compare/diff/tables.h"

namespace lamina::analysis::diff {
namespace {

SideFacts FactsOf(const Context& context, const Timeline& timeline) {
  const Trace& trace = context.trace;
  SideFacts facts;
  facts.input = trace.info.file;
  if (!trace.info.devices.empty()) facts.device = trace.info.devices[0].name;
  facts.steps = static_cast<int64_t>(context.steps.steps().size());
  facts.device_slices = static_cast<int64_t>(trace.device_slices().size());
  facts.modules = !context.modules.empty();
  facts.totals = {timeline.kernel_time_ns, timeline.busy_ns, timeline.idle_ns,
                  timeline.total_ns};
  for (const SliceId slice : trace.device_slices()) {
    if (!context.tree.launch(slice).valid())
      facts.unlinked_ns += trace.Duration(slice);
  }
  return facts;
}

std::vector<MovedRow> MovedRows(const Side& a, const Side& b,
                                const Matching& matching) {
  std::vector<MovedRow> out;
  for (const auto& [i, j] : matching.moved) {
    MovedRow& row = out.emplace_back();
    row.name = a.Title(i);
    row.module = a.Module(i);
    for (const size_t s : {size_t{0}, size_t{1}}) {
      const Side& side = s == 0 ? a : b;
      const uint32_t entry = s == 0 ? i : j;
      for (uint32_t e = entry; e < side.entry(entry).end; ++e)
        row.time_ns[s] += SumOf(side.trace(), side.Work(e));
      const NodeId node = side.entry(entry).node;
      if (node.valid())
        row.uid[s] = side.trace().Uid(side.context().tree.slice(node));
    }
  }
  return out;
}

}  // namespace

bool NeedsPythonStacks(const Trace& trace, const Options& options) {
  if (options.python) return true;
  for (uint32_t i = 0; i < trace.strings.size(); ++i) {
    if (trace.strings[StringId(i)].starts_with(tree::kModulePrefix))
      return true;
  }
  return false;
}

Comparison Compare(const Context& context_a, const Context& context_b,
                   const layers::Rules& rules, const Options& options) {
  Differences d;
  d.letter = options.letter;
  SideOptions levels = LevelsOf(context_a, context_b);
  levels.python = options.python;
  const Side a(context_a, levels, d.names);
  const Side b(context_b, levels, d.names);
  const Matching matching = MatchSides(a, b);
  d.rows = CollectRows(a, b, matching);
  PerSide<Timeline> timelines;
  for (const size_t s : {size_t{0}, size_t{1}}) {
    const Context& context = s == 0 ? context_a : context_b;
    timelines[s] = MakeTimeline(
        context.trace, context.trace.device_slices(),
        [&](SliceId slice) { return context.device.bucket(slice); });
    d.sides[s] = FactsOf(context, timelines[s]);
  }
  d.dimensions = {SumByTimeline(timelines[0], timelines[1]),
                  SumByCategory(a, b), SumByModule(a, b, matching, d.names),
                  SumByLayer(a, b, rules)};
  d.calls = SumCalls(a, b);
  d.moved = MovedRows(a, b, matching);
  return MakeComparison(std::move(d));
}

}  // namespace lamina::analysis::diff
