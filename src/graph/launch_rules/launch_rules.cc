// SPDX-License-Identifier: Apache-2.0
#include "graph/launch_rules/launch_rules.h"

#include <algorithm>
#include <re2/re2.h>

#include "base/cpp_name.h"
#include "graph/types.h"

namespace lamina::graph {

using rules::DataFile;
using rules::Members;

// Files in the order of the data set; rows of later files come first.
class LaunchLoader {
 public:
  LaunchLoader() : out_(std::make_shared<LaunchTable>()) {}

  Status Add(const DataFile& file) {
    static constexpr std::string_view kKeys[] = {"no_kernel", "maybe_no_kernel",
                                                 "ops", "short_names"};
    LAMINA_ASSIGN(const Members root, Members::Of(file, file.root, kKeys));
    LAMINA_ASSIGN(auto never, root.Texts("no_kernel"));
    LAMINA_ASSIGN(auto maybe, root.Texts("maybe_no_kernel"));
    std::move(never.begin(), never.end(), std::back_inserter(out_->no_kernel_));
    std::move(maybe.begin(), maybe.end(),
              std::back_inserter(out_->maybe_no_kernel_));
    std::vector<LaunchRule> rules;
    if (const rules::Node* list = root.Find("ops")) {
      for (const rules::Node& item : list->items) {
        LAMINA_ASSIGN(LaunchRule rule, ReadRule(file, item));
        rules.push_back(std::move(rule));
      }
    }
    out_->rules_.insert(out_->rules_.begin(),
                        std::make_move_iterator(rules.begin()),
                        std::make_move_iterator(rules.end()));
    return ReadShortNames(file, root);
  }

  std::shared_ptr<const LaunchTable> Finish() { return std::move(out_); }

 private:
  static Result<std::shared_ptr<const RE2>> Compile(const DataFile& file,
                                                    const rules::Node& node) {
    RE2::Options options;
    options.set_log_errors(false);
    auto pattern = std::make_shared<const RE2>(node.text, options);
    if (!pattern->ok()) {
      return Fail(file.ErrorAt(node, "bad pattern: " + pattern->error(),
                               "write it in RE2 syntax"));
    }
    return pattern;
  }

  static Result<uint32_t> Count(const DataFile& file, const Members& members,
                                const rules::Node& item, std::string_view key) {
    LAMINA_ASSIGN(const auto number, members.OptionalNumber(key));
    if (!number) return 1U;
    if (*number < 0 || *number > 1000)
      return Fail(file.ErrorAt(item, "expected a count from 0 to 1000"));
    return static_cast<uint32_t>(*number);
  }

  static Result<LaunchRule> ReadRule(const DataFile& file,
                                     const rules::Node& item) {
    static constexpr std::string_view kKeys[] = {"op", "kernels"};
    static constexpr std::string_view kStepKeys[] = {"match", "not", "min",
                                                     "max"};
    LAMINA_ASSIGN(const Members members, Members::Of(file, item, kKeys));
    LaunchRule rule;
    LAMINA_ASSIGN(rule.op, members.Text("op"));
    const rules::Node* list = members.Find("kernels");
    if (list == nullptr || !list->IsList() || list->items.empty())
      return Fail(members.ErrorAt("expected a list `kernels`"));
    for (const rules::Node& one : list->items) {
      LAMINA_ASSIGN(const Members step, Members::Of(file, one, kStepKeys));
      LaunchStep out;
      LAMINA_TRY(step.Text("match").map([](auto&&) {}));
      LAMINA_ASSIGN(out.match, Compile(file, *step.Find("match")));
      if (const rules::Node* except = step.Find("not")) {
        LAMINA_ASSIGN(out.except, Compile(file, *except));
      }
      LAMINA_ASSIGN(out.min, Count(file, step, one, "min"));
      LAMINA_ASSIGN(out.max, Count(file, step, one, "max"));
      out.max = std::max(out.max, out.min);
      rule.steps.push_back(std::move(out));
    }
    return rule;
  }

  Status ReadShortNames(const DataFile& file, const Members& root) {
    const rules::Node* list = root.Find("short_names");
    if (list == nullptr) return {};
    static constexpr std::string_view kKeys[] = {"match", "short"};
    std::vector<LaunchTable::ShortRule> rules;
    for (const rules::Node& item : list->items) {
      LAMINA_ASSIGN(const Members members, Members::Of(file, item, kKeys));
      LaunchTable::ShortRule rule;
      LAMINA_TRY(members.Text("match").map([](auto&&) {}));
      LAMINA_ASSIGN(rule.match, Compile(file, *members.Find("match")));
      LAMINA_ASSIGN(rule.name, members.Text("short"));
      rules.push_back(std::move(rule));
    }
    out_->short_names_.insert(out_->short_names_.begin(),
                              std::make_move_iterator(rules.begin()),
                              std::make_move_iterator(rules.end()));
    return {};
  }

  std::shared_ptr<LaunchTable> out_;
};

namespace {

re2::StringPiece Piece(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

bool LaunchStep::Matches(std::string_view kernel) const {
  return RE2::PartialMatch(Piece(kernel), *match) &&
         (except == nullptr || !RE2::PartialMatch(Piece(kernel), *except));
}

Result<std::shared_ptr<const LaunchTable>> LaunchTable::Load(
    const rules::DataSet& data) {
  LAMINA_ASSIGN(const auto files, data.Load("launches"));
  LaunchLoader loader;
  for (const auto& file : files) LAMINA_TRY(loader.Add(*file));
  return loader.Finish();
}

bool LaunchTable::NeverLaunches(std::string_view op) const {
  return std::any_of(
      no_kernel_.begin(), no_kernel_.end(),
      [&](const std::string& name) { return MatchesTarget(op, name); });
}

bool LaunchTable::MayLaunchNothing(std::string_view op) const {
  return std::any_of(
      maybe_no_kernel_.begin(), maybe_no_kernel_.end(),
      [&](const std::string& name) { return MatchesTarget(op, name); });
}

std::vector<const LaunchRule*> LaunchTable::RulesFor(
    std::string_view op) const {
  std::vector<const LaunchRule*> out;
  size_t longest = 0;
  for (const LaunchRule& rule : rules_) {
    // "aten.to" is no part of "aten.topk".
    const bool matches = rule.op.starts_with("aten.")
                             ? MatchesTarget(op, rule.op)
                             : op.find(rule.op) != std::string_view::npos;
    if (!matches || rule.op.size() < longest) continue;
    if (rule.op.size() > longest) out.clear();
    longest = rule.op.size();
    out.push_back(&rule);
  }
  return out;
}

std::string LaunchTable::ShortName(std::string_view kernel) const {
  // Ends of names tell tiles, types and numbers.
  constexpr size_t kMaxBytes = 80;
  constexpr size_t kTail = 24;
  for (const ShortRule& rule : short_names_) {
    if (rule.name == "@group") {
      re2::StringPiece group;
      if (rule.match->NumberOfCapturingGroups() > 0 &&
          RE2::PartialMatch(Piece(kernel), *rule.match, &group))
        return ShortenInside({group.data(), group.size()}, kMaxBytes, kTail);
      continue;
    }
    if (!RE2::PartialMatch(Piece(kernel), *rule.match)) continue;
    return rule.name == "@base"
               ? ShortenInside(QualifiedCppName(kernel), kMaxBytes, kTail)
               : rule.name;
  }
  return ShortenInside(QualifiedCppName(kernel), kMaxBytes, kTail);
}

}  // namespace lamina::graph
