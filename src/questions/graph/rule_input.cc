// SPDX-License-Identifier: Apache-2.0
#include "questions/graph/rule_input.h"

#include <filesystem>
#include <fmt/format.h>

#include "base/escape.h"
#include "cost/device.h"

namespace lamina::questions {

Result<RuleInput> OpenRules(Asker& asker) {
  std::error_code error;
  const bool file = std::filesystem::is_regular_file(asker.rules_dir, error);
  RuleInput out;
  out.data = rules::DataSet(file ? std::string() : asker.rules_dir);
  LAMINA_ASSIGN(out.set, graph::LoadRuleSet(
                             out.data, file ? asker.rules_dir : std::string()));
  for (const graph::Rule& rule : out.set.rules) {
    if (rule.file.starts_with("builtin:")) continue;
    const std::vector<std::string> broken = graph::CheckRuleExamples(rule);
    if (!broken.empty()) {
      Error fault = UsageError(broken.front(),
                               "an example must match once, a counter-example "
                               "not, and for the reason it gives");
      fault.file = rule.file;
      fault.line = rule.line;
      return Fail(std::move(fault));
    }
    if (rule.examples.empty() && !rule.alternatives.empty())
      out.set.warnings.push_back(fmt::format(
          "{}:{}: {} has no examples: nothing says that it finds what it is "
          "for",
          rule.file, rule.line, rule.name));
  }
  LAMINA_ASSIGN(out.groups, graph::GroupRules::Load(out.data));
  for (const std::string& warning : out.set.warnings)
    asker.Warn("rules", EscapeTerminal(warning));
  return out;
}

Result<fusion::Memory> ChooseMemory(const RuleInput& rules,
                                    const std::string& device,
                                    engine::Session* session) {
  std::optional<cost::Device> found;
  if (!device.empty()) {
    LAMINA_ASSIGN(const auto devices, cost::DeviceSet::Load(rules.data));
    LAMINA_ASSIGN(found, devices->Find(device));
  } else if (session != nullptr) {
    LAMINA_ASSIGN(const cost::Device* const device_of_trace,
                  session->input().Device());
    if (device_of_trace != nullptr) found = *device_of_trace;
  }
  fusion::Memory memory;
  if (found && found->bytes_per_s > 0) {
    memory.bytes_per_s = found->bytes_per_s;
    memory.device = found->title;
  }
  return memory;
}

void AddDeviceOption(Description& args, std::string& device) {
  args.Add("--device", device,
           "Device that savings are for: a name (⟨lamina⟩ list devices) or "
           "a file (default: what the trace says, else an H100 SXM)");
}

Error UnknownRule(const RuleInput& rules, const std::string& name) {
  std::vector<std::string_view> names;
  for (const graph::Rule& rule : rules.set.rules) names.push_back(rule.name);
  const std::string_view near = rules::Nearest(name, names);
  return UsageError("no rule '" + EscapeTerminal(name) + "'",
                    near.empty()
                        ? "⟨lamina⟩ graph census DUMP ⟨explain⟩ lists the rules"
                        : "did you mean '" + std::string(near) + "'?");
}

}  // namespace lamina::questions
