// SPDX-License-Identifier: Apache-2.0
//
// What a checkout of TensorRT-LLM says of its transforms: found as text,
// nothing of the tree is run or imported.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/fusion/kernel_lookup.h"

namespace lamina::generate {

// One thing that was looked for, and where it stands.
struct ApiFact {
  std::string name;      // "apply"
  std::string form;      // "per graph module and full model"; "" : not found
  std::string evidence;  // file:line
};

struct TreeApi {
  std::string tree;
  std::vector<ApiFact> facts;
  std::vector<std::string> stages;         // values in order
  std::vector<std::string> config_fields;  // of TransformConfig
  std::vector<std::string> apply_parameters;
  std::vector<std::string> matcher_parameters;  // empty: no such function
  bool has_is_op = false;
  bool walks_library = false;  // no list of modules to add to
  bool later_infos = false;    // TransformInfo has defaults for all fields
  std::string header;          // comment lines of a library file, or empty
  std::string test_folder;     // below the tree
  bool test_folder_exists = false;
  std::string default_yaml;  // text of config/default.yaml; may be empty
  std::string library_init;  // text of library/__init__.py; may be empty

  // Module of a symbol as the library imports it, relative to it.
  std::string ModuleOf(std::string_view symbol) const;
  std::vector<std::pair<std::string, std::string>> imports;
};

inline constexpr std::string_view kAutoDeploy =
    "tensorrt_llm/_torch/auto_deploy";

// Errors (usage): no transform API in this tree; a part of it in a form that
// is not known ("api_unknown: ...").
Result<TreeApi> ReadTreeApi(const std::string& tree);

// Operands, by position, that an op of the tree or a function around one
// writes to; nullopt: its definition says that it writes and not to which.
std::optional<std::vector<size_t>> MutatedOperands(
    const fusion::SourceIndex& index, std::string_view op);

// default.yaml with a block of lines behind the last transform of the stage
// (or of the last stage in front of it); nothing: no such file or no stage.
std::optional<std::string> WithConfigEntry(const TreeApi& api,
                                           std::string_view stage,
                                           std::string_view entry);

// A unified diff with three lines of context; empty for equal texts.
std::string UnifiedDiff(std::string_view file, std::string_view before,
                        std::string_view after);

}  // namespace lamina::generate
