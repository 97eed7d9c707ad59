// SPDX-License-Identifier: Apache-2.0

#include "base/stop.h"

#include <algorithm>
#include <atomic>
#include <sched.h>
#include <system_error>
#include <thread>
#include <vector>

#include "base/parallel.h"

namespace lamina {

namespace {

thread_local const StopFlag* flag_of_thread = nullptr;

std::atomic<StopFlag*> flag_to_set = nullptr;
std::atomic<int64_t> looks_left = 0;

}  // namespace

StopScope::StopScope(const StopFlag* flag) : outer_(flag_of_thread) {
  flag_of_thread = flag;
}

StopScope::~StopScope() { flag_of_thread = outer_; }

const StopFlag* StopOfThread() { return flag_of_thread; }

void LookForStop() {
  if (flag_of_thread == nullptr) return;
  if (StopFlag* const flag = flag_to_set.load(std::memory_order_relaxed);
      flag != nullptr && looks_left.fetch_sub(1) == 1)
    flag->store(true);
  if (IsSet(flag_of_thread)) throw Stopped();
}

void SetAtLook(StopFlag* flag, int64_t n) {
  looks_left = n;
  flag_to_set = n > 0 ? flag : nullptr;
}

void StoppableMutex::lock() {
  const std::thread::id self = std::this_thread::get_id();
  std::unique_lock lock(mutex_);
  WaitOrStop(free_, lock, [&] { return depth_ == 0 || owner_ == self; });
  owner_ = self;
  ++depth_;
}

void StoppableMutex::unlock() {
  const std::lock_guard lock(mutex_);
  if (--depth_ == 0) free_.notify_one();
}

int DefaultThreads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = 0;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) count = CPU_COUNT(&set);
  if (count <= 0) count = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(count, 1, 256);
}

void RunWorkers(int threads, const std::function<void(int)>& work) {
  // Workers may wait for each other: one that fails must end the process, not
  // leave the others waiting while it unwinds.
  const auto run = [&work](int worker) noexcept {
    const StopScope none(nullptr);
    work(worker);
  };
  std::vector<std::thread> others;
  try {
    for (int worker = 1; worker < threads; ++worker)
      others.emplace_back(run, worker);
  } catch (const std::system_error&) {
    // No room for another thread: those that run do all of the work.
  }
  run(0);
  for (std::thread& other : others) other.join();
}

void ParallelFor(int threads, size_t count,
                 const std::function<void(size_t)>& work) {
  threads = static_cast<int>(
      std::min<size_t>(static_cast<size_t>(std::max(threads, 1)), count));
  if (threads <= 1) {
    for (size_t i = 0; i < count; ++i) {
      LookForStop();
      work(i);
    }
    return;
  }
  std::atomic<size_t> next{0};
  const StopFlag* const flag = StopOfThread();
  std::atomic<bool> stopped = false;
  RunWorkers(threads, [&](int) {
    const StopScope scope(flag);
    try {
      for (size_t i = next++; i < count; i = next++) {
        LookForStop();
        work(i);
      }
    } catch (const Stopped&) {
      stopped = true;
    }
  });
  if (stopped) throw Stopped();
}

void ParallelRanges(int threads, size_t count, size_t grain,
                    const std::function<void(size_t, size_t, size_t)>& work) {
  if (count == 0) return;
  const size_t parts = (count + grain - 1) / grain;
  ParallelFor(threads, parts, [&](size_t part) {
    const size_t begin = part * grain;
    work(begin, std::min(count, begin + grain), part);
  });
}

}  // namespace lamina
