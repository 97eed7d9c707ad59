// SPDX-License-Identifier: Apache-2.0
//
// Where two traces of the same work are laid over each other.

#include "page/diff.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/core.h>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/layers/layers.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "page/device.h"
#include "page/host.h"
#include "render/html/page.h"

namespace lamina::page {

struct Alignment {
  // The moment in each trace, since its first event.
  std::array<int64_t, 2> at_ns{};
  std::string at;  // what happens then, as the end of a sentence
};

// The first device work of the first step that both have; else of the first
// step of each; else the first pass of a stage that both have; else the first
// device work at all.
Alignment AlignTraces(const analysis::Context& a, const analysis::Context& b,
                      const analysis::layers::Rules& rules);

namespace {

using analysis::Context;
using trace::SliceId;

constexpr int64_t kNoStart = std::numeric_limits<int64_t>::max();

// A part of a trace that the other may have as well.
struct Mark {
  std::string name;
  int64_t start_ns = kNoStart;  // of its first device work
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
  std::erase_if(marks, [](const Mark& m) { return m.start_ns == kNoStart; });
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
    if (mark.start_ns != kNoStart) marks.push_back(std::move(mark));
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
  int64_t first = kNoStart;
  for (const SliceId s : trace.device_slices())
    first = std::min(first, trace.Start(s) - trace.first_ns);
  return first == kNoStart ? 0 : first;
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

namespace {

using analysis::Context;
using analysis::diff::Members;
using trace::SliceId;
using tree::NodeId;

// The columns of device events that count rows of the comparison.
struct RowColumn {
  const char* name;
  Members::Rows Members::*rows;
};
constexpr std::array<RowColumn, 6> kRowColumns{
    {{"diffcause", &Members::cause},
     {"diffop", &Members::op},
     {"diffkernel", &Members::kernel},
     {"diffcategory", &Members::category},
     {"diffmodule", &Members::module},
     {"difflayer", &Members::layer}}};

class DiffEvents {
 public:
  explicit DiffEvents(const Members& members) : members_(members) {}

  void Add(const Context& context, const PageTrace& of, std::string_view name,
           const std::vector<uint32_t>& host_rows) {
    const trace::Trace& trace = context.trace;
    AppendLanes(trace, of, {}, lane_row_, lanes_);
    for (const trace::Stream& lane : trace.streams) {
      for (const SliceId s : lane.slices) {
        device_.Add({.start_ns = trace.Start(s) - trace.first_ns + of.shift_ns,
                     .dur_ns = trace.Duration(s),
                     .family = context.device.family(s),
                     .uid = of.first_uid + trace.Uid(s),
                     .kernel = kernels_.RowOf(context, s, name)});
        const NodeId call = context.tree.launch(s);
        device_.Set(
            "launch",
            call.valid() ? host_rows[context.tree.slice(call).value] : 0, true);
        const uint32_t detail = trace.slices.detail[s.value];
        for (const RowColumn& column : kRowColumns) {
          const auto& rows = (members_.*column.rows)[of.index];
          device_.Set(column.name, rows.empty() ? 0 : rows[detail]);
        }
      }
    }
  }

  // The table of names, which belongs into the document of the page.
  Table TakeKernels() { return kernels_.Take(); }

  void AddTo(render::Page& page) const {
    page.facts.emplace_back("lanes", lanes_ + "]");
    device_.AddTo(page);
  }

 private:
  const Members& members_;
  DeviceColumns device_;
  PageKernels kernels_;
  std::string lanes_ = "[";
  size_t lane_row_ = 0;
};

// Where B stands on the axis of A.
Note AlignmentNote(const Alignment& alignment, int64_t shift_ns) {
  return MakeNote(
      Severity::kInfo, "page_alignment",
      fmt::format("The timelines of A and B lie over each other at {}; times "
                  "are those of A, and B is drawn {} {} than recorded.",
                  alignment.at, HumanTime(shift_ns < 0 ? -shift_ns : shift_ns),
                  shift_ns < 0 ? "earlier" : "later"));
}

}  // namespace

Status WriteDiffPage(const Context& a, const Context& b,
                     const analysis::layers::Rules& rules,
                     const Members& members, Document& document,
                     const DiffPageOptions& options) {
  const std::array<const Context*, 2> sides{&a, &b};
  const Alignment alignment = AlignTraces(a, b, rules);
  const std::array<PageTrace, 2> of{
      {{0, 0, 0},
       {1, alignment.at_ns[0] - alignment.at_ns[1], EndOfUids(a.trace)}}};
  HostCounts counts;
  for (const Context* const side : sides) CountHost(side->trace, {}, counts);
  const HostDetail detail = ChooseDetail(
      counts, a.trace.device.size() + b.trace.device.size(), options.max_bytes);
  if (detail != HostDetail::kAll)
    document.result.notes.push_back(LeftOutNote(detail, options.max_bytes));
  document.result.notes.push_back(AlignmentNote(alignment, of[1].shift_ns));

  render::Page page(document);
  page.redact = options.redact;
  HostEvents host;
  DiffEvents device(members);
  std::string list = "[";
  constexpr std::array<std::string_view, 2> kNames{"A", "B"};
  for (size_t s = 0; s < sides.size(); ++s) {
    const auto rows = host.Add(*sides[s], detail, {}, of[s], page.strings);
    device.Add(*sides[s], of[s], kNames[s], rows);
    list += fmt::format(
        "{}{{\"name\":\"{}\",\"input\":{},\"first_uid\":{},\"shift_ns\":{}}}",
        s > 0 ? "," : "", kNames[s], JsonQuote(sides[s]->trace.info.file),
        of[s].first_uid, of[s].shift_ns);
  }
  if (!options.words.empty()) {
    page.commands = {{document.command,
                      options.words,
                      render::TableNames(document.result),
                      {}}};
  }
  document.result.tables.push_back(device.TakeKernels());
  page.facts.emplace_back("traces", list + "]");
  page.facts.emplace_back("families", FamiliesJson(a.catalog));
  device.AddTo(page);
  host.AddTo(page);
  return render::WritePageFile(page, options.output, options.threads);
}

}  // namespace lamina::page
