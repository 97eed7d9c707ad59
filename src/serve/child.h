// SPDX-License-Identifier: Apache-2.0
//
// A child process that is talked to over pipes until it ends or is ended.
// Whatever it does (a crash, no memory, a signal) ends it alone.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/child_process.h"

namespace lamina::serve {

class Child {
 public:
  // `take` is given what it prints, and at last `ended` why it ended, in words
  // for people: both on one thread of its own. Where `take` gives false the
  // child is ended. It has the open files `kept` under their numbers.
  // `memory_bytes`: of its own memory, above which it gets none; 0: any.
  static Result<std::shared_ptr<Child>> Start(
      std::vector<std::string> words, std::vector<int> kept,
      uint64_t memory_bytes, std::function<bool(std::string_view)> take,
      std::function<void(const std::string& why)> ended);
  ~Child();

  // All of it; one that takes no more is ended.
  void Send(std::string_view bytes);
  void Kill();
  // Memory of its own that lies in RAM: without mapped files.
  uint64_t OwnBytes() const;

 private:
  Child() = default;
  static void Run(const std::shared_ptr<Child>& self,
                  std::unique_ptr<StartedChild> started,
                  const std::function<bool(std::string_view)>& take,
                  const std::function<void(const std::string&)>& ended);

  std::mutex mutex_;  // of what follows
  Descriptor in_;
  bool alive_ = true;
  pid_t process_ = -1;
};

}  // namespace lamina::serve
