// SPDX-License-Identifier: Apache-2.0
//
// Longer than most: every way in which a name can lead outside is refused here
// and nowhere else.
#include "mcp/protocol/inputs.h"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/escape.h"
#include "base/opened.h"
#include "base/text.h"
#include "rules/document.h"

namespace lamina::mcp {
namespace {

namespace fs = std::filesystem;

// A folder with more is no folder of traces.
constexpr size_t kMostEntries = 200'000;
// Readers look for these beside the file that is named.
constexpr std::string_view kBeside[] = {
    "transform.log", "execution_details.json", ".lamina-findings.yaml"};

bool IsBelow(const std::string& path, const std::string& folder) {
  if (folder == "/" || path == folder) return true;
  return path.size() > folder.size() && path.starts_with(folder) &&
         path[folder.size()] == '/';
}

bool IsHandle(const std::string& text) {
  return text.size() == 14 && text.starts_with("t_") &&
         std::all_of(text.begin() + 2, text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

void AddToDigest(uint64_t number, uint64_t& hash) {
  hash = Fnv1a({reinterpret_cast<const char*>(&number), sizeof(number)}, hash);
}

// Size, first and last bytes: the end of a packed file holds its check sum.
uint64_t DigestOfFile(const std::string& path) {
  constexpr off_t kPart = off_t{64} << 10;
  uint64_t hash = Fnv1a("");
  const NameToRead name(path);
  const Descriptor file(
      ::open(name.text().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (file.open() && ::fstat(file.get(), &info) == 0) {
    AddToDigest(static_cast<uint64_t>(info.st_size), hash);
    std::string buffer(kPart, '\0');
    for (const off_t at : {off_t{0}, std::max(kPart, info.st_size - kPart)}) {
      const ssize_t got = ::pread(file.get(), buffer.data(), buffer.size(), at);
      if (got > 0) hash = Fnv1a({buffer.data(), size_t(got)}, hash);
    }
  }
  return hash;
}

uint64_t DigestOf(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return DigestOfFile(path);
  std::vector<std::string> files;
  for (fs::recursive_directory_iterator it(path, error), end;
       !error && it != end && files.size() < kMostEntries;
       it.increment(error)) {
    std::error_code none_there;
    const auto size = fs::file_size(it->path(), none_there);
    files.push_back(it->path().lexically_relative(path).string() + '\0' +
                    (none_there ? "" : std::to_string(size)));
  }
  std::sort(files.begin(), files.end());
  uint64_t hash = Fnv1a("folder");
  for (const std::string& file : files) hash = Fnv1a(file, hash);
  return hash;
}

std::string HandleText(uint64_t digest) {
  return fmt::format("t_{:012x}", digest >> 16);
}

std::string Quoted(const std::string& text) {
  return "'" + Shorten(EscapeTerminal(text), 200) + "'";
}

}  // namespace

std::vector<std::string> NearestOf(std::string_view word,
                                   std::vector<std::string_view> names) {
  std::vector<std::string> out;
  while (out.size() < 3) {
    const std::string_view near = rules::Nearest(word, names);
    if (near.empty()) break;
    out.emplace_back(near);
    std::erase(names, near);
  }
  return out;
}

Result<std::unique_ptr<Inputs>> Inputs::Allow(
    const std::vector<std::string>& folders, const std::string& writable) {
  std::unique_ptr<Inputs> out(new Inputs);
  const auto folder = [](const std::string& name,
                         const char* option) -> Result<std::string> {
    std::string real = RealPath(name);
    std::error_code error;
    if (real.empty() || !fs::is_directory(real, error)) {
      return Fail(UsageError(
          std::string(option) + ": " + Quoted(name) + " is no folder",
          "give a folder that is there"));
    }
    return real;
  };
  for (const std::string& name : folders) {
    LAMINA_ASSIGN(std::string real, folder(name, "--allow"));
    out->folders_.push_back(std::move(real));
  }
  if (!writable.empty()) {
    LAMINA_ASSIGN(out->writable_, folder(writable, "--allow-write"));
  }
  return out;
}

bool Inputs::Inside(const std::string& real) const {
  return std::any_of(
      folders_.begin(), folders_.end(),
      [&](const std::string& folder) { return IsBelow(real, folder); });
}

Problem Inputs::Outside(const std::string& text) const {
  return UsageError(fmt::format("{} is outside the allowed folders {}",
                                Quoted(text), fmt::join(folders_, ", ")),
                    "start lamina mcp with --allow FOLDER to allow more");
}

tl::expected<std::string, Problem> Inputs::FromHandle(
    const std::string& text) const {
  std::string path;
  std::vector<std::string> known;
  {
    const std::lock_guard lock(mutex_);
    const auto found = handles_.find(text);
    if (found != handles_.end()) path = found->second;
    for (const auto& [handle, of] : handles_) known.push_back(handle);
  }
  if (path.empty()) {
    Problem problem(
        UsageError("there is no handle " + text + " in this server",
                   "call open_trace with the path; handles end with the "
                   "server that gave them"));
    problem.did_you_mean = NearestOf(text, {known.begin(), known.end()});
    return tl::make_unexpected(std::move(problem));
  }
  // The folder may have got a link since then.
  auto checked = Resolve(path);
  if (checked && HandleText(DigestOf(*checked)) != text) {
    return tl::make_unexpected(Problem(
        InputError(NameOf(path), "has changed since " + text + " was given",
                   "call open_trace again")));
  }
  return checked;
}

tl::expected<std::string, Problem> Inputs::Resolve(
    const std::string& text) const {
  const auto refuse = [](Problem problem) {
    return tl::make_unexpected(std::move(problem));
  };
  if (text.empty() || text.find('\0') != std::string::npos)
    return refuse(UsageError("the path is empty or has a NUL byte",
                             "give the path of a file or folder"));
  if (IsHandle(text)) return FromHandle(text);
  std::string wanted = text;
  std::string real;
  if (text[0] == '/') {
    real = RealPath(text);
  } else {
    wanted = folders_.front() + "/" + text;
    for (const std::string& folder : folders_) {
      real = RealPath(folder + "/" + text);
      if (!real.empty()) break;
    }
  }
  std::error_code error;
  if (real.empty()) {
    // What is said of a name outside does not depend on whether it is there.
    const fs::path path = fs::weakly_canonical(wanted, error);
    if (error || !Inside(path.string())) return refuse(Outside(text));
    Problem problem(InputError(Shorten(EscapeTerminal(text), 200),
                               "there is no such file or folder",
                               "list_traces shows what is there"));
    std::vector<std::string> names;
    const fs::path parent = path.parent_path();
    for (fs::directory_iterator it(parent, error), end;
         !error && it != end && names.size() < 10'000; it.increment(error))
      names.push_back(it->path().filename().string());
    std::sort(names.begin(), names.end());
    for (const std::string& near :
         NearestOf(path.filename().string(), {names.begin(), names.end()}))
      problem.did_you_mean.push_back(NameOf((parent / near).string()));
    return refuse(std::move(problem));
  }
  if (!Inside(real)) return refuse(Outside(text));
  const auto leads_outside = [&](const fs::path& link) {
    std::error_code ignored;
    if (!fs::is_symlink(link, ignored)) return false;
    const std::string target = RealPath(link.string());
    return !target.empty() && !Inside(target);
  };
  if (fs::is_regular_file(real, error)) {
    for (const std::string_view name : kBeside) {
      const fs::path beside = fs::path(real).parent_path() / name;
      if (leads_outside(beside)) return refuse(Outside(beside.string()));
    }
    return real;
  }
  if (!fs::is_directory(real, error)) {
    return refuse(UsageError(Quoted(text) + " is neither a file nor a folder",
                             "devices, sockets and pipes are not read"));
  }
  size_t entries = 0;
  for (fs::recursive_directory_iterator
           it(real, fs::directory_options::skip_permission_denied, error),
       end;
       !error && it != end; it.increment(error)) {
    if (++entries > kMostEntries) {
      return refuse(UsageError(Quoted(text) + " holds too many files",
                               "name a folder with traces only"));
    }
    if (leads_outside(it->path())) return refuse(Outside(it->path().string()));
  }
  return real;
}

tl::expected<std::string, Problem> Inputs::ResolveOutput(
    const std::string& text) const {
  if (writable_.empty()) {
    return tl::make_unexpected(
        Problem(UsageError("this server does not write files",
                           "start lamina mcp with --allow-write FOLDER")));
  }
  const fs::path path =
      text.starts_with('/') ? fs::path(text) : fs::path(writable_) / text;
  const std::string parent = RealPath(path.parent_path().string());
  const std::string name = path.filename().string();
  if (text.find('\0') != std::string::npos || name.empty() || name == "." ||
      name == ".." || parent.empty() || !IsBelow(parent, writable_)) {
    return tl::make_unexpected(Problem(UsageError(
        Quoted(text) + " is no new file below " + writable_,
        "give a name without folders, or one in a folder that is there")));
  }
  const std::string out = parent + "/" + name;
  std::error_code error;
  if (fs::symlink_status(out, error).type() != fs::file_type::not_found) {
    return tl::make_unexpected(
        Problem(UsageError(Quoted(text) + " is there already",
                           "nothing is replaced: give a name "
                           "that is not there yet")));
  }
  return out;
}

std::string Inputs::HandleOf(const std::string& path) {
  std::string handle = HandleText(DigestOf(path));
  const std::lock_guard lock(mutex_);
  handles_[handle] = path;
  return handle;
}

std::string Inputs::NameOf(const std::string& path) const {
  // Names are looked up in the first folder first.
  const std::string& folder = folders_.front();
  if (path == folder) return ".";
  if (!IsBelow(path, folder)) return path;
  const std::string name = path.substr(folder == "/" ? 1 : folder.size() + 1);
  return name.starts_with('-') ? "./" + name : name;
}

}  // namespace lamina::mcp
