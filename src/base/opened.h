// SPDX-License-Identifier: Apache-2.0
//
// Which files this process reads, however they were named or found: no output
// may replace one of them, for a trace cannot be recorded again.
#pragma once

#include <string>
#include <sys/stat.h>

namespace lamina {

// The open file `fd`, or the file `path`, is an input. What is no regular file
// is not kept.
void NoteInput(int fd);
void NoteInput(const std::string& path);
// What is read under the name `path` is the open file `fd`, whatever the name
// leads to by now; `fd` stays open, in
// this process alone.
void ReadInstead(const std::string& path, int fd);
// The name to open for reading `path`: that of the open file, else `path`.
std::string NameToRead(const std::string& path);

// A file of our own that is read to be written anew.
void ForgetInput(const std::string& path);

// Whether two looks at a name saw one file, which was not written in between.
bool IsSame(const struct stat& a, const struct stat& b);

bool IsInput(int fd);
bool IsInput(const std::string& path);

}  // namespace lamina
