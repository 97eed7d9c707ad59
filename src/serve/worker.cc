// SPDX-License-Identifier: Apache-2.0

#include "serve/worker.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <future>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process_memory.h"

namespace lamina::serve {

namespace {

// The last words of a child, without the name of the program before them.
std::string LastLine(std::string_view err) {
  while (err.ends_with('\n')) err.remove_suffix(1);
  const size_t mark = err.rfind("lamina: error: ");
  if (mark != std::string_view::npos) return std::string(err.substr(mark + 15));
  return std::string(err.substr(err.rfind('\n') + 1));
}

std::string WhyOf(int status, const std::string& err) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return "its process was ended by signal " + std::to_string(number) + " (" +
           ::strsignal(number) + ")";
  }
  if (std::string line = LastLine(err); !line.empty()) return line;
  return "its process ended with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Result<std::shared_ptr<Child>> Child::Start(
    std::vector<std::string> words, std::vector<int> kept,
    uint64_t memory_bytes, std::function<bool(std::string_view)> take,
    std::function<void(const std::string&)> ended) {
  const std::shared_ptr<Child> child(new Child);
  std::promise<Status> started;
  // The child dies with the thread that starts it, so that is the one that
  // reads from it.
  std::thread([&started, child, memory_bytes, words = std::move(words),
               kept = std::move(kept), take = std::move(take),
               ended = std::move(ended)] {
    auto process = StartedChild::Start(words, kept);
    if (!process) {
      started.set_value(Fail(process.error()));
      return;
    }
    child->process_ = (*process)->process();
    child->in_ = std::move((*process)->in);
    if (memory_bytes > 0) {
      const rlimit limit{memory_bytes, memory_bytes};
      ::prlimit(child->process_, RLIMIT_DATA, &limit, nullptr);
    }
    started.set_value({});
    Run(child, *std::move(process), take, ended);
  }).detach();
  LAMINA_TRY(started.get_future().get());
  return child;
}

Child::~Child() = default;

void Child::Run(const std::shared_ptr<Child>& self,
                std::unique_ptr<StartedChild> started,
                const std::function<bool(std::string_view)>& take,
                const std::function<void(const std::string&)>& ended) {
  constexpr size_t kMostErr = 8192;
  std::string err;
  std::array<char, 65536> buffer;
  while (started->out.open()) {
    std::array<pollfd, 2> files = {pollfd{started->out.get(), POLLIN, 0},
                                   pollfd{started->err.get(), POLLIN, 0}};
    if (::poll(files.data(), files.size(), -1) < 0) continue;
    if (files[1].revents != 0) {
      const ssize_t got =
          ::read(started->err.get(), buffer.data(), buffer.size());
      if (got > 0) err.append(buffer.data(), static_cast<size_t>(got));
      if (err.size() > kMostErr) err.erase(0, err.size() - kMostErr);
      if (got == 0) started->err.Close();
    }
    if (files[0].revents == 0) continue;
    const ssize_t got =
        ::read(started->out.get(), buffer.data(), buffer.size());
    if (got > 0 && !take({buffer.data(), static_cast<size_t>(got)}))
      self->Kill();
    if (got == 0) started->out.Close();
  }
  // What it said last.
  while (started->err.open()) {
    pollfd file{started->err.get(), POLLIN, 0};
    if (::poll(&file, 1, 100) <= 0) break;
    const ssize_t got =
        ::read(started->err.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    err.append(buffer.data(), static_cast<size_t>(got));
  }
  int status = 0;
  // It may have closed its output and go on.
  for (int i = 0;; ++i) {
    {
      const std::lock_guard lock(self->mutex_);
      if (::waitpid(started->process(), &status, WNOHANG) != 0) {
        self->alive_ = false;
        self->in_.Close();
        break;
      }
    }
    if (i >= 100) self->Kill();
    ::usleep(10'000);
  }
  ended(WhyOf(status, err));
}

void Child::Send(std::string_view bytes) {
  constexpr int kPatienceMs = 10'000;
  std::unique_lock lock(mutex_);
  while (alive_ && in_.open() && !bytes.empty()) {
    const ssize_t sent = ::write(in_.get(), bytes.data(), bytes.size());
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    pollfd file{in_.get(), POLLOUT, 0};
    if (errno != EAGAIN || ::poll(&file, 1, kPatienceMs) <= 0) break;
  }
  lock.unlock();
  if (!bytes.empty()) Kill();
}

void Child::Kill() {
  const std::lock_guard lock(mutex_);
  if (alive_) ::kill(-process_, SIGKILL);
}

uint64_t Child::OwnBytes() const { return MemoryOf(process_).own_bytes; }

namespace {

template <class Number>
bool ReadNumber(std::string_view& text, char end, Number& number) {
  const auto [at, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  const auto used = static_cast<size_t>(at - text.data());
  if (error != std::errc() || used >= text.size() || *at != end) return false;
  text.remove_prefix(used + 1);
  return true;
}

}  // namespace

std::string FrameText(const Frame& frame) {
  return std::string(1, frame.kind) + ' ' + std::to_string(frame.id) + ' ' +
         std::to_string(frame.status) + ' ' +
         std::to_string(frame.body.size()) + '\n' + frame.body;
}

std::optional<Frame> FrameReader::Next() {
  constexpr size_t kMostHead = 64;
  if (damaged_) return std::nullopt;
  const size_t end = waiting_.find('\n');
  if (end == std::string::npos) {
    damaged_ = waiting_.size() > kMostHead;
    return std::nullopt;
  }
  Frame frame;
  uint64_t bytes = 0;
  std::string_view head(waiting_.data(), end + 1);
  damaged_ = head.size() < 2 || head.size() > kMostHead || head[1] != ' ';
  if (!damaged_) {
    frame.kind = head[0];
    head.remove_prefix(2);
    damaged_ = !ReadNumber(head, ' ', frame.id) ||
               !ReadNumber(head, ' ', frame.status) ||
               !ReadNumber(head, '\n', bytes) || bytes > kMostFrameBytes;
  }
  if (damaged_ || waiting_.size() - end - 1 < bytes) return std::nullopt;
  frame.body = waiting_.substr(end + 1, bytes);
  waiting_.erase(0, end + 1 + bytes);
  return frame;
}

Result<std::shared_ptr<Worker>> Worker::Start(std::vector<std::string> words,
                                              std::vector<int> kept,
                                              uint64_t memory_bytes,
                                              const Events& events) {
  auto worker = std::make_shared<Worker>();
  // The thread of the child holds the worker until it has ended.
  LAMINA_ASSIGN(worker->child_,
                Child::Start(
                    std::move(words), std::move(kept), memory_bytes,
                    [worker, events](std::string_view bytes) {
                      return worker->Take(bytes, events);
                    },
                    [worker, events](const std::string& why) {
                      {
                        const std::lock_guard lock(worker->mutex_);
                        worker->ended_ = why;
                        worker->changed_.notify_all();
                      }
                      events.ended(why);
                    }));
  return worker;
}

bool Worker::Take(std::string_view bytes, const Events& events) {
  reader_.Feed(bytes);
  while (auto frame = reader_.Next()) {
    if (frame->kind == 'p') {
      events.progress(frame->body);
    } else if (frame->kind == 'o') {
      events.opened(frame->status, frame->body);
    } else if (frame->kind == 'r') {
      const std::lock_guard lock(mutex_);
      const auto found = asked_.find(frame->id);
      if (found == asked_.end()) continue;
      found->second = Reply{frame->status, std::move(frame->body)};
      changed_.notify_all();
    }
  }
  return !reader_.damaged();
}

std::optional<Worker::Reply> Worker::Ask(char kind, const std::string& body,
                                         const std::function<bool()>& gone,
                                         std::string& why) {
  constexpr auto kLook = std::chrono::milliseconds(100);
  std::unique_lock lock(mutex_);
  const uint64_t id = ++last_id_;
  asked_[id];
  lock.unlock();
  child_->Send(FrameText({kind, id, 0, body}));
  lock.lock();
  bool cancelled = false;
  while (!asked_[id] && !ended_) {
    changed_.wait_for(lock, kLook);
    if (cancelled || asked_[id] || !gone) continue;
    lock.unlock();
    if (gone()) {
      cancelled = true;
      child_->Send(FrameText({'c', id, 0, {}}));
    }
    lock.lock();
  }
  std::optional<Reply> reply = std::move(asked_[id]);
  asked_.erase(id);
  if (!reply) why = *ended_;
  return reply;
}

}  // namespace lamina::serve
