// SPDX-License-Identifier: Apache-2.0
//
// Layers by names of kernels: a layer begins at a norm. With the classic
// tables this is the machine of a known public analyzer, for users who compare
// with it; with our own tables it needs no all-reduce before the norm.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lamina::analysis::layers {

// The six types of the classic analyzer, in its order, and the rest.
enum class ClassicType : uint8_t {
  kMoe,
  kAttention,
  kQuantization,
  kCommunication,
  kLinear,
  kMemory,
  kOther
};
std::string_view ClassicTypeName(ClassicType type);

// What a forward pass does; none: not of a language model. In the order of
// their names, in which tables have them.
enum class Stage : uint8_t { kDecode, kMixed, kNone, kPrefill, kUnknown };
inline constexpr size_t kStages = 5;
std::string_view StageName(Stage stage);
// The stage of a name, kUnknown for any other text.
Stage StageOfName(std::string_view name);

// What the machine knows of one kernel.
struct ClassicKernel {
  ClassicType type = ClassicType::kOther;
  Stage vote = Stage::kUnknown;
  bool start = false;  // a norm at which a layer may begin
  bool all_reduce = false;
  bool moe = false, fc = false, mla = false, gdn = false;
};

struct ClassicLayer {
  uint32_t begin = 0;  // positions in the sequence, [begin, end)
  uint32_t end = 0;
  bool attention = false, moe = false, fc = false, mla = false, gdn = false;
  Stage stage = Stage::kUnknown;
  uint32_t prefill_votes = 0;
  uint32_t decode_votes = 0;

  // MLA_MOE ... UNKNOWN.
  std::string_view type() const;
  // Holds attention, experts or a feed-forward part: not UNKNOWN.
  bool complete() const { return attention || moe || fc; }
};

struct ClassicOptions {
  // A norm begins a layer only after an all-reduce, as in the original, and
  // what stands before the first and behind the last layer is one, too.
  bool need_all_reduce = true;
  // Leaves attention halves and feed-forward halves apart.
  bool split_half_layers = false;
};

// The layers of a sequence, in order. As in the original every kernel is in
// one; without need_all_reduce what is no complete layer is in none. Linear.
std::vector<ClassicLayer> CutLayers(std::span<const ClassicKernel> kernels,
                                    const ClassicOptions& options);

}  // namespace lamina::analysis::layers
