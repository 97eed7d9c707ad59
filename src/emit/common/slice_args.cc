// SPDX-License-Identifier: Apache-2.0

#include "emit/common/slice_args.h"

#include <algorithm>
#include <cmath>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/strict.h"
#include "base/json/writer.h"
#include "trace/arg_keys.h"
#include "trace/sync_record.h"

namespace lamina::emit {

using trace::ArgKey;
using trace::ArgText;
using trace::kNoInt;
using trace::kNoRow;

void AppendJsonValue(std::string& out, const Arg& arg) {
  switch (arg.type) {
    case Arg::Type::kInt:
      AppendInt(out, arg.integer);
      break;
    case Arg::Type::kReal:
      if (std::isfinite(arg.real)) {
        AppendNumber(out, arg.real);
      } else {
        out += "null";
      }
      break;
    case Arg::Type::kJson:
      // Text of the input, which readers take as it is.
      if (const auto strict = json::MakeStrict(arg.text)) {
        out += *strict;
      } else {
        AppendJsonQuoted(out, arg.text);
      }
      break;
    case Arg::Type::kText:
      AppendJsonQuoted(out, arg.text);
      break;
    case Arg::Type::kInts:
      out += '[';
      for (size_t i = 0; i < arg.list.size(); ++i) {
        if (i > 0) out += ',';
        AppendInt(out, arg.list[i]);
      }
      out += ']';
      break;
  }
}

void SliceArgs::Int(std::string_view name, int64_t value) {
  if (value == kNoInt) return;
  Arg arg;
  arg.name = name;
  arg.integer = value;
  args_.push_back(arg);
}

void SliceArgs::Real(std::string_view name, double value) {
  Arg arg;
  arg.name = name;
  arg.type = Arg::Type::kReal;
  arg.real = value;
  args_.push_back(arg);
}

void SliceArgs::Amount(std::string_view name, double value) {
  if (std::floor(value) == value && std::abs(value) < 0x1p63) {
    Int(name, static_cast<int64_t>(value));
  } else {
    Real(name, value);
  }
}

void SliceArgs::Text(std::string_view name, std::string_view text) {
  Arg arg;
  arg.name = name;
  arg.type = Arg::Type::kText;
  arg.text = text;
  args_.push_back(arg);
}

void SliceArgs::Text(std::string_view name, const trace::Trace& trace,
                     StringId id, Arg::Type type) {
  if (!id.valid()) return;
  Text(name, trace.Text(id));
  args_.back().type = type;
}

void SliceArgs::Triple(std::string_view name,
                       const std::array<uint32_t, 3>& value) {
  triples_.push_back({value[0], value[1], value[2]});
  Arg arg;
  arg.name = name;
  arg.type = Arg::Type::kInts;
  arg.list = triples_.back();
  args_.push_back(arg);
}

void SliceArgs::Config(const trace::Trace& trace, uint32_t row) {
  const trace::LaunchConfig* config = trace.Config(row);
  if (config == nullptr) return;
  Triple(ArgText(ArgKey::kGrid), config->grid);
  Triple(ArgText(ArgKey::kBlock), config->block);
  Int(ArgText(ArgKey::kSharedMemory), config->shared_memory_bytes);
  Int(ArgText(ArgKey::kRegisters), config->registers_per_thread);
  if (config->occupancy_pct >= 0)
    Real(ArgText(ArgKey::kOccupancy), config->occupancy_pct);
}

void SliceArgs::Collective(const trace::Trace& trace, uint32_t row) {
  const trace::CollectiveArgs* args = trace.Collective(row);
  if (args == nullptr) return;
  Text(ArgText(ArgKey::kCollectiveName), trace, args->name);
  Text(ArgText(ArgKey::kGroupName), trace, args->group);
  Text(ArgText(ArgKey::kGroupDescription), trace, args->group_desc);
  Text(ArgText(ArgKey::kGroupRanks), trace, args->group_ranks);
  Text(ArgText(ArgKey::kDtype), trace, args->dtype);
  Text(ArgText(ArgKey::kInSplit), trace, args->in_split);
  Text(ArgText(ArgKey::kOutSplit), trace, args->out_split);
  Int(ArgText(ArgKey::kGroupSize), args->group_size);
  Int(ArgText(ArgKey::kInElements), args->in_elements);
  Int(ArgText(ArgKey::kOutElements), args->out_elements);
  Int(ArgText(ArgKey::kSeq), args->sequence);
  Int(ArgText(ArgKey::kSrcRank), args->src_rank);
  Int(ArgText(ArgKey::kDstRank), args->dst_rank);
  Int(ArgText(ArgKey::kCommsId), args->comms_id);
}

void SliceArgs::Op(const trace::Trace& trace, const trace::OpArgs& op) {
  Text(ArgText(ArgKey::kInputDims), trace, op.dims, Arg::Type::kJson);
  Text(ArgText(ArgKey::kInputTypes), trace, op.types, Arg::Type::kJson);
  Text(ArgText(ArgKey::kInputStrides), trace, op.strides, Arg::Type::kJson);
  Text(ArgText(ArgKey::kConcreteInputs), trace, op.concrete, Arg::Type::kJson);
  Int(ArgText(ArgKey::kExternalId), op.external_id);
  Int(ArgText(ArgKey::kSequence), op.sequence);
  Int(ArgText(ArgKey::kFwdThread), op.fwd_thread);
  Collective(trace, op.collective);
  if (op.instruction == kNoRow) return;
  const trace::Instruction& hlo = trace.instructions[op.instruction];
  Text("lamina.hlo_module", trace, hlo.module);
  Text("lamina.hlo_opcode", trace, hlo.opcode);
  Text("lamina.op_name", trace, hlo.op_name);
  Text("lamina.shape", trace, hlo.shape);
  if (hlo.flops >= 0) Amount("lamina.flops", hlo.flops);
  if (hlo.bytes >= 0) Amount("lamina.bytes", hlo.bytes);
  Text("lamina.source", trace, hlo.source);
  Int("lamina.source_line", hlo.source_line);
}

void SliceArgs::Device(const trace::Trace& trace,
                       const trace::DeviceArgs& device) {
  Int(ArgText(ArgKey::kCorrelation), device.correlation);
  Int(ArgText(ArgKey::kExternalId), device.external_id);
  Int(ArgText(ArgKey::kDevice), device.device);
  Int(ArgText(ArgKey::kContext), device.context);
  Int(ArgText(ArgKey::kStream), device.stream);
  Int(ArgText(ArgKey::kQueue), device.queue);
  Int(ArgText(ArgKey::kBytes), device.bytes);
  Int(ArgText(ArgKey::kGraphId), device.graph_id);
  Int(ArgText(ArgKey::kGraphNodeId), device.graph_node_id);
  Config(trace, device.config);
  Collective(trace, device.collective);
}

void SliceArgs::Slice(const trace::Trace& trace, trace::SliceId s) {
  if (const trace::OpArgs* op = trace.Op(s)) {
    Op(trace, *op);
  } else if (const trace::ApiArgs* api = trace.Api(s)) {
    Int(ArgText(ArgKey::kCorrelation), api->correlation);
    Int(ArgText(ArgKey::kExternalId), api->external_id);
    Int(ArgText(ArgKey::kStream), api->stream);
    Text(ArgText(ArgKey::kKernel), trace, api->kernel);
    Config(trace, api->config);
  } else if (const trace::DeviceArgs* device = trace.Device(s)) {
    Device(trace, *device);
  } else if (const trace::PythonArgs* python = trace.Python(s)) {
    if (python->id >= 0) Int(ArgText(ArgKey::kPythonId), python->id);
    if (python->parent_id >= 0)
      Int(ArgText(ArgKey::kPythonParentId), python->parent_id);
    if (python->module_id >= 0)
      Int(ArgText(ArgKey::kPythonModuleId), python->module_id);
  } else if (const auto sync = trace::SyncOf(trace, s)) {
    Int(ArgText(ArgKey::kCorrelation), sync->correlation);
    Int(ArgText(ArgKey::kDevice), sync->device);
    Int(ArgText(ArgKey::kStream), sync->stream);
    Int(ArgText(ArgKey::kWaitOnStream), sync->source_stream);
    Int(ArgText(ArgKey::kWaitOnRecord), sync->source_record);
  }
  const auto& counters = trace.event_counters;
  if (counters.empty() || trace.KindOf(s) != trace::Kind::kOther) return;
  auto row = std::lower_bound(counters.begin(), counters.end(), trace.Uid(s),
                              [](const trace::EventCounter& counter,
                                 uint32_t uid) { return counter.uid < uid; });
  for (; row != counters.end() && row->uid == trace.Uid(s); ++row)
    Amount(trace.Text(row->name), row->value);
}

void SliceArgs::Memory(const trace::MemoryArgs& memory) {
  Int(ArgText(ArgKey::kMemoryBytes), memory.bytes);
  Int(ArgText(ArgKey::kAddress), memory.address);
  Int(ArgText(ArgKey::kTotalAllocated), memory.total_allocated);
  Int(ArgText(ArgKey::kTotalReserved), memory.total_reserved);
  if (memory.device_type >= 0)
    Int(ArgText(ArgKey::kDeviceType), memory.device_type);
  Int(ArgText(ArgKey::kDeviceId), memory.device_id);
}

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
