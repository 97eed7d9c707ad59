// SPDX-License-Identifier: Apache-2.0

#include "base/opened.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <linux/openat2.h>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <tuple>
#include <unistd.h>
#include <utility>

#include "base/status.h"
#include "base/text.h"

namespace lamina {

namespace {

// Device, inode, and the time when it was made: the number of a file that was
// removed is used again.
using FileId = std::tuple<uint64_t, uint64_t, int64_t, uint32_t>;

std::optional<FileId> IdOf(int at, const char* path, int flags) {
  struct statx info {};
  if (statx(at, path, flags, STATX_TYPE | STATX_INO | STATX_BTIME, &info) !=
          0 ||
      !S_ISREG(info.stx_mode))
    return std::nullopt;
  const uint64_t device =
      uint64_t{info.stx_dev_major} << 32 | info.stx_dev_minor;
  const bool born = (info.stx_mask & STATX_BTIME) != 0;
  return FileId(device, info.stx_ino, born ? info.stx_btime.tv_sec : 0,
                born ? info.stx_btime.tv_nsec : 0);
}

std::optional<FileId> IdOf(int fd) { return IdOf(fd, "", AT_EMPTY_PATH); }
std::optional<FileId> IdOf(const std::string& path) {
  return IdOf(AT_FDCWD, path.c_str(), 0);
}

struct Known {
  std::mutex mutex;
  std::set<FileId> files;
  bool watch = false;
  std::map<std::string, struct stat> first;  // by name
  std::map<std::string, int> instead;
  std::set<std::string> also;
  // Real paths, each held from when it was named. They stay.
  std::vector<std::pair<std::string, Descriptor>> folders;
};

Known& TheKnown() {
  static Known* const known = new Known;
  return *known;
}

void Note(const std::optional<FileId>& file) {
  if (!file) return;
  Known& known = TheKnown();
  const std::lock_guard lock(known.mutex);
  known.files.insert(*file);
}

bool Knows(const std::optional<FileId>& file) {
  if (!file) return false;
  Known& known = TheKnown();
  const std::lock_guard lock(known.mutex);
  return known.files.contains(*file);
}

}  // namespace

namespace {

void Watch(const std::string& name, const struct stat& info) {
  Known& known = TheKnown();
  const std::lock_guard lock(known.mutex);
  if (known.watch && S_ISREG(info.st_mode)) known.first.try_emplace(name, info);
}

}  // namespace

void NoteInput(int fd) {
  Note(IdOf(fd));
  std::array<char, PATH_MAX> name{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  struct stat info {};
  if (::fstat(fd, &info) == 0 &&
      ::readlink(link.c_str(), name.data(), name.size() - 1) > 0)
    Watch(name.data(), info);
}
void NoteInput(const std::string& path) {
  Note(IdOf(path));
  struct stat info {};
  const std::string real = RealPath(path);
  if (!real.empty() && ::stat(real.c_str(), &info) == 0) Watch(real, info);
}

void WatchInputs() {
  Known& known = TheKnown();
  const std::lock_guard lock(known.mutex);
  known.watch = true;
}

namespace {

thread_local WatchedInputs* watched_inputs = nullptr;

Error ChangedError(const std::string& name) {
  return InputError(name, "changed while it was read; no output was written",
                    "let the profiler end, then run it again");
}

}  // namespace

WatchedInputs::WatchedInputs() : around_(watched_inputs) {
  watched_inputs = this;
}

WatchedInputs::~WatchedInputs() { watched_inputs = around_; }

void WatchedInputs::Add(const std::string& path) {
  struct stat info {};
  if (::stat(NameToRead(path).text().c_str(), &info) == 0 &&
      S_ISDIR(info.st_mode)) {
    // Not the folder itself: outputs may be made there.
    for (const std::string& file : FilesBelow(path))
      Add(file, StateOfInput(file));
  } else {
    Add(path, StateOfInput(path));
  }
}

void WatchedInputs::Add(const std::string& path, uint64_t state) {
  if (state != 0) inputs_.emplace_back(path, state);
}

Status WatchedInputs::Unchanged() const {
  for (const auto& [path, state] : inputs_) {
    const uint64_t now = StateOfInput(path);
    // What was removed was read whole, or its reader has failed.
    if (now != 0 && now != state) return Fail(ChangedError(path));
  }
  return around_ == nullptr ? Status() : around_->Unchanged();
}

Status InputsUnchanged() {
  if (watched_inputs != nullptr) LAMINA_TRY(watched_inputs->Unchanged());
  Known& known = TheKnown();
  const std::lock_guard lock(known.mutex);
  for (const auto& [name, first] : known.first) {
    struct stat now {};
    // What was removed was read whole, or its reader has failed.
    if (::stat(name.c_str(), &now) != 0 || IsSame(first, now)) continue;
    return Fail(ChangedError(name));
  }
  return {};
}

bool IsInput(int fd) { return Knows(IdOf(fd)); }
bool IsInput(const std::string& path) { return Knows(IdOf(path)); }

void ReadInstead(const std::string& path, int fd) {
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  Known& known = TheKnown();
  const std::lock_guard lock(known.mutex);
  known.instead[path] = fd;
}

bool IsReadInstead(const std::string& path) {
  Known& known = TheKnown();
  const std::lock_guard lock(known.mutex);
  return known.instead.contains(path);
}

Status ReadBelow(const std::vector<std::string>& folders) {
  std::vector<std::pair<std::string, Descriptor>> held;
  for (const std::string& folder : folders) {
    std::string real = RealPath(folder);
    if (real.empty()) return Fail(InputError(folder, WhyNotOpened(errno)));
    Descriptor open = HoldFolder(real);
    if (!open.open()) return Fail(InputError(folder, WhyNotOpened(errno)));
    held.emplace_back(std::move(real), std::move(open));
  }
  Known& known = TheKnown();
  const std::lock_guard lock(known.mutex);
  LAMINA_CHECK(known.folders.empty());
  known.folders = std::move(held);
  return {};
}

void ReadAlso(const std::string& path) {
  Known& known = TheKnown();
  const std::lock_guard lock(known.mutex);
  known.also.insert(path);
}

std::string RealPath(const std::string& path) {
  char* const found = ::realpath(path.c_str(), nullptr);
  if (found == nullptr) return {};
  std::string out(found);
  std::free(found);
  return out;
}

NameToRead::NameToRead(const std::string& path) : text_(path) {
  constexpr const char* kOpenFiles = "/proc/self/fd/";
  Known& known = TheKnown();
  std::unique_lock lock(known.mutex);
  if (const auto found = known.instead.find(path);
      found != known.instead.end()) {
    text_ = kOpenFiles + std::to_string(found->second);
    return;
  }
  if (known.folders.empty() || known.also.contains(path)) return;
  lock.unlock();
  const std::string real = RealPath(path);
  error_ = real.empty() ? errno : EXDEV;
  for (const auto& [folder, open] : known.folders) {
    const std::string before = folder == "/" ? folder : folder + "/";
    if (real == folder) {
      error_ = 0;
      text_ = kOpenFiles + std::to_string(open.get());
      return;
    }
    if (!real.starts_with(before)) continue;
    // Who changes names behind RealPath() is not followed.
    held_ = HoldBeneath(open, real.substr(before.size()));
    struct stat info {};
    error_ = !held_.open() || ::fstat(held_.get(), &info) != 0 ? errno
             : S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)  ? 0
                                                               : EINVAL;
    break;
  }
  // A name that nothing has.
  text_ = kOpenFiles + std::to_string(error_ == 0 ? held_.get() : -1);
}

bool IsSame(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino &&
         a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

uint64_t StateOfInput(const std::string& path) {
  uint64_t hash = Fnv1a("");
  const auto add = [&](const std::string& name) {
    struct stat info {};
    if (::stat(NameToRead(name).text().c_str(), &info) != 0) return false;
    for (const auto number : {static_cast<uint64_t>(info.st_dev),
                              static_cast<uint64_t>(info.st_ino),
                              static_cast<uint64_t>(info.st_size),
                              static_cast<uint64_t>(info.st_mtim.tv_sec),
                              static_cast<uint64_t>(info.st_mtim.tv_nsec),
                              static_cast<uint64_t>(info.st_ctim.tv_sec),
                              static_cast<uint64_t>(info.st_ctim.tv_nsec)}) {
      hash =
          Fnv1a({reinterpret_cast<const char*>(&number), sizeof(number)}, hash);
    }
    hash = Fnv1a(name, hash);
    return true;
  };
  if (!add(path)) return 0;
  const size_t slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "" : path.substr(0, slash + 1);
  for (const char* const end : {"-wal", "-journal"}) add(path + end);
  for (const char* const name :
       {"transform.log", "execution_details.json", ".lamina-findings.yaml"})
    add(folder + name);
  struct stat info {};
  if (::stat(NameToRead(path).text().c_str(), &info) == 0 &&
      S_ISDIR(info.st_mode)) {
    for (const std::string& file : FilesBelow(path)) add(file);
  }
  return hash == 0 ? 1 : hash;
}

void ForgetInput(const std::string& path) {
  const auto file = IdOf(path);
  if (!file) return;
  Known& known = TheKnown();
  const std::lock_guard lock(known.mutex);
  known.files.erase(*file);
  known.first.erase(RealPath(path));
}

namespace {

namespace fs = std::filesystem;

// What is really there first, then link by link in order of names: a file
// keeps the name that needs no link, and no folder is entered twice.
class Walk {
 public:
  explicit Walk(int most_depth) : most_depth_(most_depth) {}

  std::vector<std::string> Run(const std::string& folder) {
    Enter(folder, 0);
    // Links that are found behind links join the end of the list.
    for (size_t i = 0; i < links_.size(); ++i) {
      const auto [path, depth] = links_[i];
      Take(path, depth);
    }
    std::sort(files_.begin(), files_.end());
    return std::move(files_);
  }

 private:
  // True the first time that a file or folder is met.
  bool IsNew(const struct stat& info) {
    return seen_.emplace(info.st_dev, info.st_ino).second;
  }

  void Take(const std::string& path, int depth) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return;
    if (S_ISDIR(info.st_mode)) {
      if (depth <= most_depth_) Enter(path, depth);
    } else if (S_ISREG(info.st_mode) && IsNew(info)) {
      files_.push_back(path);
    }
  }

  void Enter(const std::string& folder, int depth) {
    struct stat info {};
    if (::stat(folder.c_str(), &info) != 0 || !IsNew(info)) return;
    std::vector<std::string> inside;
    std::vector<std::pair<std::string, int>> links;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end;
         it.increment(error)) {
      const std::string path = it->path().string();
      std::error_code ignored;
      if (it->is_symlink(ignored)) {
        links.emplace_back(path, depth + 1);
      } else {
        inside.push_back(path);
      }
    }
    std::sort(inside.begin(), inside.end());
    std::sort(links.begin(), links.end());
    links_.insert(links_.end(), links.begin(), links.end());
    for (const std::string& path : inside) Take(path, depth + 1);
  }

  int most_depth_;
  std::set<std::pair<dev_t, ino_t>> seen_;
  std::vector<std::string> files_;
  std::vector<std::pair<std::string, int>> links_;
};

}  // namespace

std::vector<std::string> FilesBelow(const std::string& folder, int most_depth) {
  return Walk(most_depth).Run(folder);
}

namespace {

// What stands there, for looking at alone.
constexpr int kLook = O_PATH | O_CLOEXEC;

// Opens what is held, when it is a regular file.
Descriptor Regular(const Descriptor& held) {
  struct stat info {};
  if (!held.open() || ::fstat(held.get(), &info) != 0) return Descriptor();
  if (!S_ISREG(info.st_mode)) {
    errno = S_ISLNK(info.st_mode) ? ELOOP : EINVAL;
    return Descriptor();
  }
  // No wait for whoever holds a lease on it.
  const std::string name = "/proc/self/fd/" + std::to_string(held.get());
  return Descriptor(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

}  // namespace

Descriptor HoldFolder(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

Descriptor HoldBeneath(const Descriptor& folder, const std::string& name) {
  open_how how{};
  how.flags = kLook;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  // EAGAIN: something on the way was renamed meanwhile.
  constexpr int kTries = 100;
  long got = -1;
  for (int i = 0; i < kTries; ++i) {
    got = ::syscall(SYS_openat2, folder.get(), name.c_str(), &how, sizeof(how));
    if (got >= 0 || (errno != EAGAIN && errno != EINTR)) break;
  }
  // Before Linux 5.6, or where a sandbox does not know it.
  if (got < 0 && (errno == ENOSYS || errno == EPERM))
    return HoldByParts(folder, name);
  Descriptor held(static_cast<int>(got));
  struct stat info {};
  if (held.open() && ::fstat(held.get(), &info) == 0 && S_ISLNK(info.st_mode)) {
    errno = ELOOP;
    return Descriptor();
  }
  return held;
}

Descriptor OpenBeneath(const Descriptor& folder, const std::string& name) {
  return Regular(HoldBeneath(folder, name));
}

Descriptor OpenByParts(const Descriptor& folder, const std::string& name) {
  return Regular(HoldByParts(folder, name));
}

Descriptor HoldByParts(const Descriptor& folder, const std::string& name) {
  std::string_view rest = name;
  Descriptor at;
  int from = folder.get();
  while (true) {
    const std::string part(TakeUntil(rest, '/'));
    if (part.empty() || part == "." || part == "..") {
      errno = EXDEV;
      return Descriptor();
    }
    // The link itself where one stands. A folder need not be readable.
    Descriptor next(::openat(from, part.c_str(), kLook | O_NOFOLLOW));
    struct stat info {};
    if (!next.open() || ::fstat(next.get(), &info) != 0) return Descriptor();
    if (S_ISLNK(info.st_mode)) {
      errno = ELOOP;
      return Descriptor();
    }
    if (rest.empty()) return next;
    at = std::move(next);
    from = at.get();
  }
}

std::string WhyNotOpened(int number) {
  switch (number) {
    case ELOOP:
      return "a link has taken its place, which is not followed";
    case EXDEV:
      return "it lies outside of the folders that may be read";
    case EACCES:
    case EPERM:
      return "it may not be read";
    case EINVAL:
      return "it is no regular file any more";
    case ENOENT:
      return "the file is not there any more";
    case ENOTDIR:
      return "its folder is none any more";
    case EMFILE:
    case ENFILE:
      return "too many files are open: close some traces";
    case EAGAIN:
      return "something else is changing it: open it again";
    default:
      return std::string("it cannot be opened: ") + std::strerror(number);
  }
}

}  // namespace lamina
