// SPDX-License-Identifier: Apache-2.0
//
// The compiled program inside an XPlane file: an HloProto per program, of
// which lamina reads what says what an instruction computes, where it comes
// from and with whom it communicates.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_pool.h"

namespace lamina::ingest::xplane {

struct HloShape {
  uint32_t type = 0;  // element type; kTuple with parts
  std::vector<int64_t> dims;
  std::vector<HloShape> parts;

  static constexpr uint32_t kTuple = 13;

  double Elements() const;   // product of dims; of a tuple 0
  double Bytes() const;      // of a tuple: all parts
  std::string Text() const;  // "bf16[128,64]", "(f32[2], s32[])"
  // "[128,64]": as in the "Input Dims" of a trace. A tuple gives a list.
  std::string DimsJson() const;
};

// "bf16"; "" for a number that is not known.
std::string_view ElementTypeName(uint32_t type);

struct HloWindowDim {
  int64_t size = 0, stride = 1, padding_low = 0, padding_high = 0;
  int64_t window_dilation = 1, base_dilation = 1;
};

// Positions of the dimensions of a convolution.
struct HloConvDims {
  int64_t input_batch = 0, input_feature = 0;
  int64_t kernel_input_feature = 0, kernel_output_feature = 0;
  int64_t output_batch = 0, output_feature = 0;
  std::vector<int64_t> input_spatial, kernel_spatial, output_spatial;
};

struct HloInstruction {
  std::string name, opcode, op_name, source_file, target, backend_config;
  HloShape shape;
  int64_t id = 0;
  int64_t source_line = 0;
  int64_t stack_frame = 0;
  int64_t channel = 0;
  bool has_channel = false;
  bool global_ids = false;
  std::vector<int64_t> operands;  // ids
  std::vector<int64_t> calls;     // ids of computations
  std::vector<int64_t> lhs_contracting;
  std::vector<HloWindowDim> window;
  std::optional<HloConvDims> conv;
  std::vector<std::vector<int64_t>> groups;  // of a collective
  size_t pairs = 0;                          // of a collective-permute
};

struct HloComputation {
  std::string name;
  int64_t id = 0;
  int64_t root = 0;                    // id of an instruction
  std::vector<uint32_t> instructions;  // indices into HloModule
};

struct HloModule {
  std::string name;
  int64_t replicas = 1, partitions = 1;
  std::vector<HloComputation> computations;
  std::vector<HloInstruction> instructions;
  absl::flat_hash_map<int64_t, uint32_t> by_id;  // instruction id
  TextMap<uint32_t> by_name;
  absl::flat_hash_map<int64_t, uint32_t> computation_by_id;

  const HloInstruction* Find(std::string_view instruction) const;
  const HloInstruction* ById(int64_t id) const;
  const HloComputation* Computation(int64_t id) const;
};

// Reads an HloProto. Nothing when the bytes are none or are damaged.
std::optional<HloModule> ParseHlo(std::string_view bytes);

}  // namespace lamina::ingest::xplane
