// SPDX-License-Identifier: Apache-2.0
//
// Stage times and remarks for --timing, and the peak memory of the process.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace lamina {

class StageTimes {
 public:
  struct Stage {
    std::string name;
    double seconds = 0;
    int times = 0;  // how often it ran
  };
  void Add(std::string name, double seconds);
  std::vector<Stage> stages() const;
  // A remark on how the work was done: no concern of its result.
  void Note(std::string name, std::string text);
  std::vector<std::pair<std::string, std::string>> notes() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Stage> stages_;
  std::vector<std::pair<std::string, std::string>> notes_;
};

// Adds the time of its own lifetime to `times` (which may be null).
class ScopedStage {
 public:
  ScopedStage(StageTimes* times, std::string name);
  ~ScopedStage();
  ScopedStage(const ScopedStage&) = delete;
  ScopedStage& operator=(const ScopedStage&) = delete;

 private:
  StageTimes* times_;
  std::string name_;
  std::chrono::steady_clock::time_point start_;
};

// Largest resident set of the process so far, in bytes.
uint64_t PeakMemoryBytes();

}  // namespace lamina
