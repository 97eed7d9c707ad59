// SPDX-License-Identifier: Apache-2.0

#include "base/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <new>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/leftovers.h"
#include "base/opened.h"

namespace lamina {

namespace {

constexpr size_t kSkippedBlock = size_t{256} << 10;

Error SystemError(const std::string& name, const char* action, int error) {
  std::string hint = "check the path and its permissions";
  if (error == ENOENT) hint = "check the path";
  return InputError(name, std::string(action) + ": " + std::strerror(error),
                    hint);
}

class FileSource final : public ByteSource {
 public:
  FileSource(std::string name, int fd, uint64_t size)
      : ByteSource(std::move(name)), fd_(fd), size_(size) {}
  ~FileSource() override {
    if (fd_ > STDIN_FILENO) ::close(fd_);
  }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  Result<size_t> DoRead(char* to, size_t size) override {
    while (true) {
      const ssize_t got = ::read(fd_, to, size);
      if (got >= 0) {
        position_ += static_cast<size_t>(got);
        return static_cast<size_t>(got);
      }
      if (errno != EINTR) {
        Error error = SystemError(name(), "cannot read", errno);
        error.offset = position_;
        return Fail(error);
      }
    }
  }
  uint64_t stored_size() const override { return size_; }
  uint64_t stored_position() const override { return position_; }

 private:
  int fd_;
  uint64_t size_;
  uint64_t position_ = 0;
};

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::string name, std::string_view bytes)
      : ByteSource(std::move(name)), bytes_(bytes) {}
  Result<size_t> DoRead(char* to, size_t size) override {
    const size_t count = bytes_.copy(to, size, position_);
    position_ += count;
    return count;
  }
  uint64_t stored_size() const override { return bytes_.size(); }
  uint64_t stored_position() const override { return position_; }

 private:
  std::string_view bytes_;
  size_t position_ = 0;
};

// Puts bytes that were read for detection back in front of a source.
class PrefixedSource final : public ByteSource {
 public:
  PrefixedSource(std::string head, std::unique_ptr<ByteSource> rest)
      : ByteSource(rest->name()),
        head_(std::move(head)),
        rest_(std::move(rest)) {}
  Result<size_t> DoRead(char* to, size_t size) override {
    if (position_ < head_.size()) {
      const size_t count = std::min(size, head_.size() - position_);
      std::memcpy(to, head_.data() + position_, count);
      position_ += count;
      return count;
    }
    return rest_->Read(to, size);
  }
  std::optional<SourceDamage> damage() const override {
    return rest_->damage();
  }
  std::vector<OtherMember> others() const override { return rest_->others(); }
  uint64_t stored_size() const override { return rest_->stored_size(); }
  uint64_t stored_position() const override {
    const uint64_t ahead = head_.size() - position_;
    return std::max(rest_->stored_position(), ahead) - ahead;
  }
  bool plain() const override { return rest_->plain(); }

 private:
  std::string head_;
  size_t position_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

// Reads `size` bytes or up to the end.
Result<std::string> Take(ByteSource& source, size_t size) {
  // Grows with what is there, not with what may be.
  constexpr size_t kFirst = size_t{256} << 10;
  std::string out(std::min(size, kFirst), '\0');
  size_t have = 0;
  while (have < size) {
    if (have == out.size()) out.resize(std::min(size, 2 * out.size()));
    LAMINA_ASSIGN(const size_t got,
                  source.Read(out.data() + have, out.size() - have));
    if (got == 0) break;
    have += got;
  }
  out.resize(have);
  return out;
}

uint16_t Little16(std::string_view bytes, size_t at) {
  return static_cast<uint16_t>(static_cast<uint8_t>(bytes[at]) |
                               static_cast<uint8_t>(bytes[at + 1]) << 8);
}

// Past the local header of the first zip member, for archives without a list of
// their files: what is left of one that was cut.
Result<std::unique_ptr<ByteSource>> OpenZipMember(
    std::unique_ptr<ByteSource> stored) {
  LAMINA_ASSIGN(const std::string header, Take(*stored, 30));
  if (header.size() < 30)
    return Fail(InputError(stored->name(), "the zip header is cut off",
                           "copy the archive again"));
  const uint16_t method = Little16(header, 8);
  LAMINA_ASSIGN(
      const std::string skipped,
      Take(*stored, size_t{Little16(header, 26)} + Little16(header, 28)));
  if (method != 8) {
    return Fail(InputError(stored->name(),
                           "the archive is damaged, and its first file cannot "
                           "be unpacked without the list of files",
                           "copy the archive again, or unpack it first"));
  }
  return UnpackDeflate(std::move(stored));
}

Result<std::unique_ptr<ByteSource>> Unpack(std::unique_ptr<ByteSource> stored,
                                           bool in_archive = false);

// A pipe goes to a file without a name first: the list of the files of an
// archive is at its end.
Result<std::unique_ptr<ByteSource>> OpenZipPipe(
    std::unique_ptr<ByteSource> from) {
  LAMINA_ASSIGN(const int file, MakeTemporaryFile());
  auto kept = std::make_unique<FileSource>(from->name(), file, 0);
  std::vector<char> block(kSkippedBlock);
  while (true) {
    LAMINA_ASSIGN(const size_t got, from->Read(block.data(), block.size()));
    if (got == 0) break;
    for (size_t done = 0; done < got;) {
      const ssize_t put = ::write(file, block.data() + done, got - done);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0)
        return Fail(SystemError(from->name(), "cannot be kept", errno));
      done += static_cast<size_t>(put);
    }
  }
  LAMINA_ASSIGN(auto member, OpenZipFile(from->name(), file));
  if (member != nullptr) return Unpack(std::move(member), true);
  ::lseek(file, 0, SEEK_SET);
  return OpenZipMember(std::move(kept));
}

// The file of an archive in the regular file `fd`; null when it is none, or
// one without a list.
Result<std::unique_ptr<ByteSource>> OpenZipAt(const std::string& name, int fd) {
  std::string head(4, '\0');
  if (::lseek(fd, 0, SEEK_CUR) != 0 ||
      ::pread(fd, head.data(), head.size(), 0) != 4 ||
      DetectPacking(head) != Packing::kZip)
    return std::unique_ptr<ByteSource>();
  LAMINA_ASSIGN(auto member, OpenZipFile(name, fd));
  ::lseek(fd, 0, SEEK_SET);
  if (member == nullptr) return member;
  return Unpack(std::move(member), true);
}

Result<std::unique_ptr<ByteSource>> Unpack(std::unique_ptr<ByteSource> stored,
                                           bool in_archive) {
  LAMINA_ASSIGN(std::string head, Take(*stored, 4));
  if (head.empty()) {
    return Fail(InputError(stored->name(), "the file is empty",
                           "give a file that the profiler wrote"));
  }
  const Packing packing = DetectPacking(head);
  const bool seekable = stored->stored_size() > 0;
  stored = std::make_unique<PrefixedSource>(std::move(head), std::move(stored));
  switch (packing) {
    case Packing::kGzip:
      return UnpackGzip(std::move(stored));
    case Packing::kZstd:
      return UnpackZstd(std::move(stored));
    case Packing::kZip:
      if (in_archive || seekable) return OpenZipMember(std::move(stored));
      return OpenZipPipe(std::move(stored));
    case Packing::kPlain:
      break;
  }
  return stored;
}

// Reads past `size` bytes; false when there are fewer.
Result<bool> Skip(ByteSource& source, uint64_t size) {
  std::vector<char> block(kSkippedBlock);
  while (size > 0) {
    LAMINA_ASSIGN(
        const size_t got,
        source.Read(block.data(), static_cast<size_t>(
                                      std::min<uint64_t>(size, block.size()))));
    if (got == 0) return false;
    size -= got;
  }
  return true;
}

}  // namespace

Packing DetectPacking(std::string_view head) {
  if (head.starts_with("\x1F\x8B")) return Packing::kGzip;
  if (head.starts_with("\x28\xB5\x2F\xFD")) return Packing::kZstd;
  if (head.starts_with("PK\x03\x04")) return Packing::kZip;
  return Packing::kPlain;
}

Result<std::unique_ptr<ByteSource>> OpenByteSource(const std::string& path) {
  if (path == "-") {
    NoteInput(STDIN_FILENO);
    LAMINA_ASSIGN(auto member, OpenZipAt("-", STDIN_FILENO));
    if (member != nullptr) return member;
    return Unpack(std::make_unique<FileSource>("-", STDIN_FILENO, 0));
  }
  const NameToRead name(path);
  if (name.error() != 0 && name.error() != ENOENT)
    return Fail(InputError(path, WhyNotOpened(name.error())));
  const int fd = ::open(name.text().c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Fail(SystemError(path, "cannot open", errno));
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    const int error = errno;
    ::close(fd);
    return Fail(SystemError(path, "cannot open", error));
  }
  if (S_ISDIR(info.st_mode)) {
    ::close(fd);
    return Fail(InputError(path, "is a directory, expected a file",
                           "name one file inside it"));
  }
  NoteInput(fd);
  const auto size =
      S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
  auto file = std::make_unique<FileSource>(path, fd, size);
  if (size > 0) {
    LAMINA_ASSIGN(auto member, OpenZipAt(path, fd));
    if (member != nullptr) return member;
  }
  return Unpack(std::move(file));
}

Result<std::unique_ptr<ByteSource>> OpenMemory(std::string name,
                                               std::string_view bytes) {
  if (DetectPacking(bytes) == Packing::kZip) {
    LAMINA_ASSIGN(auto member, OpenZipBytes(name, bytes));
    if (member != nullptr) return Unpack(std::move(member), true);
  }
  return Unpack(std::make_unique<MemorySource>(std::move(name), bytes));
}

Result<std::unique_ptr<ByteSource>> OpenDeflated(std::string name,
                                                 std::string_view bytes) {
  // Two bytes of header: the method and a check; no dictionary.
  const auto byte = [&](size_t i) {
    return static_cast<unsigned>(static_cast<unsigned char>(bytes[i]));
  };
  if (bytes.size() < 2 || (byte(0) & 15) != 8 ||
      (byte(0) * 256 + byte(1)) % 31 != 0 || (byte(1) & 32) != 0)
    return Fail(InputErrorAt(name, 0, "the bytes are no zlib stream"));
  auto stored =
      std::make_unique<MemorySource>(std::move(name), bytes.substr(2));
  return UnpackDeflate(std::move(stored));
}

Result<std::string> ReadHead(const std::string& path, size_t size) {
  LAMINA_ASSIGN(const auto source, OpenByteSource(path));
  return Take(*source, size);
}

Result<std::string> ReadRange(const std::string& path, uint64_t offset,
                              size_t size) {
  LAMINA_ASSIGN(const auto source, OpenByteSource(path));
  LAMINA_ASSIGN(const bool there, Skip(*source, offset));
  if (!there) return std::string();
  return Take(*source, size);
}

Result<std::string> ReadAll(const std::string& path, size_t limit) {
  LAMINA_ASSIGN(const auto source, OpenByteSource(path));
  LAMINA_ASSIGN(std::string out, Take(*source, limit + 1));
  if (out.size() > limit) {
    return Fail(InputError(
        path, "the file is larger than " + std::to_string(limit) + " bytes"));
  }
  if (const auto damage = source->damage())
    return Fail(InputErrorAt(path, damage->offset, damage->what));
  return out;
}

namespace {

constexpr size_t kStoredBlock = size_t{256} << 10;
constexpr uint8_t kGzipMagic = 0x1F;

// Base of the unpackers: a window over the stored bytes and the damage.
class UnpackingSource : public ByteSource {
 public:
  explicit UnpackingSource(std::unique_ptr<ByteSource> stored)
      : ByteSource(stored->name()),
        stored_(std::move(stored)),
        window_(kStoredBlock) {}
  std::optional<SourceDamage> damage() const override { return damage_; }
  std::vector<OtherMember> others() const override { return stored_->others(); }
  uint64_t stored_size() const override { return stored_->stored_size(); }
  uint64_t stored_position() const override {
    return stored_->stored_position();
  }
  bool plain() const override { return false; }

 protected:
  // Reads the next block of stored bytes into window_; false at the end.
  Result<bool> Refill(size_t& size) {
    LAMINA_ASSIGN(size, stored_->Read(window_.data(), window_.size()));
    return size > 0;
  }
  void Damaged(uint64_t unread, std::string what) {
    damage_ =
        SourceDamage{stored_->stored_position() - unread, std::move(what)};
  }

  std::unique_ptr<ByteSource> stored_;
  std::vector<char> window_;
  std::optional<SourceDamage> damage_;
};

// gzip and raw deflate data.
class InflateSource final : public UnpackingSource {
 public:
  InflateSource(std::unique_ptr<ByteSource> stored, bool gzip)
      : UnpackingSource(std::move(stored)), gzip_(gzip) {
    isal_inflate_init(&state_);
    StartMember();
  }

  Result<size_t> DoRead(char* to, size_t size) override {
    state_.next_out = reinterpret_cast<uint8_t*>(to);
    state_.avail_out =
        static_cast<uint32_t>(std::min<size_t>(size, size_t{1} << 30));
    const uint32_t wanted = state_.avail_out;
    while (!done_ && state_.avail_out == wanted) {
      if (full_ && !member_finished_) {
        Inflate();
        continue;
      }
      LAMINA_ASSIGN(const bool any, HaveInput());
      if (any && (!member_finished_ || NextMember())) Inflate();
    }
    return static_cast<size_t>(wanted - state_.avail_out);
  }

 private:
  Result<bool> HaveInput() {
    if (state_.avail_in > 0) return true;
    size_t got = 0;
    LAMINA_ASSIGN(const bool more, Refill(got));
    state_.next_in = reinterpret_cast<uint8_t*>(window_.data());
    state_.avail_in = static_cast<uint32_t>(got);
    done_ = !more;
    if (done_ && in_member_ && !member_finished_)
      Damaged(0, "the compressed data is cut off");
    return more;
  }

  // Behind a member: another one, or zero padding, or garbage.
  bool NextMember() {
    if (gzip_ && *state_.next_in == kGzipMagic) {
      StartMember();
      return true;
    }
    done_ = true;
    if (gzip_ && *state_.next_in != 0)
      Damaged(state_.avail_in, "unknown bytes follow the gzip data");
    return false;
  }

  void Inflate() {
    in_member_ = true;
    const int code = isal_inflate(&state_);
    member_finished_ = state_.block_state == ISAL_BLOCK_FINISH;
    full_ = state_.avail_out == 0;
    if (code == ISAL_DECOMP_OK || code == ISAL_END_INPUT ||
        code == ISAL_OUT_OVERFLOW)
      return;
    done_ = true;
    Damaged(state_.avail_in, code == ISAL_INCORRECT_CHECKSUM
                                 ? "the gzip checksum does not match"
                                 : "the compressed data is corrupt");
  }

  // Keeps what is left of input and output.
  void StartMember() {
    isal_inflate_reset(&state_);
    state_.crc_flag = gzip_ ? ISAL_GZIP : ISAL_DEFLATE;
    member_finished_ = false;
    in_member_ = false;
    full_ = false;
  }

  inflate_state state_;
  bool gzip_;
  bool in_member_ = false;
  bool member_finished_ = false;
  // The last call had no room left: state_ may hold more, with no input.
  bool full_ = false;
  bool done_ = false;
};

class ZstdSource final : public UnpackingSource {
 public:
  explicit ZstdSource(std::unique_ptr<ByteSource> stored)
      : UnpackingSource(std::move(stored)), stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
    ZSTD_initDStream(stream_);
    // Frames that ask for a window above 128 MB are refused: bounded memory.
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, 27);
  }
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }
  ZstdSource(const ZstdSource&) = delete;
  ZstdSource& operator=(const ZstdSource&) = delete;

  Result<size_t> DoRead(char* to, size_t size) override {
    ZSTD_outBuffer out{to, size, 0};
    while (out.pos == 0 && !done_) {
      if (in_.pos == in_.size && !full_) {
        size_t got = 0;
        LAMINA_ASSIGN(const bool more, Refill(got));
        if (!more) {
          done_ = true;
          if (pending_ != 0) Damaged(0, "the compressed data is cut off");
          break;
        }
        in_ = ZSTD_inBuffer{window_.data(), got, 0};
      }
      pending_ = ZSTD_decompressStream(stream_, &out, &in_);
      full_ = pending_ != 0 && out.pos == out.size;
      if (ZSTD_getErrorCode(pending_) == ZSTD_error_memory_allocation)
        throw std::bad_alloc();  // nothing is wrong with the file
      if (ZSTD_isError(pending_)) {
        done_ = true;
        Damaged(in_.size - in_.pos, std::string("corrupt zstd data: ") +
                                        ZSTD_getErrorName(pending_));
      }
    }
    return out.pos;
  }

 private:
  ZSTD_DStream* stream_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  size_t pending_ = 0;  // 0: a frame has ended and all of it was given
  // The last call had no room left: stream_ may hold more, with no input.
  bool full_ = false;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> UnpackGzip(std::unique_ptr<ByteSource> stored) {
  return std::make_unique<InflateSource>(std::move(stored), true);
}

std::unique_ptr<ByteSource> UnpackDeflate(std::unique_ptr<ByteSource> stored) {
  return std::make_unique<InflateSource>(std::move(stored), false);
}

std::unique_ptr<ByteSource> UnpackZstd(std::unique_ptr<ByteSource> stored) {
  return std::make_unique<ZstdSource>(std::move(stored));
}

Result<size_t> ByteWindow::ReadFully(char* to, size_t size) {
  size_t have = 0;
  while (have < size && !at_end_) {
    LAMINA_ASSIGN(const size_t got, source_.Read(to + have, size - have));
    at_end_ = got == 0;
    have += got;
  }
  return have;
}

Result<bool> ByteWindow::Fill(size_t bytes) {
  if (at_end_) return false;
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(begin_));
  begin_ = 0;
  const size_t old_size = bytes_.size();
  bytes_.resize(old_size + bytes);
  LAMINA_ASSIGN(const size_t got, ReadFully(bytes_.data() + old_size, bytes));
  bytes_.resize(old_size + got);
  return got > 0;
}

void ByteWindow::Consume(size_t bytes) {
  begin_ += bytes;
  offset_ += bytes;
}

void ByteWindow::Close() {
  Consume(text().size());
  at_end_ = true;
}

Result<size_t> ByteWindow::Take(char* to, size_t size) {
  const std::string_view held = text().substr(0, size);
  std::copy(held.begin(), held.end(), to);
  Consume(held.size());
  LAMINA_ASSIGN(const size_t got,
                ReadFully(to + held.size(), size - held.size()));
  offset_ += got;
  return held.size() + got;
}

void ByteWindow::PutBack(std::string_view rest) {
  offset_ -= rest.size();
  // Where text() is left, nothing was read behind it: the bytes still stand
  // in front of it. Not copying them keeps many short takes linear.
  if (!text().empty()) {
    begin_ -= rest.size();
    return;
  }
  bytes_.assign(rest.begin(), rest.end());
  begin_ = 0;
}

}  // namespace lamina
