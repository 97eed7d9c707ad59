// SPDX-License-Identifier: Apache-2.0
//
// What is made once by key and kept. May be used from many threads: the first
// who asks makes it, others wait for it and hear a stop (base/stop.h). What was
// stopped is made by whoever asks next; an error is kept, as it would come
// again. Making one thing may ask for others, which must not form a circle.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "base/stop.h"

namespace lamina {

class Memo {
 public:
  Memo() = default;
  Memo(const Memo&) = delete;
  Memo& operator=(const Memo&) = delete;

  // `make` gives a Result<std::shared_ptr<const T>>; one key has one T. What is
  // given out is not changed any more, and the memo keeps it.
  template <class T, class Make>
  Result<std::shared_ptr<const T>> Get(std::string_view key, const Make& make) {
    Cell& cell = CellOf(key);
    if (!cell.made.load(std::memory_order_acquire)) {
      const std::lock_guard making(cell.mutex);
      if (cell.error) return Fail(*cell.error);
      if (!cell.made.load(std::memory_order_relaxed)) {
        Result<std::shared_ptr<const T>> made = make();
        if (!made) {
          if (made.error().kind != ErrorKind::kCancelled)
            cell.error = made.error();
          return Fail(std::move(made).error());
        }
        cell.value = *std::move(made);
        cell.made.store(true, std::memory_order_release);
      }
    }
    return std::static_pointer_cast<const T>(cell.value);
  }

 private:
  struct Cell {
    StoppableMutex mutex;  // held while it is made
    std::atomic<bool> made = false;
    std::shared_ptr<const void> value;
    std::optional<Error> error;
  };

  Cell& CellOf(std::string_view key) {
    const std::lock_guard lock(mutex_);
    const auto known = cells_.find(key);
    if (known != cells_.end()) return *known->second;
    return *cells_.emplace(key, std::make_unique<Cell>()).first->second;
  }

  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Cell>, std::less<>> cells_;
};

}  // namespace lamina
