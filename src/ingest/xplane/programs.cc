// SPDX-License-Identifier: Apache-2.0

#include "ingest/xplane/programs.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/protobuf/wire.h"
#include "base/text.h"
#include "ingest/xplane/hlo_cost.h"

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

using trace::kNoInt;

namespace {

constexpr std::string_view kScopePrefix = "nn.Module: ";

std::string_view CollectiveName(HloCollective kind) {
  switch (kind) {
    case HloCollective::kAllReduce:
      return "all_reduce";
    case HloCollective::kAllGather:
      return "all_gather";
    case HloCollective::kReduceScatter:
      return "reduce_scatter";
    case HloCollective::kAllToAll:
      return "all_to_all";
    case HloCollective::kPermute:
      return "send_recv";
    case HloCollective::kBroadcast:
      return "broadcast";
    case HloCollective::kNone:
      break;
  }
  return "";
}

std::string GroupsText(const std::vector<std::vector<int64_t>>& groups) {
  constexpr size_t kMaxText = 4096;
  std::string out = "[";
  for (const auto& group : groups) {
    if (out.size() > kMaxText) return out + ",...]";
    if (out.size() > 1) out += ',';
    out += '[';
    for (size_t i = 0; i < group.size(); ++i) {
      if (i > 0) out += ',';
      AppendInt(out, group[i]);
      if (out.size() > kMaxText) break;
    }
    out += ']';
  }
  return out + "]";
}

int64_t WholeElements(double elements) {
  return elements >= 0 && elements < 9e15 ? static_cast<int64_t>(elements)
                                          : kNoInt;
}

}  // namespace

size_t Programs::Add(const Plane& metadata) {
  size_t damaged = 0;
  for (size_t i = 0; i < metadata.event_names.size(); ++i) {
    const EventName& name = metadata.event_names.at(i);
    const int64_t key = name.number;
    // The same program again: a file written twice.
    if (modules_.contains(key)) continue;
    for (protobuf::Walker list(name.stats); list.Next();) {
      std::string_view bytes;
      for (protobuf::Walker stat(list->bytes); stat.Next();) {
        if (stat->number == 6) bytes = stat->bytes;
      }
      if (bytes.empty()) continue;
      auto module = ParseHlo(bytes);
      if (module) {
        // Of equal names the smallest id counts.
        const auto [it, is_new] =
            program_of_name_.try_emplace(module->name, key);
        if (!is_new) it->second = std::min(it->second, key);
        modules_.insert_or_assign(key, std::move(*module));
      } else {
        ++damaged;
      }
    }
  }
  return damaged;
}

uint32_t Programs::Find(const Query& query) {
  // Files without program ids: the name of the module says it.
  const int64_t program = query.program;
  const StringId op = names_->Intern(query.op);
  const int64_t key =
      program != kNoInt
          ? program
          : -1 - static_cast<int64_t>(names_->Intern(query.module).value);
  const auto [it, is_new] =
      ids_.try_emplace(std::pair(key, op), static_cast<uint32_t>(ran_.size()));
  if (is_new) {
    ran_.push_back(Make(query, op));
  } else if (query.offset < ran_[it->second].offset) {
    ran_[it->second] = Make(query, op);
  }
  return it->second;
}

std::vector<uint32_t> Programs::Order() {
  std::vector<uint32_t> order(ran_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(ran_[a].offset, a) < std::pair(ran_[b].offset, b);
  });
  std::vector<uint32_t> numbers(order.size());
  std::vector<RanInstruction> ordered;
  for (uint32_t i = 0; i < order.size(); ++i) {
    numbers[order[i]] = i;
    ordered.push_back(std::move(ran_[order[i]]));
  }
  ran_ = std::move(ordered);
  ids_.clear();
  return numbers;
}

RanInstruction Programs::Make(const Query& query, StringId op) {
  const int64_t program = query.program;
  RanInstruction out;
  out.offset = query.offset;
  out.row.name = op;
  out.row.program = program;
  auto module = modules_.find(program);
  if (program == kNoInt) {
    const auto named = program_of_name_.find(query.module);
    if (!query.module.empty() && named != program_of_name_.end())
      module = modules_.find(named->second);
  }
  std::string_view module_name = query.module;
  std::string_view op_name = query.op_name;
  if (module != modules_.end()) {
    module_name = module->second.name;
    const HloInstruction* hlo = module->second.Find(query.op);
    if (hlo != nullptr) {
      Describe(module->second, *hlo, out);
      if (!hlo->op_name.empty()) op_name = hlo->op_name;
    }
  }
  out.row.module = names_->Intern(module_name);
  out.row.op_name = names_->Intern(op_name);
  if (!out.row.opcode.valid() && !query.category.empty())
    out.row.opcode = names_->Intern(query.category);
  if (out.row.flops < 0 && query.flops != kNoInt && query.flops >= 0)
    out.row.flops = static_cast<double>(query.flops);
  if (out.row.bytes < 0 && query.bytes != kNoInt && query.bytes >= 0)
    out.row.bytes = static_cast<double>(query.bytes);
  const size_t colon = query.source.rfind(':');
  if (!out.row.source.valid() && colon != std::string_view::npos) {
    out.row.source = names_->Intern(query.source.substr(0, colon));
    out.row.source_line =
        ParseInt(query.source.substr(colon + 1)).value_or(kNoInt);
  }
  AddScopes(module_name, op_name, out);
  return out;
}

void Programs::Describe(const HloModule& module, const HloInstruction& hlo,
                        RanInstruction& out) {
  constexpr size_t kMaxOperands = 1024;
  out.has_program = true;
  trace::Instruction& row = out.row;
  row.opcode = names_->Intern(hlo.opcode);
  row.shape = names_->Intern(hlo.shape.Text());
  if (!hlo.target.empty()) row.target = names_->Intern(hlo.target);
  if (!hlo.source_file.empty()) {
    row.source = names_->Intern(hlo.source_file);
    row.source_line = hlo.source_line;
  }
  const HloCost cost = CostOf(module, hlo);
  row.flops = cost.flops;
  row.unpadded_flops = cost.unpadded_flops;
  row.bytes = cost.bytes;
  row.matrix = cost.matrix;
  row.exact = cost.exact;
  if (cost.flops >= 0 && !ElementTypeName(cost.type).empty())
    row.precision = names_->Intern(ElementTypeName(cost.type));
  std::string dims = "[";
  std::string types = "[";
  for (size_t i = 0; i < hlo.operands.size() && i < kMaxOperands; ++i) {
    const HloInstruction* operand = module.ById(hlo.operands[i]);
    if (i > 0) dims += ',', types += ',';
    if (operand == nullptr) {
      dims += "[]";
      types += "\"\"";
      continue;
    }
    dims += operand->shape.DimsJson();
    AppendJsonQuoted(types, operand->shape.type == HloShape::kTuple
                                ? std::string_view("tuple")
                                : ElementTypeName(operand->shape.type));
  }
  out.dims = names_->Intern(dims + "]");
  out.types = names_->Intern(types + "]");

  const HloTransfer transfer = TransferOf(module, hlo);
  if (transfer.kind == HloCollective::kNone) return;
  out.is_collective = true;
  trace::CollectiveArgs& args = out.collective;
  args.name = names_->Intern(CollectiveName(transfer.kind));
  args.dtype = names_->Intern(ElementTypeName(transfer.type));
  args.in_elements = WholeElements(transfer.in_elements);
  args.out_elements = WholeElements(transfer.out_elements);
  args.group_size = transfer.group_size;
  if (!hlo.groups.empty())
    args.group_ranks = names_->Intern(GroupsText(hlo.groups));
}

void Programs::AddScopes(std::string_view module, std::string_view op_name,
                         RanInstruction& out) {
  const Scopes scopes = ScopesOf(op_name);
  out.row.backward = scopes.backward;
  if (!module.empty()) {
    out.scopes.push_back(
        names_->Intern(std::string(kScopePrefix) + std::string(module)));
  }
  for (const std::string& scope : scopes.names)
    out.scopes.push_back(names_->Intern(std::string(kScopePrefix) + scope));
}

}  // namespace lamina::ingest::xplane
