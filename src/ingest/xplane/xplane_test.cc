// SPDX-License-Identifier: Apache-2.0
//
// Files are made with libprotobuf, which is also the oracle of the walker.

#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "base/protobuf/wire.h"
#include "ingest/xplane/hlo.h"
#include "ingest/xplane/hlo_cost.h"
#include "ingest/xplane/programs.h"
#include "ingest/xplane/reader.h"
#include "xplane.pb.h"

namespace lamina::ingest::xplane {

namespace {

using protobuf::Encoder;
using trace::Kind;
using trace::kNoInt;
using trace::SliceId;
using trace::Trace;

// A plane that gives numbers to names as they come.
class PlaneMaker {
 public:
  explicit PlaneMaker(lamina::xplane::XPlane* plane) : plane_(*plane) {}

  lamina::xplane::XLine* Line(int64_t id, int64_t timestamp_ns) {
    auto* line = plane_.add_lines();
    line->set_id(id);
    line->set_name("line " + std::to_string(id));
    line->set_timestamp_ns(timestamp_ns);
    return line;
  }
  lamina::xplane::XEvent* Event(lamina::xplane::XLine* line,
                                const std::string& name, int64_t offset_ps,
                                int64_t duration_ps) {
    auto* event = line->add_events();
    event->set_metadata_id(EventName(name));
    event->set_offset_ps(offset_ps);
    event->set_duration_ps(duration_ps);
    return event;
  }
  int64_t EventName(const std::string& name) {
    for (const auto& [id, value] : plane_.event_metadata()) {
      if (value.name() == name) return id;
    }
    const int64_t id = 1 + static_cast<int64_t>(plane_.event_metadata_size());
    (*plane_.mutable_event_metadata())[id].set_name(name);
    return id;
  }
  int64_t StatName(const std::string& name) {
    for (const auto& [id, value] : plane_.stat_metadata()) {
      if (value.name() == name) return id;
    }
    const int64_t id = 1 + static_cast<int64_t>(plane_.stat_metadata_size());
    (*plane_.mutable_stat_metadata())[id].set_name(name);
    return id;
  }
  template <class Holder>
  void Number(Holder* holder, const std::string& name, int64_t value) {
    auto* stat = holder->add_stats();
    stat->set_metadata_id(StatName(name));
    stat->set_int64_value(value);
  }
  // Text by reference, as the profiler stores it.
  template <class Holder>
  void Text(Holder* holder, const std::string& name, const std::string& text) {
    auto* stat = holder->add_stats();
    stat->set_metadata_id(StatName(name));
    stat->set_ref_value(static_cast<uint64_t>(StatName(text)));
  }

 private:
  lamina::xplane::XPlane& plane_;
};

Result<Trace> ReadBytes(const std::string& bytes, int threads = 1) {
  ReadOptions options;
  options.threads = threads;
  return ReadXplane([&] { return OpenMemory("test", bytes); }, options);
}

Trace ReadSpace(const lamina::xplane::XSpace& space) {
  auto trace = ReadBytes(space.SerializeAsString());
  EXPECT_TRUE(trace.has_value())
      << (trace ? std::string() : trace.error().ToString());
  return trace ? std::move(*trace) : Trace();
}

std::vector<SliceId> SlicesOf(const Trace& trace, Kind kind) {
  std::vector<SliceId> out;
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    if (trace.slices.kind[i] == kind) out.push_back(SliceId(i));
  }
  return out;
}

// Two kernels of one instruction, then one of another.
lamina::xplane::XSpace SmallSpace() {
  lamina::xplane::XSpace space;
  auto* gpu = space.add_planes();
  gpu->set_name("/device:GPU:3");
  PlaneMaker device(gpu);
  auto* stream = device.Line(7, 1000);
  auto* host = space.add_planes();
  host->set_name("/host:CPU");
  PlaneMaker cpu(host);
  auto* thread = cpu.Line(-5, 1000);
  const char* ops[] = {"dot.1", "dot.1", "add.2"};
  for (int i = 0; i < 3; ++i) {
    auto* kernel = device.Event(stream, "k" + std::to_string(i),
                                10000000 + i * 2000000, 1000000);
    device.Number(kernel, "correlation_id", 40 + i);
    device.Text(kernel, "hlo_op", ops[i]);
    device.Text(kernel, "hlo_module", "jit_step");
    device.Text(kernel, "name", "jit(step)/mlp/op");
    device.Text(kernel, "kernel_details", "grid:4,2,1 block:256,1,1 regs:9");
    auto* call = cpu.Event(thread, "cudaLaunchKernel", i * 1000000, 500000);
    cpu.Number(call, "correlation_id", 40 + i);
  }
  return space;
}

TEST(Xplane, RunsBecomeOpsAroundTheirCalls) {
  const Trace trace = ReadSpace(SmallSpace());
  const auto ops = SlicesOf(trace, Kind::kOp);
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(trace.Name(ops[0]), "dot.1");
  EXPECT_EQ(trace.Start(ops[0]), 1000);
  EXPECT_EQ(trace.Duration(ops[0]), 1500);
  EXPECT_EQ(trace.Name(ops[1]), "add.2");
  const auto kernels = SlicesOf(trace, Kind::kKernel);
  ASSERT_EQ(kernels.size(), 3u);
  const trace::DeviceArgs* args = trace.Device(kernels[1]);
  EXPECT_EQ(args->device, 3);
  EXPECT_EQ(args->stream, 7);
  EXPECT_EQ(args->correlation, 41);
  EXPECT_EQ(trace.Config(args->config)->grid[0], 4u);
  EXPECT_EQ(trace.Config(args->config)->registers_per_thread, 9);
  // The program and the scope "mlp", around all three.
  const auto scopes = SlicesOf(trace, Kind::kPython);
  ASSERT_EQ(scopes.size(), 2u);
  EXPECT_EQ(trace.Name(scopes[0]), "nn.Module: jit_step");
  EXPECT_EQ(trace.Name(scopes[1]), "nn.Module: mlp");
  EXPECT_EQ(trace.Duration(scopes[1]), 2500);
  EXPECT_EQ(trace.info.events, 6u);
  EXPECT_TRUE(trace.diagnostics.empty() || trace.diagnostics.lost() == 0);
}

TEST(Xplane, NamesMayStandAnywhereInAPlane) {
  lamina::xplane::XSpace space = SmallSpace();
  const std::string in_order = space.SerializeAsString();
  // The same plane with the maps in front: fields of a message may come in
  // any order.
  std::string shuffled;
  for (const auto& plane : space.planes()) {
    lamina::xplane::XPlane maps = plane;
    maps.clear_lines();
    lamina::xplane::XPlane lines;
    *lines.mutable_lines() = plane.lines();
    Encoder encoder;
    encoder.Bytes(1, maps.SerializeAsString() + lines.SerializeAsString());
    shuffled += encoder.bytes();
  }
  const auto a = ReadBytes(in_order);
  const auto b = ReadBytes(shuffled);
  ASSERT_TRUE(a && b);
  ASSERT_EQ(a->slices.size(), b->slices.size());
  for (uint32_t i = 0; i < a->slices.size(); ++i) {
    EXPECT_EQ(a->Name(SliceId(i)), b->Name(SliceId(i)));
    EXPECT_EQ(a->Start(SliceId(i)), b->Start(SliceId(i)));
    EXPECT_EQ(a->Duration(SliceId(i)), b->Duration(SliceId(i)));
  }
}

TEST(Xplane, KernelsWithoutAnOpTakeThatOfTheirName) {
  lamina::xplane::XSpace space = SmallSpace();
  PlaneMaker device(space.mutable_planes(0));
  auto* kernel = device.Event(space.mutable_planes(0)->mutable_lines(0), "k2",
                              20000000, 1000000);
  device.Number(kernel, "correlation_id", 43);
  const Trace trace = ReadSpace(space);
  const auto kernels = SlicesOf(trace, Kind::kKernel);
  ASSERT_EQ(kernels.size(), 4u);
  int64_t external = kNoInt;
  for (const SliceId s : kernels) {
    if (trace.Device(s)->external_id == kNoInt) continue;
    external = trace.Device(s)->external_id;
    EXPECT_EQ(trace.Start(s), 1000 + 20000);
  }
  ASSERT_NE(external, kNoInt);
  const auto ops = SlicesOf(trace, Kind::kOp);
  // It goes on with the run of add.2.
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(trace.Op(ops[1])->external_id, external);
}

TEST(Xplane, TimesRoundDownAndStayAdjacent) {
  lamina::xplane::XSpace space;
  auto* gpu = space.add_planes();
  gpu->set_name("/device:GPU:0");
  PlaneMaker device(gpu);
  auto* stream = device.Line(1, 5);
  device.Event(stream, "a", 1500, 1200);  // 6.5 to 7.7 ns
  device.Event(stream, "b", 2700, 1400);  // 7.7 to 9.1 ns
  const Trace trace = ReadSpace(space);
  const auto kernels = SlicesOf(trace, Kind::kKernel);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(trace.Start(kernels[0]), 6);
  EXPECT_EQ(trace.End(kernels[0]), 7);
  EXPECT_EQ(trace.Start(kernels[1]), 7);
  EXPECT_EQ(trace.End(kernels[1]), 9);
}

TEST(Xplane, TroubleIsCountedWithAPlace) {
  lamina::xplane::XSpace space = SmallSpace();
  auto* line = space.mutable_planes(0)->mutable_lines(0);
  line->add_events()->set_metadata_id(999);  // names nothing
  auto* aggregate = line->add_events();
  aggregate->set_metadata_id(1);
  aggregate->set_num_occurrences(4);
  auto* far = line->add_events();
  far->set_metadata_id(1);
  far->set_offset_ps(INT64_MAX);
  far->set_duration_ps(INT64_MAX);
  const Trace trace = ReadSpace(space);
  EXPECT_EQ(trace.diagnostics.Count("event_without_name"), 1u);
  EXPECT_EQ(trace.diagnostics.Count("aggregate_event"), 1u);
  EXPECT_EQ(trace.diagnostics.Count("duration_out_of_range"), 1u);
  EXPECT_EQ(SlicesOf(trace, Kind::kKernel).size(), 4u);
}

TEST(Xplane, CutFilesKeepWhatIsWhole) {
  const lamina::xplane::XSpace space = SmallSpace();
  const std::string bytes = space.SerializeAsString();
  lamina::xplane::XSpace first;
  *first.add_planes() = space.planes(0);
  const size_t whole_plane = first.SerializeAsString().size();
  size_t read = 0;
  for (size_t size = 1; size < bytes.size(); ++size) {
    if (size == whole_plane) continue;  // a shorter file, not a cut one
    const auto trace = ReadBytes(bytes.substr(0, size));
    if (!trace) continue;
    ++read;
    EXPECT_GT(trace->diagnostics.lost(), 0u) << size;
  }
  EXPECT_GT(read, bytes.size() / 4);
}

TEST(Xplane, DamagedBytesNeverCrash) {
  const std::string bytes = SmallSpace().SerializeAsString();
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string broken = bytes;
    for (int k = 0; k < 3; ++k)
      broken[random() % broken.size()] = static_cast<char>(random());
    const auto trace = ReadBytes(broken);
    if (trace) {
      for (const SliceId s : trace->device_slices())
        EXPECT_GE(trace->Duration(s), 0);
    }
  }
}

// Many stretches per line: instructions whose first event another thread may
// meet later, kernels that take the instruction of their name, ranges that end
// runs, names that are new everywhere.
lamina::xplane::XSpace LargeSpace() {
  constexpr int kKernels = 12000;
  lamina::xplane::XSpace space;
  auto* gpu = space.add_planes();
  gpu->set_name("/device:GPU:0");
  auto* host = space.add_planes();
  host->set_name("/host:CPU");
  PlaneMaker device(gpu);
  PlaneMaker cpu(host);
  lamina::xplane::XLine* streams[] = {device.Line(7, 0), device.Line(8, 0)};
  lamina::xplane::XLine* threads[] = {cpu.Line(-5, 0), cpu.Line(9, 0)};
  std::mt19937 random(11);
  for (int i = 0; i < kKernels; ++i) {
    const int64_t at_ps = int64_t{i} * 10000000;
    const auto op = static_cast<int>(random() % (5 + i / 1000));
    auto* stream = streams[random() % 2];
    auto* thread = threads[op % 2];
    auto* kernel = device.Event(stream, "k" + std::to_string(op), at_ps, 900);
    device.Number(kernel, "correlation_id", i + 1);
    device.Text(kernel, "kernel_details",
                "grid:" + std::to_string(op) + ",1,1 block:64,1,1");
    if (random() % 16 > 0) {
      device.Text(kernel, "hlo_op", "dot." + std::to_string(op));
      device.Text(kernel, "hlo_module", "jit_step");
      // The first event of an instruction describes it.
      auto* name = kernel->add_stats();
      name->set_metadata_id(device.StatName("name"));
      name->set_str_value("jit(step)/layer_" + std::to_string(i) + "/dot");
    }
    auto* call = cpu.Event(thread, "cudaLaunchKernel", at_ps, 400);
    cpu.Number(call, "correlation_id", i + 1);
    if (i % 64 == 0)
      cpu.Event(thread, "GpuExecutable::ExecuteThunks", at_ps, 320000000);
    cpu.Event(thread, "range " + std::to_string(op), at_ps, 500);
  }
  return space;
}

// All that tells slices apart, as text.
std::string Description(const Trace& trace) {
  std::string out;
  const auto add = [&](auto... values) {
    ((out += std::to_string(values) + ' '), ...);
  };
  for (uint32_t i = 0; i < trace.slices.size(); ++i) {
    const SliceId s(i);
    out += trace.Name(s);
    out += ' ';
    out += trace.Text(trace.TrackOf(s).tid);
    add(trace.Uid(s), trace.Start(s), trace.Duration(s),
        static_cast<int>(trace.KindOf(s)));
    if (const trace::DeviceArgs* args = trace.Device(s)) {
      add(args->correlation, args->external_id, args->stream,
          trace.Config(args->config)->grid[0]);
    }
    if (const trace::Instruction* ran = trace.InstructionOf(s)) {
      add(trace.Op(s)->instruction);
      out += trace.Text(ran->op_name);
    }
    out += '\n';
  }
  return out;
}

TEST(Xplane, ThreadsReadWhatOneThreadReads) {
  const std::string bytes = LargeSpace().SerializeAsString();
  const auto one = ReadBytes(bytes);
  ASSERT_TRUE(one);
  EXPECT_GT(SlicesOf(*one, Kind::kOp).size(), 1000u);
  EXPECT_GT(SlicesOf(*one, Kind::kPython).size(), 1000u);
  const std::string expected = Description(*one);
  for (const int threads : {2, 3, 8}) {
    const auto many = ReadBytes(bytes, threads);
    ASSERT_TRUE(many);
    EXPECT_EQ(many->info.events, one->info.events);
    // Not EXPECT_EQ: nobody reads a difference of megabytes.
    EXPECT_TRUE(Description(*many) == expected) << threads;
  }
}

}  // namespace

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

namespace {

using trace::kNoInt;

TEST(Details, KernelDetailsInAnyOrder) {
  auto config = ParseKernelDetails(
      "regs:168 static_shared:16 dynamic_shared:32 grid:4,2,1 block:256,1,1 "
      "occ_pct:25");
  EXPECT_EQ(config.registers_per_thread, 168);
  EXPECT_EQ(config.shared_memory_bytes, 48);
  EXPECT_EQ(config.occupancy_pct, 25);
  // Addresses where sizes belong, of an old profiler.
  config = ParseKernelDetails(
      "regs:2191500840 static_shared:32462 grid:1,1,1 block:64,1,1 occ_pct:0");
  EXPECT_EQ(config.registers_per_thread, kNoInt);
  EXPECT_EQ(config.shared_memory_bytes, kNoInt);
  EXPECT_EQ(config.occupancy_pct, -1);
}

TEST(Details, ScopesOfOpNames) {
  const auto text = [](std::string_view name) {
    const Scopes scopes = ScopesOf(name);
    std::string out = scopes.backward ? "bwd" : "fwd";
    for (const std::string& scope : scopes.names) out += " " + scope;
    return out;
  };
  EXPECT_EQ(text("jit(step)/mlp/dot_general"), "fwd mlp");
  EXPECT_EQ(text("jit(step)/jit(main)/transpose(jvp(Model))/layers_0/dot"),
            "bwd Model layers_0");
  EXPECT_EQ(text("jit(f)/while/body/jvp(a/b)/add"), "fwd a b");
  EXPECT_EQ(text("jit(f)/bsd,de->bse/dot_general"), "fwd");
  EXPECT_EQ(text("x"), "fwd");
  EXPECT_EQ(text(""), "fwd");
}

}  // namespace

}  // namespace lamina::ingest::xplane
