// SPDX-License-Identifier: Apache-2.0
#include "engine/page_rules.h"

#include <map>
#include <string>
#include <tuple>

namespace lamina::engine {
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
        of_name_(trace_.strings.size()) {}

  FamilyRuleRows Run() {
    std::vector<uint32_t> row_of(trace_.device.size());
    for (const SliceId s : trace_.device_slices()) {
      const uint32_t at = trace_.slices.detail[s.value];
      const uint32_t row = RowOf(context_.device.family_decision(s), s);
      row_of[at] = row + 1;
      ++rows_[row].kernels;
      rows_[row].ns += trace_.Duration(s);
    }
    Table table(RuleSchema());
    for (const Row& row : rows_) {
      const rules::PatternRule* rule = row.reason.rule;
      table.Add(context_.catalog.family(row.family).name, NameOf(row.by),
                row.op, row.reason.source,
                rule != nullptr ? std::string_view(rule->id) : "",
                rule != nullptr ? std::string_view(rule->match) : "",
                rule != nullptr ? rule->file + ":" + std::to_string(rule->line)
                                : std::string(),
                row.kernels, row.ns);
    }
    return {std::move(table), std::move(row_of)};
  }

 private:
  struct Row {
    size_t family = 0;
    FamilyBy by = FamilyBy::kNothing;
    std::string op;
    NameReason reason;
    int64_t kernels = 0;
    int64_t ns = 0;
  };

  uint32_t RowOf(const FamilyDecision& decision, SliceId s) {
    Row row{decision.family, decision.by, {}, {}, 0, 0};
    if (decision.by == FamilyBy::kOp) {
      const SliceId op = context_.tree.slice(decision.op);
      row.op = analysis::FamilyName(trace_, op);
      row.reason = ReasonOf(row.op);
    } else if (decision.by == FamilyBy::kName) {
      row.reason = ReasonOf(s);
    }
    const Key key(row.family, row.by, row.op, row.reason.source,
                  row.reason.rule);
    const auto [it, is_new] =
        ids_.try_emplace(key, static_cast<uint32_t>(rows_.size()));
    if (is_new) rows_.push_back(std::move(row));
    return it->second;
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
  std::map<Key, uint32_t> ids_;
  std::vector<Row> rows_;
};

}  // namespace

FamilyRuleRows FindFamilyRules(const analysis::Context& context) {
  return Finder(context).Run();
}

}  // namespace lamina::engine
