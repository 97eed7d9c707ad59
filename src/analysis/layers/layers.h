// SPDX-License-Identifier: Apache-2.0
//
// Forward passes and the layers in them: from modules where the trace has
// them, else from repeats in the sequence of kernels, with names of kernels to
// say what kind of layer it is and which stage a pass belongs to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/context.h"
#include "rules/pattern_table.h"

namespace lamina::analysis::layers {

// The tables of data/layers.
struct Rules {
  rules::PatternTable stage;        // value: prefill, decode; strength
  rules::PatternTable layer_start;  // norms at which a layer may begin
  rules::PatternTable moe, mla, gdn;

  // Every table with its name.
  std::vector<std::pair<std::string_view, const rules::PatternTable*>> all()
      const {
    return {{"stage", &stage},
            {"layer_start", &layer_start},
            {"marker_moe", &moe},
            {"marker_mla", &mla},
            {"marker_gdn", &gdn}};
  }
};
Result<std::shared_ptr<const Rules>> LoadRules(const rules::DataSet& data);

enum class Detector : uint8_t { kAuto, kRepeat, kModule };

struct Options {
  Detector detector = Detector::kAuto;
  uint32_t min_layers = 3;
  // Layers whose kernels are listed; empty: none.
  std::vector<uint32_t> list;
};

// What a kernel does for its layer.
enum class Part : uint8_t {
  kAttention,
  kGemm,
  kMoe,
  kNorm,
  kCommunication,
  kQuantization,
  kOther
};
inline constexpr int kParts = 7;

struct Layer {
  uint32_t stack = 0;  // of LayerModel::stacks
  uint32_t pass = 0;
  uint32_t index = 0;  // inside (pass, stack)
  uint32_t variant = 0;
  bool exact = false;
  bool partial = false;
  std::string module;         // path, empty unless known
  std::vector<SliceId> work;  // by start
};

struct StackInfo {
  std::string name;      // class of the module, else stack0 ...
  std::string boundary;  // module, norm or none
  uint32_t period = 0;   // kernels of a typical unit
  uint32_t per_unit = 1;
};

struct Pass {
  int64_t device = 0;
  std::string stage;     // prefill, decode, mixed, none, unknown
  std::string evidence;  // annotation, attention or -
  std::string annotation;
  std::optional<int64_t> batch, tokens;
  std::vector<uint32_t> layers;
  std::vector<SliceId> outside;  // prologue and epilogue, by start
  bool cut = false;
};

// Every device slice is in exactly one layer, or outside one in a pass, or in
// no pass.
struct LayerModel {
  std::vector<StackInfo> stacks;
  std::vector<Layer> layers;  // by first start
  std::vector<Pass> passes;   // by first start
  std::vector<SliceId> no_pass;
  // Per device: layers that modules and repeats found, for layer_check.
  struct Check {
    std::string name;
    size_t by_module = 0;
    size_t by_repeat = 0;
    size_t equal = 0;  // boundaries at the same kernel
    size_t near = 0;   // within two kernels
  };
  std::vector<Check> checks;
};

LayerModel FindLayers(const Context& context, const Rules& rules,
                      const Options& options);

// Tables passes, layers, layer_types, layer_stacks, layer_kernels,
// stage_kernel_type, orphans and layer_check, and notes.
ResultSet LayerTables(const Context& context, const Rules& rules,
                      const LayerModel& model, const Options& options);

// The part of a layer that a family of kernels is.
Part PartOf(std::string_view family);
std::string_view PartName(Part part);

AnalysisInfo Info();

}  // namespace lamina::analysis::layers
