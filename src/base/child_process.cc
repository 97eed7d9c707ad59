// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/descriptor.h"
#include "base/leftovers.h"

namespace lamina {
namespace {

struct Pipe {
  Descriptor read, write;
};

std::optional<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

// What a signal does while this lives.
class SignalGuard {
 public:
  SignalGuard(int signal, void (*handler)(int)) : signal_(signal) {
    struct sigaction action {};
    action.sa_handler = handler;
    sigaction(signal, &action, &before_);
  }
  ~SignalGuard() { sigaction(signal_, &before_, nullptr); }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  int signal_;
  struct sigaction before_ {};
};

// Puts `from` in the place of the descriptor `to`.
bool Become(int from, int to) {
  // The same: dup2() would leave it to be closed.
  return from == to ? fcntl(to, F_SETFD, 0) == 0 : dup2(from, to) == to;
}

// Starts a program in a process group of its own, so that what it starts is
// stopped with it, with no signal blocked; the system ends it should this
// process be killed. Returns -1 and why in `code` when it cannot be started.
//
// vfork as posix_spawn does it, which has no room for PR_SET_PDEATHSIG: with
// gigabytes of columns a fork would take long. The child has the memory of this
// process until it runs the program, so it only makes system calls.
pid_t Start(char* const* argv, int in, int out, int err,
            std::span<const int> kept, int& code) {
  // Volatile: written by the child.
  volatile int failed = 0;
  const pid_t parent = getpid();
  sigset_t none;
  sigemptyset(&none);
  const pid_t child = vfork();  // NOLINT
  if (child == 0) {
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    // What this process ignores for its own sake.
    for (const int number : {SIGPIPE, SIGXFSZ})
      sigaction(number, &usual, nullptr);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int number : kept) fcntl(number, F_SETFD, 0);
    if (getppid() == parent && setpgid(0, 0) == 0 && Become(in, STDIN_FILENO) &&
        Become(out, STDOUT_FILENO) && Become(err, STDERR_FILENO))
      execv(argv[0], argv);
    failed = errno;
    _exit(127);
  }
  code = child < 0 ? errno : failed;
  if (child < 0 || code == 0) return child;
  waitpid(child, nullptr, 0);
  return -1;
}

// Reads what is there; closes at the end.
void Drain(Descriptor& from, std::string& to, size_t most) {
  std::array<char, 65536> buffer;
  const ssize_t got = read(from.get(), buffer.data(), buffer.size());
  if (got > 0) {
    to.append(buffer.data(),
              std::min(static_cast<size_t>(got), most - to.size()));
  } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
    from.Close();
  }
}

}  // namespace

std::optional<std::string> FindProgram(std::string_view name) {
  const char* path = std::getenv("PATH");
  if (path == nullptr) return std::nullopt;
  std::string_view rest = path;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string_view folder = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    // An empty entry means the current folder: nobody wants that.
    if (folder.empty()) continue;
    std::string file = std::string(folder) + "/" + std::string(name);
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

Result<ChildResult> RunChild(const std::vector<std::string>& arguments,
                             std::string_view input,
                             std::chrono::milliseconds limit,
                             size_t max_output) {
  // Where it is ignored, a child leaves no status.
  const SignalGuard child_ends(SIGCHLD, SIG_DFL);
  LAMINA_ASSIGN(const auto started, StartedChild::Start(arguments));
  const pid_t child = started->process();
  Descriptor& in = started->in;
  Descriptor& out = started->out;
  Descriptor& err = started->err;
  if (input.empty()) in.Close();

  // A child that does not read its input must not stop us with SIGPIPE.
  const SignalGuard pipe_breaks(SIGPIPE, SIG_IGN);
  ChildResult result;
  const auto end = std::chrono::steady_clock::now() + limit;
  while (out.open() || err.open()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      result.timed_out = true;
      break;
    }
    std::array<pollfd, 3> files = {
        pollfd{out.get(), POLLIN, 0}, pollfd{err.get(), POLLIN, 0},
        pollfd{in.get(), POLLOUT, 0}};  // a closed one is ignored
    const int ready =
        poll(files.data(), files.size(),
             static_cast<int>(std::min<int64_t>(left.count(), 60'000)));
    if (ready < 0 && errno != EINTR) break;
    if (ready <= 0) continue;
    if (files[0].revents != 0) Drain(out, result.out, max_output);
    if (files[1].revents != 0) Drain(err, result.err, max_output);
    if (files[2].revents != 0) {
      const ssize_t sent = write(in.get(), input.data(), input.size());
      if (sent > 0) input.remove_prefix(static_cast<size_t>(sent));
      if (input.empty() || (sent < 0 && errno != EAGAIN && errno != EINTR))
        in.Close();
    }
  }
  in.Close();
  // It may have closed its output and go on: wait no longer than the limit.
  int status = 0;
  pid_t ended = 0;
  while (!result.timed_out && (ended = waitpid(child, &status, WNOHANG)) == 0) {
    if (std::chrono::steady_clock::now() >= end) {
      result.timed_out = true;
    } else {
      usleep(1000);
    }
  }
  if (ended == 0) {
    kill(-child, SIGKILL);
    waitpid(child, &status, 0);
  }
  if (WIFEXITED(status)) result.exit_status = WEXITSTATUS(status);
  return result;
}

Result<std::unique_ptr<StartedChild>> StartedChild::Start(
    const std::vector<std::string>& arguments, std::span<const int> kept) {
  LAMINA_CHECK(!arguments.empty());
  auto in = MakePipe();
  auto out = MakePipe();
  auto err = MakePipe();
  int code = errno;
  std::unique_ptr<StartedChild> child;
  if (in && out && err) {
    std::vector<char*> argv;
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    child.reset(new StartedChild([&] {
      return lamina::Start(argv.data(), in->read.get(), out->write.get(),
                           err->write.get(), kept, code);
    }));
  }
  if (child == nullptr || child->process() < 0) {
    return Fail(InputError(arguments[0], std::string("cannot be started: ") +
                                             std::strerror(code)));
  }
  child->in = std::move(in->write);
  child->out = std::move(out->read);
  child->err = std::move(err->read);
  fcntl(child->in.get(), F_SETFL, O_NONBLOCK);
  return child;
}

}  // namespace lamina
