// SPDX-License-Identifier: Apache-2.0
#include "base/files_below.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <utility>

namespace lamina {
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

}  // namespace lamina
