// SPDX-License-Identifier: Apache-2.0
//
// What a run that ends early must not leave behind: unfinished files, temporary
// files and folders, running children. Each is kept in one list from the moment
// it is made; signals and a lack of memory clear the list before the end.
#pragma once

#include <functional>
#include <string>
#include <sys/types.h>
#include <utility>

#include "base/status.h"

namespace lamina {

// A file or folder that is removed, with all in it, when this goes away.
class Leftover {
 public:
  Leftover() = default;
  Leftover(Leftover&& other) noexcept
      : path_(std::exchange(other.path_, std::string())) {}
  Leftover& operator=(Leftover&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~Leftover();

  const std::string& path() const { return path_; }
  // Renames it to `name`, where it stays. Returns an errno, 0 when done.
  int MoveTo(const std::string& name);

  // Makes something, by `make` of a name, which returns a number or -1 and
  // errno; names are `start` and 16 digits that nobody can foresee, until one
  // is free. Sets `made` to what `make` returned.
  static Leftover Create(const std::string& start,
                         const std::function<int(const char*)>& make,
                         int& made);

 private:
  std::string path_;
};

// A new file beside its later place, "NAME.part" and 16 digits, open for
// writing: `fd` is -1 and errno says why where it cannot be made. Its mode is
// what the umask leaves, as for any output.
struct UnfinishedFile {
  int fd = -1;
  Leftover leftover;

  static UnfinishedFile Beside(const std::string& name);
};

// A folder in $TMPDIR, or /tmp, of this user only. Errors: it cannot be made
// there; the message names TMPDIR.
Result<Leftover> MakeTemporaryFolder();
// A file there that has no name and is gone when it is closed.
Result<int> MakeTemporaryFile();

// Children by process group, from their start to their end.
class RunningChild {
 public:
  // Starts it by `start`, which returns its process or -1, while no signal can
  // end this process: either it never starts or it is in the list.
  explicit RunningChild(const std::function<pid_t()>& start);
  ~RunningChild();
  RunningChild(const RunningChild&) = delete;
  RunningChild& operator=(const RunningChild&) = delete;
  pid_t process() const { return process_; }

 private:
  pid_t process_;
};

// From now on SIGINT, SIGTERM and SIGHUP, where they are not ignored, remove
// the leftovers and then end the process as they do. Call once, before other
// threads start.
void CleanUpOnSignals();

// The first SIGINT or SIGTERM after CleanUpOnSignals() no longer ends the
// process: a byte is written to this descriptor. The next one ends it.
void TellOfStop(int file);

// Removes what is in the list and ends the children, when this process is about
// to end without unwinding. Waits for nobody: nothing where the list is in use.
void RemoveLeftovers();

}  // namespace lamina
