// SPDX-License-Identifier: Apache-2.0
//
// A trace with the data files it is read by, before a tree is built of it, and
// the facts that need no tree: cost models, the device, peaks of its links.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/facts.h"
#include "rules/catalog.h"
#include "rules/document.h"
#include "trace/trace.h"

namespace lamina::cost {
struct Device;
}

namespace lamina::graph {
struct CompiledProgram;
}

namespace lamina::analysis {

class Input {
 public:
  using Programs = std::vector<graph::CompiledProgram>;

  Input(const trace::Trace& of_trace, const rules::Catalog& by_catalog,
        const rules::DataSet& by_data, std::string for_device,
        StageTimes* times)
      : trace(of_trace),
        catalog(by_catalog),
        data(by_data),
        device(std::move(for_device)),
        facts_(*this, times) {}

  const trace::Trace& trace;
  const rules::Catalog& catalog;
  const rules::DataSet& data;
  // What the user called the device; empty: what the trace says.
  const std::string device;
  // Code of a compiler, for what its kernels compute: set before the first
  // question; null: none was given.
  std::shared_ptr<const Programs> compiled;

  // The device that rooflines are for; null when it is not known.
  Result<const cost::Device*> Device() const;

  template <class F>
  Result<const F*> Get() const {
    return facts_.Get<F>();
  }

 private:
  Facts<Input> facts_;
};

}  // namespace lamina::analysis
