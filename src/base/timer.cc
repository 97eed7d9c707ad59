// SPDX-License-Identifier: Apache-2.0
#include "base/timer.h"

#include <sys/resource.h>
#include <utility>

#include "base/stop.h"

namespace lamina {

void StageTimes::Add(std::string name, double seconds) {
  const std::lock_guard lock(mutex_);
  for (Stage& stage : stages_) {
    if (stage.name == name) {
      stage.seconds += seconds;
      return;
    }
  }
  stages_.push_back({std::move(name), seconds});
}

std::vector<StageTimes::Stage> StageTimes::stages() const {
  const std::lock_guard lock(mutex_);
  return stages_;
}

void StageTimes::Note(std::string name, std::string text) {
  const std::lock_guard lock(mutex_);
  notes_.emplace_back(std::move(name), std::move(text));
}

std::vector<std::pair<std::string, std::string>> StageTimes::notes() const {
  const std::lock_guard lock(mutex_);
  return notes_;
}

ScopedStage::ScopedStage(StageTimes* times, std::string name)
    : times_(times),
      name_(std::move(name)),
      start_(std::chrono::steady_clock::now()) {
  LookForStop();
}

ScopedStage::~ScopedStage() {
  if (times_ == nullptr) return;
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start_;
  times_->Add(std::move(name_), elapsed.count());
}

uint64_t PeakMemoryBytes() {
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace lamina
