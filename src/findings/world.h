// SPDX-License-Identifier: Apache-2.0
//
// Tables that rules run over instead of those of one trace.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "findings/findings.h"

namespace lamina::findings {

struct World {
  ResultSet tables;
  std::vector<std::string> device_names;  // of ranks
  int64_t window_ns = 0;                  // mean over them
  int64_t busy_ns = 0;                    // sum
  Ledger::EventTimes own_ns;              // by uid of a row
  std::map<std::string, std::string> facts;
};

// The rules with `over: ranks`, with all their findings. A rule that fails is
// a row of `runs`.
Diagnosis DiagnoseWorld(const World& world,
                        std::shared_ptr<const RuleSet> rules,
                        const Options& options);

}  // namespace lamina::findings
