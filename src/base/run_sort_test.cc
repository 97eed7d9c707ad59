// SPDX-License-Identifier: Apache-2.0
#include "base/run_sort.h"

#include <gtest/gtest.h>
#include <random>

namespace lamina {
namespace {

struct Item {
  int key;
  int order;
  bool operator==(const Item&) const = default;
};

void Check(std::vector<Item> items) {
  const auto less = [](const Item& a, const Item& b) { return a.key < b.key; };
  for (size_t i = 0; i < items.size(); ++i)
    items[i].order = static_cast<int>(i);
  std::vector<Item> expected = items;
  std::stable_sort(expected.begin(), expected.end(), less);
  for (const int threads : {1, 2, 5}) {
    std::vector<Item> sorted = items;
    RunSort(sorted, threads, less);
    ASSERT_EQ(sorted, expected);
  }
}

TEST(RunSort, IsAStableSort) {
  std::mt19937 random(3);
  Check({});
  Check({{1, 0}});
  for (int round = 0; round < 60; ++round) {
    // A few sorted runs, as profilers write them.
    std::vector<Item> items;
    const size_t runs = 1 + random() % 9;
    for (size_t r = 0; r < runs; ++r) {
      int key = static_cast<int>(random() % 50);
      for (size_t i = random() % 60; i > 0; --i) {
        key += static_cast<int>(random() % 3);
        items.push_back({key, 0});
      }
    }
    Check(items);
  }
  // Random and reversed data, more than one block of the fallback.
  std::vector<Item> items(20000);
  for (Item& item : items) item.key = static_cast<int>(random() % 1000);
  Check(items);
  for (size_t i = 0; i < items.size(); ++i) items[i].key = -static_cast<int>(i);
  Check(items);
}

}  // namespace
}  // namespace lamina
