// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/device_view.h"

#include <algorithm>

#include "base/parallel.h"
#include "base/text.h"

namespace lamina::analysis {
namespace {

bool IsCopyKernel(std::string_view name) {
  for (const std::string_view direction :
       {"HOST_TO_DEVICE", "DEVICE_TO_HOST", "DEVICE_TO_DEVICE"}) {
    if (name.starts_with("MEMORY_COPY_") &&
        name.substr(12).starts_with(direction))
      return true;
  }
  constexpr std::string_view kCopyBuffer = "__amd_rocclr_copyBuffer";
  if (!name.starts_with(kCopyBuffer)) return false;
  name.remove_prefix(kCopyBuffer.size());
  if (name.starts_with("Rect")) name.remove_prefix(4);
  if (name.starts_with("Aligned")) name.remove_prefix(7);
  return name.empty() || name == ".kd";
}

// The name of an HLO instruction in data/ops: "hlo::" and the opcode, of
// custom calls the target, of fusions what they were made for.
std::string InstructionName(const Trace& trace,
                            const trace::Instruction& instruction) {
  const std::string_view opcode = trace.Text(instruction.opcode);
  std::string name = "hlo::";
  if (instruction.target.valid()) {
    name += trace.Text(instruction.target);
  } else if (opcode != "fusion") {
    name += opcode;
  } else if (instruction.matrix) {
    name +=
        instruction.unpadded_flops >= 0 ? "fusion/convolution" : "fusion/dot";
  } else {
    // "loop_add_fusion.3" without its number.
    std::string_view own = trace.Text(instruction.name);
    own = own.substr(0, own.find('.'));
    name += "fusion/";
    name += own;
  }
  return name;
}

// Families are fewer than a byte counts.
uint8_t Index(const rules::Catalog& catalog, std::string_view family) {
  return static_cast<uint8_t>(catalog.FamilyIndex(family));
}

// Families of ops, each name looked up once.
class OpFamilies {
 public:
  static constexpr uint8_t kUnknown = 255;

  OpFamilies(const tree::Tree& tree, const rules::Catalog& catalog)
      : tree_(tree), trace_(tree.trace()), catalog_(catalog) {}

  uint8_t Of(NodeId n) {
    if (const auto* instruction = trace_.InstructionOf(tree_.slice(n))) {
      const auto at =
          static_cast<size_t>(instruction - trace_.instructions.data());
      uint8_t& family = At(of_instruction_, trace_.instructions.size(), at);
      if (family == kNotAsked)
        family = Find(InstructionName(trace_, *instruction));
      return family;
    }
    const StringId name = trace_.slices.name[tree_.slice(n).value];
    uint8_t& family = At(of_name_, trace_.strings.size(), name.value);
    if (family == kNotAsked) family = Find(trace_.strings[name]);
    return family;
  }

 private:
  static constexpr uint8_t kNotAsked = 254;

  static uint8_t& At(std::vector<uint8_t>& known, size_t size, size_t at) {
    if (known.empty()) known.assign(size, kNotAsked);
    return known[at];
  }
  uint8_t Find(std::string_view name) const {
    const std::string_view family = catalog_.OpFamily(name);
    return family.empty() ? kUnknown : Index(catalog_, family);
  }

  const tree::Tree& tree_;
  const Trace& trace_;
  const rules::Catalog& catalog_;
  std::vector<uint8_t> of_name_;         // by StringId
  std::vector<uint8_t> of_instruction_;  // by position
};

// Families that rules speak of.
struct FamilyRules {
  explicit FamilyRules(const rules::Catalog& catalog)
      : communication(Index(catalog, "communication")),
        memory(Index(catalog, "memory")),
        other(Index(catalog, "other")),
        generated(Index(catalog, "generated")) {}
  uint8_t communication, memory, other, generated;
};

// The innermost op decides; an op that nobody knows leaves it to the name of
// the kernel, and that to the ops further out.
FamilyDecision Decide(const tree::Tree& tree, const FamilyRules& rules,
                      OpFamilies& op_families, SliceId s, Bucket bucket,
                      uint8_t by_name) {
  if (bucket == Bucket::kCommunication)
    return {NodeId(), rules.communication, FamilyBy::kCollective};
  const NodeId launch = tree.launch(s);
  NodeId op = launch.valid() ? tree.EnclosingOp(launch) : NodeId();
  const auto of_op = [&] {
    return op.valid() ? op_families.Of(op) : OpFamilies::kUnknown;
  };
  uint8_t found = of_op();
  if (found == OpFamilies::kUnknown && by_name != rules.other &&
      by_name != rules.generated)
    return {NodeId(), by_name, FamilyBy::kName};
  while (found == OpFamilies::kUnknown && op.valid()) {
    op = tree.EnclosingOp(tree.parent(op));
    found = of_op();
  }
  if (found != OpFamilies::kUnknown) return {op, found, FamilyBy::kOp};
  const trace::Kind kind = tree.trace().KindOf(s);
  if (kind == trace::Kind::kMemcpy || kind == trace::Kind::kMemset)
    return {NodeId(), rules.memory, FamilyBy::kKind};
  return {NodeId(), by_name,
          by_name == rules.other ? FamilyBy::kNothing : FamilyBy::kName};
}

}  // namespace

Bucket PeerBucket(trace::Kind kind, std::string_view name) {
  if (kind == trace::Kind::kMemcpy || IsCopyKernel(name))
    return Bucket::kMemcpy;
  if (ContainsIgnoringCase(name, "rccl") ||
      ContainsIgnoringCase(name, "nccl") ||
      ContainsIgnoringCase(name, "cross_device_reduce"))
    return Bucket::kCommunication;
  return Bucket::kCompute;
}

NodeId LauncherOf(const tree::Tree& tree, NodeId launch, bool through_calls) {
  NodeId n = launch;
  if (tree.IsOp(n) && tree.name(n) != "execute") return n;
  for (n = tree.parent(launch); n.valid(); n = tree.parent(n)) {
    const trace::Kind kind = tree.kind(n);
    if (kind == trace::Kind::kPython) continue;
    if (kind == trace::Kind::kOp) {
      if (tree.name(n) == "execute") continue;
      return n;
    }
    if (!through_calls) break;
  }
  return launch;
}

DeviceView DeviceView::Build(const tree::Tree& tree,
                             const rules::Catalog& catalog, int threads) {
  const Trace& trace = tree.trace();
  DeviceView view;
  view.trace_ = &trace;
  const auto rows = trace.device.size();
  view.bucket_.resize(rows);
  view.family_.resize(rows);
  view.launcher_.resize(rows);

  // Names are classified once each.
  const size_t strings = trace.strings.size();
  std::vector<uint8_t> used(strings, 0);
  for (const SliceId s : trace.device_slices())
    used[trace.slices.name[s.value].value] = 1;
  std::vector<StringId> names;
  for (uint32_t i = 0; i < strings; ++i) {
    if (used[i]) names.push_back(StringId(i));
  }
  view.kernel_family_.assign(strings, 0);
  std::vector<Bucket> name_bucket(strings, Bucket::kCompute);
  ParallelRanges(
      threads, names.size(), 64, [&](size_t begin, size_t end, size_t) {
        for (size_t i = begin; i < end; ++i) {
          const std::string_view name = trace.strings[names[i]];
          view.kernel_family_[names[i].value] =
              Index(catalog, catalog.KernelFamily(name));
          name_bucket[names[i].value] = PeerBucket(trace::Kind::kKernel, name);
        }
      });
  OpFamilies op_families(tree, catalog);
  const FamilyRules family_rules(catalog);
  for (const SliceId s : trace.device_slices()) {
    const uint32_t row = view.Row(s);
    const trace::Kind kind = trace.KindOf(s);
    const auto by_name = static_cast<uint8_t>(view.kernel_family(s));
    Bucket bucket = kind == trace::Kind::kMemcpy
                        ? Bucket::kMemcpy
                        : name_bucket[trace.slices.name[s.value].value];
    if (bucket == Bucket::kCompute && kind == trace::Kind::kKernel &&
        (by_name == family_rules.communication ||
         trace.device[row].collective != trace::kNoRow))
      bucket = Bucket::kCommunication;
    view.bucket_[row] = bucket;

    const NodeId launch = tree.launch(s);
    if (launch.valid()) view.launcher_[row] = LauncherOf(tree, launch, true);
    view.family_[row] =
        Decide(tree, family_rules, op_families, s, bucket, by_name);
  }
  return view;
}

std::string FamilyName(const Trace& trace, SliceId s) {
  const auto* instruction = trace.InstructionOf(s);
  return instruction != nullptr ? InstructionName(trace, *instruction)
                                : std::string(trace.Name(s));
}

}  // namespace lamina::analysis
