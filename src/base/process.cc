// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace lamina {
namespace {

constexpr size_t kMaxOutput = size_t{64} << 10;

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0) ends_[0] = ends_[1] = -1;
  }
  ~Pipe() {
    Close(0);
    Close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  bool good() const { return ends_[0] >= 0; }
  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void CloseWriter() { Close(1); }

 private:
  void Close(int end) {
    if (ends_[end] >= 0) close(ends_[end]);
    ends_[end] = -1;
  }
  int ends_[2] = {-1, -1};
};

Result<pid_t> Start(const std::vector<std::string>& arguments, int out) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                   O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A group of its own, so that its children end with it.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t child = -1;
  const int error =
      posix_spawn(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return Fail(InputError(arguments[0], std::string("cannot be started: ") +
                                             std::strerror(error)));
  }
  return child;
}

}  // namespace

std::string FindProgram(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string file =
        std::string(rest.substr(0, end)) + "/" + std::string(name);
    struct stat info {};
    if (end > 0 && stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        access(file.c_str(), X_OK) == 0)
      return file;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

Result<ProcessResult> RunProcess(const std::vector<std::string>& arguments,
                                 double limit_s) {
  using Clock = std::chrono::steady_clock;
  Pipe pipe;
  if (!pipe.good()) return Fail(InputError(arguments[0], std::strerror(errno)));
  LAMINA_ASSIGN(const pid_t child, Start(arguments, pipe.writer()));
  pipe.CloseWriter();
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(limit_s));
  ProcessResult result;
  int status = 0;
  bool open = true;
  for (;;) {
    if (waitpid(child, &status, WNOHANG) == child) break;
    if (Clock::now() >= deadline) {
      result.timed_out = true;
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
    struct pollfd wait = {pipe.reader(), POLLIN, 0};
    // A child that closed its output is asked for its end now and then.
    if (!open) wait.fd = -1;
    if (poll(&wait, 1, 20) <= 0 || !open) continue;
    char block[4096];
    const ssize_t got = read(pipe.reader(), block, sizeof block);
    if (got <= 0) {
      open = false;
    } else {
      const size_t room = kMaxOutput - result.output.size();
      result.output.append(block, std::min(room, static_cast<size_t>(got)));
    }
  }
  // What it wrote last.
  fcntl(pipe.reader(), F_SETFL, O_NONBLOCK);
  char block[4096];
  for (ssize_t got = 1; open && got > 0 && result.output.size() < kMaxOutput;) {
    got = read(pipe.reader(), block, sizeof block);
    if (got > 0) result.output.append(block, static_cast<size_t>(got));
  }
  result.status =
      WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

}  // namespace lamina
