// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <tuple>

#include "analysis/common/launchers.h"
#include "analysis/common/stats.h"
#include "analysis/layers/layers.h"
#include "analysis/layers/rule_of_name.h"
#include "base/decimal.h"

namespace lamina::analysis::layers {
namespace {

constexpr const char* kPartColumns[kParts] = {
    "attention_us",     "gemm_us",         "moe_us",  "norm_us",
    "communication_us", "quantization_us", "other_us"};

Schema PassSchema() {
  return {"passes",
          "One row per forward pass or iteration.",
          {{"pass", ColumnType::kInt, "From 0, by start."},
           {"device", ColumnType::kInt, "Device.", Shown::kHidden},
           {"start_us", ColumnType::kTime, "Since the first device event."},
           {"wall_us", ColumnType::kTime, "From first start to last end."},
           {"kernel_time_us", ColumnType::kTime, "Sum of durations."},
           {"busy_us", ColumnType::kTime, "Union of all streams."},
           {"kernels", ColumnType::kInt, "Device events."},
           {"stage", ColumnType::kText,
            "prefill, decode, mixed; none: nothing speaks of serving; "
            "unknown: something does, but not which."},
           {"stage_evidence", ColumnType::kText,
            "annotation, attention, or - for none.", Shown::kHidden},
           {"batch", ColumnType::kInt, "Requests, from the annotation."},
           {"tokens", ColumnType::kInt, "Tokens, from the annotation."},
           {"layers", ColumnType::kInt, "Layers of all stacks."},
           {"annotation", ColumnType::kText, "Verbatim.", Shown::kHidden}}};
}

Schema LayerSchema() {
  Schema schema{
      "layers",
      "One row per layer; kernels outside layers are in orphans.",
      {{"pass", ColumnType::kInt, "Pass."},
       {"stack", ColumnType::kText, "Stack of layers."},
       {"layer", ColumnType::kInt, "From 0 in (pass, stack)."},
       {"variant", ColumnType::kText,
        "Layers with the same kernels share a letter."},
       {"type", ColumnType::kText,
        "MHA, MLA or GDN attention, with MOE or FC; BLOCK: neither."},
       {"stage", ColumnType::kText, "Of the pass.", Shown::kHidden},
       {"start_us", ColumnType::kTime, "Since the first device event."},
       {"wall_us", ColumnType::kTime, "First start to last end."},
       {"kernel_time_us", ColumnType::kTime, "Sum of durations."}}};
  for (const char* part : kPartColumns) {
    schema.columns.push_back(
        {part, ColumnType::kTime, "Part of kernel_time_us; the parts add up."});
  }
  for (Column column :
       {Column{"gap_us", ColumnType::kTime, "Wall time without work."},
        Column{"kernels", ColumnType::kInt, "Device events."},
        Column{"first_uid", ColumnType::kInt, "Event number of the first.",
               Shown::kHidden},
        Column{"module", ColumnType::kText, "Path, when it is known.",
               Shown::kHidden},
        Column{"boundary", ColumnType::kText,
               "What says where it begins: module, norm or none.",
               Shown::kHidden},
        Column{"exact", ColumnType::kBool,
               "Equal to its neighbours kernel by kernel, or from a module.",
               Shown::kHidden}})
    schema.columns.push_back(std::move(column));
  return schema;
}

Schema TypeSchema() {
  return {
      "layer_types",
      "Layers with the same kernels in the same stage.",
      {{"stack", ColumnType::kText, "Stack."},
       {"variant", ColumnType::kText, "Letter."},
       {"type", ColumnType::kText, "Type."},
       {"stage", ColumnType::kText, "Stage."},
       {"layers", ColumnType::kInt, "How many."},
       {"kernel_time_us", ColumnType::kTime, "Sum over all of them."},
       {"percent", ColumnType::kReal, "Share of all device time.", Shown::kBar},
       {"mean_us", ColumnType::kTime, "Mean kernel time."},
       {"p50_us", ColumnType::kTime, "Median kernel time."},
       {"p99_us", ColumnType::kTime, "99th percentile, nearest rank."},
       {"min_us", ColumnType::kTime, "Shortest.", Shown::kHidden},
       {"max_us", ColumnType::kTime, "Longest.", Shown::kHidden},
       {"mean_wall_us", ColumnType::kTime, "Mean wall time."},
       {"kernels", ColumnType::kInt, "Device events of the first."},
       {"outliers", ColumnType::kInt, "Layers above 1.5 times the median."}}};
}

Schema StackSchema() {
  return {
      "layer_stacks",
      "Stacks of layers.",
      {{"stack", ColumnType::kText, "Class of the module, else a number."},
       {"period", ColumnType::kInt, "Kernels of the repeated unit."},
       {"layers_per_unit", ColumnType::kInt, "Layers in the unit.",
        Shown::kHidden},
       {"pattern", ColumnType::kText,
        "Variants of the first pass in order: A3 B58."},
       {"layers_per_pass", ColumnType::kText,
        "Layers of a pass; several numbers when passes differ."},
       {"passes", ColumnType::kInt, "Passes that have it."},
       {"layers", ColumnType::kInt, "Layers in all."},
       {"percent", ColumnType::kReal, "Share of all device time.", Shown::kBar},
       {"exact_percent", ColumnType::kReal, "Share of layers that are exact.",
        Shown::kPercent},
       {"boundary", ColumnType::kText, "What says where layers begin."},
       {"confidence", ColumnType::kText,
        "certain (modules), high, medium or low."}}};
}

Schema KernelSchema() {
  return {"layer_kernels",
          "Kernels of the layers that --layer names, of the first pass.",
          {{"pass", ColumnType::kInt, "Pass.", Shown::kHidden},
           {"stack", ColumnType::kText, "Stack.", Shown::kHidden},
           {"layer", ColumnType::kInt, "Layer."},
           {"position", ColumnType::kInt, "From 0."},
           {"kernel", ColumnType::kText, "Name."},
           {"part", ColumnType::kText, "What it does for the layer."},
           {"op", ColumnType::kText, "Op that launched it."},
           {"dur_us", ColumnType::kTime, "Duration."},
           {"percent", ColumnType::kReal, "Share of the layer.", Shown::kBar},
           {"gap_before_us", ColumnType::kTime,
            "Idle time before it inside the layer.", Shown::kHidden},
           {"uid", ColumnType::kInt, "Event number.", Shown::kHidden}}};
}

Schema StageSchema() {
  return {"stage_kernel_type",
          "Device time by stage of the pass and part of the layer; all rows "
          "add up to all device time.",
          {{"stage", ColumnType::kText, "Stage; -: in no pass."},
           {"part", ColumnType::kText, "Part."},
           {"kernels", ColumnType::kInt, "Device events."},
           {"kernel_time_us", ColumnType::kTime, "Sum of durations."},
           {"percent_of_stage", ColumnType::kReal, "Share.", Shown::kPercent},
           {"percent", ColumnType::kReal, "Share of all device time.",
            Shown::kBar}}};
}

Schema OrphanSchema() {
  return {"orphans",
          "Device events in no layer.",
          {{"reason", ColumnType::kText,
            "prologue (before the first layer of a pass), epilogue (after "
            "the last), between (two stacks), no_pass."},
           {"kernel", ColumnType::kText, "Name."},
           {"kernels", ColumnType::kInt, "Device events."},
           {"kernel_time_us", ColumnType::kTime, "Sum of durations."},
           {"percent", ColumnType::kReal, "Share of all device time.",
            Shown::kBar}}};
}

Schema CheckSchema() {
  return {"layer_check",
          "Layers by modules beside layers by repeats.",
          {{"where", ColumnType::kText, "Device."},
           {"layers_module", ColumnType::kInt, "By modules."},
           {"layers_repeat", ColumnType::kInt, "By repeats."},
           {"boundaries_equal", ColumnType::kInt, "At the same kernel."},
           {"boundaries_within_2", ColumnType::kInt, "Within two kernels."}}};
}

std::string Letter(uint32_t variant) {
  std::string out;
  for (uint32_t v = variant;; v = v / 26 - 1) {
    out.insert(out.begin(), static_cast<char>('A' + v % 26));
    if (v < 26) break;
  }
  return out;
}

constexpr const char* kPartNames[kParts] = {
    "attention",     "gemm",         "moe",  "norm",
    "communication", "quantization", "other"};

class Tables {
 public:
  Tables(const Context& context, const Rules& rules, const LayerModel& model,
         const Options& options)
      : context_(context),
        trace_(context.trace),
        moe_(rules.moe, trace_),
        mla_(rules.mla, trace_),
        gdn_(rules.gdn, trace_),
        model_(model),
        options_(options) {
    const auto slices = trace_.device_slices();
    for (const SliceId s : slices) {
      total_ns_ += trace_.Duration(s);
      if (s == slices[0] || trace_.Start(s) < zero_ns_)
        zero_ns_ = trace_.Start(s);
    }
    for (const Layer& layer : model_.layers) sums_.push_back(Summary(layer));
  }

  ResultSet Run() {
    ResultSet result;
    if (trace_.device_slices().empty()) return result;
    result.tables.push_back(Passes());
    result.tables.push_back(Stacks());
    result.tables.push_back(Types());
    if (!options_.list.empty()) result.tables.push_back(Kernels());
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

  static bool Marked(RuleOfName& rule_of, const Layer& layer) {
    return std::any_of(layer.work.begin(), layer.work.end(), [&](SliceId s) {
      return rule_of(s) != rules::PatternTable::kNone;
    });
  }

  Sum Summary(const Layer& layer) {
    Sum sum;
    sum.wall_ns = WallOf(layer.work);
    sum.busy_ns = UnionOf(trace_, layer.work);
    bool has[kParts] = {};
    for (const SliceId s : layer.work) {
      const auto part = static_cast<size_t>(PartFor(s));
      sum.kernel_ns += trace_.Duration(s);
      sum.parts[part] += trace_.Duration(s);
      has[part] = true;
    }
    const bool attention = has[static_cast<size_t>(Part::kAttention)];
    const bool moe =
        has[static_cast<size_t>(Part::kMoe)] || Marked(moe_, layer);
    const bool gemm = has[static_cast<size_t>(Part::kGemm)];
    const char* kind = Marked(mla_, layer)   ? "MLA"
                       : Marked(gdn_, layer) ? "GDN"
                                             : "MHA";
    if (attention) {
      sum.type = moe    ? std::string(kind) + "_MOE"
                 : gemm ? std::string(kind) + "_FC"
                        : "ATTN";
    } else {
      sum.type = moe ? "MOE" : gemm ? "FC" : "BLOCK";
    }
    return sum;
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
      std::vector<SliceId> work = pass.outside;
      for (const uint32_t l : pass.layers) {
        const auto& own = model_.layers[l].work;
        work.insert(work.end(), own.begin(), own.end());
      }
      std::sort(work.begin(), work.end(), [&](SliceId a, SliceId b) {
        return std::pair(trace_.Start(a), a.value) <
               std::pair(trace_.Start(b), b.value);
      });
      table.Add(number++, pass.device, trace_.Start(work[0]) - zero_ns_,
                WallOf(work), SumOf(trace_, work), UnionOf(trace_, work),
                work.size(), pass.stage, pass.evidence, pass.batch, pass.tokens,
                pass.layers.size(), pass.annotation);
    }
    return table;
  }

  Table Layers() const {
    Table table(LayerSchema());
    for (size_t i = 0; i < model_.layers.size(); ++i) {
      const Layer& layer = model_.layers[i];
      const Sum& sum = sums_[i];
      const StackInfo& stack = model_.stacks[layer.stack];
      const std::string letter = Letter(layer.variant);
      std::vector<Value> cells = {layer.pass,
                                  stack.name,
                                  layer.index,
                                  letter,
                                  sum.type,
                                  model_.passes[layer.pass].stage,
                                  trace_.Start(layer.work[0]) - zero_ns_,
                                  sum.wall_ns,
                                  sum.kernel_ns};
      for (const int64_t part : sum.parts) cells.emplace_back(part);
      cells.insert(cells.end(), {sum.wall_ns - sum.busy_ns, layer.work.size(),
                                 trace_.Uid(layer.work[0]), layer.module,
                                 stack.boundary, layer.exact});
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
      groups[{layer.stack, layer.variant, sums_[i].type,
              model_.passes[layer.pass].stage}]
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

  Table Stacks() const {
    Table table(StackSchema());
    for (uint32_t i = 0; i < model_.stacks.size(); ++i) {
      const StackInfo& stack = model_.stacks[i];
      std::map<uint32_t, size_t> per_pass;
      size_t count = 0;
      size_t exact = 0;
      int64_t time = 0;
      std::string pattern;
      uint32_t first_pass = UINT32_MAX;
      uint32_t run_variant = 0;
      size_t run = 0;
      const auto flush = [&] {
        if (run == 0) return;
        if (!pattern.empty()) pattern += ' ';
        pattern += Letter(run_variant);
        if (run > 1) pattern += std::to_string(run);
      };
      for (size_t l = 0; l < model_.layers.size(); ++l) {
        const Layer& layer = model_.layers[l];
        if (layer.stack != i) continue;
        ++count;
        exact += layer.exact;
        time += sums_[l].kernel_ns;
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
      if (count == 0) continue;
      if (pattern.size() > 60) pattern = pattern.substr(0, 57) + "...";
      std::vector<size_t> sizes;
      for (const auto& [pass, size] : per_pass) {
        if (std::find(sizes.begin(), sizes.end(), size) == sizes.end())
          sizes.push_back(size);
      }
      std::sort(sizes.rbegin(), sizes.rend());
      std::string counts;
      for (const size_t size : sizes)
        counts += (counts.empty() ? "" : ", ") + std::to_string(size);
      const double exactness =
          static_cast<double>(exact) / static_cast<double>(count);
      const bool even = sizes.front() - sizes.back() == 0;
      const char* confidence =
          stack.boundary == "module"                              ? "certain"
          : exactness >= 0.9 && even                              ? "high"
          : exactness >= 0.5 || sizes.front() - sizes.back() <= 1 ? "medium"
                                                                  : "low";
      table.Add(stack.name, stack.period, stack.per_unit, pattern, counts,
                per_pass.size(), count, Percent(time, total_ns_),
                100.0 * exactness, stack.boundary, confidence);
    }
    return table;
  }

  Table Kernels() const {
    Table table(KernelSchema());
    for (size_t l = 0; l < model_.layers.size(); ++l) {
      const Layer& layer = model_.layers[l];
      if (layer.pass != 0 ||
          std::find(options_.list.begin(), options_.list.end(), layer.index) ==
              options_.list.end())
        continue;
      int64_t position = 0;
      int64_t reached = trace_.Start(layer.work[0]);
      for (const SliceId s : layer.work) {
        const NodeId launcher = context_.device.launcher(s);
        table.Add(
            layer.pass, model_.stacks[layer.stack].name, layer.index,
            position++, trace_.Name(s),
            kPartNames[static_cast<size_t>(PartFor(s))],
            launcher.valid() ? context_.tree.name(launcher)
                             : std::string_view(),
            trace_.Duration(s), Percent(trace_.Duration(s), sums_[l].kernel_ns),
            std::max<int64_t>(0, trace_.Start(s) - reached), trace_.Uid(s));
        reached = std::max(reached, trace_.End(s));
      }
    }
    return table;
  }

  Table Stages() const {
    Table table(StageSchema());
    struct Cell {
      size_t kernels = 0;
      int64_t ns = 0;
    };
    std::map<std::pair<std::string, size_t>, Cell> cells;
    std::map<std::string, int64_t> stages;
    const auto add = [&](const std::string& stage, SliceId s) {
      Cell& cell = cells[{stage, static_cast<size_t>(PartFor(s))}];
      ++cell.kernels;
      cell.ns += trace_.Duration(s);
      stages[stage] += trace_.Duration(s);
    };
    for (const Pass& pass : model_.passes) {
      for (const SliceId s : pass.outside) add(pass.stage, s);
      for (const uint32_t l : pass.layers) {
        for (const SliceId s : model_.layers[l].work) add(pass.stage, s);
      }
    }
    for (const SliceId s : model_.no_pass) add("-", s);
    for (const auto& [key, cell] : cells) {
      table.Add(key.first, kPartNames[key.second], cell.kernels, cell.ns,
                Percent(cell.ns, stages[key.first]),
                Percent(cell.ns, total_ns_));
    }
    return table;
  }

  Table Orphans() const {
    Table table(OrphanSchema());
    struct Cell {
      size_t kernels = 0;
      int64_t ns = 0;
    };
    std::map<std::pair<std::string, std::string_view>, Cell> cells;
    const auto add = [&](const char* reason, SliceId s) {
      Cell& cell = cells[{reason, trace_.Name(s)}];
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
    std::vector<std::pair<std::pair<std::string, std::string_view>, Cell>> rows(
        cells.begin(), cells.end());
    std::stable_sort(
        rows.begin(), rows.end(),
        [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
    for (const auto& [key, cell] : rows) {
      table.Add(key.first, key.second, cell.kernels, cell.ns,
                Percent(cell.ns, total_ns_));
    }
    return table;
  }

  Table Checks() const {
    Table table(CheckSchema());
    for (const LayerModel::Check& check : model_.checks) {
      table.Add(check.name, check.by_module, check.by_repeat, check.equal,
                check.near);
    }
    return table;
  }

  void Notes() {
    Note note;
    note.severity = Severity::kVerdict;
    if (model_.layers.empty()) {
      note.id = "no_layers";
      note.text =
          "No layers found: no unit that looks like a layer repeats in the "
          "sequence of kernels, and the trace has no modules that do.";
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
  RuleOfName moe_, mla_, gdn_;
  const LayerModel& model_;
  const Options& options_;
  std::vector<Sum> sums_;  // by layer
  std::vector<uint32_t> outliers_;
  std::vector<Note> notes_;
  int64_t total_ns_ = 0;
  int64_t zero_ns_ = 0;
};

Result<rules::PatternTable> ReadTable(
    const std::vector<std::shared_ptr<const rules::DataFile>>& files,
    std::string_view name) {
  std::vector<rules::PatternRule> all;
  for (const auto& file : files) {
    const rules::Node* list = file->root.Find(name);
    if (list == nullptr) continue;
    LAMINA_ASSIGN(auto rules, rules::ReadPatternRules(*file, *list, "value"));
    for (auto& rule : rules) all.push_back(std::move(rule));
  }
  return rules::PatternTable::Make(std::move(all));
}

Result<ResultSet> Run(const Context& context) {
  LAMINA_ASSIGN(const auto rules, LoadRules(rules::DataSet()));
  const Options options;
  return LayerTables(context, *rules, FindLayers(context, *rules, options),
                     options);
}

}  // namespace

std::string_view PartName(Part part) {
  return kPartNames[static_cast<size_t>(part)];
}

Part PartOf(std::string_view family) {
  if (family == "attention" || family == "ssm") return Part::kAttention;
  if (family == "gemm") return Part::kGemm;
  if (family == "moe") return Part::kMoe;
  if (family == "norm") return Part::kNorm;
  if (family == "communication") return Part::kCommunication;
  if (family == "quantization") return Part::kQuantization;
  return Part::kOther;
}

Result<std::shared_ptr<const Rules>> LoadRules(const rules::DataSet& data) {
  LAMINA_ASSIGN(const auto files, data.Load("layers"));
  auto rules = std::make_shared<Rules>();
  LAMINA_ASSIGN(rules->stage, ReadTable(files, "stage"));
  LAMINA_ASSIGN(rules->layer_start, ReadTable(files, "layer_start"));
  LAMINA_ASSIGN(rules->moe, ReadTable(files, "marker_moe"));
  LAMINA_ASSIGN(rules->mla, ReadTable(files, "marker_mla"));
  LAMINA_ASSIGN(rules->gdn, ReadTable(files, "marker_gdn"));
  return std::shared_ptr<const Rules>(std::move(rules));
}

ResultSet LayerTables(const Context& context, const Rules& rules,
                      const LayerModel& model, const Options& options) {
  return Tables(context, rules, model, options).Run();
}

AnalysisInfo Info() {
  return {"layers", "Forward passes and the layers in them.",
          [] {
            return std::vector<Schema>{
                PassSchema(),  StackSchema(), TypeSchema(),   KernelSchema(),
                LayerSchema(), StageSchema(), OrphanSchema(), CheckSchema()};
          },
          &Run};
}

}  // namespace lamina::analysis::layers
