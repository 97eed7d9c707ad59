// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/details.h"

#include <algorithm>
#include <array>

#include "base/decimal.h"
#include "base/text.h"

namespace lamina::ingest::xplane {

using trace::Kind;
using trace::kNoInt;

namespace {

// Calls `visit(key, value)` for every "key:value" between spaces.
template <class Visit>
void ForEachDetail(std::string_view text, Visit&& visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t colon = part.find(':');
    if (colon != std::string_view::npos)
      visit(part.substr(0, colon), part.substr(colon + 1));
  }
}

std::array<uint32_t, 3> Triple(std::string_view text) {
  std::array<uint32_t, 3> out{};
  for (uint32_t& value : out) {
    const size_t comma = std::min(text.find(','), text.size());
    const auto number = ParseInt(text.substr(0, comma));
    if (!number || *number < 0 || *number > 0xFFFFFFFF) break;
    value = static_cast<uint32_t>(*number);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

// Parts of op names that are control flow of the program, not of the model.
bool IsControl(std::string_view name) {
  static constexpr std::array<std::string_view, 12> kNames = {
      "while",      "body",      "cond",  "closed_call",
      "core_call",  "scan",      "remat", "remat2",
      "checkpoint", "shard_map", "pjit",  "rematted_computation"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// "Model" of "jvp(Model)"; notes "transpose(". What is left of functions
// ("jit(f)") is nothing.
std::string_view Unwrap(std::string_view part, bool* backward) {
  static constexpr std::array<std::string_view, 5> kWrappers = {
      "jvp(", "transpose(", "vmap(", "remat(", "checkpoint("};
  for (bool found = true; found && part.ends_with(')');) {
    found = false;
    for (const std::string_view wrapper : kWrappers) {
      if (!part.starts_with(wrapper)) continue;
      if (wrapper == "transpose(") *backward = true;
      part.remove_prefix(wrapper.size());
      part.remove_suffix(1);
      found = true;
      break;
    }
  }
  if (part.starts_with("jit(") || part.starts_with("pjit(")) return {};
  return part;
}

}  // namespace

trace::LaunchConfig ParseKernelDetails(std::string_view text) {
  constexpr int64_t kMaxRegisters = 1024;
  constexpr int64_t kMaxShared = int64_t{1} << 30;
  trace::LaunchConfig config;
  int64_t shared = 0;
  bool any_shared = false;
  bool trust_shared = true;
  ForEachDetail(text, [&](std::string_view key, std::string_view value) {
    if (key == "grid") {
      config.grid = Triple(value);
    } else if (key == "block") {
      config.block = Triple(value);
    } else if (key == "regs") {
      const auto number = ParseInt(value);
      if (number && *number >= 0 && *number <= kMaxRegisters) {
        config.registers_per_thread = *number;
      } else {
        // Addresses stand where the sizes belong.
        trust_shared = false;
      }
    } else if (key == "static_shared" || key == "dynamic_shared" ||
               key == "group_mem") {
      const auto number = ParseInt(value);
      if (!number || *number < 0 || *number > kMaxShared) return;
      shared += *number;
      any_shared = true;
    } else if (key == "occ_pct") {
      const auto number = ParseDouble(value);
      // ROCm writes 0 for unknown.
      if (number && *number > 0 && *number <= 100)
        config.occupancy_pct = *number;
    }
  });
  if (any_shared && trust_shared) config.shared_memory_bytes = shared;
  return config;
}

int64_t ParseCopySize(std::string_view text) {
  int64_t size = kNoInt;
  ForEachDetail(text, [&](std::string_view key, std::string_view value) {
    if (key != "size" && key != "num_bytes") return;
    const auto number = ParseInt(value);
    if (number && *number > 0) size = *number;
  });
  return size;
}

Kind DeviceKindOf(std::string_view name) {
  if (name.starts_with("__amd_rocclr_copy") || name.starts_with("Memcpy") ||
      name.starts_with("MEMORY_COPY") || name == "CopyHostToDevice" ||
      name == "CopyDeviceToHost" || name == "CopyDeviceToDevice")
    return Kind::kMemcpy;
  if (name.starts_with("__amd_rocclr_fill") || name.starts_with("Memset") ||
      name.starts_with("memset"))
    return Kind::kMemset;
  return Kind::kKernel;
}

Kind ApiKindOf(std::string_view name) {
  const bool driver = (name.starts_with("cu") && name.size() > 2 &&
                       name[2] >= 'A' && name[2] <= 'Z') ||
                      name.starts_with("hsa");
  return driver ? Kind::kDriver : Kind::kRuntime;
}

std::string_view InstructionNameOf(std::string_view name) {
  if (!name.starts_with('%')) return name;
  name.remove_prefix(1);
  return name.substr(0, name.find(' '));
}

Scopes ScopesOf(std::string_view op_name) {
  constexpr size_t kMaxScopes = 64;
  Scopes scopes;
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < op_name.size(); ++i) {
    const char c = op_name[i];
    if (c == '(' || c == '[') ++depth;
    if ((c == ')' || c == ']') && depth > 0) --depth;
    if (c != '/' || depth > 0) continue;
    parts.push_back(op_name.substr(begin, i - begin));
    begin = i + 1;
  }
  for (const std::string_view part : parts) {
    const std::string_view scope = Unwrap(part, &scopes.backward);
    // "bsd,de->bse" is the formula of an einsum.
    if (scope.empty() || IsControl(scope) || Contains(scope, "->")) continue;
    // A transformation of a path keeps the path's slashes.
    for (size_t at = 0; at < scope.size();) {
      const size_t slash = std::min(scope.find('/', at), scope.size());
      if (slash > at && scopes.names.size() < kMaxScopes)
        scopes.names.emplace_back(scope.substr(at, slash - at));
      at = slash + 1;
    }
  }
  return scopes;
}

}  // namespace lamina::ingest::xplane
