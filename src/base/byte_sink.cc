// SPDX-License-Identifier: Apache-2.0
#include "base/byte_sink.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <isa-l/igzip_lib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/leftovers.h"
#include "base/opened.h"

namespace lamina {
namespace {

Error OutputError(const std::string& path, int error) {
  return InputError(path, std::string("cannot write: ") + std::strerror(error),
                    "check the path, its permissions and the free space");
}

Error ReplacesInput(const std::string& path) {
  return UsageError(path + " is an input of this command",
                    "it would be replaced; give another name");
}

class FdSink : public ByteSink {
 public:
  // An empty `place` means: nothing to rename.
  FdSink(int fd, std::string shown, Leftover unfinished, std::string place)
      : fd_(fd),
        shown_(std::move(shown)),
        unfinished_(std::move(unfinished)),
        place_(std::move(place)) {}
  ~FdSink() override {
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  FdSink(const FdSink&) = delete;
  FdSink& operator=(const FdSink&) = delete;

 protected:
  Status DoWrite(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t wrote = ::write(fd_, bytes.data(), bytes.size());
      if (wrote < 0) {
        if (errno == EINTR) continue;
        return Fail(OutputError(shown_, errno));
      }
      bytes.remove_prefix(static_cast<size_t>(wrote));
    }
    return {};
  }
  Status DoClose() override {
    if (fd_ <= STDERR_FILENO) return {};
    const int closed = ::close(fd_);
    fd_ = -1;
    if (closed != 0) return Fail(OutputError(shown_, errno));
    if (place_.empty()) return {};
    // It may have been read since the sink was made.
    if (IsInput(place_)) return Fail(ReplacesInput(shown_));
    LAMINA_TRY(InputsUnchanged());
    if (const int error = unfinished_.MoveTo(place_))
      return Fail(OutputError(shown_, error));
    return {};
  }

 private:
  int fd_;
  std::string shown_;
  Leftover unfinished_;
  std::string place_;
};

// Where links lead: a link stays, and what it names is written, as by every
// other program. A link to nothing names what will be made.
Result<std::string> FollowLinks(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int kMostLinks = 40;
  fs::path place(path);
  std::error_code error;
  for (int i = 0; i < kMostLinks; ++i) {
    if (!fs::is_symlink(place, error)) return place.string();
    const fs::path target = fs::read_symlink(place, error);
    if (error) return Fail(OutputError(path, error.value()));
    place = target.is_absolute() ? target : place.parent_path() / target;
  }
  return Fail(OutputError(path, ELOOP));
}

// Names of what this process has open.
bool NamesDescriptor(std::string_view path) {
  return path == "/dev/stdout" || path == "/dev/stderr" ||
         path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

// Written in place: a device, a pipe, standard output by any name.
Result<std::unique_ptr<ByteSink>> OpenInPlace(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return Fail(OutputError(path, errno));
  auto sink = std::make_unique<FdSink>(fd, path, Leftover(), "");
  if (IsInput(fd)) return Fail(ReplacesInput(path));
  struct stat info {};
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
      ::ftruncate(fd, 0) != 0)
    return Fail(OutputError(path, errno));
  return sink;
}

// Written beside its place, with the mode of what it will replace.
Result<std::unique_ptr<ByteSink>> OpenBeside(const std::string& path,
                                             const std::string& place) {
  UnfinishedFile file = UnfinishedFile::Beside(place);
  if (file.fd < 0) return Fail(OutputError(path, errno));
  const int fd = file.fd;
  auto sink =
      std::make_unique<FdSink>(fd, path, std::move(file.leftover), place);
  struct stat before {};
  constexpr mode_t kRights = 0777;
  if (::stat(place.c_str(), &before) == 0) {
    // Only an administrator can give a file to another user.
    if (::fchown(fd, before.st_uid, before.st_gid) != 0) errno = 0;
    // Some file systems have no modes.
    if (::fchmod(fd, before.st_mode & kRights) != 0) errno = 0;
  }
  return sink;
}

// Compresses with igzip, which is several times faster than zlib at a similar
// ratio to its level 1.
class GzipSink final : public ByteSink {
 public:
  GzipSink(std::unique_ptr<ByteSink> to, size_t most_at_once)
      : to_(std::move(to)),
        most_at_once_(most_at_once),
        level_buffer_(ISAL_DEF_LVL1_DEFAULT) {
    isal_deflate_init(&stream_);
    stream_.gzip_flag = IGZIP_GZIP;
    stream_.level = 1;
    stream_.level_buf = level_buffer_.data();
    stream_.level_buf_size = static_cast<uint32_t>(level_buffer_.size());
    stream_.flush = NO_FLUSH;
  }

 protected:
  Status DoWrite(std::string_view bytes) override {
    while (!bytes.empty()) {
      const std::string_view piece = bytes.substr(0, most_at_once_);
      LAMINA_TRY(Deflate(piece, false));
      bytes.remove_prefix(piece.size());
    }
    return {};
  }
  Status DoClose() override {
    LAMINA_TRY(Deflate({}, true));
    return to_->Close();
  }

 private:
  Status Deflate(std::string_view bytes, bool last) {
    std::vector<uint8_t> block(size_t{128} << 10);
    stream_.next_in =
        reinterpret_cast<uint8_t*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uint32_t>(bytes.size());
    stream_.end_of_stream = last ? 1 : 0;
    do {
      stream_.next_out = block.data();
      stream_.avail_out = static_cast<uint32_t>(block.size());
      if (isal_deflate(&stream_) != COMP_OK) {
        return Fail(InputError("", "gzip compression failed"));
      }
      to_->Write({reinterpret_cast<const char*>(block.data()),
                  block.size() - stream_.avail_out});
    } while (stream_.avail_out == 0);
    return {};
  }

  std::unique_ptr<ByteSink> to_;
  size_t most_at_once_;
  std::vector<uint8_t> level_buffer_;
  isal_zstream stream_;
};

class StringSink final : public ByteSink {
 public:
  explicit StringSink(std::string* out) : out_(out) {}

 protected:
  Status DoWrite(std::string_view bytes) override {
    out_->append(bytes);
    return {};
  }
  Status DoClose() override { return {}; }

 private:
  std::string* out_;
};

}  // namespace

void ByteSink::Flush() {
  if (buffer_.empty()) return;
  Send(buffer_);
  buffer_.clear();
}

void ByteSink::Send(std::string_view bytes) {
  if (status_) status_ = DoWrite(bytes);
}

Status ByteSink::Close() {
  if (closed_) return status_;
  closed_ = true;
  Flush();
  if (status_) status_ = DoClose();
  return status_;
}

Result<std::unique_ptr<ByteSink>> CreateFileSink(const std::string& path) {
  namespace fs = std::filesystem;
  std::unique_ptr<ByteSink> sink;
  std::error_code none_there;
  if (path == "-") {
    // "lamina report T >> T" would read what it writes.
    if (IsInput(STDOUT_FILENO)) return Fail(ReplacesInput("standard output"));
    sink = std::make_unique<FdSink>(STDOUT_FILENO, "standard output",
                                    Leftover(), "");
  } else if (NamesDescriptor(path) ||
             (fs::exists(path, none_there) &&
              !fs::is_regular_file(path, none_there))) {
    LAMINA_ASSIGN(sink, OpenInPlace(path));
  } else {
    LAMINA_ASSIGN(const std::string place, FollowLinks(path));
    if (IsInput(place)) return Fail(ReplacesInput(path));
    LAMINA_ASSIGN(sink, OpenBeside(path, place));
  }
  if (path.ends_with(".gz")) sink = CreateGzipSink(std::move(sink));
  return sink;
}

std::unique_ptr<ByteSink> CreateGzipSink(std::unique_ptr<ByteSink> to,
                                         size_t most_at_once) {
  return std::make_unique<GzipSink>(std::move(to), most_at_once);
}

std::unique_ptr<ByteSink> CreateStringSink(std::string* out) {
  return std::make_unique<StringSink>(out);
}

Status WriteFile(const std::string& path, std::string_view bytes) {
  LAMINA_ASSIGN(const auto sink, CreateFileSink(path));
  sink->Write(bytes);
  return sink->Close();
}

Status SendFile(const std::string& from, ByteSink& to) {
  std::ifstream file(from, std::ios::binary);
  std::string block(size_t{1} << 20, '\0');
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) ||
         file.gcount() > 0)
    to.Write({block.data(), static_cast<size_t>(file.gcount())});
  if (file.bad() || !file.eof())
    return Fail(InputError(from, "cannot be read back"));
  return {};
}

Status MakeDirectory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return Fail(OutputError(path, error.value()));
  return {};
}

}  // namespace lamina
