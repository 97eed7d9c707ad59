// SPDX-License-Identifier: Apache-2.0
#include "ingest/rocprof_csv/agents.h"

#include "base/decimal.h"

namespace lamina::ingest::rocprof_csv {

using trace::kNoInt;

Status Agents::Read(Sheet& sheet, trace::Segment& segment) {
  const int node = sheet.Find({"Node_Id"});
  const int type = sheet.Find({"Agent_Type"});
  const int units = sheet.Find({"Cu_Count"});
  const int product = sheet.Find({"Product_Name"});
  const int name = sheet.Find({"Name"});
  Chunk chunk;
  while (true) {
    LAMINA_ASSIGN(const bool more, sheet.Next(chunk));
    if (!more) break;
    CsvRows rows(chunk.text);
    for (; rows.Next(); ++segment.next_uid) {
      const auto id = ParseInt(rows.Field(node));
      if (!id) continue;
      Agent agent;
      agent.gpu = rows.Field(type) == "GPU" || rows.Field(type) == "2";
      agent.device.name = rows.Field(product);
      if (agent.device.name.empty()) agent.device.name = rows.Field(name);
      agent.device.sm_count = ParseInt(rows.Field(units)).value_or(kNoInt);
      agents_.try_emplace(*id, std::move(agent));
    }
    AddRowDamage(rows, chunk, segment.diagnostics);
  }
  sheet.AddDamage(segment.diagnostics);
  return {};
}

std::vector<trace::DeviceInfo> Agents::Number() {
  std::vector<trace::DeviceInfo> devices;
  for (auto& [node, agent] : agents_) {
    if (!agent.gpu) continue;
    agent.number = agent.device.id = static_cast<int64_t>(devices.size());
    devices.push_back(agent.device);
  }
  return devices;
}

const Agent* Agents::Find(std::string_view text) const {
  const auto it = agents_.find(AgentNumber(text));
  return it != agents_.end() ? &it->second : nullptr;
}

int64_t Agents::DeviceOf(std::string_view text) const {
  // "GPU 0" counts GPUs only.
  const Agent* agent = text.starts_with("GPU") ? nullptr : Find(text);
  return agent != nullptr ? agent->number : AgentNumber(text);
}

}  // namespace lamina::ingest::rocprof_csv
