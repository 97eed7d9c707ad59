// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/hlo.h"

#include <gtest/gtest.h>
#include <limits>

#include "base/protobuf/wire.h"
#include "ingest/xplane/hlo_cost.h"

namespace lamina::ingest::xplane {
namespace {

using protobuf::Encoder;

std::string Shape(uint32_t type, const std::vector<int64_t>& dims) {
  Encoder shape;
  shape.Varint(2, type);
  for (const int64_t dim : dims) shape.Int(3, dim);
  return shape.bytes();
}

constexpr uint32_t kBf16 = 16;
constexpr uint32_t kU8 = 6;

// x bf16[1,16,32,60,104] with w bf16[5120,16,1,2,2], stride 1,2,2, padding 1.
std::string ConvolutionProto() {
  Encoder x, w, conv, tuple, dims, window, computation, module, proto;
  x.Bytes(1, "x");
  x.Bytes(2, "parameter");
  x.Bytes(3, Shape(kBf16, {1, 16, 32, 60, 104}));
  x.Varint(35, 1);
  w.Bytes(1, "w");
  w.Bytes(2, "parameter");
  w.Bytes(3, Shape(kBf16, {5120, 16, 1, 2, 2}));
  w.Varint(35, 2);
  for (const auto& [size, stride] :
       {std::pair{1, 1}, std::pair{2, 2}, std::pair{2, 2}}) {
    Encoder dim;
    dim.Int(1, size);
    dim.Int(2, stride);
    dim.Int(3, 1);
    dim.Int(4, 1);
    dim.Int(5, 1);
    dim.Int(6, 1);
    window.Bytes(1, dim.bytes());
  }
  // Batch dimensions are 0 and therefore absent.
  dims.Varint(8, 1);
  dims.Varint(3, 1);
  dims.Varint(10, 1);
  for (const uint64_t d : {2, 3, 4}) {
    dims.Varint(11, d);
    dims.Varint(6, d);
    dims.Varint(12, d);
  }
  tuple.Varint(2, HloShape::kTuple);
  tuple.Bytes(4, Shape(kBf16, {1, 5120, 34, 31, 53}));
  tuple.Bytes(4, Shape(kU8, {7150336}));
  conv.Bytes(1, "cudnn-conv.1");
  conv.Bytes(2, "custom-call");
  conv.Bytes(3, tuple.bytes());
  conv.Bytes(15, window.bytes());
  conv.Bytes(16, dims.bytes());
  conv.Bytes(28, "__cudnn$convForward");
  conv.Varint(35, 3);
  conv.Varint(36, 1);
  conv.Varint(36, 2);
  computation.Bytes(1, "main");
  for (const Encoder* instruction : {&x, &w, &conv})
    computation.Bytes(2, instruction->bytes());
  computation.Varint(5, 1);
  module.Bytes(1, "jit_conv");
  module.Bytes(3, computation.bytes());
  proto.Bytes(1, module.bytes());
  return proto.bytes();
}

TEST(HloCost, ConvolutionCountsInputChannels) {
  const auto module = ParseHlo(ConvolutionProto());
  ASSERT_TRUE(module);
  const HloInstruction* conv = module->Find("cudnn-conv.1");
  ASSERT_NE(conv, nullptr);
  const HloCost cost = CostOf(*module, *conv);
  EXPECT_EQ(cost.flops, 36609720320.0);
  EXPECT_EQ(cost.unpadded_flops, 32715571200.0);
  EXPECT_TRUE(cost.exact);
  // Scratch space is no result.
  EXPECT_EQ(cost.bytes, 2 * (16.0 * 32 * 60 * 104 + 5120.0 * 16 * 4 +
                             5120.0 * 34 * 31 * 53));
}

// Sizes are whatever the file says.
TEST(HloCost, NumbersThatNoOpHasAreUnknown) {
  const auto module = ParseHlo(ConvolutionProto());
  ASSERT_TRUE(module);
  const auto place = static_cast<size_t>(module->Find("cudnn-conv.1") -
                                         module->instructions.data());
  const auto cost_with = [&](auto change) {
    HloModule other = *module;
    change(other.instructions[0].shape, other.instructions[1].shape,
           other.instructions[place].shape.parts[0]);
    return CostOf(other, other.instructions[place]);
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  // Products beyond all doubles.
  const HloCost infinite =
      cost_with([&](HloShape&, HloShape& kernel, HloShape& out) {
        out.dims.assign(40, kMost);
        for (int64_t& dim : kernel.dims) dim = kMost;
      });
  EXPECT_EQ(infinite.flops, -1);
  EXPECT_EQ(infinite.unpadded_flops, -1);
  EXPECT_EQ(infinite.bytes, -1);
  EXPECT_FALSE(infinite.exact);
  // A negative size.
  for (size_t axis = 0; axis < 5; ++axis) {
    const HloCost negative =
        cost_with([&](HloShape& input, HloShape& kernel, HloShape&) {
          kernel.dims[axis] = -7;
          input.dims[axis] = -7;
        });
    EXPECT_GE(negative.flops, -1) << axis;
    EXPECT_GE(negative.unpadded_flops, -1) << axis;
    EXPECT_TRUE(negative.flops >= 0 || negative.flops == -1) << axis;
    EXPECT_TRUE(negative.unpadded_flops >= 0 || negative.unpadded_flops == -1)
        << axis;
  }
  // Large, but possible.
  const HloCost large = cost_with(
      [](HloShape&, HloShape&, HloShape& out) { out.dims[0] = 1 << 20; });
  EXPECT_GT(large.flops, 1e16);
  EXPECT_GT(large.bytes, 1e10);
}

TEST(HloCost, DamagedProgramsAreNone) {
  const std::string good = ConvolutionProto();
  EXPECT_FALSE(ParseHlo(""));
  EXPECT_FALSE(ParseHlo(good.substr(0, good.size() / 2)));
}

TEST(Hlo, ShapesAsText) {
  HloShape shape;
  shape.type = kBf16;
  shape.dims = {128, 64};
  EXPECT_EQ(shape.Text(), "bf16[128,64]");
  EXPECT_EQ(shape.Bytes(), 16384);
  HloShape tuple;
  tuple.type = HloShape::kTuple;
  tuple.parts = {shape, shape};
  EXPECT_EQ(tuple.Text(), "(bf16[128,64], bf16[128,64])");
  EXPECT_EQ(tuple.DimsJson(), "[[128,64],[128,64]]");
  // Elements below a byte are packed.
  shape.type = 21;  // s4
  shape.dims = {3};
  EXPECT_EQ(shape.Bytes(), 2);
}

}  // namespace
}  // namespace lamina::ingest::xplane
