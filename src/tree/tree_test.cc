// SPDX-License-Identifier: Apache-2.0
//
// The call tree, its links, modules and steps, against a slow twin.
#include "tree/tree.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

#include "trace/builder.h"
#include "trace/module_frames.h"
#include "tree/modules.h"
#include "tree/steps.h"

namespace lamina::tree {
namespace {

using trace::Kind;

// Builds traces event by event; times in nanoseconds.
class Maker {
 public:
  Maker() : segment_(&names_) {}

  // Processes of what is added.
  std::string process = "9", device = "0";

  SliceId Add(Kind kind, std::string_view name, int64_t start, int64_t dur,
              std::string_view tid = "1", uint32_t detail = trace::kNoRow) {
    const auto track = names_.InternTrack(
        names_.Intern(IsDevice(kind) ? device : process), names_.Intern(tid));
    segment_.AddSlice(start, dur, names_.Intern(name), kind,
                      names_.InternCategory(names_.Intern("c")), track,
                      segment_.next_uid, detail);
    return SliceId(segment_.next_uid++);
  }
  SliceId Op(std::string_view name, int64_t start, int64_t dur,
             std::string_view tid = "1", int64_t sequence = trace::kNoInt,
             int64_t fwd_thread = trace::kNoInt,
             int64_t external_id = trace::kNoInt) {
    trace::OpArgs args;
    args.sequence = sequence;
    args.fwd_thread = fwd_thread;
    args.external_id = external_id;
    return Add(Kind::kOp, name, start, dur, tid, segment_.AddOp(args));
  }
  SliceId Call(std::string_view name, int64_t start, int64_t dur,
               int64_t correlation, std::string_view tid = "1") {
    trace::ApiArgs args;
    args.correlation = correlation;
    return Add(Kind::kRuntime, name, start, dur, tid, segment_.AddApi(args));
  }
  SliceId Kernel(std::string_view name, int64_t start, int64_t dur,
                 int64_t correlation, int64_t stream = 7,
                 int64_t external_id = trace::kNoInt) {
    trace::DeviceArgs args;
    args.correlation = correlation;
    args.stream = stream;
    args.device = 0;
    args.external_id = external_id;
    return Add(Kind::kKernel, name, start, dur, std::to_string(stream),
               segment_.AddDevice(args));
  }
  void Flow(trace::FlowPhase phase, int64_t id, std::string_view pid,
            std::string_view tid, int64_t time) {
    segment_.flows.time_ns.push_back(time);
    segment_.flows.id.push_back(id);
    segment_.flows.track.push_back(
        names_.InternTrack(names_.Intern(pid), names_.Intern(tid)));
    segment_.flows.phase.push_back(phase);
    segment_.flows.kind.push_back(trace::FlowKind::kLaunch);
    segment_.flows.uid.push_back(segment_.next_uid++);
  }

  Trace Finish() {
    segment_.Seal();
    trace::TraceBuilder builder;
    builder.Append(segment_);
    return builder.Finish(1);
  }

 private:
  trace::LocalNames names_;
  trace::Segment segment_;
};

// The obviously right twin of nesting: the rule as it is written down, with a
// list of open events.
std::map<uint32_t, int64_t> SlowParents(const Trace& trace, bool drop,
                                        size_t& dropped, size_t& hanging) {
  std::map<uint32_t, int64_t> parents;
  dropped = hanging = 0;
  for (uint32_t track = 0; track < trace.tracks.size(); ++track) {
    std::vector<uint32_t> events;
    for (uint32_t i = 0; i < trace.slices.size(); ++i) {
      if (trace.slices.track[i].value == track &&
          IsHostTree(trace.slices.kind[i]) &&
          trace.slices.kind[i] != Kind::kPython)
        events.push_back(i);
    }
    std::stable_sort(events.begin(), events.end(), [&](auto a, auto b) {
      return trace.slices.start_ns[a] < trace.slices.start_ns[b];
    });
    std::vector<uint32_t> open;
    const auto end = [&](uint32_t i) {
      return trace.slices.start_ns[i] + trace.slices.dur_ns[i];
    };
    for (const uint32_t e : events) {
      while (!open.empty() && trace.slices.start_ns[e] >= end(open.back()))
        open.pop_back();
      while (!drop && !open.empty() && end(e) > end(open.back())) {
        const int64_t overlap = end(open.back()) - trace.slices.start_ns[e];
        if (overlap >= 1000) {
          ++hanging;
          if (2 * overlap >= trace.slices.dur_ns[e]) break;
        }
        open.pop_back();
      }
      if (drop && !open.empty() && end(e) > end(open.back())) {
        if (end(open.back()) - trace.slices.start_ns[e] < 1000 &&
            open.size() >= 2) {
          open.pop_back();
        } else {
          ++dropped;
          if (IsApiCall(trace.slices.kind[e])) parents[e] = -1;
          continue;
        }
      }
      parents[e] = open.empty() ? -1 : int64_t{open.back()};
      open.push_back(e);
    }
  }
  return parents;
}

TEST(Tree, NestsLikeTheSlowTwin) {
  std::mt19937 random(9);
  for (int round = 0; round < 400; ++round) {
    Maker maker;
    const size_t count = 1 + random() % 40;
    for (size_t i = 0; i < count; ++i) {
      const auto start = static_cast<int64_t>(random() % 6000);
      const auto dur = static_cast<int64_t>(random() % 2500);
      const std::string tid = std::to_string(random() % 2);
      if (random() % 3 == 0) {
        maker.Call("call", start, dur, static_cast<int64_t>(i), tid);
      } else {
        maker.Op("op", start, dur, tid);
      }
    }
    const Trace trace = maker.Finish();
    Options options;
    options.link = round % 2 == 0 ? LinkMode::kAuto : LinkMode::kFlow;
    const Tree tree = Tree::Build(trace, options);
    size_t dropped = 0, hanging = 0;
    const auto parents =
        SlowParents(trace, options.link == LinkMode::kFlow, dropped, hanging);
    ASSERT_EQ(tree.size(), parents.size());
    ASSERT_EQ(tree.dropped_by_overlap(), dropped);
    ASSERT_EQ(tree.hanging(), hanging);
    for (const auto& [slice, parent] : parents) {
      const NodeId node = tree.node(SliceId(slice));
      ASSERT_TRUE(node.valid());
      const NodeId found = tree.parent(node);
      ASSERT_EQ(
          found.valid() ? static_cast<int64_t>(tree.slice(found).value) : -1,
          parent);
    }
    // Preorder: a subtree is a range, parents stand before children.
    for (uint32_t n = 0; n < tree.size(); ++n) {
      const NodeId node(n);
      for (uint32_t k = n + 1; k < tree.end(node).value; ++k)
        ASSERT_GE(tree.parent(NodeId(k)).value, n);
      size_t children = 0;
      for (NodeId c = tree.first_child(node); c.valid();
           c = tree.next_sibling(c)) {
        ASSERT_EQ(tree.parent(c), node);
        ++children;
      }
      size_t expected = 0;
      for (const auto& [slice, parent] : parents)
        expected += parent == static_cast<int64_t>(tree.slice(node).value);
      ASSERT_EQ(children, expected);
    }
  }
}

TEST(Tree, LinksByCorrelationAndSumsSubtrees) {
  Maker maker;
  const SliceId outer = maker.Op("outer", 0, 100);
  const SliceId inner = maker.Op("inner", 10, 50);
  const SliceId call = maker.Call("cudaLaunchKernel", 20, 10, 1);
  const SliceId graph = maker.Call("cudaGraphLaunch", 70, 10, 2);
  const SliceId k1 = maker.Kernel("k1", 200, 30, 1);
  const SliceId g1 = maker.Kernel("g1", 240, 5, 2);
  const SliceId g2 = maker.Kernel("g2", 245, 7, 2, 8);
  const SliceId early = maker.Kernel("early", 100, 11, 99);
  const SliceId keyless = maker.Kernel("keyless", 300, 1, trace::kNoInt);
  const Trace trace = maker.Finish();
  const Tree tree = Tree::Build(trace, {});
  EXPECT_EQ(tree.launch(k1), tree.node(call));
  EXPECT_EQ(tree.launch(g1), tree.node(graph));
  EXPECT_EQ(tree.launch(g2), tree.node(graph));
  EXPECT_EQ(tree.unlinked(early), Unlinked::kLaunchNotInFile);
  EXPECT_EQ(tree.unlinked(keyless), Unlinked::kNoKey);
  EXPECT_EQ(tree.DeviceTime(tree.node(outer)), 42);
  EXPECT_EQ(tree.DeviceTime(tree.node(inner)), 30);
  EXPECT_EQ(tree.OwnDeviceWork(tree.node(graph)).size(), 2u);
  EXPECT_EQ(tree.EnclosingOp(tree.node(call)), tree.node(inner));
}

// Recorders give one id to several launches now and then.
TEST(Tree, SharedIdsAreJoinedInOrder) {
  Maker maker;
  std::vector<SliceId> calls, kernels;
  for (int64_t i = 0; i < 3; ++i) {
    calls.push_back(maker.Call("cudaLaunchKernel", 100 * i, 10, 5));
    kernels.push_back(maker.Kernel("k", 1000 + 100 * i, 50, 5));
  }
  const Trace trace = maker.Finish();
  const Tree tree = Tree::Build(trace, {});
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(tree.launch(kernels[i]), tree.node(calls[i]));
  EXPECT_EQ(tree.ambiguous(), 3u);
}

TEST(Tree, KernelsOfOneIdAreSpreadOverTheLaunchesThatLackThem) {
  Maker maker;
  std::vector<SliceId> calls, kernels;
  for (int64_t i = 0; i < 3; ++i) {
    calls.push_back(maker.Call("cudaLaunchKernel", 100 * i, 10, 5 + i));
    kernels.push_back(maker.Kernel("k", 1000 + 100 * i, 50, 5));
  }
  maker.Call("cudaLaunchKernel", 400, 10, 8);
  maker.Kernel("k", 1400, 50, 8);
  const Trace trace = maker.Finish();
  const Tree tree = Tree::Build(trace, {});
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(tree.launch(kernels[i]), tree.node(calls[i]));
}

TEST(Tree, SharedIdsOfOtherCountsAreNobodys) {
  Maker maker;
  maker.Call("cudaLaunchKernel", 0, 10, 5);
  maker.Call("cudaLaunchKernel", 100, 10, 5);
  const SliceId first = maker.Kernel("k", 1000, 50, 5);
  maker.Kernel("k", 1100, 50, 5);
  maker.Kernel("k", 1200, 50, 5);
  // On several streams the order of work is not that of its launches.
  maker.Call("cudaLaunchKernel", 2000, 10, 6);
  maker.Call("cudaLaunchKernel", 2100, 10, 6);
  const SliceId apart = maker.Kernel("k", 3000, 50, 6, 7);
  maker.Kernel("k", 3100, 50, 6, 8);
  // A graph launch owns many.
  const SliceId graph = maker.Call("cudaGraphLaunch", 4000, 10, 7);
  const SliceId node = maker.Kernel("k", 5000, 50, 7);
  maker.Kernel("k", 5100, 50, 7);
  const Trace trace = maker.Finish();
  const Tree tree = Tree::Build(trace, {});
  EXPECT_EQ(tree.unlinked(first), Unlinked::kAmbiguous);
  EXPECT_EQ(tree.unlinked(apart), Unlinked::kAmbiguous);
  EXPECT_EQ(tree.launch(node), tree.node(graph));
}

TEST(Tree, FallsBackToTheExternalId) {
  Maker maker;
  const SliceId op =
      maker.Op("aten::mm", 0, 10, "1", trace::kNoInt, trace::kNoInt, 42);
  const SliceId kernel = maker.Kernel("k", 20, 5, trace::kNoInt, 7, 42);
  const Trace trace = maker.Finish();
  const Tree tree = Tree::Build(trace, {});
  EXPECT_EQ(tree.launch(kernel), tree.node(op));
}

TEST(Tree, FlowsLinkWorkWithoutAnyId) {
  Maker maker;
  const SliceId op =
      maker.Op("aten::mm", 0, 30, "1", trace::kNoInt, trace::kNoInt, 42);
  const SliceId first =
      maker.Call("cudaLaunchKernel", 1, 5, trace::kNoInt, "1");
  const SliceId second =
      maker.Call("cudaLaunchKernel", 10, 5, trace::kNoInt, "1");
  const SliceId a = maker.Kernel("a", 100, 5, trace::kNoInt, 7, 42);
  const SliceId b = maker.Kernel("b", 110, 5, trace::kNoInt, 7);
  const SliceId c = maker.Kernel("c", 120, 5, trace::kNoInt, 7, 42);
  maker.Flow(trace::FlowPhase::kStart, 1, "9", "1", 1);
  maker.Flow(trace::FlowPhase::kFinish, 1, "0", "7", 100);
  maker.Flow(trace::FlowPhase::kFinish, 2, "0", "7", 110);
  maker.Flow(trace::FlowPhase::kStart, 2, "9", "1", 10);
  const Trace trace = maker.Finish();
  const Tree tree = Tree::Build(trace, {});
  EXPECT_EQ(tree.launch(a), tree.node(first));
  EXPECT_EQ(tree.launch(b), tree.node(second));
  // Without a flow the op is known at least.
  EXPECT_EQ(tree.launch(c), tree.node(op));
}

TEST(Tree, ProcessesThatShareKeysLaunchOnDevicesOfTheirOwn) {
  for (const bool late : {false, true}) {
    Maker maker;
    SliceId calls[2][2], kernels[2][2];
    for (const int rank : {0, 1}) {
      maker.process = rank == 0 ? "900" : "1000";
      maker.device = rank == 0 ? "0" : "1";
      for (const int i : {0, 1}) {
        const int64_t start = 1000 * rank + 100 * i;
        calls[rank][i] = maker.Call("cudaLaunchKernel", start, 5, i + 1);
        kernels[rank][i] =
            maker.Kernel("k", (late ? 900 : start) + 10 + 20 * i, 5, i + 1);
      }
    }
    const Trace trace = maker.Finish();
    const Tree tree = Tree::Build(trace, {});
    for (const int rank : {0, 1}) {
      for (const int i : {0, 1}) {
        // Work before its call shows that the processes are others: then the
        // first call of a key has all of its work.
        EXPECT_EQ(tree.launch(kernels[rank][i]),
                  tree.node(calls[late ? 0 : rank][i]));
      }
    }
  }
}

TEST(Tree, FlowModeNeedsBothEndsOfTheFlow) {
  Maker maker;
  maker.Call("cudaLaunchKernel", 0, 5, 1);
  maker.Call("cudaLaunchKernel", 10, 5, 2);
  const SliceId graph = maker.Call("cudaGraphLaunch", 20, 5, 3);
  const SliceId a = maker.Kernel("a", 100, 5, 1);
  const SliceId b = maker.Kernel("b", 110, 5, 2);
  const SliceId g = maker.Kernel("g", 120, 5, 3);
  maker.Flow(trace::FlowPhase::kStart, 1, "9", "1", 0);
  maker.Flow(trace::FlowPhase::kFinish, 1, "0", "7", 100);
  maker.Flow(trace::FlowPhase::kFinish, 2, "0", "7", 110);
  const Trace trace = maker.Finish();
  Options options;
  options.link = LinkMode::kFlow;
  const Tree tree = Tree::Build(trace, options);
  EXPECT_TRUE(tree.launch(a).valid());
  EXPECT_EQ(tree.unlinked(b), Unlinked::kNoFlow);
  EXPECT_EQ(tree.launch(g), tree.node(graph));
}

TEST(Tree, AutogradByForwardThread) {
  // Two forward threads use the same sequence numbers; each backward op names
  // its thread by a number of the profiler's own.
  Maker maker;
  std::vector<SliceId> forward_a, forward_b, backward_a, backward_b;
  for (int64_t i = 0; i < 3; ++i) {
    forward_a.push_back(maker.Op("f", i * 10, 5, "1", i, 0));
    if (i > 0) forward_b.push_back(maker.Op("f", i * 10 + 1, 5, "2", i, 0));
  }
  for (int64_t i = 2; i >= 0; --i) {
    backward_a.push_back(maker.Op("autograd::engine::evaluate_function: F",
                                  100 + (2 - i) * 10, 5, "3", i, 1));
    maker.Op("F", 101 + (2 - i) * 10, 2, "3", i, 1);
  }
  const Trace trace = maker.Finish();
  const Tree tree = Tree::Build(trace, {});
  // Thread id 1 shares three numbers with thread 1 and two with thread 2.
  EXPECT_EQ(tree.forward(tree.node(backward_a[0])), tree.node(forward_a[2]));
  EXPECT_EQ(tree.forward(tree.node(backward_a[2])), tree.node(forward_a[0]));
  EXPECT_EQ(tree.backward(tree.node(forward_a[1])), tree.node(backward_a[1]));
  EXPECT_FALSE(tree.backward(tree.node(forward_b[0])).valid());
}

TEST(Modules, EnclosingCallsAndBackwardWork) {
  Maker maker;
  maker.Add(Kind::kPython, "nn.Module: Net_0", 0, 100);
  maker.Add(Kind::kPython, "net.py(3): forward", 5, 90);
  maker.Add(Kind::kPython, "nn.Module: Linear_3", 10, 40);
  const SliceId op = maker.Op("aten::linear", 20, 10, "1", 8, 0);
  const SliceId call = maker.Call("cudaLaunchKernel", 22, 2, 1);
  const SliceId outside = maker.Op("aten::sum", 60, 5);
  maker.Op("autograd::engine::evaluate_function: LinearBackward", 300, 20, "2",
           8, 1);
  const SliceId back = maker.Call("cudaLaunchKernel", 305, 2, 2, "2");
  const Trace trace = maker.Finish();
  const Tree tree = Tree::Build(trace, {});
  const Modules modules = Modules::Build(tree);
  ASSERT_EQ(modules.calls().size(), 2u);
  const auto path = [&](SliceId s) {
    const auto owner = modules.OwnerOf(tree.node(s));
    return owner.path.valid()
               ? modules.PathText(owner.path) + (owner.backward ? " bwd" : "")
               : std::string();
  };
  EXPECT_EQ(path(op), "Net_0/Linear_3");
  EXPECT_EQ(path(call), "Net_0/Linear_3");
  EXPECT_EQ(path(outside), "Net_0");
  EXPECT_EQ(path(back), "Net_0/Linear_3 bwd");
  EXPECT_EQ(Modules::ClassName("nn.Module: Linear_3"), "Linear");
  EXPECT_EQ(Modules::ClassName("nn.Module: Conv2d_12"), "Conv2d");
}

// Ranges as module frames: around what begins with them, and the forward op of
// backward work tells more than a range around the backward pass.
TEST(Modules, FramesOfRanges) {
  Maker maker;
  const SliceId op = maker.Op("aten::linear", 10, 20, "1", 8, 0);
  maker.Add(Kind::kAnnotation, "layers.3", 10, 40);
  maker.Add(Kind::kAnnotation, "layers.3.mlp", 10, 30);
  const SliceId call = maker.Call("cudaLaunchKernel", 12, 2, 1);
  maker.Add(Kind::kAnnotation, "backward of layers.3", 300, 90, "2");
  const SliceId back =
      maker.Op("autograd::engine::evaluate_function: LinearBackward", 310, 20,
               "2", 8, 1);
  const SliceId alone = maker.Op("aten::add_", 340, 20, "2");
  Trace trace = maker.Finish();
  trace::ModuleMarkers markers;
  const auto mark = [&](std::string_view text, bool backward,
                        std::initializer_list<std::string_view> path) {
    trace::ModuleMarker& marker = markers[trace.strings.Find(text)];
    marker.backward = backward;
    for (const std::string_view part : path) {
      marker.path.push_back(
          trace.strings.Intern("nn.Module: " + std::string(part)));
    }
  };
  mark("layers.3", false, {"layers_3"});
  mark("layers.3.mlp", false, {"layers_3", "mlp"});
  mark("backward of layers.3", true, {"layers_3"});
  trace::AddModuleFrames(trace, markers);
  Options options;
  options.python_stacks = true;
  const Tree tree = Tree::Build(trace, options);
  EXPECT_EQ(tree.dropped_by_overlap(), 0u);
  EXPECT_EQ(tree.name(tree.parent(tree.node(op))), "nn.Module: mlp");
  EXPECT_EQ(tree.parent(tree.node(call)), tree.node(op));
  const Modules modules = Modules::Build(tree);
  const auto path = [&](SliceId s) {
    const auto owner = modules.OwnerOf(tree.node(s));
    return modules.PathText(owner.path) + (owner.backward ? " bwd" : "");
  };
  EXPECT_EQ(path(call), "layers_3/mlp");
  EXPECT_EQ(path(back), "layers_3/mlp bwd");
  EXPECT_EQ(path(alone), "layers_3 bwd");
  ASSERT_EQ(modules.paths().size(), 2u);
  EXPECT_EQ(modules.paths()[0].calls, 1u);
  // Other tools do not know such frames.
  options.link = LinkMode::kFlow;
  EXPECT_EQ(Tree::Build(trace, options).size(), 4u);
}

TEST(Steps, WorkBelongsToTheStepThatLaunchedIt) {
  Maker maker;
  maker.Add(Kind::kAnnotation, "ProfilerStep#5", 0, 50);
  maker.Add(Kind::kAnnotation, "ProfilerStep#6", 50, 50);
  maker.Add(Kind::kGpuAnnotation, "ProfilerStep#6", 200, 50, "7");
  maker.Call("cudaLaunchKernel", 40, 5, 1);
  const SliceId late = maker.Kernel("late", 90, 10, 1);
  const SliceId unlinked = maker.Kernel("unlinked", 210, 10, 77);
  const SliceId nowhere = maker.Kernel("nowhere", 400, 10, 78);
  const Trace trace = maker.Finish();
  const Tree tree = Tree::Build(trace, {});
  const Steps steps = Steps::Build(tree);
  ASSERT_EQ(steps.steps().size(), 2u);
  EXPECT_EQ(steps.steps()[0].number, 5);
  EXPECT_EQ(steps.StepOf(late), 0u);
  EXPECT_EQ(steps.StepOf(unlinked), 1u);
  EXPECT_EQ(steps.StepOf(nowhere), Steps::kOutside);
}

TEST(Steps, StepsThatRoundingLetsOverlapAreSteps) {
  Maker maker;
  maker.Add(Kind::kAnnotation, "ProfilerStep#1", 0, 50'001);
  maker.Add(Kind::kAnnotation, "ProfilerStep#2", 50'000, 51'000);
  maker.Add(Kind::kAnnotation, "ProfilerStep#3", 100'000, 50'000);
  // Marks of a step that is there: of another thread, and nested.
  maker.Add(Kind::kAnnotation, "ProfilerStep#3", 100'010, 50'000, "2");
  maker.Add(Kind::kAnnotation, "ProfilerStep#3", 149'500, 400, "2");
  const Trace trace = maker.Finish();
  const Tree tree = Tree::Build(trace, {});
  const Steps steps = Steps::Build(tree);
  ASSERT_EQ(steps.steps().size(), 3u);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(steps.steps()[i].number, static_cast<int64_t>(i + 1));
  // They do not overlap, so no time is counted twice.
  EXPECT_EQ(steps.steps()[0].host.end_ns, 50'000);
  EXPECT_EQ(steps.steps()[1].host.end_ns, 100'000);
  EXPECT_EQ(steps.steps()[2].host.end_ns, 150'000);
}

TEST(Steps, NoStepIsDropped) {
  Maker maker;
  // Each begins 30 us before the one before it ends.
  std::vector<SliceId> kernels;
  for (int64_t i = 0; i < 4; ++i) {
    maker.Add(Kind::kAnnotation, "ProfilerStep#" + std::to_string(i),
              1'000'000 * i, 1'030'000);
    maker.Call("cudaLaunchKernel", 1'000'000 * i + 10'000, 10, i + 1);
    kernels.push_back(maker.Kernel("k", 1'000'000 * i + 50'000, 100, i + 1));
  }
  const Trace trace = maker.Finish();
  const Tree tree = Tree::Build(trace, {});
  const Steps steps = Steps::Build(tree);
  ASSERT_EQ(steps.steps().size(), 4u);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(steps.StepOf(kernels[i]), i);
}

TEST(Steps, RequestsAreFoundBesideOtherMarks) {
  Maker maker;
  const SliceId early = maker.Op("early", 0, 5);
  maker.Add(Kind::kAnnotation, "ProfilerStep#1", 6, 300);
  // It cuts through the frame that it begins in.
  maker.Add(Kind::kPython, "frame", 8, 20);
  maker.Add(Kind::kAnnotation, "step[EXTEND bs=1 toks=4]", 9, 80);
  maker.Add(Kind::kAnnotation, "execute_4_context_1(sq4)_generation_0", 10, 90);
  const SliceId inside = maker.Op("inside", 50, 10);
  const SliceId late = maker.Op("late", 100, 10);
  const Trace trace = maker.Finish();
  const Tree tree = Tree::Build(trace, {});
  const Steps steps = Steps::Build(tree);
  ASSERT_EQ(steps.steps().size(), 1u);
  EXPECT_FALSE(steps.RequestsAt(tree.node(early)).valid());
  ASSERT_TRUE(steps.RequestsAt(tree.node(inside)).valid());
  EXPECT_EQ(trace.strings[steps.RequestsAt(tree.node(inside))],
            "execute_4_context_1(sq4)_generation_0");
  EXPECT_FALSE(steps.RequestsAt(tree.node(late)).valid());
}

TEST(Steps, EngineRanges) {
  EXPECT_TRUE(IsEngineStep("execute_context_0(0)_generation_32(32)"));
  EXPECT_TRUE(IsEngineStep("execute_32_context_0(sq0sk0)_generation_1(sq1)"));
  EXPECT_TRUE(IsEngineStep("step[EXTEND bs=4 toks=4096]"));
  EXPECT_FALSE(IsEngineStep("execute_model"));
  EXPECT_FALSE(IsEngineStep("execute_12_other"));
}

}  // namespace
}  // namespace lamina::tree
