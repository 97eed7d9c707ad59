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
#include "analysis/layers/classic.h"
#include "rules/pattern_table.h"

namespace lamina::analysis::layers {

// Which tables label kernels: our own, or those of the classic analyzer.
enum class Profile : uint8_t { kDefault, kClassic };

// Tables of one profile. `type` is empty in the default profile, where the
// kernel families say it.
struct NameRules {
  rules::PatternTable stage_unknown;  // these names say nothing
  rules::PatternTable stage;          // prefill, decode, mixed; strength
  rules::PatternTable type;           // moe, attention, linear ...
  rules::PatternTable short_name;
  rules::PatternTable layer_start;  // norms at which a layer may begin
  rules::PatternTable moe, fc, mla, gdn, ssm;
  rules::PatternTable host;  // classes of modules and ops: moe, mla ...
};

// The tables of data/layers.
struct Rules {
  NameRules own;
  NameRules classic;

  const NameRules& names(Profile profile) const {
    return profile == Profile::kClassic ? classic : own;
  }
  // Every table that has rules, with its name in the data files.
  std::vector<std::pair<std::string, const rules::PatternTable*>> all() const;
};
Result<std::shared_ptr<const Rules>> LoadRules(const rules::DataSet& data);

// The rules of the trace's data files.
struct LayerRules {
  static constexpr std::string_view kFact = "layer rules";
  static Result<LayerRules> Of(const Input& input) {
    LAMINA_ASSIGN(auto rules, LoadRules(input.data));
    return LayerRules{std::move(rules)};
  }

  std::shared_ptr<const Rules> rules;
};

enum class Detector : uint8_t { kAuto, kRepeat, kModule, kClassic };

struct Options {
  Detector detector = Detector::kAuto;
  // Tables of the classic detector, and of short names.
  Profile profile = Profile::kDefault;
  uint32_t min_layers = 3;
  // Leaves the halves of a layer apart where norms mark both (classic).
  bool split_half_layers = false;
  // The classic rule that large grids are decode; null: not used.
  std::optional<int64_t> grid_threshold;
  // Says what bounds each layer, which needs the critical path.
  bool verdicts = true;
  // Rows of this stage only; null: all.
  std::optional<Stage> stage;
  // Layers whose kernels are listed; empty: none.
  std::vector<uint32_t> list;
  // Layers whose votes and longest kernels are listed; empty: none.
  std::vector<uint32_t> debug;
  size_t debug_kernels = 10;  // per layer
  bool names = false;         // the rules that decide about frequent names
  bool variants = false;      // kinds of layers kernel by kernel

  bool Wants(Stage of_row) const { return !stage || of_row == *stage; }
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
  uint32_t run = 0;  // layers found next to each other share it
  bool exact = false;
  bool partial = false;
  std::string module;          // path, empty unless known
  std::string type;            // empty: as its kernels say
  std::optional<Stage> stage;  // null: that of its pass
  // A pass begins before it on its stream, and what says so: "graph, idle".
  bool begins_pass = false;
  std::string evidence;
  std::vector<SliceId> work;  // by start
};

struct StackInfo {
  std::string name;       // class of the module, else stack0 ...
  std::string boundary;   // module, norm or none
  bool by_names = false;  // found by norms alone
  bool by_roles = false;  // no repeat, only what its kernels do
  uint32_t period = 0;    // kernels of a typical unit
  uint32_t per_unit = 1;
};

struct Pass {
  int64_t device = 0;
  Stage stage = Stage::kNone;
  std::string evidence;  // annotation, frames, graph, attention, votes, -
  std::string begins;    // what says that it begins here, "-" for nothing
  std::string annotation;
  std::optional<int64_t> batch, tokens;
  std::vector<uint32_t> layers;
  std::vector<SliceId> outside;  // prologue and epilogue, by start
  bool cut = false;              // the trace begins or ends inside it
};

// Every device slice is in exactly one layer, or outside one in a pass, or in
// no pass.
struct LayerModel {
  static constexpr std::string_view kFact = "layers";
  // By data/layers and the default options.
  static Result<LayerModel> Of(const Context& context);

  std::vector<StackInfo> stacks;
  std::vector<Layer> layers;  // by first start
  std::vector<Pass> passes;   // by first start
  std::vector<SliceId> no_pass;
  // Per device: layers that modules and repeats found, for layer_check.
  struct Check {
    std::string name;
    size_t by_module = 0;
    size_t by_repeat = 0;
    size_t by_names = 0;
    size_t equal = 0;  // boundaries at the same kernel
    size_t near = 0;   // within two kernels
  };
  std::vector<Check> checks;

  Stage StageOf(const Layer& layer) const {
    return layer.stage ? *layer.stage : passes[layer.pass].stage;
  }
};

LayerModel FindLayers(const Context& context, const Rules& rules,
                      const Options& options);

// Tables passes, layers, layer_types, layer_stacks, layer_kernels,
// stage_kernel_type, orphans and layer_check, and notes.
Result<ResultSet> LayerTables(const Context& context, const Rules& rules,
                              const LayerModel& model, const Options& options);

// The part of a layer that a family of kernels is, and that a slice is.
Part PartOf(std::string_view family);
Part PartOf(const Context& context, SliceId s);
std::string_view PartName(Part part);

AnalysisInfo Info();

}  // namespace lamina::analysis::layers
