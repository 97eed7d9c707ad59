// SPDX-License-Identifier: Apache-2.0

#include "snapshot/cache.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/descriptor.h"
#include "base/leftovers.h"
#include "base/opened.h"
#include "snapshot/facts.h"

namespace lamina::snapshot {

namespace {

constexpr std::string_view kEnding = ".lsnap";
// Parts of files that a run left which could not clean up.
constexpr int64_t kForgottenSeconds = 24 * 3600;
constexpr uint64_t kMostBytes = uint64_t{10} << 30;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

// As the XDG rules have it, a path that is not absolute is none.
std::string Folder() {
  for (const auto& [variable, below] : {std::pair("LAMINA_CACHE_DIR", ""),
                                        std::pair("XDG_CACHE_HOME", "/lamina"),
                                        std::pair("HOME", "/.cache/lamina")}) {
    const std::string value = Variable(variable);
    if (value.starts_with('/')) return value + below;
  }
  return {};
}

// "2G", "500M", "0"; nothing for what is no size.
std::optional<uint64_t> ParseSize(const std::string& text) {
  uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, text.data() + text.size());
  if (error != std::errc() || end == text.data()) return std::nullopt;
  for (const std::string_view tail : {"iB", "B", "i"}) {
    if (unit.size() > tail.size() && unit.ends_with(tail))
      unit.remove_suffix(tail.size());
  }
  constexpr std::string_view kUnits = "KMGT";
  int shift = 0;
  if (unit == "B") unit = {};
  if (!unit.empty()) {
    const size_t at = kUnits.find(unit);
    if (unit.size() != 1 || at == std::string_view::npos) return std::nullopt;
    shift = 10 * (static_cast<int>(at) + 1);
  }
  if (number > (~uint64_t{0} >> shift)) return std::nullopt;
  return number << shift;
}

// A tenth of the file system that the folder is on, or will be.
uint64_t UsualLimit(std::string folder) {
  struct statvfs info {};
  while (!folder.empty() && ::statvfs(folder.c_str(), &info) != 0)
    folder.resize(folder.rfind('/'));
  if (folder.empty() && ::statvfs("/", &info) != 0) return kMostBytes;
  return std::min(kMostBytes,
                  uint64_t{info.f_blocks} * uint64_t{info.f_frsize} / 10);
}

// Nobody but this user can have written it.
bool IsOwn(const struct stat& info) {
  return info.st_uid == ::geteuid() && (info.st_mode & 022) == 0;
}

int64_t Now() { return static_cast<int64_t>(::time(nullptr)); }

struct FileInFolder {
  std::string path;
  uint64_t bytes;
  int64_t used_s;
};

// Snapshots, the one that was not used for longest first; and unfinished files.
struct Content {
  std::vector<FileInFolder> files;
  std::vector<FileInFolder> parts;
};

// As LookAt() names files, and unfinished ones beside them: whatever else lies
// in the folder is somebody else's.
bool IsOurs(std::string_view name, bool* part) {
  const size_t stem = name.find_first_not_of("0123456789abcdef");
  if (stem == 0 || stem == std::string_view::npos) return false;
  name.remove_prefix(stem);
  *part = name.starts_with(".lsnap.part");
  return *part || name == kEnding;
}

Content ContentOf(const std::string& folder) {
  Content content;
  DIR* const directory = ::opendir(folder.c_str());
  if (directory == nullptr) return content;
  while (const dirent* const entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    bool part = false;
    if (!IsOurs(name, &part)) continue;
    const std::string path = folder + "/" + std::string(name);
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    (part ? content.parts : content.files)
        .push_back({path, static_cast<uint64_t>(info.st_size),
                    static_cast<int64_t>(info.st_mtim.tv_sec)});
  }
  ::closedir(directory);
  std::sort(content.files.begin(), content.files.end(),
            [](const FileInFolder& a, const FileInFolder& b) {
              return std::tie(a.used_s, a.path) < std::tie(b.used_s, b.path);
            });
  return content;
}

// Removes what was not used for longest until `bytes` are left; `except` stays.
uint64_t RemoveOldest(const Content& content, uint64_t bytes,
                      const std::string& except) {
  uint64_t sum = 0, removed = 0;
  for (const FileInFolder& file : content.files) sum += file.bytes;
  for (const FileInFolder& file : content.files) {
    if (sum <= bytes) break;
    if (file.path == except || ::unlink(file.path.c_str()) != 0) continue;
    sum -= file.bytes;
    ++removed;
  }
  for (const FileInFolder& part : content.parts) {
    if (Now() - part.used_s > kForgottenSeconds) ::unlink(part.path.c_str());
  }
  return removed;
}

}  // namespace

bool IsOff() {
  const std::string value = Variable("LAMINA_CACHE");
  return value == "off" || value == "0";
}

std::string WrongLimit() {
  std::string value = Variable("LAMINA_CACHE_LIMIT");
  return ParseSize(value) ? std::string() : value;
}

Cache::Cache(StageTimes* times) : times_(times), folder_(Folder()) {
  if (folder_.empty()) return;
  limit_ =
      ParseSize(Variable("LAMINA_CACHE_LIMIT")).value_or(UsualLimit(folder_));
}

void Cache::Note(std::string text) const {
  if (times_ != nullptr) times_->Note("cache", std::move(text));
}

std::optional<trace::Trace> Cache::Find(const InputState& input,
                                        int threads) const {
  if (folder_.empty()) {
    Note("there is no folder for it");
    return std::nullopt;
  }
  const std::string path = folder_ + "/" + input.file;
  struct stat info {};
  // Who may write to the folder may put any file into it.
  if (::stat(folder_.c_str(), &info) == 0 && !IsOwn(info)) {
    Note(folder_ + ": is not a folder that only this user can write");
    return std::nullopt;
  }
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.open() || ::fstat(file.get(), &info) != 0) {
    Note(errno == ENOENT ? "has none of this trace"
                         : path + ": " + std::strerror(errno));
    return std::nullopt;
  }
  if (!S_ISREG(info.st_mode) || !IsOwn(info)) {
    Note(path + ": is not a file that only this user can write");
    return std::nullopt;
  }
  const ScopedStage stage(times_, "map");
  const auto mapping =
      Mapping::Of(file.get(), static_cast<size_t>(info.st_size), threads);
  Result<trace::Trace> trace = mapping == nullptr
                                   ? Fail(InputError(path, "cannot be mapped"))
                                   : Read(mapping, input.key, threads);
  if (!trace) {
    Note(path + ": " + trace.error().what);
    ::unlink(path.c_str());
    return std::nullopt;
  }
  trace->info.file = input.path;
  NoteInput(input.path);
  // When it was used last, to the hour.
  constexpr int64_t kHour = 3600;
  if (Now() - info.st_mtim.tv_sec > kHour) ::futimens(file.get(), nullptr);
  Note("mapped " + path);
  return std::move(*trace);
}

bool Cache::MakeFolder() const {
  for (size_t slash = folder_.find('/', 1);;
       slash = folder_.find('/', slash + 1)) {
    const std::string part = folder_.substr(0, slash);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST &&
        slash == std::string::npos) {
      Note(part + ": " + std::strerror(errno));
      return false;
    }
    if (slash == std::string::npos) break;
  }
  struct stat info {};
  if (::stat(folder_.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) ||
      !IsOwn(info)) {
    Note(folder_ + ": is not a folder that only this user can write");
    return false;
  }
  return true;
}

void Cache::Keep(const InputState& input, const trace::Trace& trace,
                 int threads) const {
  if (folder_.empty() || limit_ == 0) return;
  if (std::max(trace.info.input_bytes, trace.info.file_bytes) <
          kLeastInputBytes &&
      Variable("LAMINA_CACHE") != "always")
    return;
  if (!input.quiet) return Note("the input was changed just now");
  const auto now = LookAt(input.path);
  if (!now || now->key != input.key || trace.info.file != input.path)
    return Note("the input changed while it was read");
  if (!MakeFolder()) return;
  const ScopedStage stage(times_, "keep");
  const std::string path = folder_ + "/" + input.file;
  UnfinishedFile part = UnfinishedFile::Beside(path);
  const Descriptor file(part.fd);
  if (part.fd < 0 || ::fchmod(part.fd, 0600) != 0)
    return Note(path + ": " + std::strerror(errno));
  std::string absolute = input.path;
  if (char* const real = ::realpath(input.path.c_str(), nullptr)) {
    absolute = real;
    std::free(real);
  }
  const auto written = Write(trace, input.key, absolute, part.fd, threads);
  if (!written) return Note(path + ": " + written.error().what);
  // One trace may not drive out all others.
  if (*written > limit_ / 2)
    return Note("the trace takes more than half of the limit");
  if (const int error = part.leftover.MoveTo(path))
    return Note(path + ": " + std::strerror(error));
  RemoveOldest(ContentOf(folder_), limit_, path);
  Note("kept " + HumanBytes(static_cast<double>(*written)) + " in " + path);
}

std::vector<Kept> Cache::List() const {
  std::vector<Kept> out;
  const Content content = ContentOf(folder_);
  for (auto at = content.files.rbegin(); at != content.files.rend(); ++at) {
    Kept kept;
    kept.file = at->path.substr(folder_.size() + 1);
    kept.bytes = at->bytes;
    kept.used_s = at->used_s;
    const Descriptor file(
        ::open(at->path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    const auto head = ReadHead(file.get());
    if (!head) {
      kept.state = "damaged";
    } else {
      kept.input = head->input;
      const auto now = LookAt(head->input);
      kept.state = !now                     ? "gone"
                   : now->key == head->key  ? "current"
                   : now->file == kept.file ? "changed"
                                            : "other build";
    }
    out.push_back(std::move(kept));
  }
  return out;
}

uint64_t Cache::Prune() const {
  uint64_t removed = 0;
  for (const Kept& kept : List()) {
    if (kept.state == "current" || kept.state == "other build") continue;
    removed += ::unlink((folder_ + "/" + kept.file).c_str()) == 0;
  }
  return removed + RemoveOldest(ContentOf(folder_), limit_, {});
}

Result<uint64_t> Cache::Clear() const {
  const Content content = ContentOf(folder_);
  uint64_t removed = RemoveOldest(content, 0, {});
  for (const FileInFolder& part : content.parts)
    removed += ::unlink(part.path.c_str()) == 0;
  if (!ContentOf(folder_).files.empty())
    return Fail(InputError(folder_, "its files cannot be removed",
                           "check who owns them"));
  return removed;
}

namespace {

// The build-id that the linker gave to what this code is in (the program or a
// library); empty: none.
std::string BuildId() {
  struct Search {
    uintptr_t here;
    std::string id;
  } search{reinterpret_cast<uintptr_t>(&LookAt), {}};
  dl_iterate_phdr(
      [](struct dl_phdr_info* info, size_t, void* argument) {
        auto& out = *static_cast<Search*>(argument);
        bool here = false;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          const uintptr_t start = info->dlpi_addr + part.p_vaddr;
          here = here || (part.p_type == PT_LOAD && out.here >= start &&
                          out.here - start < part.p_memsz);
        }
        if (!here) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type != PT_NOTE) continue;
          const char* at =
              reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr);
          const char* const end = at + part.p_memsz;
          while (static_cast<size_t>(end - at) >= sizeof(ElfW(Nhdr))) {
            ElfW(Nhdr) note;
            std::memcpy(&note, at, sizeof(note));
            const size_t name = (note.n_namesz + size_t{3}) & ~size_t{3};
            const size_t text = (note.n_descsz + size_t{3}) & ~size_t{3};
            at += sizeof(note);
            if (static_cast<size_t>(end - at) < name + text) break;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
                std::memcmp(at, "GNU", 4) == 0) {
              out.id.assign(at + name, note.n_descsz);
              return 1;
            }
            at += name + text;
          }
        }
        return 1;
      },
      &search);
  return search.id;
}

const std::string& TheBuildId() {
  static const std::string id = BuildId();
  return id;
}

// Bytes from all over the file: a change that its times do not show is most
// likely seen here. Empty: they cannot be read.
std::string Samples(int fd, uint64_t size) {
  constexpr uint64_t kParts = 32;
  constexpr uint64_t kPart = 4096;
  std::string out;
  char part[kPart];
  for (uint64_t i = 0; i < kParts; ++i) {
    // The first part is the beginning, the last one the end.
    const uint64_t from = size <= kPart ? 0 : (size - kPart) / (kParts - 1) * i;
    const uint64_t at = i + 1 == kParts && size > kPart ? size - kPart : from;
    const ssize_t got = ::pread(fd, part, kPart, static_cast<off_t>(at));
    if (got <= 0) return {};
    out.append(part, static_cast<size_t>(got));
  }
  return out;
}

bool HasBytes(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && info.st_size > 0;
}

template <class T>
void Put(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

std::optional<InputState> LookAt(const std::string& path) {
  struct stat info {};
  // A pipe is not even opened: its writer would see that.
  const NameToRead read(path);
  const std::string& name = read.text();
  if (path == "-" || ::stat(name.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
    return std::nullopt;
  const Descriptor file(
      ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.open()) return std::nullopt;
  std::string samples;
  if (::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode) &&
      info.st_size > 0)
    samples = Samples(file.get(), static_cast<uint64_t>(info.st_size));
  if (samples.empty() || TheBuildId().empty()) return std::nullopt;
  // A database whose newest rows are in a file beside it.
  if (samples.starts_with("SQLite format 3") &&
      (HasBytes(path + "-wal") || HasBytes(path + "-journal")))
    return std::nullopt;
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  InputState state;
  state.path = path;
  // File systems know times to 2 s or better.
  constexpr int64_t kGrain = 2;
  state.quiet = now.tv_sec - info.st_mtim.tv_sec > kGrain &&
                now.tv_sec - info.st_ctim.tv_sec > kGrain;
  // One file in the cache for an input and a build: a new state takes the place
  // of an old one. Some formats look at the name.
  std::string place;
  Put(place, uint64_t{info.st_dev});
  Put(place, uint64_t{info.st_ino});
  const size_t slash = path.rfind('/');
  place += slash == std::string::npos ? path : path.substr(slash + 1);
  place += '\0';
  place += TheBuildId();
  std::string all = place;
  Put(all, static_cast<int64_t>(info.st_size));
  for (const timespec& time : {info.st_mtim, info.st_ctim}) {
    Put(all, static_cast<int64_t>(time.tv_sec));
    Put(all, static_cast<int64_t>(time.tv_nsec));
  }
  all += samples;
  state.key = Digest128(all);
  for (const uint8_t byte : Digest128(place))
    state.file += fmt::format("{:02x}", byte);
  state.file += ".lsnap";
  return state;
}

}  // namespace lamina::snapshot
