// SPDX-License-Identifier: Apache-2.0

#include "ingest/xplane/hlo.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/decimal.h"
#include "base/protobuf/wire.h"

namespace lamina::ingest::xplane {

using protobuf::Field;
using protobuf::Walker;

namespace {

// Tuples in tuples; deeper ones are no program.
constexpr int kMaxMetadataDepth = 16;

void AddIntegers(const Field& field, std::vector<int64_t>& out) {
  ForEachVarint(field, [&](uint64_t value) {
    out.push_back(static_cast<int64_t>(value));
  });
}

HloShape ParseShape(std::string_view bytes, int depth = 0) {
  HloShape shape;
  for (Walker walk(bytes); walk.Next();) {
    if (walk->number == 2) {
      shape.type = static_cast<uint32_t>(walk->value);
    } else if (walk->number == 3) {
      AddIntegers(walk.field(), shape.dims);
    } else if (walk->number == 4 && depth < kMaxMetadataDepth) {
      shape.parts.push_back(ParseShape(walk->bytes, depth + 1));
    }
  }
  return shape;
}

std::vector<HloWindowDim> ParseWindow(std::string_view bytes) {
  std::vector<HloWindowDim> out;
  for (Walker walk(bytes); walk.Next();) {
    if (walk->number != 1) continue;
    HloWindowDim dim;
    dim.stride = dim.window_dilation = dim.base_dilation = 0;
    for (Walker inner(walk.field()); inner.Next();) {
      switch (inner->number) {
        case 1:
          dim.size = inner->Int();
          break;
        case 2:
          dim.stride = inner->Int();
          break;
        case 3:
          dim.padding_low = inner->Int();
          break;
        case 4:
          dim.padding_high = inner->Int();
          break;
        case 5:
          dim.window_dilation = inner->Int();
          break;
        case 6:
          dim.base_dilation = inner->Int();
          break;
        default:
          break;
      }
    }
    for (int64_t* factor :
         {&dim.stride, &dim.window_dilation, &dim.base_dilation})
      *factor = std::max<int64_t>(*factor, 1);
    out.push_back(dim);
  }
  return out;
}

HloConvDims ParseConvDims(std::string_view bytes) {
  HloConvDims dims;
  for (Walker walk(bytes); walk.Next();) {
    switch (walk->number) {
      case 3:
        dims.kernel_input_feature = walk->Int();
        break;
      case 4:
        dims.kernel_output_feature = walk->Int();
        break;
      case 6:
        AddIntegers(walk.field(), dims.kernel_spatial);
        break;
      case 7:
        dims.input_batch = walk->Int();
        break;
      case 8:
        dims.input_feature = walk->Int();
        break;
      case 9:
        dims.output_batch = walk->Int();
        break;
      case 10:
        dims.output_feature = walk->Int();
        break;
      case 11:
        AddIntegers(walk.field(), dims.input_spatial);
        break;
      case 12:
        AddIntegers(walk.field(), dims.output_spatial);
        break;
      default:
        break;
    }
  }
  return dims;
}

std::vector<int64_t> ParseGroup(std::string_view bytes) {
  std::vector<int64_t> ids;
  for (Walker walk(bytes); walk.Next();) {
    if (walk->number == 1) AddIntegers(walk.field(), ids);
  }
  return ids;
}

// arange(groups * size) in the shape `dims`, transposed, cut into rows.
std::vector<std::vector<int64_t>> ParseIota(std::string_view bytes) {
  constexpr int64_t kMaxDevices = int64_t{1} << 20;
  int64_t groups = 0;
  int64_t size = 0;
  std::vector<int64_t> dims;
  std::vector<int64_t> order;
  for (Walker walk(bytes); walk.Next();) {
    if (walk->number == 1) groups = walk->Int();
    if (walk->number == 2) size = walk->Int();
    if (walk->number == 3) AddIntegers(walk.field(), dims);
    if (walk->number == 4) AddIntegers(walk.field(), order);
  }
  if (groups <= 0 || size <= 0 || groups > kMaxDevices ||
      size > kMaxDevices / groups)
    return {};
  const int64_t total = groups * size;
  std::vector<int64_t> flat(static_cast<size_t>(total));
  for (int64_t i = 0; i < total; ++i) flat[static_cast<size_t>(i)] = i;
  int64_t product = 1;
  bool usable =
      !dims.empty() && dims.size() <= 16 && order.size() == dims.size();
  std::vector<bool> seen(dims.size(), false);
  for (size_t d = 0; usable && d < dims.size(); ++d) {
    usable = dims[d] > 0 && dims[d] <= total && product <= total / dims[d] &&
             order[d] >= 0 && order[d] < static_cast<int64_t>(dims.size()) &&
             !seen[static_cast<size_t>(order[d])];
    if (!usable) break;
    product *= dims[d];
    seen[static_cast<size_t>(order[d])] = true;
  }
  if (usable && product == total) {
    std::vector<int64_t> stride(dims.size(), 1);
    for (size_t d = dims.size() - 1; d > 0; --d)
      stride[d - 1] = stride[d] * dims[d];
    std::vector<int64_t> at(dims.size(), 0);
    for (int64_t i = 0; i < total; ++i) {
      int64_t value = 0;
      for (size_t d = 0; d < dims.size(); ++d)
        value += at[d] * stride[static_cast<size_t>(order[d])];
      flat[static_cast<size_t>(i)] = value;
      for (size_t d = dims.size(); d-- > 0;) {
        if (++at[d] < dims[static_cast<size_t>(order[d])]) break;
        at[d] = 0;
      }
    }
  }
  std::vector<std::vector<int64_t>> out;
  for (int64_t g = 0; g < groups; ++g)
    out.emplace_back(flat.begin() + g * size, flat.begin() + (g + 1) * size);
  return out;
}

void ParseDeviceList(std::string_view bytes, HloInstruction& out) {
  std::vector<std::vector<int64_t>> groups;
  for (Walker walk(bytes); walk.Next();) {
    if (walk->number == 1) groups.push_back(ParseGroup(walk->bytes));
    if (walk->number == 2) groups = ParseIota(walk->bytes);
  }
  if (!groups.empty()) out.groups = std::move(groups);
}

void ParseMetadata(std::string_view bytes, HloInstruction& out) {
  for (Walker walk(bytes); walk.Next();) {
    if (walk->number == 2) out.op_name = walk->bytes;
    if (walk->number == 3) out.source_file = walk->bytes;
    if (walk->number == 4) out.source_line = walk->Int();
    if (walk->number == 15) out.stack_frame = walk->Int();
  }
}

HloInstruction ParseInstruction(std::string_view bytes) {
  HloInstruction out;
  std::vector<std::vector<int64_t>> old_groups;
  for (Walker walk(bytes); walk.Next();) {
    const Field& field = walk.field();
    switch (field.number) {
      case 1:
        out.name = field.bytes;
        break;
      case 2:
        out.opcode = field.bytes;
        break;
      case 3:
        out.shape = ParseShape(field.bytes);
        break;
      case 7:
        ParseMetadata(field.bytes, out);
        break;
      case 15:
        out.window = ParseWindow(field.bytes);
        break;
      case 16:
        out.conv = ParseConvDims(field.bytes);
        break;
      case 26:
        out.channel = field.Int();
        out.has_channel = out.channel != 0;
        break;
      case 28:
        out.target = field.bytes;
        break;
      case 30:
        for (Walker inner(field); inner.Next();) {
          if (inner->number == 1)
            AddIntegers(inner.field(), out.lhs_contracting);
        }
        break;
      case 35:
        out.id = field.Int();
        break;
      case 36:
        AddIntegers(field, out.operands);
        break;
      case 38:
        AddIntegers(field, out.calls);
        break;
      case 43:
        out.backend_config = field.bytes;
        break;
      case 49:
        old_groups.push_back(ParseGroup(field.bytes));
        break;
      case 52:
        ++out.pairs;
        break;
      case 71:
        out.global_ids = field.value != 0;
        break;
      case 87:
        ParseDeviceList(field.bytes, out);
        break;
      default:
        break;
    }
  }
  if (out.groups.empty()) out.groups = std::move(old_groups);
  return out;
}

// Files and lines of stack frames; ids start at 1.
class StackFrames {
 public:
  explicit StackFrames(std::string_view bytes) {
    for (Walker walk(bytes); walk.Next();) {
      if (walk->number == 1) files_.emplace_back(walk->bytes);
      if (walk->number == 3) locations_.push_back(Pair(walk->bytes, 1, 3));
      if (walk->number == 4) frames_.push_back(Pair(walk->bytes, 1, 2).first);
    }
  }
  void Resolve(HloInstruction& instruction) const {
    if (!instruction.source_file.empty()) return;
    const auto at = [](const auto& list, int64_t id) {
      return id >= 1 && id <= static_cast<int64_t>(list.size())
                 ? &list[static_cast<size_t>(id - 1)]
                 : nullptr;
    };
    const int64_t* location = at(frames_, instruction.stack_frame);
    if (location == nullptr) return;
    const auto* place = at(locations_, *location);
    if (place == nullptr) return;
    const std::string_view* file = at(files_, place->first);
    if (file == nullptr) return;
    instruction.source_file = *file;
    instruction.source_line = place->second;
  }

 private:
  static std::pair<int64_t, int64_t> Pair(std::string_view bytes,
                                          uint32_t first, uint32_t second) {
    std::pair<int64_t, int64_t> out;
    for (Walker walk(bytes); walk.Next();) {
      if (walk->number == first) out.first = walk->Int();
      if (walk->number == second) out.second = walk->Int();
    }
    return out;
  }

  std::vector<std::string_view> files_;
  std::vector<std::pair<int64_t, int64_t>> locations_;  // file, line
  std::vector<int64_t> frames_;                         // location
};

void ParseComputation(std::string_view bytes, HloModule& module) {
  HloComputation computation;
  for (Walker walk(bytes); walk.Next();) {
    if (walk->number == 1) {
      computation.name = walk->bytes;
    } else if (walk->number == 2) {
      computation.instructions.push_back(
          static_cast<uint32_t>(module.instructions.size()));
      module.instructions.push_back(ParseInstruction(walk->bytes));
    } else if (walk->number == 5) {
      computation.id = walk->Int();
    } else if (walk->number == 6) {
      computation.root = walk->Int();
    }
  }
  module.computations.push_back(std::move(computation));
}

}  // namespace

const HloInstruction* HloModule::Find(std::string_view instruction) const {
  const auto it = by_name.find(instruction);
  return it == by_name.end() ? nullptr : &instructions[it->second];
}

const HloInstruction* HloModule::ById(int64_t id) const {
  const auto it = by_id.find(id);
  return it == by_id.end() ? nullptr : &instructions[it->second];
}

const HloComputation* HloModule::Computation(int64_t id) const {
  const auto it = computation_by_id.find(id);
  return it == computation_by_id.end() ? nullptr : &computations[it->second];
}

std::optional<HloModule> ParseHlo(std::string_view bytes) {
  std::string_view body;
  Walker outer(bytes);
  while (outer.Next()) {
    if (outer->number == 1 && outer->IsBytes()) body = outer->bytes;
  }
  if (outer.damage() || body.empty()) return std::nullopt;
  HloModule module;
  std::string_view frames;
  Walker walk(body);
  while (walk.Next()) {
    if (walk->number == 1) {
      module.name = walk->bytes;
    } else if (walk->number == 3) {
      ParseComputation(walk->bytes, module);
    } else if (walk->number == 15) {
      for (Walker inner(walk.field()); inner.Next();) {
        const int64_t count =
            std::clamp<int64_t>(inner->Int(), 1, int64_t{1} << 20);
        if (inner->number == 1) module.replicas = count;
        if (inner->number == 2) module.partitions = count;
      }
    } else if (walk->number == 17) {
      frames = walk->bytes;
    }
  }
  if (walk.damage() || module.computations.empty()) return std::nullopt;
  const StackFrames stack(frames);
  for (uint32_t i = 0; i < module.instructions.size(); ++i) {
    HloInstruction& instruction = module.instructions[i];
    stack.Resolve(instruction);
    module.by_id.try_emplace(instruction.id, i);
    module.by_name.try_emplace(instruction.name, i);
  }
  for (uint32_t i = 0; i < module.computations.size(); ++i)
    module.computation_by_id.try_emplace(module.computations[i].id, i);
  return module;
}

// Shapes of HLO: their elements, bytes and texts.

namespace {

struct ElementType {
  std::string_view name;
  int bits;
};

// By the numbers of xla_data.proto.
constexpr std::array<ElementType, 34> kElementTypes = {{
    {"", 0},           {"pred", 8},       {"s8", 8},     {"s16", 16},
    {"s32", 32},       {"s64", 64},       {"u8", 8},     {"u16", 16},
    {"u32", 32},       {"u64", 64},       {"f16", 16},   {"f32", 32},
    {"f64", 64},       {"tuple", 0},      {"opaque", 0}, {"c64", 64},
    {"bf16", 16},      {"token", 0},      {"c128", 128}, {"f8e5m2", 8},
    {"f8e4m3fn", 8},   {"s4", 4},         {"u4", 4},     {"f8e4m3b11fnuz", 8},
    {"f8e5m2fnuz", 8}, {"f8e4m3fnuz", 8}, {"s2", 2},     {"u2", 2},
    {"f8e4m3", 8},     {"f8e3m4", 8},     {"s1", 1},     {"u1", 1},
    {"f4e2m1fn", 4},   {"f8e8m0fnu", 8},
}};

}  // namespace

std::string_view ElementTypeName(uint32_t type) {
  return type < kElementTypes.size() ? kElementTypes[type].name
                                     : std::string_view();
}

double HloShape::Elements() const {
  if (type == kTuple) return 0;
  double product = 1;
  for (const int64_t dim : dims)
    product *= static_cast<double>(std::max<int64_t>(dim, 0));
  return product;
}

double HloShape::Bytes() const {
  if (type == kTuple) {
    double sum = 0;
    for (const HloShape& part : parts) sum += part.Bytes();
    return sum;
  }
  const int bits = type < kElementTypes.size() ? kElementTypes[type].bits : 0;
  return std::ceil(Elements() * bits / 8);
}

std::string HloShape::Text() const {
  if (type == kTuple) {
    std::string out = "(";
    for (const HloShape& part : parts) {
      if (out.size() > 1) out += ", ";
      out += part.Text();
    }
    return out + ")";
  }
  const std::string_view name = ElementTypeName(type);
  std::string out(name.empty() ? "?" : name);
  return out + DimsJson();
}

std::string HloShape::DimsJson() const {
  std::string out = "[";
  if (type == kTuple) {
    for (const HloShape& part : parts) {
      if (out.size() > 1) out += ',';
      out += part.DimsJson();
    }
  } else {
    for (const int64_t dim : dims) {
      if (out.size() > 1) out += ',';
      AppendInt(out, dim);
    }
  }
  return out + "]";
}

}  // namespace lamina::ingest::xplane
