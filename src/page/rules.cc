// SPDX-License-Identifier: Apache-2.0
#include "page/rules.h"

#include <map>
#include <string>
#include <tuple>

#include "analysis/common/device_fold.h"

namespace lamina::page {
namespace {

using analysis::FamilyBy;
using analysis::FamilyDecision;
using trace::SliceId;

Schema RuleSchema() {
  return {"family_rules",
          "What says the families of kernels, copies and fills; all rows add "
          "up to all device time.",
          {{"family", ColumnType::kText, "Family."},
           {"by", ColumnType::kText,
            "op (above the launch), kernel (its name), collective, copy (a "
            "copy or a fill), or none."},
           {"op", ColumnType::kText, "The op that decided."},
           {"source", ColumnType::kText,
            "registry (exact name of an op), generated (ops in the name of a "
            "Triton kernel), pattern, or list: neither."},
           {"rule", ColumnType::kText, "Id of the pattern."},
           {"match", ColumnType::kText, "The pattern."},
           {"place", ColumnType::kText, "File and line of the pattern."},
           {"kernels", ColumnType::kInt, "Device events."},
           {"kernel_time_us", ColumnType::kTime, "Sum of their durations."}}};
}

// What says the family of a name.
struct NameReason {
  std::string_view source;
  const rules::PatternRule* rule = nullptr;  // of a pattern
};

NameReason KernelReason(const rules::Catalog& catalog, std::string_view name) {
  if (!rules::GeneratedFamily(name).empty()) return {"generated"};
  const int rule = catalog.kernel_table().Find(name);
  if (rule == rules::PatternTable::kNone) return {"list"};
  return {"pattern", &catalog.kernel_table().rule(rule)};
}

// "aten::add_" is looked up as "aten::add", too.
NameReason OpReason(const rules::Catalog& catalog, std::string_view op) {
  const bool in_place = op.ends_with('_');
  if (catalog.Entry(op) != nullptr ||
      (in_place && catalog.Entry(op.substr(0, op.size() - 1)) != nullptr))
    return {"registry"};
  if (!rules::GeneratedFamily(op).empty()) return {"generated"};
  const int rule = catalog.op_table().Find(op);
  if (rule == rules::PatternTable::kNone ||
      catalog.op_table().rule(rule).value != catalog.OpFamily(op))
    return {"list"};
  return {"pattern", &catalog.op_table().rule(rule)};
}

std::string_view NameOf(FamilyBy by) {
  switch (by) {
    case FamilyBy::kCollective:
      return "collective";
    case FamilyBy::kOp:
      return "op";
    case FamilyBy::kName:
      return "kernel";
    case FamilyBy::kKind:
      return "copy";
    case FamilyBy::kNothing:
      break;
  }
  return "none";
}

class Finder {
 public:
  explicit Finder(const analysis::Context& context)
      : context_(context),
        trace_(context.trace),
        of_name_(trace_.strings.size()),
        fold_(trace_) {}

  FamilyRuleRows Run() {
    for (const SliceId s : trace_.device_slices())
      Add(context_.device.family_decision(s), s);
    Table table(RuleSchema());
    for (const auto& [info, kernels, ns] : fold_.rows()) {
      const rules::PatternRule* rule = info.reason.rule;
      table.Add(context_.catalog.family(info.family).name, NameOf(info.by),
                info.op, info.reason.source,
                rule != nullptr ? std::string_view(rule->id) : "",
                rule != nullptr ? std::string_view(rule->match) : "",
                rule != nullptr ? rule->file + ":" + std::to_string(rule->line)
                                : std::string(),
                kernels, ns);
    }
    return {std::move(table), fold_.TakeRowOf()};
  }

 private:
  struct Info {
    size_t family = 0;
    FamilyBy by = FamilyBy::kNothing;
    std::string op;
    NameReason reason;
  };

  void Add(const FamilyDecision& decision, SliceId s) {
    Info info{decision.family, decision.by, {}, {}};
    if (decision.by == FamilyBy::kOp) {
      const SliceId op = context_.tree.slice(decision.op);
      info.op = analysis::FamilyName(trace_, op);
      info.reason = ReasonOf(info.op);
    } else if (decision.by == FamilyBy::kName) {
      info.reason = ReasonOf(s);
    }
    const Key key(info.family, info.by, info.op, info.reason.source,
                  info.reason.rule);
    fold_.Add(s, key, std::move(info));
  }

  // Names are asked for once each.
  NameReason ReasonOf(const std::string& op) {
    const auto [it, is_new] = of_op_.try_emplace(op);
    if (is_new) it->second = OpReason(context_.catalog, op);
    return it->second;
  }
  NameReason ReasonOf(SliceId s) {
    NameReason& reason = of_name_[trace_.slices.name[s.value].value];
    if (reason.source.empty())
      reason = KernelReason(context_.catalog, trace_.Name(s));
    return reason;
  }

  using Key = std::tuple<size_t, FamilyBy, std::string, std::string_view,
                         const rules::PatternRule*>;

  const analysis::Context& context_;
  const trace::Trace& trace_;
  std::vector<NameReason> of_name_;  // by StringId
  std::map<std::string, NameReason, std::less<>> of_op_;
  analysis::DeviceFold<Key, Info> fold_;
};

}  // namespace

FamilyRuleRows FindFamilyRules(const analysis::Context& context) {
  return Finder(context).Run();
}

}  // namespace lamina::page
