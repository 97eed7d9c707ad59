// SPDX-License-Identifier: Apache-2.0
#include "base/stop.h"

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

}  // namespace lamina
