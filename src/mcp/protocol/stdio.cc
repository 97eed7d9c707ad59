// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <memory>
#include <thread>
#include <unistd.h>

#include "mcp/protocol/server.h"

namespace lamina::mcp {
namespace {

// Answers of several threads, each a line of its own.
class Lines {
 public:
  explicit Lines(int out) : out_(out) {}

  void Write(std::string line) {
    line += '\n';
    const std::lock_guard lock(mutex_);
    for (size_t at = 0; !broken_ && at < line.size();) {
      const ssize_t wrote = ::write(out_, line.data() + at, line.size() - at);
      if (wrote > 0) {
        at += static_cast<size_t>(wrote);
      } else if (wrote < 0 && errno != EINTR) {
        broken_ = true;
      }
    }
  }
  bool broken() const {
    const std::lock_guard lock(mutex_);
    return broken_;
  }

 private:
  const int out_;
  mutable std::mutex mutex_;
  bool broken_ = false;
};

// What threads share with the reader. They may outlive it by work that cannot
// be stopped, so each holds it.
struct Shared {
  explicit Shared(int out)
      : lines(out),
        connection([this](const std::string& text) { lines.Write(text); }) {}
  Lines lines;
  Connection connection;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<std::optional<std::string>()>> waiting;
  size_t busy = 0;
  bool ended = false;
};

void Work(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  while (true) {
    shared->changed.wait(
        lock, [&] { return !shared->waiting.empty() || shared->ended; });
    if (shared->waiting.empty()) return;
    const auto later = std::move(shared->waiting.front());
    shared->waiting.pop_front();
    ++shared->busy;
    lock.unlock();
    if (const auto text = later()) shared->lines.Write(*text);
    lock.lock();
    --shared->busy;
    shared->changed.notify_all();
  }
}

// Cuts what is read into lines; of a line that is too long only that it was.
class LineReader {
 public:
  // `take` is given each line; false ends the reading.
  template <class Take>
  void Feed(std::string_view bytes, const Take& take) {
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      const std::string_view part = bytes.substr(0, end);
      too_long_ |= line_.size() + part.size() > kMaxMessageBytes;
      if (too_long_) {
        line_.clear();
      } else {
        line_ += part;
      }
      if (end == std::string_view::npos) return;
      take(line_, too_long_);
      line_.clear();
      too_long_ = false;
      bytes.remove_prefix(end + 1);
    }
  }
  template <class Take>
  void Finish(const Take& take) {
    if (!line_.empty() || too_long_) take(line_, too_long_);
  }

 private:
  std::string line_;
  bool too_long_ = false;
};

}  // namespace

bool ServeLines(Server& server, int in, int out) {
  constexpr int kThreads = 8;
  constexpr size_t kBuffer = size_t{64} << 10;
  const auto shared = std::make_shared<Shared>(out);
  for (int i = 0; i < kThreads; ++i) std::thread(Work, shared).detach();
  const auto take = [&](std::string_view line, bool too_long) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (too_long) {
      shared->lines.Write(ErrorText(
          nullptr, {kParseError,
                    "Parse error: a line is longer than " +
                        std::to_string(kMaxMessageBytes >> 20) + " MiB",
                    {}}));
      return;
    }
    if (line.find_first_not_of(" \t") == std::string_view::npos) return;
    Reply reply = server.Accept(line, shared->connection);
    if (reply.now) shared->lines.Write(*std::move(reply.now));
    if (!reply.later) return;
    const std::lock_guard lock(shared->mutex);
    shared->waiting.push_back(std::move(reply.later));
    shared->changed.notify_one();
  };
  LineReader reader;
  std::string buffer(kBuffer, '\0');
  while (!shared->lines.broken()) {
    const ssize_t got = ::read(in, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    reader.Feed({buffer.data(), static_cast<size_t>(got)}, take);
  }
  reader.Finish(take);
  std::unique_lock lock(shared->mutex);
  const bool done = shared->changed.wait_for(
      lock, std::chrono::seconds(1),
      [&] { return shared->waiting.empty() && shared->busy == 0; });
  shared->ended = true;
  shared->changed.notify_all();
  lock.unlock();
  if (!done) shared->connection.CancelAll();
  return done && !shared->lines.broken();
}

}  // namespace lamina::mcp
