// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/id_table.h"

#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <random>

namespace lamina::ingest {
namespace {

TEST(IdTable, FindsLikeAMapWhateverTheOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    IdTable<int> table;
    IdTable<int> parts[3];
    std::map<int64_t, int> slow;
    const int rows = static_cast<int>(random() % 20);
    const bool dense = random() % 2 == 0;
    for (int i = 0; i < rows; ++i) {
      const int64_t id =
          dense ? i - 3 : static_cast<int64_t>(random() % 25) - 12;
      parts[i * 3 / rows].Add(id, i);
      slow.try_emplace(id, i);  // the first of equal ids
    }
    for (IdTable<int>& part : parts) table.Append(std::move(part));
    table.Finish();
    for (int64_t id = -15; id < 30; ++id) {
      const int* found = table.Find(id);
      const auto it = slow.find(id);
      ASSERT_EQ(found != nullptr, it != slow.end()) << id;
      if (found != nullptr) {
        EXPECT_EQ(*found, it->second) << id;
        EXPECT_EQ(table.at(table.Place(id)), it->second) << id;
      }
    }
  }
}

TEST(IdTable, ExtremeIds) {
  IdTable<int> table;
  table.Add(std::numeric_limits<int64_t>::min(), 1);
  table.Add(std::numeric_limits<int64_t>::max(), 2);
  table.Finish();
  ASSERT_NE(table.Find(std::numeric_limits<int64_t>::max()), nullptr);
  EXPECT_EQ(*table.Find(std::numeric_limits<int64_t>::max()), 2);
  EXPECT_EQ(table.Find(0), nullptr);
  EXPECT_EQ(IdTable<int>().Find(0), nullptr);
}

}  // namespace
}  // namespace lamina::ingest
