// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <set>
#include <tuple>

#include "analysis/common/launchers.h"
#include "analysis/common/stats.h"
#include "analysis/layers/details.h"
#include "analysis/layers/labels.h"
#include "analysis/layers/passes.h"
#include "analysis/layers/schemas.h"
#include "base/decimal.h"

namespace lamina::analysis::layers {
namespace {

std::string Letter(uint32_t variant) {
  std::string out;
  for (uint32_t v = variant;; v = v / 26 - 1) {
    out.insert(out.begin(), static_cast<char>('A' + v % 26));
    if (v < 26) break;
  }
  return out;
}

class Tables {
 public:
  Tables(const Context& context, const Rules& rules, const LayerModel& model,
         const Options& options)
      : context_(context),
        trace_(context.trace),
        rules_(rules),
        model_(model),
        options_(options),
        labels_(context, rules, Profile::kDefault, std::nullopt) {
    const auto slices = trace_.device_slices();
    for (const SliceId s : slices) {
      total_ns_ += trace_.Duration(s);
      if (s == slices[0] || trace_.Start(s) < zero_ns_)
        zero_ns_ = trace_.Start(s);
    }
    for (const Layer& layer : model_.layers) sums_.push_back(Summary(layer));
    std::map<int64_t, int64_t> next;  // by device
    places_.resize(trace_.slices.size());
    for (const SliceId s : slices) {
      if (trace_.KindOf(s) == trace::Kind::kKernel)
        places_[s.value] = static_cast<uint32_t>(next[DeviceOf(trace_, s)]++);
    }
    for (uint32_t i = 0; i < model_.stacks.size(); ++i)
      stacks_.push_back(StackSummary(i));
  }

  ResultSet Run() {
    ResultSet result;
    if (trace_.device_slices().empty()) return result;
    result.tables.push_back(Passes());
    result.tables.push_back(Stacks());
    result.tables.push_back(Types());
    const Details details{context_, rules_, model_, options_};
    if (!options_.list.empty()) result.tables.push_back(LayerKernels(details));
    if (!options_.debug.empty()) {
      result.tables.push_back(LayerVotes(details));
      result.tables.push_back(LayerDebug(details));
    }
    if (options_.names) result.tables.push_back(NameRuleTable(details));
    result.tables.push_back(Layers());
    result.tables.push_back(Stages());
    result.tables.push_back(Orphans());
    if (!model_.checks.empty()) result.tables.push_back(Checks());
    Notes();
    result.notes = std::move(notes_);
    return result;
  }

 private:
  struct Sum {
    int64_t wall_ns = 0, kernel_ns = 0, busy_ns = 0;
    int64_t parts[kParts] = {};
    std::string type;
  };

  Part PartFor(SliceId s) const {
    if (context_.device.communication(s)) return Part::kCommunication;
    return PartOf(context_.catalog.family(context_.device.family(s)).name);
  }

  int64_t WallOf(const std::vector<SliceId>& work) const {
    int64_t end = 0;
    for (const SliceId s : work) end = std::max(end, trace_.End(s));
    return end - trace_.Start(work.front());
  }

  Sum Summary(const Layer& layer) {
    Sum sum;
    sum.wall_ns = WallOf(layer.work);
    sum.busy_ns = UnionOf(trace_, layer.work);
    bool has[kParts] = {};
    bool moe = false;
    bool mla = false;
    bool gdn = false;
    for (const SliceId s : layer.work) {
      const auto part = static_cast<size_t>(PartFor(s));
      const ClassicKernel& kernel = labels_.Of(s).kernel;
      sum.kernel_ns += trace_.Duration(s);
      sum.parts[part] += trace_.Duration(s);
      has[part] = true;
      moe = moe || kernel.moe;
      mla = mla || kernel.mla;
      gdn = gdn || kernel.gdn;
    }
    sum.type = layer.type;
    if (!sum.type.empty()) return sum;
    moe = moe || has[static_cast<size_t>(Part::kMoe)];
    const bool gemm = has[static_cast<size_t>(Part::kGemm)];
    if (has[static_cast<size_t>(Part::kAttention)]) {
      const char* kind = mla ? "MLA" : gdn ? "GDN" : "MHA";
      sum.type = moe    ? std::string(kind) + "_MOE"
                 : gemm ? std::string(kind) + "_FC"
                        : "ATTN";
    } else {
      sum.type = moe ? "MOE" : gemm ? "FC" : "BLOCK";
    }
    return sum;
  }

  // Stage of a layer; empty for one of no pass.
  const std::string& StageOf(const Layer& layer) const {
    return layer.stage.empty() ? model_.passes[layer.pass].stage : layer.stage;
  }
  bool Wanted(const std::string& stage) const {
    return options_.stage.empty() || stage == options_.stage;
  }

  double Percent(int64_t part, int64_t whole) const {
    return whole > 0
               ? 100.0 * static_cast<double>(part) / static_cast<double>(whole)
               : 0.0;
  }

  Table Passes() const {
    Table table(PassSchema());
    int64_t number = 0;
    for (const Pass& pass : model_.passes) {
      if (!Wanted(pass.stage)) {
        ++number;
        continue;
      }
      std::vector<SliceId> work = pass.outside;
      for (const uint32_t l : pass.layers) {
        const auto& own = model_.layers[l].work;
        work.insert(work.end(), own.begin(), own.end());
      }
      std::sort(work.begin(), work.end(), [&](SliceId a, SliceId b) {
        return std::pair(trace_.Start(a), a.value) <
               std::pair(trace_.Start(b), b.value);
      });
      const trace::DeviceArgs* args =
          trace_.Device(model_.layers[pass.layers.front()].work[0]);
      table.Add(number++, pass.device,
                args != nullptr && args->stream != trace::kNoInt
                    ? std::optional(args->stream)
                    : std::nullopt,
                trace_.Start(work[0]) - zero_ns_, WallOf(work),
                SumOf(trace_, work), UnionOf(trace_, work), work.size(),
                pass.stage, pass.evidence, pass.batch, pass.tokens,
                pass.layers.size(), pass.cut, GraphLaunches(work),
                pass.annotation);
    }
    return table;
  }

  // Graph launches that device work came from.
  size_t GraphLaunches(const std::vector<SliceId>& work) const {
    std::set<uint32_t> launches;
    for (const SliceId s : work) {
      const NodeId launch = context_.tree.launch(s);
      if (launch.valid() && context_.tree.name(launch).find("GraphLaunch") !=
                                std::string_view::npos)
        launches.insert(launch.value);
    }
    return launches.size();
  }

  Table Layers() const {
    Table table(LayerSchema());
    for (size_t i = 0; i < model_.layers.size(); ++i) {
      const Layer& layer = model_.layers[i];
      if (!Wanted(StageOf(layer))) continue;
      const Sum& sum = sums_[i];
      const StackInfo& stack = model_.stacks[layer.stack];
      const std::string letter = Letter(layer.variant);
      std::vector<Value> cells = {layer.pass,
                                  stack.name,
                                  layer.index,
                                  letter,
                                  sum.type,
                                  StageOf(layer),
                                  trace_.Start(layer.work[0]) - zero_ns_,
                                  sum.wall_ns,
                                  sum.kernel_ns};
      for (const int64_t part : sum.parts) cells.emplace_back(part);
      cells.insert(
          cells.end(),
          {sum.wall_ns - sum.busy_ns, layer.work.size(), FirstKernel(layer),
           trace_.Uid(layer.work[0]), layer.module, stack.boundary, layer.exact,
           stacks_[layer.stack].confidence, layer.partial});
      table.AddRow(cells);
    }
    return table;
  }

  Table Types() {
    Table table(TypeSchema());
    using Key = std::tuple<uint32_t, uint32_t, std::string, std::string>;
    std::map<Key, std::vector<uint32_t>> groups;
    for (uint32_t i = 0; i < model_.layers.size(); ++i) {
      const Layer& layer = model_.layers[i];
      if (!Wanted(StageOf(layer))) continue;
      groups[{layer.stack, layer.variant, sums_[i].type, StageOf(layer)}]
          .push_back(i);
    }
    std::vector<std::pair<Key, std::vector<uint32_t>>> rows(groups.begin(),
                                                            groups.end());
    const auto time = [&](const std::vector<uint32_t>& members) {
      int64_t sum = 0;
      for (const uint32_t l : members) sum += sums_[l].kernel_ns;
      return sum;
    };
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const auto& a, const auto& b) {
                       return time(a.second) > time(b.second);
                     });
    for (const auto& [key, members] : rows) {
      std::vector<int64_t> kernel;
      std::vector<int64_t> wall;
      for (const uint32_t l : members) {
        kernel.push_back(sums_[l].kernel_ns);
        wall.push_back(sums_[l].wall_ns);
      }
      const Stats k = Summarize(kernel);
      const Stats w = Summarize(wall);
      int64_t outliers = 0;
      for (const uint32_t l : members) {
        if (static_cast<double>(sums_[l].kernel_ns) > 1.5 * k.median) {
          ++outliers;
          outliers_.push_back(l);
        }
      }
      const std::string letter = Letter(std::get<1>(key));
      table.Add(model_.stacks[std::get<0>(key)].name, letter, std::get<2>(key),
                std::get<3>(key), members.size(), k.sum,
                Percent(k.sum, total_ns_), RoundNs(k.mean), RoundNs(k.median),
                k.p99, k.min, k.max, RoundNs(w.mean),
                model_.layers[members[0]].work.size(), outliers);
    }
    return table;
  }

  // One stack over all its layers.
  struct StackSum {
    size_t layers = 0;
    size_t passes = 0;
    std::string per_pass;  // "24" or "24, 10"
    std::string pattern;
    int64_t ns = 0;
    double exactness = 0;
    const char* confidence = "low";
  };

  StackSum StackSummary(uint32_t index) const {
    StackSum sum;
    std::map<uint32_t, size_t> per_pass;
    size_t exact = 0;
    uint32_t first_pass = UINT32_MAX;
    uint32_t run_variant = 0;
    size_t run = 0;
    const auto flush = [&] {
      if (run == 0) return;
      if (!sum.pattern.empty()) sum.pattern += ' ';
      sum.pattern += Letter(run_variant);
      if (run > 1) sum.pattern += std::to_string(run);
    };
    for (size_t l = 0; l < model_.layers.size(); ++l) {
      const Layer& layer = model_.layers[l];
      if (layer.stack != index) continue;
      ++sum.layers;
      exact += layer.exact;
      sum.ns += sums_[l].kernel_ns;
      ++per_pass[layer.pass];
      if (first_pass == UINT32_MAX) first_pass = layer.pass;
      if (layer.pass != first_pass) continue;
      if (run > 0 && layer.variant != run_variant) {
        flush();
        run = 0;
      }
      run_variant = layer.variant;
      ++run;
    }
    flush();
    if (sum.layers == 0) return sum;
    if (sum.pattern.size() > 60)
      sum.pattern = sum.pattern.substr(0, 57) + "...";
    sum.passes = per_pass.size();
    std::set<size_t, std::greater<>> sizes;
    for (const auto& [pass, size] : per_pass) sizes.insert(size);
    for (const size_t size : sizes)
      sum.per_pass += (sum.per_pass.empty() ? "" : ", ") + std::to_string(size);
    sum.exactness =
        static_cast<double>(exact) / static_cast<double>(sum.layers);
    const size_t spread = *sizes.begin() - *sizes.rbegin();
    const StackInfo& stack = model_.stacks[index];
    sum.confidence = stack.by_names                        ? "low"
                     : stack.boundary == "module"          ? "certain"
                     : sum.exactness >= 0.9 && spread == 0 ? "high"
                     : sum.exactness >= 0.5 || spread <= 1 ? "medium"
                                                           : "low";
    return sum;
  }

  Table Stacks() const {
    Table table(StackSchema());
    for (uint32_t i = 0; i < model_.stacks.size(); ++i) {
      const StackInfo& stack = model_.stacks[i];
      const StackSum& sum = stacks_[i];
      if (sum.layers == 0) continue;
      table.Add(stack.name, stack.period, stack.per_unit, sum.pattern,
                sum.per_pass, sum.passes, sum.layers,
                Percent(sum.ns, total_ns_), 100.0 * sum.exactness,
                stack.boundary, sum.confidence);
    }
    return table;
  }

  // Place of the first kernel of a layer among those of its device.
  uint32_t FirstKernel(const Layer& layer) const {
    for (const SliceId s : layer.work) {
      if (trace_.KindOf(s) == trace::Kind::kKernel) return places_[s.value];
    }
    return 0;
  }

  Table Stages() {
    Table table(StageSchema());
    struct Cell {
      size_t kernels = 0;
      int64_t ns = 0;
    };
    using Key = std::tuple<std::string_view, size_t, ClassicType>;
    std::map<Key, Cell> cells;
    std::map<std::string_view, int64_t> stages;
    const auto add = [&](std::string_view stage, SliceId s) {
      Cell& cell =
          cells[{stage, context_.device.family(s), labels_.Of(s).kernel.type}];
      ++cell.kernels;
      cell.ns += trace_.Duration(s);
      stages[stage] += trace_.Duration(s);
    };
    for (const Pass& pass : model_.passes) {
      for (const SliceId s : pass.outside) add(pass.stage, s);
      for (const uint32_t l : pass.layers) {
        const Layer& layer = model_.layers[l];
        for (const SliceId s : layer.work) add(StageOf(layer), s);
      }
    }
    for (const SliceId s : model_.no_pass) add("-", s);
    std::vector<std::pair<Key, Cell>> rows(cells.begin(), cells.end());
    std::stable_sort(
        rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
          const auto stage = std::get<0>(a.first);
          return stage != std::get<0>(b.first) ? stage < std::get<0>(b.first)
                                               : a.second.ns > b.second.ns;
        });
    for (const auto& [key, cell] : rows) {
      const auto& [stage, family, type] = key;
      if (!Wanted(std::string(stage))) continue;
      table.Add(stage, context_.catalog.family(family).name,
                ClassicTypeName(type), cell.kernels, cell.ns,
                Percent(cell.ns, stages[stage]), Percent(cell.ns, total_ns_));
    }
    return table;
  }

  Table Orphans() const {
    Table table(OrphanSchema());
    struct Cell {
      size_t kernels = 0;
      int64_t ns = 0;
    };
    using Key = std::tuple<int64_t, int64_t, std::string_view,
                           std::string_view>;  // device, stream, reason, name
    std::map<Key, Cell> cells;
    const auto add = [&](const char* reason, SliceId s) {
      const trace::DeviceArgs* args = trace_.Device(s);
      Cell& cell = cells[{DeviceOf(trace_, s),
                          args != nullptr ? args->stream : trace::kNoInt,
                          reason, trace_.Name(s)}];
      ++cell.kernels;
      cell.ns += trace_.Duration(s);
    };
    for (const Pass& pass : model_.passes) {
      const int64_t first =
          trace_.Start(model_.layers[pass.layers.front()].work[0]);
      const int64_t last =
          trace_.Start(model_.layers[pass.layers.back()].work[0]);
      for (const SliceId s : pass.outside) {
        add(trace_.Start(s) < first  ? "prologue"
            : trace_.Start(s) > last ? "epilogue"
                                     : "between",
            s);
      }
    }
    for (const SliceId s : model_.no_pass) add("no_pass", s);
    std::vector<std::pair<Key, Cell>> rows(cells.begin(), cells.end());
    std::stable_sort(
        rows.begin(), rows.end(),
        [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
    for (const auto& [key, cell] : rows) {
      const auto& [device, stream, reason, name] = key;
      table.Add(device,
                stream != trace::kNoInt ? std::optional(stream) : std::nullopt,
                reason, name, cell.kernels, cell.ns,
                Percent(cell.ns, total_ns_));
    }
    return table;
  }

  Table Checks() const {
    Table table(CheckSchema());
    for (const LayerModel::Check& check : model_.checks) {
      table.Add(check.name, check.by_module, check.by_repeat, check.by_names,
                check.equal, check.near);
    }
    return table;
  }

  void Notes() {
    Note note;
    note.severity = Severity::kVerdict;
    if (model_.layers.empty()) {
      note.id = "no_layers";
      note.text =
          options_.detector == Detector::kClassic
              ? "No layers found: no name of a kernel says that a layer begins "
                "there; `--detector auto` needs no names."
              : "No layers found: no unit that looks like a layer repeats in "
                "the sequence of kernels, and the trace has no modules that "
                "do.";
      notes_.push_back(std::move(note));
      return;
    }
    int64_t inside = 0;
    for (const Sum& sum : sums_) inside += sum.kernel_ns;
    note.id = "layers";
    note.text = fmt::format(
        "{} layers in {} {}; {:.1f} % of the device time is in layers.",
        GroupDigits(static_cast<int64_t>(model_.layers.size())),
        GroupDigits(static_cast<int64_t>(model_.passes.size())),
        model_.passes.size() == 1 ? "pass" : "passes",
        Percent(inside, total_ns_));
    note.evidence.push_back({"layer_stacks", "", "", {}});
    notes_.push_back(std::move(note));
    for (const LayerModel::Check& check : model_.checks) {
      if (check.by_module == check.by_repeat) continue;
      Note warning;
      warning.severity = Severity::kWarning;
      warning.id = "detectors_disagree";
      warning.text = fmt::format(
          "Modules give {} layers on {}, repeats in the kernel sequence {}; "
          "the modules were taken.",
          check.by_module, check.name, check.by_repeat);
      warning.evidence.push_back({"layer_check", "where", check.name, {}});
      notes_.push_back(std::move(warning));
    }
    if (outliers_.empty()) return;
    Note slow;
    slow.severity = Severity::kInfo;
    slow.id = "slow_layers";
    slow.text = fmt::format(
        "{} layers take more than 1.5 times the median "
        "of their kind:",
        outliers_.size());
    for (size_t i = 0; i < std::min<size_t>(outliers_.size(), 5); ++i) {
      const Layer& layer = model_.layers[outliers_[i]];
      slow.text +=
          fmt::format(" pass {} layer {} ({})", layer.pass, layer.index,
                      HumanTime(sums_[outliers_[i]].kernel_ns));
      slow.text += i + 1 < std::min<size_t>(outliers_.size(), 5) ? "," : ".";
      slow.evidence.push_back({"layers", "", "", {trace_.Uid(layer.work[0])}});
    }
    notes_.push_back(std::move(slow));
  }

  const Context& context_;
  const Trace& trace_;
  const Rules& rules_;
  const LayerModel& model_;
  const Options& options_;
  Labels labels_;
  std::vector<Sum> sums_;         // by layer
  std::vector<StackSum> stacks_;  // by stack
  std::vector<uint32_t> places_;  // of kernels on their device, by slice
  std::vector<uint32_t> outliers_;
  std::vector<Note> notes_;
  int64_t total_ns_ = 0;
  int64_t zero_ns_ = 0;
};

Result<ResultSet> Run(const Context& context) {
  LAMINA_ASSIGN(const auto rules, LoadRules(rules::DataSet()));
  const Options options;
  return LayerTables(context, *rules, FindLayers(context, *rules, options),
                     options);
}

}  // namespace

ResultSet LayerTables(const Context& context, const Rules& rules,
                      const LayerModel& model, const Options& options) {
  return Tables(context, rules, model, options).Run();
}

AnalysisInfo Info() {
  return {"layers", "Forward passes and the layers in them.",
          [] {
            std::vector<Schema> schemas = {
                PassSchema(),  StackSchema(),  TypeSchema(), LayerSchema(),
                StageSchema(), OrphanSchema(), CheckSchema()};
            for (Schema& schema : DetailSchemas())
              schemas.push_back(std::move(schema));
            return schemas;
          },
          &Run};
}

}  // namespace lamina::analysis::layers
