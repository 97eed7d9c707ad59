// SPDX-License-Identifier: Apache-2.0
#include "base/leftovers.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fmt/core.h>
#include <limits.h>
#include <mutex>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace lamina {
namespace {

namespace fs = std::filesystem;

struct List {
  std::mutex mutex;
  std::vector<std::string> paths;
  std::vector<pid_t> children;  // leaders of process groups
};

// Never destroyed: signals come until the very end.
List& TheList() {
  static List* const list = new List;
  return *list;
}

// Under the lock.
void Clear(List& list) {
  for (const pid_t child : list.children) kill(-child, SIGKILL);
  for (const std::string& path : list.paths) {
    // First without taking memory: there may be none.
    if (::unlink(path.c_str()) == 0) continue;
    std::error_code ignored;
    fs::remove_all(path, ignored);
    // A child that was ended may still make a file while it goes.
    for (int i = 0; i < 50 && fs::exists(path, ignored); ++i) {
      usleep(2000);
      fs::remove_all(path, ignored);
    }
  }
  list.paths.clear();
  list.children.clear();
}

uint64_t RandomNumber() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) == sizeof number) return number;
  // Interrupted, or a kernel without it: names are still tried until one is
  // free.
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_nsec) * 0x9E3779B97F4A7C15 +
         static_cast<uint64_t>(getpid());
}

std::string TemporaryRoot() {
  const char* root = std::getenv("TMPDIR");
  return root != nullptr && *root != 0 ? root : "/tmp";
}

Error NoTemporary(const std::string& root) {
  return InputError(
      root, std::string("no room for temporary files: ") + std::strerror(errno),
      "set TMPDIR to a folder that can be written");
}

// Who is told of the first signal to stop; -1: nobody.
std::atomic<int> stop_file = -1;

// Whether a signal was taken by what TellOfStop() names.
bool Told(int number) {
  if (number == SIGHUP) return false;
  const int file = stop_file.exchange(-1);
  return file >= 0 && write(file, "", 1) == 1;
}

// The thread that waits for signals.
void* WaitForSignals(void* argument) {
  auto* const signals = static_cast<sigset_t*>(argument);
  int number = 0;
  while (sigwait(signals, &number) != 0 || Told(number)) {
  }
  List& list = TheList();
  // Held to the end: nothing new begins.
  list.mutex.lock();
  Clear(list);
  std::signal(number, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  kill(getpid(), number);
  while (true) pause();
}

}  // namespace

Leftover Leftover::Create(const std::string& start,
                          const std::function<int(const char*)>& make,
                          int& made) {
  List& list = TheList();
  const std::lock_guard lock(list.mutex);
  Leftover leftover;
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const std::string name = fmt::format("{}{:016x}", start, RandomNumber());
    made = make(name.c_str());
    if (made < 0 && errno == EEXIST) continue;
    if (made < 0) break;
    list.paths.push_back(name);
    leftover.path_ = name;
    break;
  }
  return leftover;
}

Leftover::~Leftover() {
  if (path_.empty()) return;
  List& list = TheList();
  const std::lock_guard lock(list.mutex);
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  std::erase(list.paths, path_);
}

int Leftover::MoveTo(const std::string& name) {
  List& list = TheList();
  const std::lock_guard lock(list.mutex);
  if (::rename(path_.c_str(), name.c_str()) != 0) return errno;
  std::erase(list.paths, path_);
  path_.clear();
  return 0;
}

UnfinishedFile UnfinishedFile::Beside(const std::string& name) {
  // A long name must leave room for its end.
  constexpr size_t kEnd = 5 + 16;
  const size_t slash = name.rfind('/');
  const size_t base = slash == std::string::npos ? 0 : slash + 1;
  const std::string start =
      name.substr(0, std::min(name.size(), base + NAME_MAX - kEnd)) + ".part";
  UnfinishedFile file;
  file.leftover = Leftover::Create(
      start,
      [](const char* path) {
        return ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      },
      file.fd);
  return file;
}

Result<Leftover> MakeTemporaryFolder() {
  const std::string root = TemporaryRoot();
  int made = -1;
  Leftover folder = Leftover::Create(
      root + "/lamina-", [](const char* path) { return mkdir(path, 0700); },
      made);
  if (made < 0) return Fail(NoTemporary(root));
  return folder;
}

Result<int> MakeTemporaryFile() {
  const std::string root = TemporaryRoot();
  int file = -1;
  // Its name goes at once, with the leftover.
  const Leftover name = Leftover::Create(
      root + "/lamina-",
      [](const char* path) {
        return ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      },
      file);
  if (file < 0) return Fail(NoTemporary(root));
  return file;
}

RunningChild::RunningChild(const std::function<pid_t()>& start) {
  List& list = TheList();
  const std::lock_guard lock(list.mutex);
  process_ = start();
  if (process_ > 0) list.children.push_back(process_);
}

RunningChild::~RunningChild() {
  List& list = TheList();
  const std::lock_guard lock(list.mutex);
  std::erase(list.children, process_);
}

void CleanUpOnSignals() {
  static sigset_t signals;
  sigemptyset(&signals);
  bool any = false;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    // nohup and shells without job control have some ignored.
    if (sigaction(number, nullptr, &action) != 0 ||
        action.sa_handler == SIG_IGN)
      continue;
    sigaddset(&signals, number);
    any = true;
  }
  if (!any || pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) return;
  TheList();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  constexpr size_t kStack = size_t{256} << 10;
  pthread_attr_setstacksize(&attributes, kStack);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread{};
  // Without a thread signals end the process as they would without us.
  if (pthread_create(&thread, &attributes, &WaitForSignals, &signals) != 0)
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  pthread_attr_destroy(&attributes);
}

void TellOfStop(int file) { stop_file = file; }

void RemoveLeftovers() {
  List& list = TheList();
  if (!list.mutex.try_lock()) return;
  Clear(list);
  list.mutex.unlock();
}

}  // namespace lamina
