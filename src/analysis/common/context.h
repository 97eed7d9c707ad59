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

#include "analysis/common/device_view.h"
#include "analysis/common/facts.h"
#include "analysis/common/input.h"
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
  // Verdicts on idle time say what caused it.
  bool idle_causes = true;
  // Tokens of one step on one device; nothing: what embeddings show.
  std::optional<int64_t> tokens;
  // Facts of host and device use what the profiler recorded of waits, and infer
  // those that it did not record.
  bool sync_records = true;
  bool infer_waits = true;

  bool operator==(const Settings&) const = default;
  // Whether facts that are made with both are the same.
  bool SameFacts(const Settings& other) const {
    return sync_records == other.sync_records &&
           infer_waits == other.infer_waits;
  }
};

// One loaded trace with what was derived from it. All read-only.
struct Context {
  const Input& input;
  const Trace& trace;
  const tree::Tree& tree;
  const tree::Modules& modules;
  const tree::Steps& steps;
  const rules::Catalog& catalog;
  const DeviceView& device;
  Settings settings;
  // Shared by all contexts of one tree whose settings make the same facts.
  const Facts<Context>* facts = nullptr;

  // A fact of the trace or of this tree, see facts.h.
  template <class F>
  Result<const F*> Get() const {
    if constexpr (requires(const Input& of) { F::Of(of); }) {
      return input.Get<F>();
    } else {
      return facts->Get<F>();
    }
  }
};

struct AnalysisInfo {
  std::string_view name;
  std::string_view doc;  // one sentence
  std::vector<Schema> (*schemas)();
  Result<ResultSet> (*run)(const Context& context);
};

}  // namespace lamina::analysis
