// SPDX-License-Identifier: Apache-2.0
#include "rules/catalog.h"

#include <algorithm>
#include <span>

namespace lamina::rules {
namespace {

// The rules of a table whose `key` is one of a few words.
Result<PatternTable> LoadMarks(const DataSet& data, std::string_view folder,
                               std::string_view name, std::string_view key,
                               std::span<const std::string_view> words) {
  LAMINA_ASSIGN(const auto files, data.Load(folder));
  std::vector<PatternRule> rules;
  for (const auto& file : files) {
    const Node* table = file->root.Find("table");
    if (table == nullptr || table->text != name) continue;
    const Node* list = file->root.Find("rules");
    if (list == nullptr)
      return Fail(file->ErrorAt(file->root, "the key 'rules' is missing"));
    LAMINA_ASSIGN(auto more, ReadPatternRules(*file, *list, key));
    for (size_t i = 0; i < more.size(); ++i) {
      if (std::find(words.begin(), words.end(), more[i].value) == words.end()) {
        std::string known;
        for (const std::string_view word : words)
          known.append(known.empty() ? "" : ", ").append(word);
        return Fail(file->ErrorAt(list->items[i], std::string(key) + ": '" +
                                                      more[i].value +
                                                      "' is none of " + known));
      }
      rules.push_back(std::move(more[i]));
    }
  }
  return PatternTable::Make(std::move(rules));
}

constexpr std::string_view kOtherFamily = "other";

bool ContainsAny(std::string_view text,
                 std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

}  // namespace

std::string_view GeneratedFamily(std::string_view kernel) {
  if (!kernel.starts_with("triton_")) return {};
  const std::string_view kind = kernel.substr(7, 4);
  if (kind == "tem_") return "gemm";
  if (kind != "poi_" && kind != "red_" && kind != "per_" && kind != "for_")
    return {};
  const std::string_view ops = kernel.substr(11);
  if (ContainsAny(
          ops, {"layer_norm", "rsqrt", "rms_norm", "group_norm", "batch_norm"}))
    return "norm";
  if (ContainsAny(ops, {"softmax"})) return "softmax";
  if (ContainsAny(ops, {"gelu", "silu", "sigmoid", "tanh", "relu"}))
    return "activation";
  if (ContainsAny(ops, {"embedding"})) return "embedding";
  if (kind == "red_" || kind == "per_") return "reduce";
  if (kind == "for_") return "optimizer";
  // Only data movement in the name: words left after those of copies.
  constexpr std::string_view kMoves[] = {
      "fused", "cat",     "clone",      "transpose", "to",     "copy",
      "view",  "permute", "contiguous", "unsafe",    "expand", "reshape",
      "slice", "split",   "unsqueeze",  "squeeze",   "with",   "sizes",
      "t",     "select",  "stack",      ""};
  bool only_moves = true;
  size_t pos = 0;
  while (pos <= ops.size() && only_moves) {
    const size_t end = std::min(ops.find('_', pos), ops.size());
    const std::string_view word = ops.substr(pos, end - pos);
    const bool number =
        word.find_first_not_of("0123456789") == std::string_view::npos;
    only_moves = number || std::find(std::begin(kMoves), std::end(kMoves),
                                     word) != std::end(kMoves);
    pos = end + 1;
  }
  return only_moves ? "copy" : "elementwise";
}

Result<std::shared_ptr<const Catalog>> Catalog::Load(const DataSet& data) {
  auto catalog = std::make_shared<Catalog>();
  LAMINA_TRY(catalog->LoadFamilies(data));
  LAMINA_TRY(catalog->LoadOps(data));
  LAMINA_TRY(catalog->LoadKernels(data));
  static constexpr std::string_view kSteps[] = {"step", "engine", "other"};
  LAMINA_ASSIGN(catalog->steps_,
                LoadMarks(data, "steps", "step_range", "marks", kSteps));
  static constexpr std::string_view kWaits[] = {"outside", "perhaps", "inside",
                                                "device"};
  LAMINA_ASSIGN(catalog->outside_,
                LoadMarks(data, "waits", "outside_wait", "waits", kWaits));
  return std::shared_ptr<const Catalog>(std::move(catalog));
}

Status Catalog::LoadFamilies(const DataSet& data) {
  LAMINA_ASSIGN(const auto files, data.Load("labels"));
  for (const auto& file : files) {
    const Node* list = file->root.Find("families");
    if (list == nullptr) continue;
    for (const Node& item : list->items) {
      const std::string_view keys[] = {"family", "group", "title"};
      LAMINA_ASSIGN(const Members members, Members::Of(*file, item, keys));
      Family family;
      LAMINA_ASSIGN(family.name, members.Text("family"));
      LAMINA_ASSIGN(family.group, members.Text("group"));
      LAMINA_ASSIGN(family.title, members.Text("title"));
      const bool known = std::any_of(
          families_.begin(), families_.end(),
          [&](const Family& other) { return other.name == family.name; });
      if (!known) families_.push_back(std::move(family));
    }
  }
  if (families_.empty() || FamilyIndex(kOtherFamily) == families_.size())
    families_.push_back(
        {std::string(kOtherFamily), std::string(kOtherFamily), "Other"});
  return {};
}

Status Catalog::CheckFamily(const DataFile& file, const Node& node,
                            std::string_view name) const {
  std::vector<std::string_view> names;
  for (const Family& family : families_) {
    if (family.name == name) return {};
    names.push_back(family.name);
  }
  const std::string_view near = Nearest(name, names);
  return Fail(file.ErrorAt(node, "unknown family '" + std::string(name) + "'",
                           near.empty()
                               ? "add it to a file in labels/"
                               : "did you mean '" + std::string(near) + "'?"));
}

Status Catalog::LoadOps(const DataSet& data) {
  LAMINA_ASSIGN(const auto costs, data.Load("costs"));
  for (const auto& file : costs) {
    const Node* models = file->root.Find("models");
    if (models == nullptr) continue;
    for (const Node& item : models->items) {
      if (!item.IsMap())
        return Fail(file->ErrorAt(item, "expected keys and values"));
      const auto text = [&](std::string_view key) {
        const Node* value = item.Find(key);
        return value != nullptr && value->IsScalar() ? value->text
                                                     : std::string();
      };
      OpEntry entry{text("family"),
                    text("model"),
                    text("sheet"),
                    text("category"),
                    text("backward_category"),
                    text("unit")};
      LAMINA_TRY(CheckFamily(*file, item, entry.family));
      const Node* ops = item.Find("ops");
      if (ops == nullptr || !ops->IsList()) continue;
      for (const Node& op : ops->items) {
        const auto [it, is_new] = registry_.try_emplace(op.text, entry);
        // A category-only row overrides the category of a model's row.
        if (is_new) continue;
        if (entry.model.empty() && !entry.category.empty()) {
          it->second.category = entry.category;
        } else if (it->second.model.empty()) {
          const std::string category = it->second.category;
          it->second = entry;
          it->second.category = category;
        }
      }
    }
  }
  LAMINA_ASSIGN(const auto files, data.Load("ops"));
  std::vector<PatternRule> patterns;
  for (const auto& file : files) {
    const Node* groups = file->root.Find("groups");
    if (groups == nullptr) continue;
    for (const Node& item : groups->items) {
      const std::string_view keys[] = {"family", "ops", "match"};
      LAMINA_ASSIGN(const Members members, Members::Of(*file, item, keys));
      LAMINA_ASSIGN(const std::string family, members.Text("family"));
      LAMINA_TRY(CheckFamily(*file, item, family));
      LAMINA_ASSIGN(const auto ops, members.Texts("ops"));
      for (const std::string& op : ops) op_families_.try_emplace(op, family);
      const Node* rules = members.Find("match");
      if (rules == nullptr) continue;
      for (const Node& rule_node : rules->items) {
        const std::string_view rule_keys[] = {"rule", "examples", "not", "why"};
        LAMINA_ASSIGN(const Members rule_members,
                      Members::Of(*file, rule_node, rule_keys));
        PatternRule rule;
        LAMINA_ASSIGN(rule.match, rule_members.Text("rule"));
        LAMINA_ASSIGN(rule.examples, rule_members.Texts("examples"));
        LAMINA_ASSIGN(rule.counter_examples, rule_members.Texts("not"));
        rule.why = rule_members.TextOr("why", "");
        rule.id = family + ":" + std::to_string(rule_node.line);
        rule.value = family;
        rule.anchored = true;
        rule.file = file->name;
        rule.line = rule_node.line;
        patterns.push_back(std::move(rule));
      }
    }
  }
  LAMINA_ASSIGN(op_patterns_, PatternTable::Make(std::move(patterns)));
  return {};
}

Status Catalog::LoadKernels(const DataSet& data) {
  LAMINA_ASSIGN(const auto files, data.Load("kernels"));
  std::vector<PatternRule> rules;
  for (const auto& file : files) {
    const Node* table = file->root.Find("table");
    if (table == nullptr || table->text != "kernel_family") continue;
    const Node* list = file->root.Find("rules");
    if (list == nullptr)
      return Fail(file->ErrorAt(file->root, "the key 'rules' is missing"));
    LAMINA_ASSIGN(auto more, ReadPatternRules(*file, *list, "family"));
    for (size_t i = 0; i < more.size(); ++i) {
      LAMINA_TRY(CheckFamily(*file, list->items[i], more[i].value));
      rules.push_back(std::move(more[i]));
    }
  }
  LAMINA_ASSIGN(kernels_, PatternTable::Make(std::move(rules)));
  return {};
}

size_t Catalog::FamilyIndex(std::string_view name) const {
  size_t other = families_.size();
  for (size_t i = 0; i < families_.size(); ++i) {
    if (families_[i].name == name) return i;
    if (families_[i].name == kOtherFamily) other = i;
  }
  return other;
}

const OpEntry* Catalog::Entry(std::string_view op) const {
  const auto it = registry_.find(op);
  return it == registry_.end() ? nullptr : &it->second;
}

std::string_view Catalog::OpFamily(std::string_view op) const {
  for (std::string_view name : {op, op.substr(0, op.size() - 1)}) {
    if (name.size() != op.size() && !op.ends_with('_')) break;
    if (const OpEntry* entry = Entry(name)) return entry->family;
    const auto it = op_families_.find(name);
    if (it != op_families_.end()) return it->second;
  }
  if (const std::string_view generated = GeneratedFamily(op);
      !generated.empty())
    return generated;
  const int rule = op_patterns_.Find(op);
  return rule == PatternTable::kNone ? std::string_view()
                                     : op_patterns_.rule(rule).value;
}

std::string_view Catalog::KernelFamily(std::string_view kernel) const {
  if (const std::string_view generated = GeneratedFamily(kernel);
      !generated.empty())
    return generated;
  const int rule = kernels_.Find(kernel);
  return rule == PatternTable::kNone ? kOtherFamily : kernels_.rule(rule).value;
}

}  // namespace lamina::rules
