// SPDX-License-Identifier: Apache-2.0
#include "trace/graft.h"

#include <gtest/gtest.h>
#include <string>

#include "trace/builder.h"

namespace lamina::trace {
namespace {

// One op of each of `count` categories "PREFIX0" ... in order.
Trace WithCategories(const std::string& prefix, int count) {
  LocalNames names;
  Segment segment(&names);
  for (int i = 0; i < count; ++i) {
    segment.AddSlice(
        10 * i, 5, names.Intern("op"), Kind::kOp,
        names.InternCategory(names.Intern(prefix + std::to_string(i))),
        names.InternTrack(names.Intern("1"), names.Intern("1")), 0,
        segment.AddOp({}));
    ++segment.next_uid;
  }
  segment.Seal();
  TraceBuilder builder;
  builder.Append(segment);
  return builder.Finish(1);
}

std::string_view GraftedCategory(Trace& trace, const Trace& capture,
                                 int slice) {
  Grafter grafter(trace);
  grafter.From(capture);
  return trace.Category(grafter.Add(SliceId(static_cast<uint32_t>(slice)),
                                    SliceId(0), SliceId()));
}

TEST(Grafter, AddsCategoriesWhileTheirNumberFits) {
  Trace trace = WithCategories("own", 254);
  const Trace capture = WithCategories("captured", 2);
  EXPECT_EQ(GraftedCategory(trace, capture, 0), "captured0");
  EXPECT_EQ(GraftedCategory(trace, capture, 1), "");
}

// None of them may get the name of another.
TEST(Grafter, LeavesFurtherCategoriesWithoutName) {
  for (const int count : {255, 256, 300}) {
    Trace trace = WithCategories("own", count);
    EXPECT_EQ(trace.Category(SliceId(254)), "own254");
    const Trace capture = WithCategories("captured", 1);
    EXPECT_EQ(GraftedCategory(trace, capture, 0), "");
    const Trace known = WithCategories("own", 1);
    EXPECT_EQ(GraftedCategory(trace, known, 0), "own0");
  }
}

}  // namespace
}  // namespace lamina::trace
