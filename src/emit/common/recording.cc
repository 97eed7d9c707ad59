// SPDX-License-Identifier: Apache-2.0
#include "emit/common/recording.h"

#include "base/json/strict.h"
#include "base/json/writer.h"

namespace lamina::emit {
namespace {

using json::Writer;

void IntOf(Writer& w, std::string_view key, int64_t value) {
  if (value != trace::kNoInt) w.Int(key, value);
}

}  // namespace

std::string DevicePropertiesJson(const trace::Info& info) {
  if (info.devices.empty()) return {};
  std::string out;
  Writer w(out);
  w.Array();
  for (const trace::DeviceInfo& device : info.devices) {
    w.Object();
    IntOf(w, "id", device.id);
    if (!device.name.empty()) w.Text("name", device.name);
    IntOf(w, "totalGlobalMem", device.memory_bytes);
    IntOf(w, "computeMajor", device.compute_major);
    IntOf(w, "computeMinor", device.compute_minor);
    IntOf(w, "numSms", device.sm_count);
    IntOf(w, "clockRate", device.clock_khz);
    w.Close();
  }
  w.Close();
  return out;
}

std::string DistributedJson(const trace::Info& info) {
  if (!info.rank) return {};
  std::string out;
  Writer w(out);
  w.Object();
  if (!info.backend.empty()) w.Text("backend", info.backend);
  IntOf(w, "rank", *info.rank);
  if (info.world_size) IntOf(w, "world_size", *info.world_size);
  // Text of the input, which readers take as it is.
  if (const auto groups = json::MakeStrict(info.process_groups))
    w.Raw("pg_config", *groups);
  w.Close();
  return out;
}

}  // namespace lamina::emit
