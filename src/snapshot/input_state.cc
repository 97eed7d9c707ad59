// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/opened.h"
#include "snapshot/cache.h"
#include "snapshot/digest.h"

namespace lamina::snapshot {
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
