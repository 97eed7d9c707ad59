// SPDX-License-Identifier: Apache-2.0
#include "graph/dialects/ops_map.h"

namespace lamina::graph {

Result<std::shared_ptr<const OpsMap>> OpsMap::Load(const rules::DataSet& data) {
  LAMINA_ASSIGN(const auto files, data.Load("dialects"));
  auto out = std::make_shared<OpsMap>();
  for (const auto& file : files) {
    const rules::Node* list = file->root.Find("ops");
    if (list == nullptr || !list->IsList())
      return Fail(file->ErrorAt(file->root, "expected a list 'ops'"));
    for (const rules::Node& item : list->items) {
      static constexpr std::string_view kKeys[] = {"from", "to", "when", "else",
                                                   "args"};
      LAMINA_ASSIGN(const rules::Members members,
                    rules::Members::Of(*file, item, kKeys));
      OpMapping row;
      LAMINA_ASSIGN(row.to, members.Text("to"));
      row.otherwise = members.TextOr("else", "");
      const std::string when = members.TextOr("when", "");
      if (!when.empty() && when != "tensor")
        return Fail(members.ErrorAt("expected 'when: tensor'"));
      row.tensor = !when.empty();
      LAMINA_ASSIGN(row.args, members.Texts("args"));
      LAMINA_ASSIGN(const std::vector<std::string> from, members.Texts("from"));
      for (const std::string& target : from) {
        if (!out->by_target_.try_emplace(target, out->mappings_.size()).second)
          return Fail(members.ErrorAt("'" + target + "' has two mappings"));
      }
      out->mappings_.push_back(std::move(row));
    }
  }
  return out;
}

const OpsMap& OpsMap::Builtin() {
  static const std::shared_ptr<const OpsMap> map = [] {
    auto loaded = Load(rules::DataSet());
    LAMINA_CHECK(loaded.has_value());
    return *loaded;
  }();
  return *map;
}

const OpMapping* OpsMap::Find(std::string_view target) const {
  const auto found = by_target_.find(target);
  return found == by_target_.end() ? nullptr : &mappings_[found->second];
}

}  // namespace lamina::graph
