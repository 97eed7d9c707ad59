// SPDX-License-Identifier: Apache-2.0
#include "ingest/rocprof/catalog.h"

#include <gtest/gtest.h>

namespace lamina::ingest::rocprof {
namespace {

RecordArray Markers(uint32_t process) {
  return {Domain::kMarkers, "marker_api", process, 1};
}

TEST(Catalog, AnArraySeesWhatStandsBeforeIt) {
  Catalog catalog;
  catalog.AddMessage(0, 1, "before");
  catalog.AddArray(Markers(0));
  catalog.AddMessage(0, 2, "between");
  catalog.AddArray(Markers(0));
  EXPECT_EQ(catalog.Message(0, 1), "before");
  EXPECT_EQ(catalog.Message(0, 2), "");
  EXPECT_EQ(catalog.Message(1, 1), "before");
  EXPECT_EQ(catalog.Message(1, 2), "between");
  EXPECT_EQ(catalog.Message(2, 1), "");  // no such array
}

TEST(Catalog, OfEqualIdsTheFirstCounts) {
  Catalog catalog;
  catalog.AddMessage(0, 1, "first");
  catalog.AddMessage(0, 1, "second");
  catalog.AddArray(Markers(0));
  EXPECT_EQ(catalog.Message(0, 1), "first");
}

TEST(Catalog, ProcessesAreApart) {
  Catalog catalog;
  catalog.AddAgent(0, 5, {true, 3});
  catalog.AddArray(Markers(0));
  catalog.AddArray(Markers(1));
  ASSERT_TRUE(catalog.FindAgent(0, 5).has_value());
  EXPECT_EQ(catalog.FindAgent(0, 5)->number, 3);
  EXPECT_FALSE(catalog.FindAgent(1, 5).has_value());
}

TEST(Catalog, OperationsByKindAndNumber) {
  Catalog catalog;
  catalog.AddOperations(0, 0, {});
  catalog.AddOperations(0, 1, {"NONE", "hipMalloc"});
  catalog.AddArray(Markers(0));
  EXPECT_EQ(catalog.Operation(0, 1, 1), "hipMalloc");
  for (const int64_t none : {int64_t{-1}, int64_t{2}, INT64_MIN, INT64_MAX})
    EXPECT_EQ(catalog.Operation(0, 1, none), "") << none;
  EXPECT_EQ(catalog.Operation(0, 0, 0), "");
  EXPECT_EQ(catalog.Operation(0, 2, 0), "");
}

// Every array between two messages, as a hostile file has them: no array may
// hold a copy of the messages before it. With copies this is 20 GB.
TEST(Catalog, ManyArraysShareTheMessages) {
  Catalog catalog;
  constexpr int kArrays = 20000;
  for (int i = 0; i < kArrays; ++i) {
    catalog.AddMessage(0, i, "message " + std::to_string(i));
    catalog.AddArray(Markers(0));
  }
  for (int i = 0; i < kArrays; ++i) {
    const auto array = static_cast<uint32_t>(i);
    ASSERT_EQ(catalog.Message(array, i), "message " + std::to_string(i));
    ASSERT_EQ(catalog.Message(array, i + 1), "");
  }
}

}  // namespace
}  // namespace lamina::ingest::rocprof
