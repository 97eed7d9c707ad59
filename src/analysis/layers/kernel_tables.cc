// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/kernel_tables.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/common/stats.h"
#include "analysis/layers/lanes.h"
#include "analysis/layers/passes.h"
#include "analysis/layers/schemas.h"

namespace lamina::analysis::layers {
namespace {

struct Cell {
  size_t kernels = 0;
  int64_t ns = 0;

  void Add(int64_t dur_ns) {
    ++kernels;
    ns += dur_ns;
  }
};

}  // namespace

Table StageTable(const Details& in, Labels& labels, int64_t total_ns) {
  const Trace& trace = in.context.trace;
  std::vector<StageRow> out;
  // Work in no pass has no stage; it comes first.
  using Key = std::tuple<std::optional<Stage>, size_t, ClassicType>;
  std::map<Key, Cell> cells;
  std::map<std::optional<Stage>, int64_t> stages;
  const auto add = [&](std::optional<Stage> stage, SliceId s) {
    Cell& cell =
        cells[{stage, in.context.device.family(s), labels.Of(s).kernel.type}];
    cell.Add(trace.Duration(s));
    stages[stage] += trace.Duration(s);
  };
  for (const Pass& pass : in.model.passes) {
    for (const SliceId s : pass.outside) add(pass.stage, s);
    for (const uint32_t l : pass.layers) {
      const Layer& layer = in.model.layers[l];
      for (const SliceId s : layer.work) add(in.model.StageOf(layer), s);
    }
  }
  for (const SliceId s : in.model.no_pass) add(std::nullopt, s);
  std::vector<std::pair<Key, Cell>> rows(cells.begin(), cells.end());
  std::stable_sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
    const auto stage = std::get<0>(a.first);
    return stage != std::get<0>(b.first) ? stage < std::get<0>(b.first)
                                         : a.second.ns > b.second.ns;
  });
  for (const auto& [key, cell] : rows) {
    const auto& [stage, family, type] = key;
    if (in.options.stage && stage != in.options.stage) continue;
    out.push_back({.stage = stage ? StageName(*stage) : "-",
                   .kernel_type = in.context.catalog.family(family).name,
                   .classic_type = ClassicTypeName(type),
                   .kernels = cell.kernels,
                   .kernel_time = cell.ns,
                   .percent_of_stage = PercentOf(cell.ns, stages[stage]),
                   .percent = PercentOf(cell.ns, total_ns)});
  }
  return StageColumns().Make(out);
}

Table OrphanTable(const Details& in, int64_t total_ns) {
  const Trace& trace = in.context.trace;
  std::vector<OrphanRow> out;
  using Key = std::tuple<int64_t, int64_t, std::string_view,
                         std::string_view>;  // device, stream, reason, name
  std::map<Key, Cell> cells;
  const auto add = [&](const char* reason, SliceId s) {
    const trace::DeviceArgs* args = trace.Device(s);
    Cell& cell = cells[{DeviceOf(trace, s),
                        args != nullptr ? args->stream : trace::kNoInt, reason,
                        trace.Name(s)}];
    cell.Add(trace.Duration(s));
  };
  for (const Pass& pass : in.model.passes) {
    const int64_t first = trace.Start(FirstOf(in.model, pass));
    const int64_t last = trace.Start(LastOf(in.model, pass));
    for (const SliceId s : pass.outside) {
      add(trace.Start(s) < first  ? "prologue"
          : trace.Start(s) > last ? "epilogue"
                                  : "between",
          s);
    }
  }
  for (const SliceId s : in.model.no_pass) add("no_pass", s);
  std::vector<std::pair<Key, Cell>> rows(cells.begin(), cells.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.ns > b.second.ns;
  });
  for (const auto& [key, cell] : rows) {
    const auto& [device, stream, reason, name] = key;
    out.push_back({.device = device,
                   .stream = stream != trace::kNoInt ? std::optional(stream)
                                                     : std::nullopt,
                   .reason = reason,
                   .kernel = name,
                   .kernels = cell.kernels,
                   .kernel_time = cell.ns,
                   .percent = PercentOf(cell.ns, total_ns)});
  }
  return OrphanColumns().Make(out);
}

}  // namespace lamina::analysis::layers
