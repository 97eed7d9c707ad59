// SPDX-License-Identifier: Apache-2.0
//
// Input: matched units. Output: what a unit waits for, per unit and with the
// mix of A: calls in which the host waits for the device, and collectives and
// copies while nothing else computes. A wait is found by the host range of its
// unit, a transfer by the device work of its unit. Cost: linear in the host
// events of both traces, n log n in the device work of units.
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <map>

#include "analysis/common/gaps.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/interval_set.h"
#include "compare/runs/differences.h"
#include "table/row_columns.h"
#include "trace/categories.h"

namespace lamina::runs {
namespace {

struct WaitRow {
  std::string_view phase, kind;
  std::string what, op;
  double calls_a = 0, calls_b = 0;
  int64_t a_ns = 0, b_ns = 0, delta_ns = 0;
};

const RowColumns<WaitRow>& WaitColumns() {
  static const RowColumns<WaitRow> columns{
      "diff_waits",
      "What a unit waits for: calls of the host that wait for the device, and "
      "transfers while nothing computes; rows that are equal are left out.",
      {{"phase", ColumnType::kText, "train, eval, prefill, decode ...",
        &WaitRow::phase},
       {"kind", ColumnType::kText,
        "synchronisation: a call of the host; communication, copy: time of the "
        "device that no computation hides.",
        &WaitRow::kind},
       {"what", ColumnType::kText, "Call, collective or copy.", &WaitRow::what},
       {"op", ColumnType::kText, "Op around the call.",
        [](const WaitRow& row) {
          return row.op.empty() ? Value() : Value(row.op);
        }},
       {"calls_a", ColumnType::kReal, "Per unit of A.", &WaitRow::calls_a},
       {"calls_b", ColumnType::kReal, "Per unit of B.", &WaitRow::calls_b},
       {"a_us", ColumnType::kTime, "Per unit of A.", &WaitRow::a_ns},
       {"b_us", ColumnType::kTime, "Per unit of B.", &WaitRow::b_ns},
       {"delta_us", ColumnType::kTime, "B minus A.", &WaitRow::delta_ns}}};
  return columns;
}

constexpr std::string_view kSync = "synchronisation", kComm = "communication",
                           kCopy = "copy";

using WaitKey = std::tuple<std::string_view, std::string, std::string>;
struct WaitCell {
  PerSide<double> calls{}, ns{};
};
using Waits = std::map<WaitKey, WaitCell>;

// "StreamSynchronize" of CUDA's and HIP's call alike.
std::string CallName(std::string_view name) {
  for (const std::string_view maker : {"cuda", "hip", "cu"}) {
    if (name.starts_with(maker)) {
      name.remove_prefix(maker.size());
      break;
    }
  }
  return std::string(name);
}

// The ops and calls of a trace in which the host waits, by start.
struct HostWaits {
  explicit HostWaits(const Context& of) : context(of) {
    const trace::Slices& slices = context.trace.slices;
    for (uint32_t i = 0; i < slices.size(); ++i) {
      if (!trace::IsApiCall(slices.kind[i])) continue;
      const std::string_view name = context.trace.Name(SliceId(i));
      // A query does not wait.
      if (analysis::IsBlockingCall(name) &&
          name.find("EventQuery") == std::string_view::npos)
        calls.push_back(SliceId(i));
    }
    std::sort(calls.begin(), calls.end(), [&](SliceId x, SliceId y) {
      return std::pair(context.trace.Start(x), x.value) <
             std::pair(context.trace.Start(y), y.value);
    });
  }
  // The outermost op around a call; empty: none is recorded.
  std::string OpAround(SliceId call) const {
    std::string op;
    for (tree::NodeId n = context.tree.node(call); n.valid();
         n = context.tree.parent(n)) {
      if (context.tree.kind(n) == trace::Kind::kOp) op = context.tree.name(n);
    }
    return op;
  }
  const Context& context;
  std::vector<SliceId> calls;
};

void AddSyncs(const HostWaits& waits, const Unit& unit, size_t side,
              double part, Waits& out) {
  const trace::Trace& trace = waits.context.trace;
  auto it = std::lower_bound(
      waits.calls.begin(), waits.calls.end(), unit.host.start_ns,
      [&](SliceId s, int64_t time_ns) { return trace.Start(s) < time_ns; });
  for (; it != waits.calls.end() && trace.Start(*it) < unit.host.end_ns; ++it) {
    WaitCell& cell =
        out[{kSync, CallName(trace.Name(*it)), waits.OpAround(*it)}];
    cell.calls[side] += part;
    cell.ns[side] += part * static_cast<double>(trace.Duration(*it));
  }
}

// Time of transfers that no computation hides, and of copies no collective
// either; of transfers at once the first has it.
void AddExposed(const Unit& unit, size_t side, double part, Waits& out) {
  const Context& context = *unit.context;
  const trace::Trace& trace = context.trace;
  std::vector<Interval> work;
  PerSide<std::vector<SliceId>> transfers;  // collectives, copies
  for (const SliceId s : unit.work) {
    switch (context.device.bucket(s)) {
      case analysis::Bucket::kCompute:
        work.push_back({trace.Start(s), trace.End(s)});
        break;
      case analysis::Bucket::kCommunication:
        transfers[0].push_back(s);
        break;
      case analysis::Bucket::kMemcpy:
        transfers[1].push_back(s);
        break;
    }
  }
  if (transfers[0].empty() && transfers[1].empty()) return;
  IntervalSet hidden = IntervalSet::Of(std::move(work));
  for (const size_t kind : {size_t{0}, size_t{1}}) {
    std::vector<Interval> own;
    int64_t until_ns = INT64_MIN;
    for (const SliceId s : transfers[kind]) {
      own.push_back({trace.Start(s), trace.End(s)});
      WaitCell& cell = out[{kind == 0 ? kComm : kCopy,
                            std::string(trace.Name(s)), std::string()}];
      cell.calls[side] += part;
      const Interval rest = {std::max(until_ns, trace.Start(s)),
                             std::max(until_ns, trace.End(s))};
      until_ns = rest.end_ns;
      if (rest.length_ns() == 0) continue;
      cell.ns[side] +=
          part * static_cast<double>(
                     IntervalSet::Of({rest}).Minus(hidden).length_ns());
    }
    hidden = hidden.Union(IntervalSet::Of(std::move(own)));
  }
}

Waits WaitsOf(const MatchedPhase& phase,
              std::map<const Context*, HostWaits>& hosts) {
  Waits out;
  for (const MatchedClass* one : phase.classes) {
    const double weight = WeightOf(phase, *one);
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const auto& units = one->matched[side];
      // The host range of the last pass is not known.
      const auto known = static_cast<double>(std::count_if(
          units.begin(), units.end(),
          [](const Unit* unit) { return unit->host.length_ns() > 0; }));
      for (const Unit* unit : units) {
        AddExposed(*unit, side, weight / static_cast<double>(units.size()),
                   out);
        if (unit->host.length_ns() == 0) continue;
        AddSyncs(hosts.try_emplace(unit->context, *unit->context).first->second,
                 *unit, side, weight / known, out);
      }
    }
  }
  return out;
}

std::string TimesWord(double calls) {
  return fmt::format("{:.3g} per unit", calls);
}

// Synchronisations that only one side has, and what it costs that transfers are
// hidden less, or more.
void SayWaits(std::string_view phase, const Waits& waits, double unit_ns,
              std::vector<Note>& notes) {
  constexpr double kLeastCalls = 0.2, kLeastShare = 0.01;
  const std::vector<Evidence> evidence = {
      {"diff_waits", "phase", std::string(phase), {}}};
  std::map<std::pair<size_t, std::string_view>, std::string> said;
  std::map<std::string_view, WaitCell> exposed;
  std::map<std::string_view, std::pair<double, std::string>> most;
  for (const auto& [key, cell] : waits) {
    const auto& [kind, what, op] = key;
    const double delta = cell.ns[1] - cell.ns[0];
    if (kind != kSync) {
      for (const size_t side : {size_t{0}, size_t{1}})
        exposed[kind].ns[side] += cell.ns[side];
      auto& [largest, name] = most[kind];
      if (std::abs(delta) > std::abs(largest)) {
        largest = delta;
        name = what;
      }
      continue;
    }
    for (const size_t side : {size_t{0}, size_t{1}}) {
      if (cell.calls[1 - side] > 0 || cell.calls[side] < kLeastCalls) continue;
      std::string& text = said[{side, kind}];
      text += fmt::format(
          "{}{}{} ({}, {})", text.empty() ? "" : ", ", EscapeTerminal(what),
          op.empty() ? "" : " in " + EscapeTerminal(op),
          TimesWord(cell.calls[side]), HumanTime(std::llround(cell.ns[side])));
    }
  }
  for (const auto& [key, text] : said) {
    notes.push_back(MakeNote(
        Severity::kInfo, "diff_syncs",
        fmt::format("The host waits no more in B for: {}.", text), evidence));
    if (key.first == 1)
      notes.back().text =
          fmt::format("The host waits in B alone for: {}.", text);
  }
  for (const auto& [kind, cell] : exposed) {
    const double delta = cell.ns[1] - cell.ns[0];
    if (std::abs(delta) < kLeastShare * unit_ns) continue;
    notes.push_back(MakeNote(
        Severity::kInfo, "diff_exposed",
        fmt::format(
            "{} that no computation hides: {} against {} per unit, most "
            "of the change in {}.",
            kind == kComm ? "Communication" : "Copies",
            HumanTime(std::llround(cell.ns[1])),
            HumanTime(std::llround(cell.ns[0])),
            EscapeTerminal(most[kind].second)),
        evidence));
  }
}

}  // namespace

Schema WaitsSchema() { return WaitColumns().schema(); }

Table WaitsTable(const Matching& matching, std::vector<Note>& notes) {
  std::vector<WaitRow> rows;
  std::map<const Context*, HostWaits> hosts;
  for (const MatchedPhase& phase : matching.phases) {
    const Waits waits = WaitsOf(phase, hosts);
    std::vector<WaitRow> own;
    for (const auto& [key, cell] : waits) {
      const auto& [kind, what, op] = key;
      WaitRow row{.phase = PhaseName(phase.phase),
                  .kind = kind,
                  .what = what,
                  .op = op,
                  .calls_a = cell.calls[0],
                  .calls_b = cell.calls[1],
                  .a_ns = std::llround(cell.ns[0]),
                  .b_ns = std::llround(cell.ns[1])};
      row.delta_ns = row.b_ns - row.a_ns;
      if (row.delta_ns != 0 || row.calls_a != row.calls_b)
        own.push_back(std::move(row));
    }
    std::stable_sort(own.begin(), own.end(),
                     [](const WaitRow& x, const WaitRow& y) {
                       return std::abs(x.delta_ns) > std::abs(y.delta_ns);
                     });
    std::move(own.begin(), own.end(), std::back_inserter(rows));
    if (!matching.same_recording)
      SayWaits(PhaseName(phase.phase), waits, phase.mean_ns[0], notes);
  }
  return WaitColumns().Make(rows);
}

}  // namespace lamina::runs
