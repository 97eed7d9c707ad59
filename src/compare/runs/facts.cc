// SPDX-License-Identifier: Apache-2.0
//
// What a recording is of, and how it was made: for who asks whether two can be
// compared.
#include <fmt/format.h>
#include <map>
#include <utility>

#include "compare/runs/compare.h"

namespace lamina::runs {

std::string ModelOf(const Context& context) {
  const auto& paths = context.modules.paths();
  std::string root;
  std::map<std::pair<uint32_t, std::string>, size_t> classes;
  for (const auto& path : paths) {
    std::string name(tree::Modules::ClassName(context.trace.Text(path.name)));
    if (root.empty() && !path.parent.valid()) root = name;
    ++classes[{path.depth, std::move(name)}];
  }
  for (const auto& [key, count] : classes) {
    if (count > 1 && key.second != "ModuleList")
      return fmt::format("{}, {} x {}", root, count, key.second);
  }
  return root;
}

namespace {

// What profilers say of their surroundings at the top of a file, and the names
// it is kept under.
constexpr std::pair<std::string_view, std::string_view> kProperties[] = {
    {"cuda_driver_version", "driver"}, {"cuda_runtime_version", "runtime"},
    {"hip_driver_version", "driver"},  {"hip_runtime_version", "runtime"},
    {"CUPTI_VERSION", "recorder"},     {"roctracer_version", "recorder"},
    {"schemaVersion", "schema"},       {"record_shapes", "shapes"},
    {"with_stack", "stacks"},          {"profile_memory", "memory"},
    {"with_modules", "modules"},       {"with_flops", "flops"},
};

std::string Joined(const std::map<std::string, std::string>& facts,
                   std::initializer_list<const char*> names) {
  std::string out;
  for (const char* name : names) {
    const auto found = facts.find(name);
    if (found == facts.end()) continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, found->second);
  }
  return out;
}

}  // namespace

std::map<std::string, std::string> EnvironmentOf(const trace::Trace& trace) {
  constexpr size_t kLongest = 100;
  std::map<std::string, std::string> out;
  for (const auto& [key, raw] : trace.info.properties) {
    for (const auto& [property, name] : kProperties) {
      std::string_view value = raw;
      if (value.size() > 1 && value.front() == '"' && value.back() == '"')
        value = value.substr(1, value.size() - 2);
      if (key == property && value.size() <= kLongest) out.emplace(name, value);
    }
  }
  return out;
}

std::string RecorderOf(const trace::Trace& trace) {
  const std::string how = Joined(
      EnvironmentOf(trace), {"shapes", "stacks", "memory", "modules", "flops"});
  return how.empty() ? trace.info.format : trace.info.format + ", " + how;
}

std::string VersionsOf(const trace::Trace& trace) {
  return Joined(EnvironmentOf(trace), {"driver", "runtime", "recorder"});
}

bool OtherLayers(std::string_view a, std::string_view b) {
  const auto layers = [](std::string_view model) {
    const size_t comma = model.rfind(", ");
    return comma == std::string_view::npos
               ? std::string_view()
               : model.substr(comma + 2, model.find(" x ", comma) - comma - 2);
  };
  const std::string_view before = layers(a), after = layers(b);
  return !before.empty() && !after.empty() && before != after;
}

}  // namespace lamina::runs
