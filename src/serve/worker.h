// SPDX-License-Identifier: Apache-2.0
//
// The process that has a trace open, seen from the server.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "serve/child.h"
#include "serve/frames.h"

namespace lamina::serve {

class Worker {
 public:
  // Called on the thread of the worker, and never by a call of this class.
  struct Events {
    std::function<void(const std::string& done_and_total)> progress;
    std::function<void(int status, const std::string& body)> opened;
    std::function<void(const std::string& why)> ended;
  };
  struct Reply {
    int status = 0;
    std::string body;
  };

  // It has the open files `kept` under their numbers.
  static Result<std::shared_ptr<Worker>> Start(std::vector<std::string> words,
                                               std::vector<int> kept,
                                               uint64_t memory_bytes,
                                               const Events& events);

  // Waits for the reply to a question of a kind of Frame. Nothing: the worker
  // has ended, `why` says how. A peer that has gone ends the query.
  std::optional<Reply> Ask(char kind, const std::string& body,
                           const std::function<bool()>& gone, std::string& why);
  void Kill() { child_->Kill(); }
  uint64_t OwnBytes() const { return child_->OwnBytes(); }

 private:
  // False: what came makes no sense.
  bool Take(std::string_view bytes, const Events& events);

  std::shared_ptr<Child> child_;
  FrameReader reader_;  // of the child's thread
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, std::optional<Reply>> asked_;
  uint64_t last_id_ = 0;
  std::optional<std::string> ended_;
};

}  // namespace lamina::serve
