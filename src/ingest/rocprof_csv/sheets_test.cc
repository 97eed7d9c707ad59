// SPDX-License-Identifier: Apache-2.0

#include "ingest/rocprof_csv/sheets.h"

#include <gtest/gtest.h>

#include "trace/trace.h"

namespace lamina::ingest::rocprof_csv {

namespace {

TEST(RocprofCsv, FilesAreToldByTheirHeader) {
  EXPECT_EQ(KindOf({"Kernel_Name", "Start_Timestamp", "End_Timestamp"}),
            TableKind::kKernels);
  EXPECT_EQ(KindOf({"Function", "End_Timestamp", "Start_Timestamp"}),
            TableKind::kCalls);
  EXPECT_EQ(KindOf({"Direction", "Start_Timestamp", "End_Timestamp"}),
            TableKind::kCopies);
  EXPECT_EQ(KindOf({"Node_Id", "Agent_Type"}), TableKind::kAgents);
  EXPECT_EQ(KindOf({"KernelName", "BeginNs", "EndNs"}), TableKind::kOldKernels);
  // Totals.
  EXPECT_EQ(KindOf({"Name", "Calls", "TotalDurationNs"}), TableKind::kNone);
  EXPECT_EQ(KindOf({"Kernel_Name", "Start_Timestamp"}), TableKind::kNone);
  EXPECT_EQ(KindOf({}), TableKind::kNone);
}

TEST(RocprofCsv, NumbersInNames) {
  EXPECT_EQ(PidOfName("run/host/4242_kernel_trace.csv"), 4242);
  EXPECT_EQ(PidOfName("kernel_trace.csv"), 0);
  EXPECT_EQ(PidOfName("12.csv"), 0);
  EXPECT_EQ(PidOfName("99999999999999999999_a.csv"), 0);
  EXPECT_EQ(AgentNumber("Agent 2"), 2);
  EXPECT_EQ(AgentNumber("7"), 7);
  EXPECT_EQ(AgentNumber("-1"), trace::kNoInt);
  EXPECT_EQ(AgentNumber(""), trace::kNoInt);
}

}  // namespace

}  // namespace lamina::ingest::rocprof_csv
