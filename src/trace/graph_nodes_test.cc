// SPDX-License-Identifier: Apache-2.0
#include "trace/graph_nodes.h"

#include <gtest/gtest.h>

#include "trace/builder.h"

namespace lamina::trace {
namespace {

// Kernels of two processes with equal node ids, chains of all lengths.
class GraphNodesTest : public testing::Test {
 protected:
  TrackId Track(const char* pid) {
    return names_.InternTrack(names_.Intern(pid), names_.Intern("1"));
  }
  void Node(const char* pid, int64_t id, int64_t original, int64_t start_ns) {
    segment_.graph_nodes.push_back({id, original, start_ns, Track(pid)});
  }
  void Kernel(const char* pid, int64_t node) {
    DeviceArgs args;
    args.graph_node_id = node;
    segment_.AddSlice(static_cast<int64_t>(segment_.slices.size()), 1,
                      names_.Intern("k"), Kind::kKernel, 0, Track(pid), 0,
                      segment_.AddDevice(args));
    ++segment_.next_uid;
  }
  Trace Finish() {
    segment_.Seal();
    builder_.Append(segment_);
    return builder_.Finish(1);
  }

  TraceBuilder builder_;
  LocalNames names_;
  Segment segment_{&names_};
};

TEST_F(GraphNodesTest, FollowsCopiesWithinTheProcess) {
  Node("a", 1, kNoInt, 100);
  Node("a", 2, 1, 200);
  Node("a", 3, 2, 300);
  Node("b", 1, kNoInt, 400);
  Node("b", 3, 9, 500);  // its original is not in the trace
  for (const int64_t id : {1, 2, 3}) Kernel("a", id);
  Kernel("b", 1);
  Kernel("b", 3);
  Kernel("b", 2);
  Kernel("a", kNoInt);
  const Trace trace = Finish();
  const GraphNodes nodes(trace);
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_NE(nodes.Root(SliceId(i)), nullptr) << i;
    EXPECT_EQ(nodes.Root(SliceId(i))->start_ns, 100) << i;
  }
  ASSERT_NE(nodes.Root(SliceId(3)), nullptr);
  EXPECT_EQ(nodes.Root(SliceId(3))->start_ns, 400);
  for (uint32_t i = 4; i < 7; ++i)
    EXPECT_EQ(nodes.Root(SliceId(i)), nullptr) << i;
}

TEST_F(GraphNodesTest, EndsOnCirclesAndLongChains) {
  Node("a", 1, 2, 100);
  Node("a", 2, 1, 200);
  constexpr int64_t kFirst = 1000;
  for (int64_t i = 0; i <= GraphNodes::kMaxHops + 1; ++i)
    Node("a", kFirst + i, i == 0 ? kNoInt : kFirst + i - 1, i);
  Kernel("a", 1);
  Kernel("a", kFirst + GraphNodes::kMaxHops);
  Kernel("a", kFirst + GraphNodes::kMaxHops + 1);
  const Trace trace = Finish();
  const GraphNodes nodes(trace);
  EXPECT_EQ(nodes.Root(SliceId(0)), nullptr);
  ASSERT_NE(nodes.Root(SliceId(1)), nullptr);
  EXPECT_EQ(nodes.Root(SliceId(1))->id, kFirst);
  EXPECT_EQ(nodes.Root(SliceId(2)), nullptr);
}

}  // namespace
}  // namespace lamina::trace
