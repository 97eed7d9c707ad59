// SPDX-License-Identifier: Apache-2.0
//
// How long work ends when its caller does not want it any more.
//
// A stop is a flag that another thread or a signal handler sets. Work runs in
// EndedByStop(), which says which flag that is; from there on it is known to
// the thread and to the threads of ParallelFor, and whoever computes for long
// looks at it: ParallelFor before each item, loops by LookForStop(). Where it
// is set the look throws, and the work is undone up to EndedByStop(), which
// returns kCancelled. So nothing half-made is ever kept, and an analysis needs
// no error for what it does not decide. It is the only exception that crosses
// folders: who makes something for others assigns it when it is whole, and
// calls of C libraries run with StopScope(nullptr).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/status.h"

namespace lamina {

using StopFlag = std::atomic<bool>;

// What a look throws; caught by EndedByStop().
struct Stopped : std::exception {
  const char* what() const noexcept override { return "stopped"; }
};

// The flag that this thread looks at, until the end of the scope; null: none.
class StopScope {
 public:
  explicit StopScope(const StopFlag* flag);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  const StopFlag* const outer_;
};

// The flag of the innermost scope of this thread; null: none.
const StopFlag* StopOfThread();
inline bool IsSet(const StopFlag* flag) {
  return flag != nullptr && flag->load(std::memory_order_relaxed);
}
// Throws Stopped where the flag of this thread is set. Takes some nanoseconds.
void LookForStop();
// For tests: `flag` is set at the n-th look of any thread from now on; 0: at
// none.
void SetAtLook(StopFlag* flag, int64_t n);

// The Result of `work()`, or kCancelled where a look in it met a set flag. A
// null flag leaves the flag of the thread as it is.
template <class Work>
auto EndedByStop(const StopFlag* flag, const Work& work) -> decltype(work()) {
  if (flag == nullptr) flag = StopOfThread();
  try {
    const StopScope scope(flag);
    return work();
  } catch (const Stopped&) {
    return Fail(CancelledError());
  }
}

// A recursive mutex whose wait hears a stop: lock() throws Stopped then.
class StoppableMutex {
 public:
  void lock();
  void unlock();

 private:
  std::mutex mutex_;
  std::condition_variable free_;
  std::thread::id owner_;
  int depth_ = 0;
};

// Waits for `is_done`, which is asked under `lock`, and hears a stop.
template <class IsDone>
void WaitOrStop(std::condition_variable& changed,
                std::unique_lock<std::mutex>& lock, const IsDone& is_done) {
  // A flag wakes nobody.
  constexpr std::chrono::milliseconds kTick(20);
  while (!is_done()) {
    LookForStop();
    if (StopOfThread() == nullptr) {
      changed.wait(lock);
    } else {
      changed.wait_for(lock, kTick);
    }
  }
}

}  // namespace lamina
