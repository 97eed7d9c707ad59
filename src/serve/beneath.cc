// SPDX-License-Identifier: Apache-2.0
#include "serve/beneath.h"

#include <cerrno>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"

namespace lamina::serve {
namespace {

// A pipe with no writer is opened, too, and then is no regular file.
constexpr int kRead = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

Descriptor Regular(Descriptor file) {
  struct stat info {};
  if (!file.open() || ::fstat(file.get(), &info) != 0) return Descriptor();
  if (S_ISREG(info.st_mode)) return file;
  errno = EINVAL;
  return Descriptor();
}

}  // namespace

Descriptor HoldFolder(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

Descriptor OpenBeneath(const Descriptor& folder, const std::string& name) {
  open_how how{};
  how.flags = kRead;
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
    return OpenByParts(folder, name);
  return Regular(Descriptor(static_cast<int>(got)));
}

Descriptor OpenByParts(const Descriptor& folder, const std::string& name) {
  std::string_view rest = name;
  Descriptor at;
  int from = folder.get();
  while (true) {
    const std::string part(TakeUntil(rest, '/'));
    if (part.empty() || part == "." || part == "..") {
      errno = EXDEV;
      return Descriptor();
    }
    const int flags = rest.empty() ? kRead : O_PATH | O_DIRECTORY | O_CLOEXEC;
    Descriptor next(::openat(from, part.c_str(), flags | O_NOFOLLOW));
    if (rest.empty() || !next.open()) return Regular(std::move(next));
    at = std::move(next);
    from = at.get();
  }
}

}  // namespace lamina::serve
