// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/runs.h"

#include <algorithm>
#include <map>

namespace lamina::analysis::layers {
namespace {

// Runs of one stack differ less in length than this.
constexpr double kOtherLength = 0.25;

// Kernels between two layers that make them runs of their own; of one graph
// launch they are damaged layers.
bool Apart(const LaneView& view, const Structure& structure, size_t l) {
  const Found& before = structure.layers[l - 1];
  const Found& layer = structure.layers[l];
  const uint64_t graph = view.graphs[before.begin];
  return (graph == 0 || graph != view.graphs[layer.begin]) &&
         2 * (layer.begin - before.end) >= layer.end - layer.begin;
}

// Whether the layers before and behind a place came from one graph launch.
bool SameLaunch(const LaneView& view, const Structure& structure, size_t l) {
  const uint64_t graph = view.graphs[structure.layers[l - 1].begin];
  return graph != 0 && graph == view.graphs[structure.layers[l].begin];
}

}  // namespace

std::vector<StackRun> FindRuns(const LaneView& view, const Structure& structure,
                               const std::vector<PassCut>& cuts,
                               const StackOptions& options) {
  (void)options;
  const std::vector<Found>& layers = structure.layers;
  std::vector<StackRun> runs;
  std::vector<uint32_t> family;
  for (size_t l = 0; l < layers.size(); ++l) {
    if (l > 0 && layers[l].family == layers[l - 1].family && !cuts[l].cut() &&
        !Apart(view, structure, l)) {
      ++runs.back().end;
      continue;
    }
    runs.push_back({l, l + 1, 0, l, 0});
    family.push_back(layers[l].family);
  }
  // Lengths of the runs of each family, and those of them that a step or a
  // launch cuts off on both sides.
  std::map<uint32_t, std::map<size_t, size_t>> lengths;
  std::map<std::pair<uint32_t, size_t>, bool> whole;
  for (size_t r = 0; r < runs.size(); ++r) {
    const size_t length = runs[r].end - runs[r].begin;
    ++lengths[family[r]][length];
    const auto hard = [&](size_t l) {
      return l < layers.size() && cuts[l].weight >= 1 && l > 0;
    };
    if (r > 0 && hard(runs[r].begin) && hard(runs[r].end) &&
        !SameLaunch(view, structure, runs[r].begin) &&
        !SameLaunch(view, structure, runs[r].end))
      whole[{family[r], length}] = true;
  }
  // The lengths that are stacks, most layers first.
  std::map<uint32_t, std::vector<size_t>> stacks;
  for (const auto& entry_of : lengths) {
    const uint32_t f = entry_of.first;
    const auto& counts = entry_of.second;
    std::vector<std::pair<size_t, size_t>> order(counts.begin(), counts.end());
    std::ranges::stable_sort(order, [](const auto& a, const auto& b) {
      return a.first * a.second > b.first * b.second;
    });
    std::vector<size_t>& own = stacks[f];
    for (const auto& entry : order) {
      const size_t length = entry.first;
      const size_t count = entry.second;
      const bool other = std::ranges::all_of(own, [&](size_t known) {
        const size_t longer = std::max(known, length);
        const size_t shorter = std::min(known, length);
        return static_cast<double>(longer - shorter) >
               std::max(1.0 - 1e-9, kOtherLength * static_cast<double>(longer));
      });
      if (own.empty() || (other && (count >= 2 || whole[{f, length}])))
        own.push_back(length);
    }
  }
  std::map<std::pair<uint32_t, size_t>, uint32_t> number;
  // Typical layers: the unit that most layers of the stack equal.
  std::map<uint32_t, std::map<uint32_t, std::pair<size_t, size_t>>> units;
  for (size_t r = 0; r < runs.size(); ++r) {
    StackRun& run = runs[r];
    const size_t length = run.end - run.begin;
    const std::vector<size_t>& own = stacks[family[r]];
    run.usual = *std::ranges::min_element(own, {}, [&](size_t known) {
      return known > length ? known - length : length - known;
    });
    run.stack = number
                    .try_emplace({family[r], run.usual},
                                 static_cast<uint32_t>(number.size()))
                    .first->second;
    for (size_t l = run.begin; l < run.end; ++l) {
      auto& [count, first] = units[run.stack][layers[l].unit];
      if (count == 0 || (layers[l].exact && !layers[first].exact)) first = l;
      ++count;
    }
  }
  for (StackRun& run : runs) {
    size_t most = 0;
    for (const auto& [unit, at] : units[run.stack]) {
      if (at.first <= most) continue;
      most = at.first;
      run.typical = at.second;
    }
  }
  return runs;
}

}  // namespace lamina::analysis::layers
