// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/config.h"

#include <algorithm>

#include "base/byte_source.h"
#include "base/escape.h"
#include "graph/passes/rule_file.h"

namespace lamina::graph {
namespace {

constexpr size_t kMaxConfig = size_t{16} << 20;

using rules::DataFile;

class ConfigReader {
 public:
  explicit ConfigReader(PipelineConfig& out) : out_(out) {}

  Status Read(const DataFile& file, bool base) {
    const rules::Node* list = file.root.Find("transforms");
    // Registry files of models hold other keys besides.
    if (list == nullptr && !base) return {};
    if (list == nullptr)
      return Fail(file.ErrorAt(file.root, "expected the key 'transforms'"));
    if (list->kind == rules::Node::Kind::kNull) return {};
    if (!list->IsMap())
      return Fail(file.ErrorAt(*list, "expected transforms by name"));
    for (size_t i = 0; i < list->keys.size(); ++i)
      LAMINA_TRY(ReadTransform(file, list->keys[i], list->items[i], base));
    return {};
  }

 private:
  Status ReadTransform(const DataFile& file, const rules::Node& key,
                       const rules::Node& node, bool base) {
    if (!node.IsMap()) {
      return Fail(file.ErrorAt(node, "expected fields of the transform '" +
                                         EscapeTerminal(key.text) + "'"));
    }
    auto found = std::find_if(
        out_.transforms.begin(), out_.transforms.end(),
        [&](const TransformConfig& t) { return t.name == key.text; });
    if (found == out_.transforms.end()) {
      out_.transforms.emplace_back();
      found = out_.transforms.end() - 1;
      found->name = key.text;
      found->enabled_in = file.name;
    }
    for (size_t i = 0; i < node.keys.size(); ++i) {
      LAMINA_TRY(ReadField(file, *found, node.keys[i], node.items[i]));
      if (base) found->fields.push_back(node.keys[i].text);
    }
    if (found->stage.empty()) {
      return Fail(file.ErrorAt(
          key,
          "the transform '" + EscapeTerminal(key.text) + "' has no stage"));
    }
    return {};
  }

  static Status ReadField(const DataFile& file, TransformConfig& transform,
                          const rules::Node& key, const rules::Node& value) {
    struct Flag {
      std::string_view name;
      bool TransformConfig::*member;
    };
    constexpr Flag kFlags[] = {
        {"enabled", &TransformConfig::enabled},
        {"run_per_gm", &TransformConfig::run_per_gm},
        {"skip_on_error", &TransformConfig::skip_on_error},
        {"run_graph_cleanup", &TransformConfig::run_graph_cleanup},
        {"run_shape_prop", &TransformConfig::run_shape_prop},
        {"requires_clean_graph", &TransformConfig::requires_clean_graph},
        {"requires_shape_prop", &TransformConfig::requires_shape_prop},
    };
    if (key.text == "stage") {
      if (!value.IsScalar() || value.text.empty())
        return Fail(file.ErrorAt(value, "expected the name of a stage"));
      transform.stage = value.text;
      return {};
    }
    for (const Flag& flag : kFlags) {
      if (key.text != flag.name) continue;
      if (value.text != "true" && value.text != "false")
        return Fail(file.ErrorAt(value, "expected true or false"));
      transform.*flag.member = value.text == "true";
      if (key.text == "enabled") transform.enabled_in = file.name;
      return {};
    }
    // Lists and maps are options of native transforms: nothing here reads
    // them.
    if (value.IsScalar()) transform.options[key.text] = value.text;
    return {};
  }

  PipelineConfig& out_;
};

}  // namespace

const TransformConfig* PipelineConfig::Find(std::string_view name) const {
  for (const TransformConfig& transform : transforms) {
    if (transform.name == name) return &transform;
  }
  return nullptr;
}

Result<PipelineConfig> ParsePipelineConfig(
    const std::vector<DataFile>& files,
    const std::vector<std::string>& stages) {
  PipelineConfig out;
  for (size_t i = 0; i < files.size(); ++i)
    LAMINA_TRY(ConfigReader(out).Read(files[i], i == 0));
  const auto rank = [&](const TransformConfig& transform) {
    if (stages.empty()) return StageRank(transform.stage);
    return static_cast<size_t>(
        std::find(stages.begin(), stages.end(), transform.stage) -
        stages.begin());
  };
  std::stable_sort(out.transforms.begin(), out.transforms.end(),
                   [&](const TransformConfig& a, const TransformConfig& b) {
                     return rank(a) < rank(b);
                   });
  return out;
}

Result<PipelineConfig> ReadPipelineConfig(
    const std::string& path, const std::vector<std::string>& overlays,
    const std::vector<std::string>& stages) {
  std::vector<std::string> paths = {path};
  paths.insert(paths.end(), overlays.begin(), overlays.end());
  std::vector<DataFile> files;
  for (const std::string& name : paths) {
    LAMINA_ASSIGN(std::string text, ReadAll(name, kMaxConfig));
    LAMINA_ASSIGN(DataFile file, rules::ParseYaml(name, std::move(text)));
    files.push_back(std::move(file));
  }
  return ParsePipelineConfig(files, stages);
}

}  // namespace lamina::graph
