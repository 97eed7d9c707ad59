// SPDX-License-Identifier: Apache-2.0
#include "engine/find_traces.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <glob.h>
#include <set>

#include "base/opened.h"
#include "base/text.h"

namespace lamina::engine {
namespace {

namespace fs = std::filesystem;

bool IsTraceName(const std::string& name) {
  static constexpr std::array<std::string_view, 10> kEnds = {
      ".json", ".json.gz",  ".json.zst", ".trace.gz", ".sqlite",
      ".db",   ".nsys-rep", ".pb",       ".pftrace",  ".pb.gz"};
  // What stands beside traces: the truth of a sample, the facts of a capture.
  if (name.starts_with('.') || Contains(name, ".truth.") ||
      name == "execution_details.json")
    return false;
  return std::any_of(kEnds.begin(), kEnds.end(),
                     [&](std::string_view end) { return name.ends_with(end); });
}

// What has the name of a trace and is no file: links that lead nowhere, pipes,
// folders without a trace. They stay in the list, so that whoever reads it
// names each that cannot be read: no rank vanishes.
// A pipe would keep its reader waiting: it is an error at once.
Status AddUnreadable(const std::string& folder,
                     std::vector<std::string>& files) {
  std::error_code error;
  fs::recursive_directory_iterator at(
      folder, fs::directory_options::skip_permission_denied, error);
  const size_t known = files.size();
  for (; !error && at != fs::recursive_directory_iterator();
       at.increment(error)) {
    const fs::path& path = at->path();
    if (!IsTraceName(path.filename().string())) continue;
    std::error_code gone;
    const fs::file_status status = fs::status(path, gone);
    if (fs::is_regular_file(status)) continue;
    if (fs::exists(status) && !fs::is_directory(status)) {
      return Fail(InputError(
          path.string(), "is a pipe or device among the traces of a folder",
          "give it by itself, or take it out of the folder"));
    }
    const std::string inside = path.string() + "/";
    const bool holds = fs::is_directory(status) &&
                       std::any_of(files.begin(), files.begin() + known,
                                   [&](const std::string& file) {
                                     return file.starts_with(inside);
                                   });
    if (!holds) files.push_back(path.string());
  }
  return {};
}

Result<std::vector<std::string>> TracesBelow(const std::string& folder,
                                             bool snapshots) {
  std::vector<std::string> files = FilesBelow(folder);
  std::erase_if(files, [&](const std::string& file) {
    return !IsTraceName(fs::path(file).filename().string()) &&
           !(snapshots && HasSnapshotName(file));
  });
  // A list of what can be opened needs no more.
  if (!snapshots) LAMINA_TRY(AddUnreadable(folder, files));
  return files;
}

Result<std::vector<std::string>> Matching(const std::string& pattern,
                                          bool snapshots) {
  glob_t found{};
  std::vector<std::string> files;
  Status status;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) {
      std::error_code error;
      // A folder for each rank.
      if (fs::is_directory(found.gl_pathv[i], error)) {
        const auto inside = TracesBelow(found.gl_pathv[i], snapshots);
        if (!inside) {
          status = Fail(inside.error());
          break;
        }
        files.insert(files.end(), inside->begin(), inside->end());
        if (!inside->empty()) continue;
      }
      files.emplace_back(found.gl_pathv[i]);
    }
  }
  globfree(&found);
  LAMINA_TRY(std::move(status));
  return files;
}

Result<std::vector<std::string>> Find(const std::vector<std::string>& arguments,
                                      bool snapshots) {
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (const std::string& argument : arguments) {
    std::vector<std::string> files;
    std::error_code error;
    if (fs::is_directory(argument, error)) {
      LAMINA_ASSIGN(files, TracesBelow(argument, snapshots));
      if (files.empty()) {
        const fs::directory_iterator readable(argument, error);
        if (error) {
          return Fail(InputError(argument,
                                 "cannot read the folder: " + error.message(),
                                 "check its permissions"));
        }
        return Fail(InputError(argument, "the folder holds no trace",
                               "traces end in .json, .json.gz, .sqlite, ..."));
      }
    } else if (fs::exists(argument, error) || argument == "-") {
      files = {argument};
    } else {
      LAMINA_ASSIGN(files, Matching(argument, snapshots));
      if (files.empty()) {
        const bool pattern = argument.find_first_of("*?[") != std::string::npos;
        return Fail(InputError(argument,
                               pattern ? "no file matches" : "no such file",
                               "give traces, a folder or a pattern"));
      }
    }
    std::sort(files.begin(), files.end(), NaturalLess);
    for (std::string& file : files) {
      if (!seen.insert(file).second) continue;
      NoteInput(file);
      out.push_back(std::move(file));
    }
  }
  return out;
}

}  // namespace

bool HasSnapshotName(std::string_view path) {
  const std::string_view name = path.substr(path.find_last_of('/') + 1);
  return !name.starts_with('.') &&
         (name.ends_with(".pickle") || name.ends_with(".pickle.gz"));
}

bool NaturalLess(std::string_view a, std::string_view b) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (!IsDigit(a[i]) || !IsDigit(b[j])) {
      if (a[i] != b[j])
        return static_cast<unsigned char>(a[i]) <
               static_cast<unsigned char>(b[j]);
      ++i;
      ++j;
      continue;
    }
    const auto number = [&](std::string_view text, size_t& at) {
      while (at < text.size() && text[at] == '0') ++at;
      const size_t begin = at;
      while (at < text.size() && IsDigit(text[at])) ++at;
      return text.substr(begin, at - begin);
    };
    const std::string_view x = number(a, i);
    const std::string_view y = number(b, j);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;  // "01" and "1"
}

Result<std::vector<std::string>> FindTraces(
    const std::vector<std::string>& arguments) {
  return Find(arguments, false);
}
Result<std::vector<std::string>> FindTracesAndSnapshots(
    const std::vector<std::string>& arguments) {
  return Find(arguments, true);
}

}  // namespace lamina::engine
