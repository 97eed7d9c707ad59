// SPDX-License-Identifier: Apache-2.0
//
// From the text of a what-if to changed edges.
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <charconv>
#include <fmt/core.h>
#include <functional>
#include <map>
#include <re2/re2.h>

#include "analysis/common/collective.h"
#include "analysis/host/sequences.h"
#include "analysis/path/what_if.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "rules/document.h"

namespace lamina::analysis::path {
namespace {

using trace::kNoInt;

constexpr std::string_view kForms =
    "scale:kernel~RE:F, scale:op~RE:F, scale:host~RE:F, scale:class=NAME:F, "
    "bandwidth:copy=GBPS, bandwidth:comm=GBPS, drop:sync[~RE], graph:step=N, "
    "graph:run=STREAM/RUN, fuse:SEQUENCE, zero:launch, zero:gaps";

// A decimal factor as a fraction, so that work stays whole nanoseconds.
struct Factor {
  int64_t over = 1;
  int64_t under = 1;

  int64_t Of(int64_t work) const {
    return static_cast<int64_t>(static_cast<__int128>(work) * over / under);
  }
  double AsReal() const {
    return static_cast<double>(over) / static_cast<double>(under);
  }
};

std::optional<Factor> ParseFactor(std::string_view text) {
  constexpr size_t kMostDigits = 9;
  Factor out;
  out.over = 0;
  bool point = false;
  size_t digits = 0;
  for (const char c : text) {
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9' || ++digits > kMostDigits) return std::nullopt;
    out.over = out.over * 10 + (c - '0');
    if (point) out.under *= 10;
  }
  if (digits == 0) return std::nullopt;
  return out;
}

class Parser {
 public:
  Parser(const Graph& graph, const std::string& text)
      : graph_(graph), trace_(graph.model().trace()), text_(text) {}

  Result<Scenario> Run() {
    std::string_view rest = text_;
    const std::string_view verb = Take(rest, ':');
    if (verb == "scale") {
      LAMINA_TRY(Scale(rest));
    } else if (verb == "bandwidth") {
      LAMINA_TRY(Bandwidth(rest));
    } else if (verb == "drop") {
      LAMINA_TRY(Drop(rest));
    } else if (verb == "graph") {
      LAMINA_TRY(GraphOf(rest));
    } else if (verb == "fuse") {
      LAMINA_TRY(Fuse(rest));
    } else if (verb == "zero" && rest == "launch") {
      NoLaunch();
    } else if (verb == "zero" && rest == "gaps") {
      for (uint32_t e = 0; e < graph_.edges().size(); ++e) {
        const Edge& edge = graph_.edges()[e];
        if (edge.kind == EdgeKind::kOrder && edge.work_ns > 0)
          out_.edges.emplace_back(e, 0);
      }
      for (uint32_t v = graph_.first_device(); v < graph_.nodes(); v += 2)
        out_.unexplained.push_back(v);
    } else {
      return Fail(Wrong("is no what-if"));
    }
    return std::move(out_);
  }

 private:
  static std::string_view Take(std::string_view& text, char until) {
    const size_t at = text.find(until);
    const std::string_view head = text.substr(0, at);
    text =
        at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
    return head;
  }
  Error Wrong(const std::string& what) const {
    return UsageError("--what-if: '" + EscapeTerminal(text_) + "' " + what,
                      "forms: " + std::string(kForms));
  }

  // No latency behind the call, and nothing that is unexplained right after it
  // up to 20 us. Where only the edge from the end of the call was needed it
  // becomes one from its start.
  void NoLaunch() {
    constexpr int64_t kMostNs = 20000;
    for (uint32_t v = graph_.first_device(); v < graph_.nodes(); v += 2) {
      bool from_start = false;
      for (const uint32_t e : graph_.In(v))
        from_start |= graph_.edges()[e].kind == EdgeKind::kLaunch;
      for (const uint32_t e : graph_.In(v)) {
        const Edge& edge = graph_.edges()[e];
        if (edge.kind != EdgeKind::kSubmit) continue;
        if (from_start) {
          out_.dropped.push_back(e);
        } else {
          const uint32_t c = graph_.model().call(graph_.Work(v));
          const int64_t took = trace_.Duration(graph_.model().calls()[c].slice);
          out_.edges.emplace_back(e, std::min<int64_t>(edge.work_ns, -took));
        }
      }
      const uint32_t critical = graph_.critical(v);
      if (critical == kNoNode || critical == kChain) continue;
      const EdgeKind kind = graph_.edges()[critical].kind;
      if ((kind == EdgeKind::kSubmit || kind == EdgeKind::kLaunch) &&
          graph_.residual(v) <= kMostNs)
        out_.unexplained.push_back(v);
    }
  }

  // A pattern, asked once per distinct name.
  class Names {
   public:
    Names(const Trace& trace, std::string_view pattern)
        : trace_(trace),
          regex_(std::string(pattern), RE2::Quiet),
          known_(trace.strings.size(), -1) {}
    const RE2& regex() const { return regex_; }
    bool Match(StringId name) {
      int8_t& known = known_[name.value];
      if (known < 0)
        known = RE2::PartialMatch(trace_.Text(name), regex_) ? 1 : 0;
      return known == 1;
    }

   private:
    const Trace& trace_;
    RE2 regex_;
    std::vector<int8_t> known_;
  };

  Status Pattern(const Names& names) const {
    if (names.regex().ok()) return {};
    return Fail(
        UsageError("--what-if: '" + EscapeTerminal(text_) +
                       "' has a wrong pattern: " + names.regex().error(),
                   "RE2 syntax"));
  }

  // Among which names a pattern was looked for.
  enum class Named { kKernels, kOpsThatLaunch, kHost, kWaits };

  // The pattern matched nothing: says what is near.
  Error Nothing(std::string_view pattern, Named among) const {
    std::vector<bool> seen(trace_.strings.size(), false);
    std::vector<std::string_view> names;
    const auto add = [&](SliceId s) {
      const StringId name = trace_.slices.name[s.value];
      if (seen[name.value]) return;
      seen[name.value] = true;
      names.push_back(trace_.Text(name));
    };
    const tree::Tree& tree = graph_.model().context().tree;
    switch (among) {
      case Named::kKernels:
        for (const SliceId s : trace_.device_slices()) add(s);
        break;
      case Named::kOpsThatLaunch:
        for (const SliceId s : trace_.device_slices()) {
          for (NodeId n = tree.launch(s); n.valid(); n = tree.parent(n)) {
            if (tree.IsOp(n)) add(tree.slice(n));
          }
        }
        break;
      case Named::kHost:
        for (const auto& thread : graph_.model().threads()) {
          for (const SliceId s : thread.events) add(s);
        }
        break;
      case Named::kWaits:
        for (const Edge& edge : graph_.edges()) {
          if (IsSync(edge.kind)) add(edge.owner);
        }
    }
    const std::string said =
        "--what-if: '" + EscapeTerminal(text_) + "' matches nothing";
    if (names.empty() && among == Named::kWaits)
      return UsageError(said, "no call is known to wait for the device");
    if (names.empty() && among == Named::kOpsThatLaunch)
      return UsageError(said, "no op is known to launch device work");
    std::string_view near = rules::Nearest(pattern, names);
    std::string hint;
    if (!near.empty()) {
      hint = "did you mean '" + std::string(near) + "'?";
    } else {
      std::sort(names.begin(), names.end());
      constexpr size_t kMost = 5;
      for (size_t i = 0; i < names.size() && i < kMost; ++i)
        hint +=
            (i == 0 ? "names: " : ", ") + std::string(names[i].substr(0, 60));
    }
    return UsageError(said, EscapeTerminal(hint));
  }

  static bool IsSync(EdgeKind kind) {
    return kind == EdgeKind::kSync || kind == EdgeKind::kPoll;
  }

  // Scales the work of device events for which `wanted` holds. Ranks that are
  // in no file change as well, by `peers`: what collectives wait for them.
  size_t ScaleWork(const std::function<bool(SliceId)>& wanted, Factor factor,
                   const std::array<double, 4>& peers) {
    size_t count = 0;
    for (uint32_t v = graph_.first_device() + 1; v < graph_.nodes(); v += 2) {
      const Stretch* const stretch =
          graph_.chain(v) == EdgeKind::kComm ? graph_.stretch(v) : nullptr;
      const int64_t work = graph_.chain_work(v);
      if (!wanted(graph_.owner(v))) {
        if (stretch != nullptr && peers[2] != 1)
          out_.peers.emplace_back(v, WaitingWork(*stretch, work, peers));
        continue;
      }
      ++count;
      if (stretch != nullptr) {
        out_.collectives.emplace_back(
            v, StretchedWork(*stretch, work, factor.over, factor.under, peers));
      } else {
        out_.chains.emplace_back(v, factor.Of(work));
      }
    }
    for (uint32_t e = 0; e < graph_.edges().size(); ++e) {
      const Edge& edge = graph_.edges()[e];
      if (edge.kind == EdgeKind::kCopy && wanted(edge.owner))
        out_.edges.emplace_back(e, factor.Of(edge.work_ns));
    }
    return count;
  }

  void ScalePeers(const std::array<double, 4>& peers) {
    for (const auto& [v, stretch] : graph_.stretches()) {
      out_.peers.emplace_back(
          v, WaitingWork(stretch, graph_.chain_work(v), peers));
    }
    // The order of a hash map must not decide anything.
    std::sort(out_.peers.begin(), out_.peers.end());
  }

  // By how much the work of a rank changes if computation for which `wanted`
  // holds is scaled: so do its peers.
  std::array<double, 4> ShareOf(const std::function<bool(SliceId)>& wanted,
                                Factor factor) const {
    int64_t all = 0, some = 0;
    for (const SliceId s : graph_.work()) {
      if (graph_.model().kind(s) != host::WorkKind::kCompute) continue;
      all += trace_.Duration(s);
      if (wanted(s)) some += trace_.Duration(s);
    }
    const double share =
        all == 0 ? 0 : static_cast<double>(some) / static_cast<double>(all);
    return PeersOf(1 - (1 - factor.AsReal()) * share, false);
  }

  Status Scale(std::string_view rest) {
    const size_t colon = rest.rfind(':');
    if (colon == std::string_view::npos) return Fail(Wrong("has no factor"));
    const auto factor = ParseFactor(rest.substr(colon + 1));
    if (!factor) return Fail(Wrong("has no factor such as 0.5"));
    std::string_view target = rest.substr(0, colon);
    if (target.starts_with("class="))
      return ScaleClass(target.substr(6), *factor);
    const std::string_view what = Take(target, '~');
    if (what != "kernel" && what != "op" && what != "host")
      return Fail(Wrong("scales neither kernel~, op~, host~ nor class="));
    Names names(trace_, target);
    LAMINA_TRY(Pattern(names));
    size_t count = 0;
    if (what == "host") {
      for (uint32_t v = 0; v < graph_.first_device(); ++v) {
        const EdgeKind kind = graph_.chain(v);
        if ((kind != EdgeKind::kHost && kind != EdgeKind::kCall) ||
            !names.Match(trace_.slices.name[graph_.owner(v).value]))
          continue;
        ++count;
        out_.chains.emplace_back(v, factor->Of(graph_.chain_work(v)));
      }
    } else {
      const auto& tree = graph_.model().context().tree;
      const auto wanted = [&](SliceId s) {
        if (what == "kernel") return names.Match(trace_.slices.name[s.value]);
        for (NodeId n = tree.launch(s); n.valid(); n = tree.parent(n)) {
          if (tree.IsOp(n) &&
              names.Match(trace_.slices.name[tree.slice(n).value]))
            return true;
        }
        return false;
      };
      count = ScaleWork(wanted, *factor, ShareOf(wanted, *factor));
    }
    if (count == 0) {
      return Fail(Nothing(target, what == "kernel" ? Named::kKernels
                                  : what == "op"   ? Named::kOpsThatLaunch
                                                   : Named::kHost));
    }
    return {};
  }

  Status ScaleClass(std::string_view name, Factor factor) {
    static constexpr std::string_view kNames[] = {"compute", "fill", "comm",
                                                  "copy",    "host", "device"};
    if (name == "host") {
      for (uint32_t v = 0; v < graph_.first_device(); ++v) {
        const EdgeKind kind = graph_.chain(v);
        if (kind == EdgeKind::kHost || kind == EdgeKind::kHostGap ||
            kind == EdgeKind::kCall)
          out_.chains.emplace_back(v, factor.Of(graph_.chain_work(v)));
      }
      if (factor.over != factor.under)
        ScalePeers(PeersOf(factor.AsReal(), true));
      return {};
    }
    using host::WorkKind;
    const HostModel& model = graph_.model();
    if (std::find(std::begin(kNames), std::end(kNames), name) ==
        std::end(kNames)) {
      return Fail(UsageError(
          "--what-if: there is no class '" + EscapeTerminal(name) + "'",
          "compute, fill, comm, copy, host or device"));
    }
    ScaleWork(
        [&](SliceId s) {
          switch (model.kind(s)) {
            case WorkKind::kCompute:
              return name == "compute" || name == "device";
            case WorkKind::kFill:
              return name == "fill" || name == "device";
            case WorkKind::kComm:
              return name == "comm" || name == "device";
            case WorkKind::kCopy:
              return name == "copy" || name == "device";
          }
          return false;
        },
        factor,
        PeersOf(name == "compute" || name == "device" ? factor.AsReal() : 1.0,
                false));
    return {};
  }

  // Bytes that a copy or collective moves; nothing when not recorded.
  std::optional<int64_t> Bytes(SliceId s) const {
    const trace::DeviceArgs* args = trace_.Device(s);
    if (args == nullptr) return std::nullopt;
    if (args->bytes != kNoInt) return args->bytes;
    const trace::CollectiveArgs* c = trace_.Collective(args->collective);
    if (c == nullptr || !c->dtype.valid()) return std::nullopt;
    const auto size = CollectiveElementBytes(trace_.Text(c->dtype));
    const int64_t elements = std::max(c->in_elements, c->out_elements);
    if (!size || elements <= 0 || elements > int64_t{1} << 48)
      return std::nullopt;
    return elements * *size;
  }

  Status Bandwidth(std::string_view rest) {
    const std::string_view what = Take(rest, '=');
    const auto rate = ParseDouble(rest);
    if ((what != "copy" && what != "comm") || !rate || !(*rate > 0) ||
        *rate > 1e6)
      return Fail(Wrong("is no bandwidth in GB/s"));
    const host::WorkKind kind =
        what == "copy" ? host::WorkKind::kCopy : host::WorkKind::kComm;
    // The shortest of each class of sizes, by powers of two: latency that no
    // bandwidth removes.
    constexpr int kSmall = 12;  // up to 4 KiB
    std::optional<int64_t> floor;
    size_t known = 0;
    const auto for_each = [&](const auto& f) {
      for (uint32_t v = graph_.first_device() + 1; v < graph_.nodes(); v += 2) {
        const SliceId s = graph_.owner(v);
        if (graph_.model().kind(s) != kind) continue;
        const auto bytes = Bytes(s);
        if (bytes) f(v, *bytes);
      }
    };
    for_each([&](uint32_t v, int64_t bytes) {
      ++known;
      if (bytes <= int64_t{1} << kSmall)
        floor = std::min(floor.value_or(graph_.chain_work(v)),
                         graph_.chain_work(v));
    });
    if (known == 0)
      return Fail(Wrong("changes nothing: no bytes are recorded"));
    for_each([&](uint32_t v, int64_t bytes) {
      const auto ns = static_cast<int64_t>(static_cast<double>(bytes) / *rate);
      out_.chains.emplace_back(v, std::max(floor.value_or(0), ns));
    });
    return {};
  }

  Status Drop(std::string_view rest) {
    const std::string_view what = Take(rest, '~');
    if (what != "sync") return Fail(Wrong("drops no sync"));
    Names names(trace_, rest.empty() ? std::string_view(".") : rest);
    LAMINA_TRY(Pattern(names));
    const auto wanted = [&](SliceId s) {
      return names.Match(trace_.slices.name[s.value]);
    };
    // The call then takes what its own work takes, and nothing unexplained.
    for (uint32_t e = 0; e < graph_.edges().size(); ++e) {
      const Edge& edge = graph_.edges()[e];
      if (IsSync(edge.kind) && wanted(edge.owner)) out_.dropped.push_back(e);
    }
    const HostModel& model = graph_.model();
    for (uint32_t v = 0; v < graph_.first_device(); ++v) {
      if (graph_.chain(v) != EdgeKind::kCall || !wanted(graph_.owner(v)))
        continue;
      const uint32_t c = model.CallOf(graph_.owner(v));
      if (c == host::kNone || !model.calls()[c].full)
        out_.unexplained.push_back(v);
    }
    if (out_.unexplained.empty() && !rest.empty())
      return Fail(Nothing(rest, Named::kWaits));
    if (!out_.unexplained.empty()) ScalePeers(PeersOf(0.0, true));
    return {};
  }

  Status GraphOf(std::string_view rest) {
    const std::string_view what = Take(rest, '=');
    if (what == "run") return GraphOfRun(rest);
    if (what != "step") return Fail(Wrong("names no step and no run"));
    const auto& steps = graph_.model().context().steps;
    uint32_t step = tree::Steps::kOutside;
    for (uint32_t i = 0; i < steps.steps().size(); ++i) {
      if (std::to_string(steps.steps()[i].number) == rest) step = i;
    }
    if (step == tree::Steps::kOutside)
      return Fail(Wrong("names a step that the trace does not have"));
    Groups groups;
    const auto& work = graph_.work();
    for (uint32_t i = 0; i < work.size(); ++i) {
      if (steps.StepOf(work[i]) == step)
        groups.emplace_back(graph_.first_device() + 2 * i, 0);
    }
    if (groups.empty()) return Fail(Wrong("names a step without device work"));
    AsGraphs(std::move(groups), false);
    return {};
  }

  // "STREAM/RUN", or "RUN" where only one stream has a run of that number.
  Status GraphOfRun(std::string_view rest) {
    const HostModel& model = graph_.model();
    std::vector<host::LaunchRun> named;
    for (uint32_t i = 0; i < trace_.streams.size(); ++i) {
      for (const host::LaunchRun& run : host::FindLaunchRuns(model, i)) {
        const std::string number = std::to_string(run.number);
        if (rest == number ||
            rest == std::to_string(trace_.streams[i].stream) + "/" + number)
          named.push_back(run);
      }
    }
    if (named.empty())
      return Fail(Wrong("names no run of launch_runs (lamina host)"));
    if (named.size() > 1)
      return Fail(Wrong("names runs of several streams: say STREAM/RUN"));
    const uint32_t first = FirstOf(named[0].stream);
    Groups groups;
    for (size_t k = named[0].begin; k < named[0].end; ++k)
      groups.emplace_back(first + 2 * static_cast<uint32_t>(k), 0);
    AsGraphs(std::move(groups), false);
    return {};
  }

  // Every occurrence of a row of kernel_sequences becomes one kernel: one
  // launch, nothing between its parts, their work as it is.
  Status Fuse(std::string_view rest) {
    const HostModel& model = graph_.model();
    const auto sequences = host::FindSequences(
        model, host::FindIdle(model, rules::PatternTable()));
    const auto number = ParseInt(rest);
    if (!number || *number < 1 ||
        *number > static_cast<int64_t>(sequences.size())) {
      return Fail(Wrong("names no row of kernel_sequences (lamina host)"));
    }
    const host::KernelSequence& sequence =
        sequences[static_cast<size_t>(*number - 1)];
    const uint32_t first = FirstOf(sequence.stream);
    Groups groups;
    for (uint32_t i = 0; i < sequence.starts.size(); ++i) {
      for (uint32_t k = 0; k < sequence.length; ++k)
        groups.emplace_back(first + 2 * (sequence.starts[i] + k), i);
    }
    AsGraphs(std::move(groups), true);
    return {};
  }

  // The start node of the first work of a stream; that of its next work stands
  // two further on.
  uint32_t FirstOf(uint32_t stream) const {
    uint32_t node = graph_.first_device();
    for (uint32_t i = 0; i < stream; ++i)
      node += 2 * static_cast<uint32_t>(trace_.streams[i].slices.size());
    return node;
  }

  // Start nodes of device work, and which group it is launched with.
  using Groups = std::vector<std::pair<uint32_t, uint32_t>>;

  // The work of a group is launched at once: its calls cost the host nothing,
  // only the first work of each stream waits for a launch, and what nothing
  // explains between its kernels is gone. `fused`: so is their spacing.
  void AsGraphs(Groups groups, bool fused) {
    const HostModel& model = graph_.model();
    // In the order of the streams, and of the times in each.
    std::sort(groups.begin(), groups.end());
    std::vector<uint32_t> calls;
    absl::flat_hash_set<std::pair<uint32_t, uint32_t>> begun;  // group, stream
    absl::flat_hash_set<uint32_t> launched;                    // groups
    for (const auto& [v, group] : groups) {
      const SliceId s = graph_.Work(v);
      const uint32_t c = model.call(s);
      if (c == host::kNone || model.calls()[c].staged) continue;
      if (begun.emplace(group, model.stream(s)).second) {
        // The first of all keeps its launch: that of the graph.
        if (launched.insert(group).second) continue;
      } else {
        out_.unexplained.push_back(v);
        for (const uint32_t e : graph_.In(v)) {
          const Edge& edge = graph_.edges()[e];
          if (edge.kind == EdgeKind::kLaunch || edge.kind == EdgeKind::kSubmit)
            out_.dropped.push_back(e);
          if (fused && edge.kind == EdgeKind::kOrder && edge.work_ns > 0)
            out_.edges.emplace_back(e, 0);
        }
      }
      calls.push_back(c);
    }
    std::sort(calls.begin(), calls.end());
    calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
    for (const uint32_t c : calls) NoHostWork(model.calls()[c]);
  }

  // A call costs the host nothing.
  void NoHostWork(const host::Call& call) {
    auto [v, end] = graph_.NodesOfThread(call.thread);
    const int64_t start = trace_.Start(call.slice);
    for (uint32_t count = end - v; count > 0;) {  // the first from its start on
      const uint32_t half = count / 2;
      if (graph_.time(v + half) < start) {
        v += half + 1;
        count -= half + 1;
      } else {
        count = half;
      }
    }
    for (; v < end && graph_.time(v) <= trace_.End(call.slice); ++v) {
      if ((graph_.chain(v) == EdgeKind::kHost ||
           graph_.chain(v) == EdgeKind::kCall) &&
          graph_.owner(v) == call.slice)
        out_.chains.emplace_back(v, 0);
    }
  }

  const Graph& graph_;
  const Trace& trace_;
  const std::string& text_;
  Scenario out_;
};

}  // namespace

Result<Scenario> ParseScenario(const Graph& graph, const std::string& text) {
  return Parser(graph, text).Run();
}

}  // namespace lamina::analysis::path
