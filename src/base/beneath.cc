// SPDX-License-Identifier: Apache-2.0
#include "base/beneath.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"

namespace lamina {
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
