// SPDX-License-Identifier: Apache-2.0
#include "analysis/layers/labels.h"

#include <algorithm>

namespace lamina::analysis::layers {
namespace {

using rules::PatternTable;

// Of Labels::signs_.
constexpr uint8_t kUnasked = 0xFF;
// Ops above a launch that are asked what they are.
constexpr int kMaxOps = 8;

// Blocks in x below which the grid rule says prefill.
constexpr uint32_t kSmallGrid = 200;
// Characters of a name that no rule shortens.
constexpr size_t kShortName = 25;

ClassicType TypeOf(std::string_view value) {
  for (int i = 0; i <= static_cast<int>(ClassicType::kOther); ++i) {
    const auto type = static_cast<ClassicType>(i);
    if (value == ClassicTypeName(type)) return type;
  }
  return ClassicType::kOther;
}

ClassicType TypeOfFamily(std::string_view family) {
  if (family == "gemm" || family == "conv") return ClassicType::kLinear;
  if (family == "ssm") return ClassicType::kAttention;
  if (family == "copy") return ClassicType::kMemory;
  return TypeOf(family);
}

// Only attention and other kernels ever vote.
bool Votes(ClassicType type) {
  return type == ClassicType::kAttention || type == ClassicType::kOther;
}

std::string_view IdOf(const PatternTable& table, int rule) {
  return rule == PatternTable::kNone ? std::string_view("-")
                                     : std::string_view(table.rule(rule).id);
}

}  // namespace

Labels::Labels(const Context& context, const Rules& rules, Profile profile,
               std::optional<int64_t> grid_threshold)
    : context_(context),
      trace_(context.trace),
      rules_(rules),
      profile_(profile),
      grid_threshold_(grid_threshold),
      labels_(trace_.strings.size()) {}

const Label& Labels::Of(SliceId s) {
  Label& label = labels_[trace_.slices.name[s.value].value];
  if (!label.known) {
    label = Find(s);
    label.known = true;
  }
  return label;
}

Label Labels::Find(SliceId s) const {
  const std::string_view name = trace_.Name(s);
  const NameRules& own = tables();
  const auto meets = [&](const PatternTable& table) {
    return table.Find(name) != PatternTable::kNone;
  };
  Label label;
  ClassicKernel& kernel = label.kernel;
  if (profile_ == Profile::kClassic) {
    label.type_rule = own.type.Find(name);
    if (label.type_rule != PatternTable::kNone)
      kernel.type = TypeOf(own.type.rule(label.type_rule).value);
  } else {
    label.type_rule = context_.catalog.kernel_table().Find(name);
    kernel.type = TypeOfFamily(context_.catalog.KernelFamily(name));
  }
  label.short_rule = own.short_name.Find(name);
  label.short_name = label.short_rule != PatternTable::kNone
                         ? own.short_name.rule(label.short_rule).value
                         : name.substr(0, kShortName);
  kernel.start = meets(own.layer_start);
  kernel.all_reduce = label.short_name == "ALLREDUCE";
  kernel.moe = meets(own.moe) || (profile_ == Profile::kDefault &&
                                  kernel.type == ClassicType::kMoe);
  kernel.fc = meets(own.fc);
  kernel.mla = meets(own.mla);
  kernel.gdn = meets(own.gdn);
  label.ssm = meets(own.ssm);
  label.silent = meets(own.stage_unknown);
  if (label.silent) return label;
  label.stage_rule = own.stage.Find(name);
  if (label.stage_rule != PatternTable::kNone && Votes(kernel.type)) {
    // Kernels of both stages have no vote.
    const Stage of = StageOfName(own.stage.rule(label.stage_rule).value);
    if (of == Stage::kPrefill || of == Stage::kDecode) kernel.vote = of;
  }
  return label;
}

uint8_t Labels::SignOf(StringId name, std::string_view text) {
  if (signs_.empty()) signs_.assign(trace_.strings.size(), kUnasked);
  uint8_t& sign = signs_[name.value];
  if (sign != kUnasked) return sign;
  const int rule = rules_.own.host.Find(text);
  const std::string_view value =
      rule == PatternTable::kNone
          ? std::string_view()
          : std::string_view(rules_.own.host.rule(rule).value);
  sign = value == "moe"         ? kHostMoe
         : value == "mla"       ? kHostMla
         : value == "gdn"       ? kHostGdn
         : value == "ssm"       ? kHostSsm
         : value == "attention" ? kHostAttention
                                : 0;
  return sign;
}

HostSigns Labels::HostSignsOf(const Layer& layer) {
  HostSigns signs;
  const tree::Tree& tree = context_.tree;
  const tree::Modules& modules = context_.modules;
  const auto depth = static_cast<uint32_t>(
      std::count(layer.module.begin(), layer.module.end(), '/'));
  NodeId last;
  for (const SliceId s : layer.work) {
    const NodeId launch = tree.launch(s);
    if (!launch.valid() || launch == last) continue;
    last = launch;
    if (!layer.module.empty()) {
      for (auto path = modules.OwnerOf(launch).path;
           path.valid() && modules.path(path).depth > depth;
           path = modules.path(path).parent) {
        const StringId name = modules.path(path).name;
        signs.modules |=
            SignOf(name, tree::Modules::ClassName(trace_.strings[name]));
      }
    }
    NodeId op = tree.parent(launch);
    for (int up = 0; up < kMaxOps && op.valid(); ++up, op = tree.parent(op)) {
      if (tree.kind(op) != trace::Kind::kOp) continue;
      signs.ops |=
          SignOf(trace_.slices.name[tree.slice(op).value], tree.name(op));
    }
  }
  return signs;
}

ClassicKernel Labels::Kernel(SliceId s) {
  const Label& label = Of(s);
  ClassicKernel kernel = label.kernel;
  const trace::DeviceArgs* args = trace_.Device(s);
  const trace::LaunchConfig* config =
      args != nullptr ? trace_.Config(args->config) : nullptr;
  if (!grid_threshold_ || config == nullptr || config->grid[0] == 0 ||
      label.stage_rule != PatternTable::kNone ||
      kernel.type != ClassicType::kAttention || label.silent)
    return kernel;
  if (static_cast<int64_t>(config->grid[0]) > *grid_threshold_)
    kernel.vote = Stage::kDecode;
  else if (config->grid[0] < kSmallGrid)
    kernel.vote = Stage::kPrefill;
  return kernel;
}

std::string_view Labels::TypeRule(const Label& label) const {
  return IdOf(profile_ == Profile::kClassic ? tables().type
                                            : context_.catalog.kernel_table(),
              label.type_rule);
}

std::string_view Labels::StageRule(const Label& label) const {
  return IdOf(tables().stage, label.stage_rule);
}

std::string_view Labels::ShortRule(const Label& label) const {
  return IdOf(tables().short_name, label.short_rule);
}

}  // namespace lamina::analysis::layers
