// SPDX-License-Identifier: Apache-2.0
#include "ingest/rocprof/catalog.h"

#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <utility>

namespace lamina::ingest::rocprof {
namespace {

RecordArray Markers(uint32_t process) {
  return {Domain::kMarkers, "marker_api", process, 1};
}

void AddMessage(Catalog& catalog, uint32_t process, int64_t id,
                std::string_view text, uint64_t offset) {
  Definitions definitions;
  definitions.AddMessage(id, text);
  catalog.Define(process, offset, std::move(definitions));
}

std::string Text(Catalog& catalog, uint32_t array, int64_t id) {
  Catalog::Messages messages(catalog, array);
  const Message* message = messages.Find(id);
  return message != nullptr
             ? PutNumbers(messages.Pattern(message->pattern), message->numbers)
             : "";
}

TEST(Catalog, AnArraySeesWhatStandsBeforeIt) {
  Catalog catalog;
  AddMessage(catalog, 0, 1, "before", 10);
  catalog.AddArray(Markers(0));
  AddMessage(catalog, 0, 2, "between", 20);
  catalog.AddArray(Markers(0));
  EXPECT_EQ(Text(catalog, 0, 1), "before");
  EXPECT_EQ(Text(catalog, 0, 2), "");
  EXPECT_EQ(Text(catalog, 1, 1), "before");
  EXPECT_EQ(Text(catalog, 1, 2), "between");
  EXPECT_EQ(Text(catalog, 2, 1), "");  // no such array
}

TEST(Catalog, OfEqualIdsTheFirstCounts) {
  Catalog catalog;
  AddMessage(catalog, 0, 1, "first", 10);
  AddMessage(catalog, 0, 1, "second", 20);
  catalog.AddArray(Markers(0));
  EXPECT_EQ(Text(catalog, 0, 1), "first");
}

// Threads finish the chunks of a list in any order: the place in the input
// counts.
TEST(Catalog, ChunksOfDefinitionsInAnyOrder) {
  for (const bool swapped : {false, true}) {
    Catalog catalog;
    catalog.AddArray({Domain::kSymbols, "kernel_symbols", 0, 1});
    catalog.AddArray({Domain::kKernels, "kernel_dispatch", 0, 1});
    Definitions first;
    first.AddSymbol(1, 100, {"first", 8});
    Definitions second;
    second.AddSymbol(1, 200, {"second", 16});
    second.AddSymbol(2, 210, {"other", 16});
    catalog.Claim();
    catalog.Claim();
    const auto finish = [&](uint64_t offset, Definitions& definitions) {
      catalog.Finish(0, offset, std::move(definitions));
    };
    if (swapped) finish(200, second);
    finish(100, first);
    if (!swapped) finish(200, second);
    catalog.AwaitDefinitions();
    ASSERT_TRUE(catalog.FindSymbol(1, 1).has_value());
    EXPECT_EQ(catalog.FindSymbol(1, 1)->name, "first");
    EXPECT_EQ(catalog.FindSymbol(1, 1)->registers, 8);
    EXPECT_EQ(catalog.FindSymbol(1, 2)->name, "other");
    // The list itself is no record that may ask.
    EXPECT_FALSE(catalog.FindSymbol(0, 1).has_value());
  }
}

// Records wait for the definitions that other threads still parse.
TEST(Catalog, RecordsWaitForDefinitions) {
  Catalog catalog;
  catalog.AddArray({Domain::kMessages, "marker_api", 0, 1});
  catalog.AddArray(Markers(0));
  catalog.Claim();
  std::string found;
  std::thread records([&] {
    catalog.AwaitDefinitions();
    found = Text(catalog, 1, 5);
  });
  Definitions definitions;
  definitions.AddMessage(5, "text");
  catalog.Finish(0, 10, std::move(definitions));
  records.join();
  EXPECT_EQ(found, "text");
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
// hold a copy of the messages before it, or sort them. With copies this is
// 20 GB.
TEST(Catalog, ManyArraysShareTheMessages) {
  for (const int step : {1, -1}) {
    Catalog catalog;
    constexpr int kArrays = 20000;
    for (int i = 0; i < kArrays; ++i) {
      AddMessage(catalog, 0, i * step, "message " + std::to_string(i),
                 static_cast<uint64_t>(i));
      catalog.AddArray(Markers(0));
    }
    for (int i = 0; i < kArrays; ++i) {
      const auto array = static_cast<uint32_t>(i);
      ASSERT_EQ(Text(catalog, array, i * step), "message " + std::to_string(i));
      ASSERT_EQ(Text(catalog, array, (i + 1) * step), "");
    }
  }
}

}  // namespace
}  // namespace lamina::ingest::rocprof
