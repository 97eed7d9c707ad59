// SPDX-License-Identifier: Apache-2.0
//
// What names and detail texts of events say, and the programs of a file with
// the instructions that ran, as rows of the trace.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/xplane/hlo.h"
#include "ingest/xplane/xspace.h"
#include "trace/builder.h"
#include "trace/trace.h"

namespace lamina::ingest::xplane {

// What names and detail texts of XPlane events say.

// "regs:168 static_shared:0 dynamic_shared:0 grid:4,2,1 block:256,1,1
// occ_pct:25". Order is free. Register counts that no device has are dropped.
trace::LaunchConfig ParseKernelDetails(std::string_view text);

// The size of "kind:.. size:4096 dest:.. async:.."; kNoInt for none, and for
// the zeros of profilers that do not know.
int64_t ParseCopySize(std::string_view text);

// Kernel, copy or fill, by the name of a device event.
trace::Kind DeviceKindOf(std::string_view name);

// "fusion.3" of "%fusion.3 = bf16[2048,4096] fusion(...)".
std::string_view InstructionNameOf(std::string_view event_name);

// Named scopes of an op name, outermost first, and whether it is part of the
// backward pass: "jit(step)/transpose(jvp(Model))/layers_0/dot_general" gives
// Model, layers_0. The last component is the operation and no scope.
struct Scopes {
  std::vector<std::string> names;
  bool backward = false;
};
Scopes ScopesOf(std::string_view op_name);

// An instruction that ran, with what the rows of its runs need.
struct RanInstruction {
  trace::Instruction row;  // its texts are of the reader's names
  StringId dims, types;    // of the operands, JSON
  trace::CollectiveArgs collective;
  bool is_collective = false;
  std::vector<StringId> scopes;  // "nn.Module: layers_0", the program first
  bool has_program = false;      // the file holds its program
  uint64_t offset = 0;           // of the first event that ran it
};

class Programs {
 public:
  explicit Programs(trace::LocalNames* names) : names_(names) {}

  // Takes the programs of `/host:metadata`; returns how many were damaged.
  size_t Add(const Plane& metadata);
  bool empty() const { return modules_.empty(); }

  // What an event says about its instruction.
  struct Query {
    std::string_view op;       // "fusion.3"
    std::string_view module;   // may be empty
    std::string_view op_name;  // may be empty
    int64_t program = trace::kNoInt;
    // Of TPU events.
    int64_t flops = trace::kNoInt, bytes = trace::kNoInt;
    std::string_view source;  // "file:line"
    std::string_view category;
    uint64_t offset = 0;  // of the event
  };
  // Its number; the same for all runs of an instruction. The first event of the
  // file describes it, whoever asks first.
  uint32_t Find(const Query& query);
  // Numbers the instructions in the order of their first events; returns the
  // new numbers by the old ones.
  std::vector<uint32_t> Order();

  const RanInstruction& ran(uint32_t i) const { return ran_[i]; }
  std::vector<RanInstruction>& all() { return ran_; }

 private:
  RanInstruction Make(const Query& query, StringId op);
  void Describe(const HloModule& module, const HloInstruction& hlo,
                RanInstruction& out);
  void AddScopes(std::string_view module, std::string_view op_name,
                 RanInstruction& out);

  trace::LocalNames* names_;
  absl::flat_hash_map<int64_t, HloModule> modules_;  // by program id
  TextMap<int64_t> program_of_name_;
  absl::flat_hash_map<std::pair<int64_t, StringId>, uint32_t> ids_;
  std::vector<RanInstruction> ran_;
};

}  // namespace lamina::ingest::xplane
