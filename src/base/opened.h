// SPDX-License-Identifier: Apache-2.0
//
// Files by their names: which files this process reads, so that no output may
// replace one of them (a trace cannot be recorded again); the files below a
// folder, each once; and files of a folder that is held open, never what a link
// there leads to.
#pragma once

#include <cstdint>
#include <string>
#include <sys/stat.h>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "lamina/status.h"

namespace lamina {

// Which files this process reads, however they were named or found: no output
// may replace one of them, for a trace cannot be recorded again.

// The open file `fd`, or the file `path`, is an input. What is no regular file
// is not kept.
void NoteInput(int fd);
void NoteInput(const std::string& path);
// What is read under the name `path` is the open file `fd`, whatever the name
// leads to by now; `fd` stays open, in
// this process alone.
void ReadInstead(const std::string& path, int fd);
bool IsReadInstead(const std::string& path);

// From now on names are read below these folders alone: whoever puts a link in
// the place of a file or a folder, at whatever moment, does not lead out of
// them. Links that stay inside are followed. Called once, before there are
// other threads. Errors: a folder that is none.
Status ReadBelow(const std::vector<std::string>& folders);
// A file that this process has made to read it, wherever that is.
void ReadAlso(const std::string& path);

// A path without links; empty, and errno: it is not there.
std::string RealPath(const std::string& path);

// What to open for reading `path`: the open file of ReadInstead(), or what is
// held of a name below the folders of ReadBelow(), else `path`.
class NameToRead {
 public:
  explicit NameToRead(const std::string& path);
  // Good as long as this lives.
  const std::string& text() const { return text_; }
  // Why it may not be read, as errno; 0: it may.
  int error() const { return error_; }

 private:
  std::string text_;
  int error_ = 0;
  Descriptor held_;
};

// A file of our own that is read to be written anew.
void ForgetInput(const std::string& path);

// From now on the first look at every input is kept, and outputs are put in
// place only while all inputs are as they were: a trace that is still written
// gives no copy that mixes its states. For programs that answer once.
void WatchInputs();
// Errors: an input that was written since, named; of WatchedInputs, too.
Status InputsUnchanged();

// A number that differs when what is read under a name is another file or was
// written since: the file with what readers take from beside it (logs of
// databases, what captures and rules lay there), or all files of a folder.
// 0: nothing is there.
uint64_t StateOfInput(const std::string& path);

// While it lives, outputs that its thread finishes are put in place only while
// the inputs that were added are as they were: for programs that answer many
// times, each time with inputs of its own. Within another one both count.
class WatchedInputs {
 public:
  WatchedInputs();
  ~WatchedInputs();
  WatchedInputs(const WatchedInputs&) = delete;
  WatchedInputs& operator=(const WatchedInputs&) = delete;

  // As it is now; of a folder every file below it.
  void Add(const std::string& path);
  // As it was when it was read, by StateOfInput().
  void Add(const std::string& path, uint64_t state);
  // Errors: one that was written since, of this and those around it.
  Status Unchanged() const;

 private:
  std::vector<std::pair<std::string, uint64_t>> inputs_;
  WatchedInputs* const around_;
};

// Whether two looks at a name saw one file, which was not written in between.
bool IsSame(const struct stat& a, const struct stat& b);

bool IsInput(int fd);
bool IsInput(const std::string& path);

// The files of a folder and of the folders below it.

// Regular files, each once whatever links lead to it or around: by device and
// inode, under the name without links where it has one, else under the first
// in order of names. Folders that cannot be read are passed over. Names begin
// with `folder`; they are sorted. `most_depth`: 0 for the folder alone.
std::vector<std::string> FilesBelow(const std::string& folder,
                                    int most_depth = 64);

// Files of a folder that is held open: what stands under a name now, and never
// what a link there leads to, whoever changes names meanwhile.

// A folder, which is meant from now on wherever its name leads; not open, and
// errno, when there is none.
Descriptor HoldFolder(const std::string& path);

// The file or folder `name` below it, to be looked at alone: who opens
// /proc/self/fd/N reads this one. Errors as of OpenBeneath.
Descriptor HoldBeneath(const Descriptor& folder, const std::string& name);

// The regular file `name` ("a/b.json") below a folder, for reading; not open,
// and errno, when there is none: ELOOP where a link stands, EXDEV for a name
// that leads out, EINVAL for what is no regular file. Nothing else is opened:
// devices and pipes notice that.
Descriptor OpenBeneath(const Descriptor& folder, const std::string& name);

// The same for kernels that cannot do it at once, one folder after the other.
Descriptor HoldByParts(const Descriptor& folder, const std::string& name);
Descriptor OpenByParts(const Descriptor& folder, const std::string& name);

// What to tell of that errno, for people.
std::string WhyNotOpened(int number);

}  // namespace lamina
