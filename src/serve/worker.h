// SPDX-License-Identifier: Apache-2.0
//
// The process that has a trace open, seen from the server: a child on pipes,
// what is said to it line by line, and its answers.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/child_process.h"

namespace lamina::serve {

// A child process that is talked to over pipes until it ends or is ended.
// Whatever it does (a crash, no memory, a signal) ends it alone.

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

// What the server and the process that has a trace open say to each other: a
// line "KIND ID STATUS BYTES" and so many bytes. Neither trusts the other.

struct Frame {
  // To the worker: a question, 'q' SQL, 't' tiles, 's' sums, 'f' events; 'c'
  // ends it. From it: 'p' progress, "DONE TOTAL"; 'o' opened, or not, by the
  // status; 'r' the reply to a question.
  char kind = 0;
  uint64_t id = 0;
  int status = 0;  // of HTTP
  std::string body;
};

inline constexpr size_t kMostFrameBytes = size_t{64} << 20;

std::string FrameText(const Frame& frame);

class FrameReader {
 public:
  void Feed(std::string_view bytes) { waiting_ += bytes; }
  // The next whole frame.
  std::optional<Frame> Next();
  // What came is no frame: there is no way on.
  bool damaged() const { return damaged_; }

 private:
  std::string waiting_;
  bool damaged_ = false;
};

// The process that has a trace open, seen from the server.

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
