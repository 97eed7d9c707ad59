// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/input.h"

namespace lamina::analysis {

Result<const cost::Device*> Input::Device() const {
  LAMINA_ASSIGN(const TargetDevice* const target, Get<TargetDevice>());
  return target->device ? &*target->device : nullptr;
}

Result<CostModels> CostModels::Of(const Input& input) {
  LAMINA_ASSIGN(auto models, cost::ModelSet::Load(input.data));
  return CostModels{std::move(models)};
}

Result<TargetDevice> TargetDevice::Of(const Input& input) {
  LAMINA_ASSIGN(const auto devices, cost::DeviceSet::Load(input.data));
  if (!input.device.empty()) {
    LAMINA_ASSIGN(cost::Device device, devices->Find(input.device));
    return TargetDevice{std::move(device)};
  }
  if (input.trace.info.devices.empty()) return TargetDevice{};
  const trace::DeviceInfo& info = input.trace.info.devices[0];
  cost::DeviceFacts facts;
  facts.name = info.name;
  if (info.memory_bytes != trace::kNoInt)
    facts.memory_bytes = static_cast<double>(info.memory_bytes);
  if (info.sm_count != trace::kNoInt)
    facts.multiprocessors = static_cast<double>(info.sm_count);
  if (info.compute_major != trace::kNoInt) {
    facts.compute_capability = std::to_string(info.compute_major) + "." +
                               std::to_string(info.compute_minor);
  }
  return TargetDevice{devices->Match(facts)};
}

}  // namespace lamina::analysis
