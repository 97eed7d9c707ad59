// SPDX-License-Identifier: Apache-2.0
//
// Calls of tools as they run, and what they gave: the same question of several
// requests is computed once, goes on when a request does not wait for its end,
// and is kept for the pages of its answer.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "mcp/protocol/tool.h"

namespace lamina::mcp {

class Jobs {
 public:
  // At most `parallel` run at a time; others wait for their turn.
  explicit Jobs(int parallel) : parallel_(parallel) {}
  // Stops what runs and waits for it.
  ~Jobs();

  enum class End : uint8_t { kDone, kTimeout, kCancelled };
  struct Wait {
    End end = End::kDone;
    std::shared_ptr<const Outcome> outcome;  // of kDone
    Progress progress;
  };

  // The outcome of `run` with `key`; `look` is called about ten times a second
  // with how far it is and says whether to go on waiting. When the last request
  // that waits is cancelled the work is stopped.
  Wait Ask(const std::string& key,
           const std::function<Outcome(const Call&)>& run, Call call,
           std::chrono::milliseconds limit,
           const std::function<bool(const Progress&)>& look);

  // Forgets what is not asked for now.
  void Forget();

 private:
  static constexpr size_t kKept = 16;

  struct Job {
    std::atomic<bool> stop = false;
    int waiting = 0;
    bool left = false;  // somebody was told to come again
    Progress progress;
    std::shared_ptr<const Outcome> outcome;
  };

  void Run(const std::shared_ptr<Job>& job, const std::string& key,
           const std::function<Outcome(const Call&)>& run, Call call);
  void Keep(const std::string& key, const std::shared_ptr<Job>& job);

  const int parallel_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = 0;
  int threads_ = 0;
  std::map<std::string, std::shared_ptr<Job>> jobs_;  // running and kept
  std::deque<std::string> kept_;                      // the latest at the end
};

}  // namespace lamina::mcp
