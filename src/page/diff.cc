// SPDX-License-Identifier: Apache-2.0
#include "page/diff.h"

#include <array>
#include <fmt/core.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "page/align.h"
#include "page/columns.h"
#include "page/host.h"
#include "page/kernels.h"
#include "render/html/page_file.h"

namespace lamina::page {
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
