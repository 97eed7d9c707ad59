// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "base/stop.h"

namespace lamina {

// Answers that many threads ask for: who asks first makes one, and who asks for
// the same meanwhile waits for it. Nothing is kept here: `known` and `make` say
// where. What could not be made is made anew by one of those who wait.
template <class Key>
class MadeOnce {
 public:
  // `known()`, asked under `mutex`, is a pointer to the answer or null.
  // `make()` runs without it, returns a Result and keeps what others shall
  // know. A stop ends the wait.
  template <class Known, class Make>
  auto Get(std::mutex& mutex, const Key& key, const Known& known,
           const Make& make) -> decltype(make()) {
    {
      std::unique_lock lock(mutex);
      decltype(known()) answer;
      WaitOrStop(changed_, lock, [&] {
        answer = known();
        return answer != nullptr || Place(key) == making_.end();
      });
      if (answer != nullptr) return answer;
      making_.push_back(key);
    }
    const Made made{*this, mutex, key};
    return make();
  }

 private:
  struct Made {
    MadeOnce& of;
    std::mutex& mutex;
    const Key& key;
    ~Made() {
      const std::lock_guard lock(mutex);
      of.making_.erase(of.Place(key));
      of.changed_.notify_all();
    }
  };
  auto Place(const Key& key) {
    return std::find(making_.begin(), making_.end(), key);
  }

  std::condition_variable changed_;
  std::vector<Key> making_;
};

}  // namespace lamina
