// SPDX-License-Identifier: Apache-2.0

#include "base/timer.h"

#include <cstdio>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

#include "base/process_memory.h"
#include "base/stop.h"

namespace lamina {

void StageTimes::Add(std::string name, double seconds) {
  const std::lock_guard lock(mutex_);
  for (Stage& stage : stages_) {
    if (stage.name == name) {
      stage.seconds += seconds;
      ++stage.times;
      return;
    }
  }
  stages_.push_back({std::move(name), seconds, 1});
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

ProcessMemory MemoryOf(pid_t process) {
  const std::string name = "/proc/" + std::to_string(process) + "/statm";
  std::FILE* const file = std::fopen(name.c_str(), "re");
  if (file == nullptr) return {};
  // Pages: size, resident, shared, text, lib, data, dirty.
  unsigned long long resident = 0, shared = 0, data = 0;
  const int got = std::fscanf(file, "%*u %llu %llu %*u %*u %llu", &resident,
                              &shared, &data);
  std::fclose(file);
  if (got != 3) return {};
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return {resident * page, resident > shared ? (resident - shared) * page : 0,
          data * page};
}

ProcessMemory MemoryOfThisProcess() { return MemoryOf(::getpid()); }

}  // namespace lamina
