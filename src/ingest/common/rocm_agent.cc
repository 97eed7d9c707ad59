// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/rocm_agent.h"

namespace lamina::ingest::rocm {

using trace::kNoInt;

std::optional<int64_t> IntAt(simdjson::dom::element object,
                             std::string_view key) {
  int64_t value = 0;
  if (object.at_key(key).get_int64().get(value) != simdjson::SUCCESS)
    return std::nullopt;
  return value;
}

std::string TextAt(simdjson::dom::element object, std::string_view key) {
  std::string_view text;
  if (object.at_key(key).get_string().get(text) != simdjson::SUCCESS) return {};
  return std::string(text);
}

trace::DeviceInfo DeviceOf(simdjson::dom::element agent, int64_t number) {
  trace::DeviceInfo device;
  device.id = number == kNoInt ? 0 : number;
  device.name = TextAt(agent, "product_name");
  if (device.name.empty()) device.name = TextAt(agent, "name");
  device.sm_count = IntAt(agent, "cu_count").value_or(kNoInt);
  constexpr int64_t kMostMegahertz = 1'000'000;
  if (const auto clock = IntAt(agent, "max_engine_clk_fcompute");
      clock && *clock > 0 && *clock < kMostMegahertz)
    device.clock_khz = *clock * 1000;
  constexpr int64_t kMostBytes = int64_t{1} << 50;
  int64_t bytes = 0;
  simdjson::dom::array banks;
  if (agent.at_key("mem_banks").get_array().get(banks) == simdjson::SUCCESS) {
    for (const simdjson::dom::element bank : banks) {
      const int64_t size = IntAt(bank, "size_in_bytes").value_or(0);
      if (size > 0 && size < kMostBytes && bytes < kMostBytes) bytes += size;
    }
  }
  if (bytes > 0) device.memory_bytes = bytes;
  return device;
}

}  // namespace lamina::ingest::rocm
