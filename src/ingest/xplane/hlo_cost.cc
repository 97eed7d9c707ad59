// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/hlo_cost.h"

#include <algorithm>
#include <optional>
#include <simdjson.h>

#include "base/decimal.h"
#include "base/text.h"

namespace lamina::ingest::xplane {
namespace {

// Fusions in fusions; deeper ones are no program.
constexpr int kMaxCallDepth = 32;

const HloShape& FirstPart(const HloShape& shape) {
  return shape.type == HloShape::kTuple && !shape.parts.empty() ? shape.parts[0]
                                                                : shape;
}

const HloInstruction* Operand(const HloModule& module,
                              const HloInstruction& instruction, size_t i) {
  return i < instruction.operands.size() ? module.ById(instruction.operands[i])
                                         : nullptr;
}

std::optional<double> DimOf(const HloShape& shape, int64_t dim) {
  if (dim < 0 || dim >= static_cast<int64_t>(shape.dims.size()))
    return std::nullopt;
  return static_cast<double>(shape.dims[static_cast<size_t>(dim)]);
}

// (output position, tap) pairs of one spatial dimension that meet a real
// input element.
double RealTaps(const HloWindowDim& window, int64_t input, int64_t output) {
  constexpr int64_t kMaxPairs = int64_t{1} << 26;
  if (input <= 0 || output <= 0 || window.size <= 0 ||
      window.size > kMaxPairs / output)
    return static_cast<double>(output) * static_cast<double>(window.size);
  const int64_t dilated = (input - 1) * window.base_dilation + 1;
  int64_t count = 0;
  for (int64_t o = 0; o < output; ++o) {
    for (int64_t k = 0; k < window.size; ++k) {
      const int64_t at =
          o * window.stride + k * window.window_dilation - window.padding_low;
      if (at >= 0 && at < dilated && at % window.base_dilation == 0) ++count;
    }
  }
  return static_cast<double>(count);
}

void Convolution(const HloModule& module, const HloInstruction& conv,
                 HloCost& cost) {
  const HloInstruction* input = Operand(module, conv, 0);
  const HloInstruction* kernel = Operand(module, conv, 1);
  if (input == nullptr || kernel == nullptr || !conv.conv) return;
  const HloShape& out = FirstPart(conv.shape);
  const auto features = DimOf(kernel->shape, conv.conv->kernel_input_feature);
  if (!features) return;
  double taps = 1;
  double real_share = 1;
  bool know_taps = conv.window.size() == conv.conv->kernel_spatial.size() &&
                   conv.window.size() == conv.conv->input_spatial.size() &&
                   conv.window.size() == conv.conv->output_spatial.size();
  for (size_t i = 0; i < conv.conv->kernel_spatial.size(); ++i) {
    const auto size = DimOf(kernel->shape, conv.conv->kernel_spatial[i]);
    if (!size) return;
    taps *= *size;
    if (!know_taps) continue;
    const auto in = DimOf(input->shape, conv.conv->input_spatial[i]);
    const auto to = DimOf(out, conv.conv->output_spatial[i]);
    if (!in || !to || *to <= 0 || *size <= 0) {
      know_taps = false;
      continue;
    }
    real_share *= RealTaps(conv.window[i], static_cast<int64_t>(*in),
                           static_cast<int64_t>(*to)) /
                  (*to * *size);
  }
  cost.flops = 2 * out.Elements() * taps * *features;
  if (know_taps) cost.unpadded_flops = std::round(cost.flops * real_share);
  cost.type = kernel->shape.type;
  cost.matrix = cost.exact = true;
}

void Product(const HloModule& module, const HloInstruction& dot,
             const std::vector<int64_t>& contracting, HloCost& cost) {
  const HloInstruction* lhs = Operand(module, dot, 0);
  if (lhs == nullptr) return;
  double depth = 1;
  for (const int64_t dim : contracting) {
    const auto size = DimOf(lhs->shape, dim);
    if (!size) return;
    depth *= *size;
  }
  cost.flops = 2 * FirstPart(dot.shape).Elements() * depth;
  cost.type = lhs->shape.type;
  cost.matrix = cost.exact = true;
}

// lhs_contracting_dimensions of the "gemm_backend_config" of a library call.
std::optional<std::vector<int64_t>> GemmContracting(const std::string& config) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(config).get(root) != simdjson::SUCCESS) return std::nullopt;
  simdjson::dom::element gemm;
  if (root["gemm_backend_config"].get(gemm) != simdjson::SUCCESS) gemm = root;
  simdjson::dom::array dims;
  if (gemm["dot_dimension_numbers"]["lhs_contracting_dimensions"].get(dims) !=
      simdjson::SUCCESS)
    return std::nullopt;
  std::vector<int64_t> out;
  for (const simdjson::dom::element dim : dims) {
    std::string_view text;
    int64_t number = 0;
    if (dim.get_string().get(text) == simdjson::SUCCESS) {
      const auto parsed = ParseInt(text);
      if (!parsed) return std::nullopt;
      out.push_back(*parsed);
    } else if (dim.get_int64().get(number) == simdjson::SUCCESS) {
      out.push_back(number);
    } else {
      return std::nullopt;
    }
  }
  return out;
}

// "attn_heads = 16 : i64" of MLIR attributes.
std::optional<double> Attribute(std::string_view config,
                                std::string_view name) {
  for (size_t at = config.find(name); at != std::string_view::npos;
       at = config.find(name, at + 1)) {
    if (at > 0 && config[at - 1] != ' ' && config[at - 1] != '{') continue;
    std::string_view rest = config.substr(at + name.size());
    if (!rest.starts_with(" = ")) continue;
    rest.remove_prefix(3);
    return ParseDouble(rest.substr(0, rest.find_first_of(" ,}")));
  }
  return std::nullopt;
}

// Attention of Transformer Engine. Forward: two products; backward: four, and
// that of the scores again.
void Attention(const HloModule& module, const HloInstruction& call,
               HloCost& cost) {
  const std::string_view config = call.backend_config;
  const auto batch = Attribute(config, "input_batch");
  const auto heads = Attribute(config, "attn_heads");
  const auto q = Attribute(config, "q_max_seqlen");
  const auto kv = Attribute(config, "kv_max_seqlen");
  const auto qk_dim = Attribute(config, "qk_head_dim");
  const auto v_dim = Attribute(config, "v_head_dim");
  if (!batch || !heads || !q || !kv || !qk_dim || !v_dim) return;
  double pairs = *q * *kv;
  // Odd masks of NVTE_Mask_Type are padding or none, 2 and 3 are causal.
  const double mask = Attribute(config, "mask_type").value_or(0);
  if (mask >= 2 && *q == *kv) pairs /= 2;
  const double forward = 2 * *batch * *heads * pairs * (*qk_dim + *v_dim);
  const bool backward = Contains(call.target, "backward");
  cost.flops =
      backward ? 2 * forward + 2 * *batch * *heads * pairs * *qk_dim : forward;
  const HloInstruction* first = Operand(module, call, 0);
  cost.type = first != nullptr ? first->shape.type : 0;
  cost.matrix = true;
}

// Sizes come from the file and may be anything: a number that no op has is
// unknown, and a sum must not take it in.
bool IsPossible(double amount) {
  constexpr double kMost = 9223372036854775808.0;  // 2^63
  return amount >= 0 && amount < kMost;
}

void DropImpossible(HloCost& cost) {
  if (!IsPossible(cost.flops)) {
    cost.flops = cost.unpadded_flops = -1;
    cost.exact = false;
  }
  if (!IsPossible(cost.unpadded_flops)) cost.unpadded_flops = -1;
  if (!IsPossible(cost.bytes)) cost.bytes = -1;
}

// Operands and result of the instruction as it is executed; a library call's
// scratch space is left out.
double BytesOf(const HloModule& module, const HloInstruction& instruction) {
  double bytes = 0;
  for (size_t i = 0; i < instruction.operands.size(); ++i) {
    const HloInstruction* operand = Operand(module, instruction, i);
    if (operand != nullptr) bytes += operand->shape.Bytes();
  }
  const HloShape& shape = instruction.shape;
  if (instruction.opcode != "custom-call" || shape.type != HloShape::kTuple)
    return bytes + shape.Bytes();
  constexpr uint32_t kS8 = 2;
  constexpr uint32_t kU8 = 6;
  for (size_t i = 0; i < shape.parts.size(); ++i) {
    const HloShape& part = shape.parts[i];
    const bool scratch = i > 0 && part.dims.size() == 1 &&
                         (part.type == kS8 || part.type == kU8);
    if (!scratch) bytes += part.Bytes();
  }
  return bytes;
}

class Counter {
 public:
  explicit Counter(const HloModule& module) : module_(module) {}

  HloCost Of(const HloInstruction& instruction, int depth) {
    HloCost cost;
    const std::string& opcode = instruction.opcode;
    if (opcode == "dot") {
      Product(module_, instruction, instruction.lhs_contracting, cost);
    } else if (opcode == "convolution" ||
               instruction.target.starts_with("__cudnn$conv")) {
      Convolution(module_, instruction, cost);
    } else if (instruction.target.starts_with("__cublas$") ||
               instruction.target.starts_with("__triton_gemm")) {
      const auto dims = GemmContracting(instruction.backend_config);
      if (dims) Product(module_, instruction, *dims, cost);
    } else if (instruction.target.starts_with("te_fused_attn") ||
               instruction.target.starts_with("__cudnn$fmha")) {
      Attention(module_, instruction, cost);
    } else if (opcode == "fusion") {
      Fusion(instruction, depth, cost);
    }
    DropImpossible(cost);
    return cost;
  }

 private:
  void Fusion(const HloInstruction& fusion, int depth, HloCost& cost) {
    if (depth >= kMaxCallDepth) return;
    for (const int64_t id : fusion.calls) {
      const HloComputation* computation = module_.Computation(id);
      if (computation == nullptr) continue;
      for (const uint32_t i : computation->instructions) {
        // A hostile program calls one computation from everywhere.
        if (++visited_ > module_.instructions.size() * 4) return;
        const HloCost inner = Of(module_.instructions[i], depth + 1);
        if (!inner.matrix || inner.flops < 0) continue;
        cost.flops = std::max(cost.flops, 0.0) + inner.flops;
        cost.exact = cost.matrix ? cost.exact && inner.exact : inner.exact;
        if (!cost.matrix) cost.type = inner.type;
        cost.matrix = true;
      }
    }
  }

  const HloModule& module_;
  size_t visited_ = 0;
};

// The element type of the first part that has one.
uint32_t TypeOf(const HloShape& shape) {
  const HloShape* part = &shape;
  while (part->type == HloShape::kTuple && !part->parts.empty())
    part = &part->parts[0];
  return part->type;
}

double AllElements(const HloShape& shape) {
  if (shape.type != HloShape::kTuple) return shape.Elements();
  double sum = 0;
  for (const HloShape& part : shape.parts) sum += AllElements(part);
  return sum;
}

HloCollective CollectiveOf(std::string_view opcode) {
  if (opcode.ends_with("-start")) opcode.remove_suffix(6);
  if (opcode == "all-reduce") return HloCollective::kAllReduce;
  if (opcode == "all-gather") return HloCollective::kAllGather;
  if (opcode == "reduce-scatter") return HloCollective::kReduceScatter;
  if (opcode == "all-to-all" || opcode == "ragged-all-to-all")
    return HloCollective::kAllToAll;
  if (opcode == "collective-permute") return HloCollective::kPermute;
  if (opcode == "collective-broadcast") return HloCollective::kBroadcast;
  return HloCollective::kNone;
}

}  // namespace

HloCost CostOf(const HloModule& module, const HloInstruction& instruction) {
  HloCost cost = Counter(module).Of(instruction, 0);
  const std::string& opcode = instruction.opcode;
  // The work of these is that of the instructions inside.
  if (opcode == "while" || opcode == "conditional" || opcode == "call")
    return cost;
  cost.bytes = BytesOf(module, instruction);
  if (cost.flops < 0 && !cost.matrix && opcode != "custom-call") {
    cost.flops = AllElements(instruction.shape);
    cost.type = TypeOf(instruction.shape);
  }
  DropImpossible(cost);
  return cost;
}

HloTransfer TransferOf(const HloModule& module,
                       const HloInstruction& instruction) {
  const HloInstruction* inner = &instruction;
  HloTransfer transfer;
  transfer.kind = CollectiveOf(inner->opcode);
  bool start = inner->opcode.ends_with("-start");
  if (inner->opcode == "async-start") {
    start = false;
    for (const int64_t id : instruction.calls) {
      const HloComputation* computation = module.Computation(id);
      if (computation == nullptr) continue;
      for (const uint32_t i : computation->instructions) {
        const HloInstruction& candidate = module.instructions[i];
        if (CollectiveOf(candidate.opcode) == HloCollective::kNone) continue;
        inner = &candidate;
        transfer.kind = CollectiveOf(candidate.opcode);
      }
    }
  }
  if (transfer.kind == HloCollective::kNone) return transfer;
  for (size_t i = 0; i < inner->operands.size(); ++i) {
    const HloInstruction* operand = Operand(module, *inner, i);
    if (operand != nullptr) transfer.in_elements += AllElements(operand->shape);
  }
  const HloShape& shape = inner->shape;
  // The result of all-gather-start and collective-permute-start is a pair of
  // the operand and the result.
  const bool pair = start && shape.type == HloShape::kTuple &&
                    shape.parts.size() >= 2 &&
                    transfer.kind != HloCollective::kAllReduce;
  transfer.out_elements =
      pair ? AllElements(shape.parts[1]) : AllElements(shape);
  transfer.type = TypeOf(shape);
  const int64_t devices = std::max<int64_t>(1, module.replicas) *
                          std::max<int64_t>(1, module.partitions);
  if (transfer.kind == HloCollective::kPermute) {
    transfer.group_size = static_cast<int64_t>(inner->pairs);
    transfer.groups = 1;
  } else if (inner->groups.empty()) {
    transfer.group_size = devices;
    transfer.groups = 1;
  } else {
    transfer.group_size = static_cast<int64_t>(inner->groups[0].size());
    // With a channel and no global ids a group of replicas spans all
    // partitions.
    if (inner->has_channel && !inner->global_ids)
      transfer.group_size *= std::max<int64_t>(1, module.partitions);
    transfer.groups = inner->groups.size();
  }
  return transfer;
}

}  // namespace lamina::ingest::xplane
