// SPDX-License-Identifier: Apache-2.0
#include "graph/layers/rules.h"

namespace lamina::graph {
namespace {

using rules::DataFile;
using rules::Members;

// Rules of all files: those of a later file are tried first, so that a user's
// rows win.
class Loader {
 public:
  Status Add(const DataFile& file) {
    std::vector<std::string_view> keys = {"clusters",          "sub_clusters",
                                          "colours",           "weight_owners",
                                          "weight_companions", "weight_labels"};
    for (const Entry& entry : Tables()) keys.push_back(entry.key);
    LAMINA_TRY(Members::Of(file, file.root, keys).map([](auto&&) {}));
    for (const auto& [key, value, list] : Tables()) {
      const rules::Node* node = file.root.Find(key);
      if (node == nullptr) continue;
      LAMINA_ASSIGN(auto read, rules::ReadPatternRules(file, *node, value));
      list->insert(list->begin(), std::make_move_iterator(read.begin()),
                   std::make_move_iterator(read.end()));
    }
    LAMINA_TRY(Words(file, "weight_owners", out_->weight_owners));
    LAMINA_TRY(Words(file, "weight_companions", out_->weight_companions));
    LAMINA_TRY(WeightLabels(file));
    LAMINA_TRY(Clusters(file));
    return Colours(file);
  }

  Result<std::shared_ptr<const GroupRules>> Finish() {
    for (const auto& [table, list] :
         {std::pair{&out_->norm_ops, &norm_ops_},
          {&out_->residual_norms, &residual_norms_},
          {&out_->closing_ops, &closing_ops_},
          {&out_->mla_ops, &mla_ops_},
          {&out_->closing_weights, &closing_weights_},
          {&out_->rope_buffers, &rope_buffers_},
          {&out_->op_groups, &op_groups_},
          {&out_->weight_groups, &weight_groups_},
          {&out_->op_labels, &op_labels_},
          {&out_->passing_ops, &passing_ops_},
          {&out_->collective_ranks, &collective_ranks_},
          {&out_->collective_messages, &collective_messages_},
          {&out_->aux_streams, &aux_streams_}}) {
      LAMINA_ASSIGN(*table, rules::PatternTable::Make(std::move(*list)));
    }
    return std::shared_ptr<const GroupRules>(std::move(out_));
  }

 private:
  using Rules = std::vector<rules::PatternRule>;
  struct Entry {
    std::string_view key;
    std::string_view value;
    Rules* list;
  };

  std::vector<Entry> Tables() {
    return {{"norm_ops", "is", &norm_ops_},
            {"residual_norms", "is", &residual_norms_},
            {"closing_ops", "is", &closing_ops_},
            {"mla_ops", "is", &mla_ops_},
            {"closing_weights", "is", &closing_weights_},
            {"rope_buffers", "is", &rope_buffers_},
            {"op_groups", "group", &op_groups_},
            {"weight_groups", "group", &weight_groups_},
            {"op_labels", "label", &op_labels_},
            {"passing_ops", "is", &passing_ops_},
            {"collective_ranks", "operand", &collective_ranks_},
            {"collective_messages", "counts", &collective_messages_},
            {"aux_streams", "does", &aux_streams_}};
  }

  static Status Words(const DataFile& file, std::string_view key,
                      std::vector<std::string>& out) {
    const rules::Node* const list = file.root.Find(key);
    if (list == nullptr) return {};
    if (!list->IsList())
      return Fail(file.ErrorAt(*list, "expected a list of words"));
    for (const rules::Node& item : list->items) {
      if (item.text.empty()) return Fail(file.ErrorAt(item, "expected a word"));
      out.push_back(item.text);
    }
    return {};
  }

  Status Clusters(const DataFile& file) {
    if (const rules::Node* list = file.root.Find("clusters")) {
      for (const rules::Node& item : list->items) {
        static constexpr std::string_view kKeys[] = {"id", "title", "groups"};
        LAMINA_ASSIGN(const Members members, Members::Of(file, item, kKeys));
        ClusterRule rule;
        LAMINA_ASSIGN(rule.id, members.Text("id"));
        LAMINA_ASSIGN(rule.title, members.Text("title"));
        LAMINA_ASSIGN(rule.groups, members.Texts("groups"));
        out_->clusters.push_back(std::move(rule));
      }
    }
    if (const rules::Node* list = file.root.Find("sub_clusters")) {
      for (const rules::Node& item : list->items) {
        static constexpr std::string_view kKeys[] = {"id", "title"};
        LAMINA_ASSIGN(const Members members, Members::Of(file, item, kKeys));
        LAMINA_ASSIGN(std::string id, members.Text("id"));
        LAMINA_ASSIGN(std::string title, members.Text("title"));
        out_->sub_clusters.emplace_back(std::move(id), std::move(title));
      }
    }
    return {};
  }

  Status WeightLabels(const DataFile& file) {
    const rules::Node* map = file.root.Find("weight_labels");
    if (map == nullptr) return {};
    if (!map->IsMap())
      return Fail(file.ErrorAt(*map, "expected labels by name of weight"));
    for (size_t i = 0; i < map->keys.size(); ++i) {
      const std::string& text = map->items[i].text;
      if (text.empty())
        return Fail(file.ErrorAt(map->items[i], "expected a label"));
      out_->weight_labels.insert(out_->weight_labels.begin(),
                                 {map->keys[i].text, text});
    }
    return {};
  }

  Status Colours(const DataFile& file) {
    const rules::Node* map = file.root.Find("colours");
    if (map == nullptr) return {};
    if (!map->IsMap())
      return Fail(file.ErrorAt(*map, "expected colours by group"));
    for (size_t i = 0; i < map->keys.size(); ++i) {
      const std::string& text = map->items[i].text;
      if (text.size() != 7 || text[0] != '#' ||
          text.find_first_not_of("0123456789abcdefABCDEF", 1) !=
              std::string::npos) {
        return Fail(file.ErrorAt(map->items[i], "expected a colour #rrggbb"));
      }
      out_->colours.insert(out_->colours.begin(), {map->keys[i].text, text});
    }
    return {};
  }

  std::shared_ptr<GroupRules> out_ = std::make_shared<GroupRules>();
  Rules norm_ops_;
  Rules residual_norms_;
  Rules closing_ops_;
  Rules mla_ops_;
  Rules closing_weights_;
  Rules rope_buffers_;
  Rules op_groups_;
  Rules weight_groups_;
  Rules op_labels_;
  Rules passing_ops_;
  Rules collective_ranks_;
  Rules collective_messages_;
  Rules aux_streams_;
};

}  // namespace

Result<std::shared_ptr<const GroupRules>> GroupRules::Load(
    const rules::DataSet& data) {
  LAMINA_ASSIGN(const auto files, data.Load("graphs"));
  Loader loader;
  for (const auto& file : files) LAMINA_TRY(loader.Add(*file));
  return loader.Finish();
}

std::vector<std::pair<std::string_view, const rules::PatternTable*>>
GroupRules::Tables() const {
  return {{"norm_ops", &norm_ops},
          {"residual_norms", &residual_norms},
          {"closing_ops", &closing_ops},
          {"mla_ops", &mla_ops},
          {"closing_weights", &closing_weights},
          {"rope_buffers", &rope_buffers},
          {"op_groups", &op_groups},
          {"weight_groups", &weight_groups},
          {"op_labels", &op_labels},
          {"passing_ops", &passing_ops},
          {"collective_ranks", &collective_ranks},
          {"collective_messages", &collective_messages},
          {"aux_streams", &aux_streams}};
}

std::string GroupRules::LabelOf(std::string_view op) const {
  const int found = op_labels.Find(op);
  if (found != rules::PatternTable::kNone) return op_labels.rule(found).value;
  for (const std::string_view space :
       {"torch.", "ops.", "aten.", "auto_deploy.", "trtllm.", "dist.",
        "prims."}) {
    if (op.starts_with(space)) op.remove_prefix(space.size());
  }
  if (op.ends_with(".default")) op.remove_suffix(8);
  return std::string(op);
}

std::string_view GroupRules::ColourOf(std::string_view group) const {
  for (const auto& [name, colour] : colours) {
    if (name == group) return colour;
  }
  return "#eeeeee";
}

}  // namespace lamina::graph
