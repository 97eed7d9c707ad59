// SPDX-License-Identifier: Apache-2.0
//
// Long, because regions, the choice of their program, the three ways to join
// and what is said of them share the names that were counted.
#include "graph/compiled/compiled_join.h"

#include <absl/strings/str_join.h>
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>

#include "base/counted.h"
#include "base/decimal.h"
#include "base/text.h"

namespace lamina::graph {
namespace {

using analysis::CompiledWork;
using analysis::Join;
using trace::SliceId;

// "/w/model.py:12 in forward, code: x", "/w/model.py:13 in ..." as
// "model.py:12, 13".
std::string Where(const std::vector<std::string>& lines) {
  std::string out;
  std::string_view last;
  for (const std::string& line : lines) {
    std::string_view place = line;
    place = place.substr(0, place.find(" in "));
    place = place.substr(0, place.find(", code:"));
    const size_t slash = place.rfind('/');
    if (slash != std::string_view::npos) place.remove_prefix(slash + 1);
    const size_t colon = place.rfind(':');
    const std::string_view file = place.substr(0, colon);
    if (!out.empty()) out += ", ";
    const bool same = file == last && colon != std::string_view::npos;
    out += same ? place.substr(colon + 1) : place;
    last = file;
  }
  return out;
}

// A suffix that Triton or a runtime puts behind a name: "_0d1d2de", a hash,
// ".kd".
std::string_view WithoutSuffix(std::string_view name) {
  if (name.ends_with(".kd")) return name.substr(0, name.size() - 3);
  const size_t at = name.rfind('_');
  if (at == std::string_view::npos || at + 1 == name.size()) return {};
  const std::string_view tail = name.substr(at + 1);
  const bool specialised =
      tail.size() > 1 && std::all_of(tail.begin(), tail.end(), [](char c) {
        return (c >= '0' && c <= '9') || c == 'd' || c == 'c' || c == 'e';
      });
  const bool hash =
      tail.size() >= 8 && std::all_of(tail.begin(), tail.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
      });
  return specialised || hash ? name.substr(0, at) : std::string_view();
}

// Device slices that one call of a program launched, in order.
struct Region {
  std::string frame;  // "0/0"; may be empty
  bool call = false;  // a call of a program, not all of the trace
  std::vector<SliceId> slices;
};

using Counts = std::map<std::string, size_t, std::less<>>;  // by name

class ProgramJoiner {
 public:
  ProgramJoiner(const tree::Tree& tree,
                const std::vector<CompiledProgram>& programs)
      : tree_(tree), trace_(tree.trace()), programs_(programs) {
    for (const CompiledProgram& program : programs) {
      first_.push_back(static_cast<uint32_t>(out_.kernels.size()));
      wanted_.emplace_back();
      for (const uint32_t call : program.calls) {
        const CompiledKernel& one = program.kernels[call];
        if (one.kind == CompiledKernel::Kind::kTriton)
          ++wanted_.back()[one.name];
      }
      std::vector<size_t> calls(program.kernels.size());
      for (const uint32_t call : program.calls) ++calls[call];
      for (size_t i = 0; i < program.kernels.size(); ++i) {
        const CompiledKernel& one = program.kernels[i];
        out_.kernels.push_back(
            {program.name, one.name, std::string(Name(one.kind)),
             absl::StrJoin(one.ops, ", "), absl::StrJoin(one.nodes, ", "),
             absl::StrJoin(one.lines, "; "), Where(one.lines), calls[i]});
        // Older code calls every kernel "triton_": no name at all.
        if (one.kind == CompiledKernel::Kind::kTriton && one.name != "triton_")
          known_.insert(one.name);
      }
    }
  }

  CompiledWork Run() {
    for (const Region& region : Regions()) {
      const std::optional<size_t> program = ProgramOf(region);
      if (program) {
        JoinRegion(region, *program);
      } else {
        JoinByName(region);
      }
    }
    Tell();
    return std::move(out_);
  }

 private:
  // The name as the code has it; empty: no kernel of any program.
  std::string_view KernelName(SliceId s) const {
    std::string_view name = trace_.Name(s);
    while (!name.empty()) {
      if (known_.contains(name)) return name;
      name = WithoutSuffix(name);
    }
    return {};
  }

  std::vector<Region> Regions() const {
    std::map<tree::NodeId, size_t> places;
    std::vector<Region> out(1);  // the first: outside of all calls
    for (const SliceId s : trace_.device_slices()) {
      if (trace_.KindOf(s) != trace::Kind::kKernel) continue;
      tree::NodeId inner;
      std::string frame;
      tree::NodeId launch = tree_.launch(s);
      tree::NodeId graph;
      if (launch.valid() && tree_.OwnDeviceWork(launch).size() > 1)
        graph = launch;  // a replayed graph: all of it is one call
      for (tree::NodeId n = launch; n.valid(); n = tree_.parent(n)) {
        const std::string_view name = tree_.name(n);
        if (name.starts_with("## Call CompiledFxGraph") && !inner.valid())
          inner = n;
        constexpr std::string_view kRegion = "Torch-Compiled Region";
        if (!name.starts_with(kRegion)) continue;
        if (!inner.valid()) inner = n;
        const size_t colon = name.find(": ");
        if (colon != std::string_view::npos) frame = name.substr(colon + 2);
        break;
      }
      // The call around is only a region of its own when it runs kernels of
      // its own; one replayed graph is as good.
      if (!inner.valid()) inner = graph;
      if (!inner.valid()) {
        out[0].slices.push_back(s);
        continue;
      }
      const auto [at, fresh] = places.try_emplace(inner, out.size());
      if (fresh) {
        out.emplace_back();
        out.back().call = true;
        out.back().frame = frame.substr(0, frame.find(' '));
      }
      out[at->second].slices.push_back(s);
    }
    // In the order of the launches, which streams may change.
    for (Region& region : out) {
      std::stable_sort(
          region.slices.begin(), region.slices.end(),
          [&](SliceId a, SliceId b) { return LaunchNs(a) < LaunchNs(b); });
    }
    return out;
  }

  int64_t LaunchNs(SliceId s) const {
    const tree::NodeId launch = tree_.launch(s);
    return launch.valid() ? trace_.Start(tree_.slice(launch)) : trace_.Start(s);
  }

  Counts CountNames(const Region& region) const {
    Counts out;
    for (const SliceId s : region.slices) {
      const std::string_view name = KernelName(s);
      if (!name.empty()) ++out[std::string(name)];
    }
    return out;
  }

  // The one program whose kernels a call runs; nothing when none fits, or
  // several that differ in what they say.
  std::optional<size_t> ProgramOf(const Region& region) const {
    if (!region.call) return std::nullopt;
    const auto have = CountNames(region);
    if (have.empty()) return std::nullopt;
    std::vector<std::pair<size_t, size_t>> best;  // kernels that fit, program
    for (size_t p = 0; p < programs_.size(); ++p) {
      const CompiledProgram& program = programs_[p];
      if (!region.frame.empty() && !program.frame.empty() &&
          !SameFrame(region.frame, program.frame))
        continue;
      const Counts& want = wanted_[p];
      size_t fit = 0;
      bool all = true;
      for (const auto& [name, count] : have) {
        const auto found = want.find(name);
        all &= found != want.end();
        if (found != want.end()) fit += std::min(found->second, count);
      }
      if (all && fit > 0) best.emplace_back(fit, p);
    }
    if (best.empty()) return std::nullopt;
    std::stable_sort(
        best.begin(), best.end(),
        [](const auto& a, const auto& b) { return a.first > b.first; });
    for (size_t i = 1; i < best.size() && best[i].first == best[0].first; ++i) {
      if (!SameSaying(best[0].second, best[i].second, have))
        return std::nullopt;
    }
    return best[0].second;
  }

  // "0/0" and "0/0_1": the attempt does not count.
  static bool SameFrame(std::string_view a, std::string_view b) {
    return a.substr(0, a.find('_')) == b.substr(0, b.find('_'));
  }

  template <class NamesT>
  bool SameSaying(size_t a, size_t b, const NamesT& names) const {
    for (const auto& [name, count] : names) {
      const CompiledWork::Kernel* one = Find(a, name);
      const CompiledWork::Kernel* two = Find(b, name);
      if (one == nullptr || two == nullptr || one->ops != two->ops ||
          one->nodes != two->nodes || one->lines != two->lines)
        return false;
    }
    return true;
  }

  const CompiledWork::Kernel* Find(size_t program,
                                   std::string_view name) const {
    const CompiledProgram& p = programs_[program];
    for (size_t i = 0; i < p.kernels.size(); ++i) {
      if (p.kernels[i].kind == CompiledKernel::Kind::kTriton &&
          p.kernels[i].name == name)
        return &out_.kernels[first_[program] + i];
    }
    return nullptr;
  }

  uint32_t RowOf(const CompiledWork::Kernel& kernel) const {
    return static_cast<uint32_t>(&kernel - out_.kernels.data());
  }

  void Put(SliceId s, uint32_t row, Join join) {
    out_.uses[s] = CompiledWork::Use{row, join};
  }

  void JoinRegion(const Region& region, size_t number) {
    const CompiledProgram& program = programs_[number];
    const auto have = CountNames(region);
    bool all_exact = true;
    for (const auto& [name, count] : wanted_[number]) {
      const auto found = have.find(name);
      all_exact &= found != have.end() && found->second == count;
    }
    // Definitions of one name in order of their calls.
    std::map<std::string_view, std::vector<uint32_t>> order;
    for (const uint32_t call : program.calls) {
      const CompiledKernel& one = program.kernels[call];
      if (one.kind == CompiledKernel::Kind::kTriton)
        order[one.name].push_back(call);
    }
    std::map<std::string_view, size_t> met;
    std::vector<int64_t> call_of(region.slices.size(), -1);  // position
    for (size_t i = 0; i < region.slices.size(); ++i) {
      const std::string_view name = KernelName(region.slices[i]);
      if (name.empty()) continue;
      const auto found = order.find(name);
      if (found == order.end()) continue;
      const auto counted = have.find(name);
      const bool exact = counted->second == found->second.size();
      const size_t at = met[found->first]++ % found->second.size();
      Put(region.slices[i], first_[number] + found->second[at],
          exact ? Join::kExact : Join::kLikely);
    }
    if (all_exact) JoinLibraries(region, number);
  }

  // Calls of libraries between two kernels of their own names: as many calls
  // in the trace as in the code, of ops that fit.
  void JoinLibraries(const Region& region, size_t number) {
    const CompiledProgram& program = programs_[number];
    size_t at = 0;  // of the slices
    for (size_t c = 0; c < program.calls.size();) {
      std::vector<uint32_t> library;
      while (c < program.calls.size() &&
             program.kernels[program.calls[c]].kind !=
                 CompiledKernel::Kind::kTriton)
        library.push_back(program.calls[c++]);
      std::vector<SliceId> between;
      while (at < region.slices.size() && KernelName(region.slices[at]).empty())
        between.push_back(region.slices[at++]);
      PutLibraries(number, library, between);
      if (c < program.calls.size()) {
        // Another order than that of the code: nothing more is sure.
        if (at == region.slices.size() ||
            KernelName(region.slices[at]) !=
                program.kernels[program.calls[c]].name)
          return;
        ++at;
        ++c;
      }
    }
  }

  void PutLibraries(size_t number, const std::vector<uint32_t>& calls,
                    const std::vector<SliceId>& slices) {
    // Kernels of one op belong together.
    std::vector<std::pair<std::string, std::vector<SliceId>>> ops;
    tree::NodeId last;
    for (const SliceId s : slices) {
      tree::NodeId op;
      for (tree::NodeId n = tree_.launch(s); n.valid(); n = tree_.parent(n)) {
        const std::string_view name = tree_.name(n);
        if (name.starts_with("## Call CompiledFxGraph") ||
            name.starts_with("Torch-Compiled Region"))
          break;
        if (tree_.IsOp(n)) op = n;
      }
      if (!op.valid() || op != last || ops.empty())
        ops.emplace_back(op.valid() ? tree_.name(op) : std::string_view(),
                         std::vector<SliceId>());
      ops.back().second.push_back(s);
      last = op;
    }
    if (ops.size() != calls.size()) return;
    const CompiledProgram& program = programs_[number];
    for (size_t i = 0; i < ops.size(); ++i) {
      const CompiledKernel& call = program.kernels[calls[i]];
      if (!ops[i].first.empty() && !Fits(ops[i].first, call)) return;
    }
    for (size_t i = 0; i < ops.size(); ++i) {
      const Join join = ops[i].first.empty() ? Join::kLikely : Join::kSure;
      for (const SliceId s : ops[i].second)
        Put(s, first_[number] + calls[i], join);
    }
  }

  // "aten::mm" is the call of "mm" or "aten.mm".
  static bool Fits(std::string_view op, const CompiledKernel& call) {
    const auto bare = [](std::string_view name) {
      const size_t colon = name.rfind("::");
      if (colon != std::string_view::npos) name.remove_prefix(colon + 2);
      const size_t dot = name.rfind('.');
      if (dot != std::string_view::npos) name.remove_prefix(dot + 1);
      while (name.ends_with('_')) name.remove_suffix(1);
      return name;
    };
    std::string_view own = bare(call.name);
    if (own == "bias_addmm") own = "addmm";
    return bare(op) == own;
  }

  // Without a call around: only names that all programs explain alike.
  void JoinByName(const Region& region) {
    std::map<std::string, std::vector<SliceId>, std::less<>> named;
    for (const SliceId s : region.slices) {
      const std::string_view name = KernelName(s);
      if (!name.empty()) named[std::string(name)].push_back(s);
    }
    for (const auto& [name, slices] : named) {
      std::vector<size_t> holders;
      for (size_t p = 0; p < programs_.size(); ++p) {
        if (Find(p, name) != nullptr) holders.push_back(p);
      }
      const Counts one{{name, 1}};
      bool alike = true;
      for (const size_t other : holders)
        alike &= SameSaying(holders[0], other, one);
      if (holders.empty()) continue;
      if (!alike) {
        ambiguous_.insert(name);
        continue;
      }
      const CompiledWork::Kernel& kernel = *Find(holders[0], name);
      const bool once = slices.size() == kernel.calls;
      for (const SliceId s : slices) {
        Put(s, RowOf(kernel),
            once && holders.size() == 1 ? Join::kExact : Join::kLikely);
      }
    }
  }

  // A note is proved by the table of the kernels.
  void Note(std::string id, std::string text, std::string_view column,
            std::string_view value) {
    lamina::Note note =
        MakeNote(Severity::kWarning, std::move(id), std::move(text));
    note.evidence.push_back(
        {"compiled_kernels", std::string(column), std::string(value), {}});
    out_.notes.push_back(std::move(note));
  }

  void Tell() {
    size_t strangers = 0;
    std::set<std::string_view> names;
    int64_t stranger_ns = 0;
    for (const SliceId s : trace_.device_slices()) {
      const std::string_view name = trace_.Name(s);
      if (!name.starts_with("triton_") || out_.uses.contains(s) ||
          ambiguous_.contains(KernelName(s)))
        continue;
      ++strangers;
      names.insert(name);
      stranger_ns += trace_.Duration(s);
    }
    if (out_.uses.empty()) {
      Note("compiled_none",
           "No kernel of the trace has a name of the compiled programs: they "
           "are of another run, or kernels are not named one by one.",
           "count", "0");
    } else if (strangers > 0) {
      Note("compiled_strangers",
           fmt::format("{} ({}, {}) with names that the compiled programs do "
                       "not hold, such as {}: more graphs were compiled, or "
                       "others.",
                       Counted(strangers, "Triton kernel"),
                       HumanTime(stranger_ns), Counted(names.size(), "name"),
                       *names.begin()),
           "kernel", *names.begin());
    }
    if (!ambiguous_.empty()) {
      Note("compiled_ambiguous",
           fmt::format("{} in several programs and compute other things there, "
                       "such as {}; the trace does not say which program "
                       "launched them.",
                       ambiguous_.size() == 1
                           ? "1 name of a kernel stands"
                           : fmt::format("{} names of kernels stand",
                                         ambiguous_.size()),
                       *ambiguous_.begin()),
           "kernel", *ambiguous_.begin());
    }
    for (const CompiledProgram& program : programs_) {
      if (!program.cut) continue;
      Note("compiled_cut",
           "The code of program " + program.name +
               " ends inside: kernels behind are not known.",
           "program", program.name);
    }
  }

  const tree::Tree& tree_;
  const trace::Trace& trace_;
  const std::vector<CompiledProgram>& programs_;
  std::vector<Counts> wanted_;   // calls of Triton kernels of a program
  std::vector<uint32_t> first_;  // row of the first kernel of a program
  std::set<std::string, std::less<>> known_;
  std::set<std::string, std::less<>> ambiguous_;
  CompiledWork out_;
};

}  // namespace

Result<JoinedCode> JoinedCode::Of(const analysis::Context& context) {
  JoinedCode joined;
  if (context.input.compiled != nullptr)
    joined.work = JoinCompiled(context.tree, *context.input.compiled);
  return joined;
}

CompiledWork JoinCompiled(const tree::Tree& tree,
                          const std::vector<CompiledProgram>& programs) {
  return ProgramJoiner(tree, programs).Run();
}

Result<std::vector<CompiledProgram>> ReadAllPrograms(
    const std::vector<std::string>& paths) {
  std::vector<CompiledProgram> programs;
  for (const std::string& path : paths) {
    LAMINA_ASSIGN(auto own, ReadCompiledPrograms(path));
    std::move(own.begin(), own.end(), std::back_inserter(programs));
  }
  return programs;
}

}  // namespace lamina::graph
