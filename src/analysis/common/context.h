// SPDX-License-Identifier: Apache-2.0
//
// What an analysis gets and what it declares. Each lives in a folder of its
// own that defines `lamina::analysis::<folder>::Info()`; the build makes the
// list.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/common/cost_view.h"
#include "analysis/common/device_view.h"
#include "base/status.h"
#include "lamina/result.h"
#include "rules/catalog.h"
#include "tree/modules.h"
#include "tree/steps.h"
#include "tree/tree.h"

namespace lamina::analysis {

struct Settings {
  int threads = 1;
  // Kernels shorter than this are short.
  int64_t short_kernel_ns = 10000;
  // Splits idle time into gaps below and above; nothing: no split.
  std::optional<int64_t> micro_idle_ns;
  bool recompute = false;
  bool costs = false;  // Context::efficiency is wanted
};

// One loaded trace with what was derived from it. All read-only.
struct Context {
  const Trace& trace;
  const tree::Tree& tree;
  const tree::Modules& modules;
  const tree::Steps& steps;
  const rules::Catalog& catalog;
  const DeviceView& device;
  Settings settings;
  const Efficiency* efficiency = nullptr;  // null unless asked for
};

struct AnalysisInfo {
  std::string_view name;
  std::string_view doc;  // one sentence
  std::vector<Schema> (*schemas)();
  Result<ResultSet> (*run)(const Context& context);
};

}  // namespace lamina::analysis
