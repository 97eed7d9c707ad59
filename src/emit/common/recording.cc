// SPDX-License-Identifier: Apache-2.0
#include "emit/common/recording.h"

#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/strict.h"

namespace lamina::emit {
namespace {

void Int(std::string& out, std::string_view key, int64_t value) {
  if (value == trace::kNoInt) return;
  if (out.back() != '{') out += ',';
  AppendJsonQuoted(out, key);
  out += ':';
  AppendInt(out, value);
}

}  // namespace

std::string DevicePropertiesJson(const trace::Info& info) {
  std::string out;
  for (const trace::DeviceInfo& device : info.devices) {
    out += out.empty() ? "[{" : ",{";
    Int(out, "id", device.id);
    if (!device.name.empty()) {
      out += ",\"name\":";
      AppendJsonQuoted(out, device.name);
    }
    Int(out, "totalGlobalMem", device.memory_bytes);
    Int(out, "computeMajor", device.compute_major);
    Int(out, "computeMinor", device.compute_minor);
    Int(out, "numSms", device.sm_count);
    Int(out, "clockRate", device.clock_khz);
    out += '}';
  }
  if (!out.empty()) out += ']';
  return out;
}

std::string DistributedJson(const trace::Info& info) {
  if (!info.rank) return {};
  std::string out = "{";
  if (!info.backend.empty()) {
    out += "\"backend\":";
    AppendJsonQuoted(out, info.backend);
  }
  Int(out, "rank", *info.rank);
  if (info.world_size) Int(out, "world_size", *info.world_size);
  // Text of the input, which readers take as it is.
  if (const auto groups = json::MakeStrict(info.process_groups)) {
    out += ",\"pg_config\":";
    out += *groups;
  }
  return out + "}";
}

}  // namespace lamina::emit
