// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/recording.h"

#include <simdjson.h>

namespace lamina::ingest {
namespace {

std::optional<int64_t> IntOf(simdjson::dom::element element) {
  int64_t value = 0;
  if (element.get_int64().get(value) == simdjson::SUCCESS) return value;
  double real = 0;
  if (element.get_double().get(real) == simdjson::SUCCESS && real >= -9e15 &&
      real <= 9e15)
    return static_cast<int64_t>(real);
  return std::nullopt;
}

}  // namespace

bool ReadDeviceProperties(std::string_view json, trace::Info& info) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::dom::array list;
  if (parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS ||
      root.get_array().get(list) != simdjson::SUCCESS)
    return false;
  for (const simdjson::dom::element element : list) {
    simdjson::dom::object object;
    if (element.get_object().get(object) != simdjson::SUCCESS) continue;
    trace::DeviceInfo device;
    for (const auto [key, value] : object) {
      const auto number = IntOf(value);
      std::string_view text;
      if (key == "name" && value.get_string().get(text) == simdjson::SUCCESS) {
        device.name = text;
      } else if (!number) {
        continue;
      } else if (key == "id") {
        device.id = *number;
      } else if (key == "totalGlobalMem") {
        device.memory_bytes = *number;
      } else if (key == "computeMajor") {
        device.compute_major = *number;
      } else if (key == "computeMinor") {
        device.compute_minor = *number;
      } else if (key == "numSms") {
        device.sm_count = *number;
      } else if (key == "clockRate") {
        device.clock_khz = *number;
      }
    }
    info.devices.push_back(std::move(device));
  }
  return true;
}

bool ReadDistributedInfo(std::string_view json, trace::Info& info) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::dom::object object;
  if (parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS ||
      root.get_object().get(object) != simdjson::SUCCESS)
    return false;
  for (const auto [key, value] : object) {
    std::string_view text;
    if (key == "rank") {
      info.rank = IntOf(value);
    } else if (key == "world_size") {
      info.world_size = IntOf(value);
    } else if (key == "backend" &&
               value.get_string().get(text) == simdjson::SUCCESS) {
      info.backend = text;
    } else if (key == "pg_config") {
      info.process_groups = simdjson::minify(value);
    }
  }
  return true;
}

}  // namespace lamina::ingest
