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
          view.kernel_family_[names[i].value] = static_cast<uint8_t>(
              catalog.FamilyIndex(catalog.KernelFamily(name)));
          name_bucket[names[i].value] = PeerBucket(trace::Kind::kKernel, name);
        }
      });
  constexpr uint8_t kUnknown = 255;
  constexpr uint8_t kNotAsked = 254;
  std::vector<uint8_t> op_family(strings, kNotAsked);
  std::vector<uint8_t> instruction_family(trace.instructions.size(), kNotAsked);
  const auto family_of_op = [&](NodeId n) {
    if (const auto* instruction = trace.InstructionOf(tree.slice(n))) {
      uint8_t& family = instruction_family[static_cast<size_t>(
          instruction - trace.instructions.data())];
      if (family == kNotAsked) {
        const std::string_view text =
            catalog.OpFamily(InstructionName(trace, *instruction));
        family = text.empty() ? kUnknown
                              : static_cast<uint8_t>(catalog.FamilyIndex(text));
      }
      return family;
    }
    const StringId name = trace.slices.name[tree.slice(n).value];
    uint8_t& family = op_family[name.value];
    if (family == kNotAsked) {
      const std::string_view text = catalog.OpFamily(trace.strings[name]);
      family = text.empty() ? kUnknown
                            : static_cast<uint8_t>(catalog.FamilyIndex(text));
    }
    return family;
  };

  const size_t communication = catalog.FamilyIndex("communication");
  const size_t memory = catalog.FamilyIndex("memory");
  const size_t other = catalog.FamilyIndex("other");
  const size_t generated = catalog.FamilyIndex("generated");
  for (const SliceId s : trace.device_slices()) {
    const uint32_t row = view.Row(s);
    const trace::Kind kind = trace.KindOf(s);
    const size_t by_name = view.kernel_family(s);
    Bucket bucket = kind == trace::Kind::kMemcpy
                        ? Bucket::kMemcpy
                        : name_bucket[trace.slices.name[s.value].value];
    if (bucket == Bucket::kCompute && kind == trace::Kind::kKernel &&
        (by_name == communication ||
         trace.device[row].collective != trace::kNoRow))
      bucket = Bucket::kCommunication;
    view.bucket_[row] = bucket;

    const NodeId launch = tree.launch(s);
    if (launch.valid()) view.launcher_[row] = LauncherOf(tree, launch, true);
    size_t family = other;
    if (bucket == Bucket::kCommunication) {
      family = communication;
    } else {
      // The innermost op decides; an op that nobody knows leaves it to the
      // name of the kernel, and that to the ops further out.
      NodeId op = launch.valid() ? tree.EnclosingOp(launch) : NodeId();
      uint8_t found = op.valid() ? family_of_op(op) : kUnknown;
      const bool name_says = by_name != other && by_name != generated;
      if (found == kUnknown && name_says) found = static_cast<uint8_t>(by_name);
      while (found == kUnknown && op.valid()) {
        op = tree.EnclosingOp(tree.parent(op));
        if (op.valid()) found = family_of_op(op);
      }
      if (found != kUnknown) {
        family = found;
      } else if (kind == trace::Kind::kMemcpy || kind == trace::Kind::kMemset) {
        family = memory;
      } else {
        family = by_name;
      }
    }
    view.family_[row] = static_cast<uint8_t>(family);
  }
  return view;
}

}  // namespace lamina::analysis
