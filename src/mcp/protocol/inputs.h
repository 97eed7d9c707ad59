// SPDX-License-Identifier: Apache-2.0
//
// Which files a client may name: those below allowed folders, wherever links
// lead. A handle ("t_" and 12 hexadecimal digits) stands for a file whose
// content is as it was when the handle was given.
//
// What is checked here is the name of a moment, so that what is said of it is
// right; that no link leads out when it is read is held by ReadBelow() of
// base/opened.h.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "mcp/protocol/tool.h"

namespace lamina::mcp {

class Inputs {
 public:
  // Folders that there are. `writable`: where tools that write may do so.
  // Errors: a folder that is none.
  static Result<std::unique_ptr<Inputs>> Allow(
      const std::vector<std::string>& folders, const std::string& writable);

  // The file or folder that `text` names, absolute and without links. Errors:
  // kUsage for what is outside or no regular file, kInput for what is not
  // there, with names that are near.
  tl::expected<std::string, Problem> Resolve(const std::string& text) const;
  // A file to write, which must not be there yet.
  tl::expected<std::string, Problem> ResolveOutput(
      const std::string& text) const;

  // Remembers a resolved path and gives its handle. By content: size, first
  // and last bytes; of a folder the names and sizes of its files.
  std::string HandleOf(const std::string& path);
  // The shortest name of a resolved path that Resolve takes back: that below
  // the first folder. It begins with no "-".
  std::string NameOf(const std::string& path) const;

  const std::vector<std::string>& folders() const { return folders_; }

 private:
  Inputs() = default;
  bool Inside(const std::string& real) const;
  Problem Outside(const std::string& text) const;
  tl::expected<std::string, Problem> FromHandle(const std::string& text) const;

  std::vector<std::string> folders_;  // real
  std::string writable_;              // real; empty: nothing is written
  mutable std::mutex mutex_;
  std::map<std::string, std::string> handles_;  // to paths
};

// Up to three of `names` that are near to `word`, the nearest first.
std::vector<std::string> NearestOf(std::string_view word,
                                   std::vector<std::string_view> names);

}  // namespace lamina::mcp
