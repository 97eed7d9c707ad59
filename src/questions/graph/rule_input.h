// SPDX-License-Identifier: Apache-2.0
//
// The fusion rules of a command: the built-in ones with those of --rules, a
// folder laid out like data/ or one file of rules.
#pragma once

#include <memory>
#include <string>

#include "graph/fusion/traffic.h"
#include "graph/layers/rules.h"
#include "graph/passes/rule_file.h"
#include "questions/asker.h"

namespace lamina::questions {

struct RuleInput {
  rules::DataSet data;
  graph::RuleSet set;
  std::shared_ptr<const graph::GroupRules> groups;
};

// Warnings about rules go to stderr, or to the host.
Result<RuleInput> OpenRules(Asker& asker);

// The memory of the device that --device names; with an empty name of that of
// the trace in `session`, if there is one that says it; else the default.
Result<fusion::Memory> ChooseMemory(const RuleInput& rules,
                                    const std::string& device,
                                    engine::Session* session);
void AddDeviceOption(Description& args, std::string& device);

// The error for --rule NAME; names the nearest one.
Error UnknownRule(const RuleInput& rules, const std::string& name);

}  // namespace lamina::questions
