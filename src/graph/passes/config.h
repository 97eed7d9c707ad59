// SPDX-License-Identifier: Apache-2.0
//
// The configuration of a pipeline, in the form of AutoDeploy's default.yaml:
//
//   transforms:
//     fuse_rmsnorm:
//       stage: post_load_fusion
//       enabled: true
//       rmsnorm_backend: flashinfer
//
// Further files are laid over it: maps are merged, everything else replaced.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "rules/document.h"

namespace lamina::graph {

struct TransformConfig {
  std::string name;
  std::string stage;
  bool enabled = true;
  bool run_per_gm = true;
  bool skip_on_error = false;
  bool run_graph_cleanup = true;
  bool run_shape_prop = false;
  bool requires_clean_graph = true;
  bool requires_shape_prop = false;
  // Options of the transform itself, scalars only.
  std::map<std::string, std::string> options;
  // The file that said last whether it is enabled.
  std::string enabled_in;
  std::vector<std::string> fields;  // as the first file lists them
};

struct PipelineConfig {
  // Stages in order; transforms of a stage in the order of the file.
  std::vector<TransformConfig> transforms;

  const TransformConfig* Find(std::string_view name) const;
};

// Reads a file and those laid over it. `stages` is another order of stages, or
// empty for the usual one. Errors name file, line and column.
Result<PipelineConfig> ReadPipelineConfig(
    const std::string& path, const std::vector<std::string>& overlays,
    const std::vector<std::string>& stages = {});
Result<PipelineConfig> ParsePipelineConfig(
    const std::vector<rules::DataFile>& files,
    const std::vector<std::string>& stages = {});

}  // namespace lamina::graph
