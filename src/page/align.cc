// SPDX-License-Identifier: Apache-2.0
#include "page/align.h"

#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <optional>
#include <vector>

#include "base/escape.h"

namespace lamina::page {
namespace {

using analysis::Context;
using trace::SliceId;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// A part of a trace that the other may have as well.
struct Mark {
  std::string name;
  int64_t start_ns = kNever;  // of its first device work
};

// Steps with device work.
std::vector<Mark> StepMarks(const Context& context) {
  const trace::Trace& trace = context.trace;
  const auto& steps = context.steps.steps();
  std::vector<Mark> marks(steps.size());
  for (size_t i = 0; i < steps.size(); ++i)
    marks[i].name = trace.Name(steps[i].slice);
  for (const SliceId s : trace.device_slices()) {
    const uint32_t at =
        steps.empty() ? tree::Steps::kOutside : context.steps.StepOf(s);
    if (at == tree::Steps::kOutside) continue;
    marks[at].start_ns =
        std::min(marks[at].start_ns, trace.Start(s) - trace.first_ns);
  }
  std::erase_if(marks, [](const Mark& m) { return m.start_ns == kNever; });
  return marks;
}

// Passes by start, named by their stage.
std::vector<Mark> PassMarks(const Context& context,
                            const analysis::layers::Rules& rules) {
  const trace::Trace& trace = context.trace;
  const auto model = analysis::layers::FindLayers(context, rules, {});
  std::vector<Mark> marks;
  for (const auto& pass : model.passes) {
    Mark mark{std::string(StageName(pass.stage))};
    const auto see = [&](const std::vector<SliceId>& work) {
      for (const SliceId s : work) {
        mark.start_ns =
            std::min(mark.start_ns, trace.Start(s) - trace.first_ns);
      }
    };
    see(pass.outside);
    for (const uint32_t layer : pass.layers) see(model.layers[layer].work);
    if (mark.start_ns != kNever) marks.push_back(std::move(mark));
  }
  std::stable_sort(
      marks.begin(), marks.end(),
      [](const Mark& a, const Mark& b) { return a.start_ns < b.start_ns; });
  return marks;
}

// The first of `a` with a name that occurs in `b`, and its first place there.
std::optional<std::pair<Mark, Mark>> FirstCommon(const std::vector<Mark>& a,
                                                 const std::vector<Mark>& b) {
  for (const Mark& mark : a) {
    const auto it = std::find_if(b.begin(), b.end(), [&](const Mark& other) {
      return other.name == mark.name;
    });
    if (it != b.end()) return std::pair(mark, *it);
  }
  return std::nullopt;
}

int64_t FirstWork(const Context& context) {
  const trace::Trace& trace = context.trace;
  int64_t first = kNever;
  for (const SliceId s : trace.device_slices())
    first = std::min(first, trace.Start(s) - trace.first_ns);
  return first == kNever ? 0 : first;
}

}  // namespace

Alignment AlignTraces(const Context& a, const Context& b,
                      const analysis::layers::Rules& rules) {
  const std::vector<Mark> steps_a = StepMarks(a);
  const std::vector<Mark> steps_b = StepMarks(b);
  if (const auto both = FirstCommon(steps_a, steps_b)) {
    return {{both->first.start_ns, both->second.start_ns},
            fmt::format("the first device work of step {}, which both have",
                        Shorten(both->first.name, 80))};
  }
  if (!steps_a.empty() && !steps_b.empty()) {
    return {{steps_a[0].start_ns, steps_b[0].start_ns},
            fmt::format("the first device work of the first step of each, {} "
                        "in A and {} in B",
                        Shorten(steps_a[0].name, 80),
                        Shorten(steps_b[0].name, 80))};
  }
  if (const auto both = FirstCommon(PassMarks(a, rules), PassMarks(b, rules))) {
    const bool staged = both->first.name != "none";
    return {{both->first.start_ns, both->second.start_ns},
            fmt::format("the start of the first {}pass of each",
                        staged ? both->first.name + " " : "")};
  }
  return {{FirstWork(a), FirstWork(b)}, "the first device work of each"};
}

}  // namespace lamina::page
