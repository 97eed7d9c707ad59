// SPDX-License-Identifier: Apache-2.0
//
// Traces that stay open between calls, while the program's memory
// is below a limit.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/stop.h"
#include "engine/session.h"

namespace lamina::questions {

class OpenTraces {
 public:
  // Who waits for a trace.
  struct Opening {
    std::function<void(uint64_t done, uint64_t total)> progress;
    const std::atomic<bool>* stop = nullptr;
    // Captures of its replayed graphs, from now on; nothing: those that it has.
    std::optional<std::vector<std::string>> captures = std::nullopt;
  };
  // `threads` read one trace, with these captures; above `memory_limit` bytes
  // of the whole process those that were not asked for longest are closed.
  OpenTraces(int threads, uint64_t memory_limit,
             std::vector<std::string> captures)
      : threads_(threads),
        memory_limit_(memory_limit),
        captures_(std::move(captures)) {}

  // The trace, read now if it is not open or its file is another one by now.
  // Two callers of one trace wait for one reading, and hear a stop.
  Result<std::shared_ptr<engine::Session>> Open(const std::string& path,
                                                const Opening& how);

  // Closes traces that nobody uses until the limit is kept; true: some were.
  bool Trim();
  bool IsOpen(const std::string& path) const;
  // How often its captures became others: what was answered before is void.
  uint64_t Changes(const std::string& path) const;

 private:
  Result<std::shared_ptr<engine::Session>> Find(const std::string& path,
                                                const Opening& how);

  struct Entry {
    StoppableMutex opening;
    std::shared_ptr<engine::Session> session;
    uint64_t of = 0;  // StateOfInput() when it was read
    uint64_t used = 0;
    std::optional<std::vector<std::string>> captures;
    uint64_t changes = 0;  // of these
  };

  const int threads_;
  const uint64_t memory_limit_;
  const std::vector<std::string> captures_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;
  uint64_t clock_ = 0;
};

}  // namespace lamina::questions
