// SPDX-License-Identifier: Apache-2.0
#include "base/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>
#include <zstd.h>

namespace lamina {
namespace {

constexpr size_t kStoredBlock = size_t{256} << 10;

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

  Result<size_t> Read(char* to, size_t size) override {
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
  Result<size_t> Read(char* to, size_t size) override {
    const size_t count = std::min(size, bytes_.size() - position_);
    std::memcpy(to, bytes_.data() + position_, count);
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
  Result<size_t> Read(char* to, size_t size) override {
    if (position_ < head_.size()) {
      const size_t count = std::min(size, head_.size() - position_);
      std::memcpy(to, head_.data() + position_, count);
      position_ += count;
      return count;
    }
    return rest_->Read(to, size);
  }
  uint64_t stored_size() const override { return rest_->stored_size(); }
  uint64_t stored_position() const override {
    return rest_->stored_position() - (head_.size() - position_);
  }

 private:
  std::string head_;
  size_t position_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

// Base of the unpackers: a window over the stored bytes and the damage.
class UnpackingSource : public ByteSource {
 public:
  explicit UnpackingSource(std::unique_ptr<ByteSource> stored)
      : ByteSource(stored->name()),
        stored_(std::move(stored)),
        window_(kStoredBlock) {}
  std::optional<SourceDamage> damage() const override { return damage_; }
  uint64_t stored_size() const override { return stored_->stored_size(); }
  uint64_t stored_position() const override {
    return stored_->stored_position();
  }
  bool plain() const override { return false; }

 protected:
  // Reads the next block of stored bytes into window_; false at the end.
  Result<bool> Refill(size_t& size) {
    auto got = stored_->Read(window_.data(), window_.size());
    if (!got) return Fail(got.error());
    size = *got;
    return *got > 0;
  }
  void Damaged(uint64_t unread, std::string what) {
    damage_ =
        SourceDamage{stored_->stored_position() - unread, std::move(what)};
  }

  std::unique_ptr<ByteSource> stored_;
  std::vector<char> window_;
  std::optional<SourceDamage> damage_;
};

// gzip (several members are joined) and raw deflate data of a zip member.
class InflateSource final : public UnpackingSource {
 public:
  InflateSource(std::unique_ptr<ByteSource> stored, bool gzip)
      : UnpackingSource(std::move(stored)), gzip_(gzip) {
    Restart();
  }

  Result<size_t> Read(char* to, size_t size) override {
    if (done_) return size_t{0};
    state_.next_out = reinterpret_cast<uint8_t*>(to);
    state_.avail_out =
        static_cast<uint32_t>(std::min<size_t>(size, size_t{1} << 30));
    const uint32_t wanted = state_.avail_out;
    while (state_.avail_out == wanted) {
      if (state_.avail_in == 0) {
        size_t got = 0;
        auto more = Refill(got);
        if (!more) return Fail(more.error());
        if (!*more) {
          done_ = true;
          if (in_member_ && !member_finished_)
            Damaged(0, "the compressed data is cut off");
          break;
        }
        state_.next_in = reinterpret_cast<uint8_t*>(window_.data());
        state_.avail_in = static_cast<uint32_t>(got);
      }
      if (member_finished_) {
        // Another member, or zero padding, or garbage behind the last one.
        if (!gzip_ || *state_.next_in != 0x1F) {
          done_ = true;
          if (gzip_ && *state_.next_in != 0)
            Damaged(state_.avail_in, "unknown bytes follow the gzip data");
          break;
        }
        const uint8_t* next_in = state_.next_in;
        const uint32_t avail_in = state_.avail_in;
        uint8_t* next_out = state_.next_out;
        const uint32_t avail_out = state_.avail_out;
        Restart();
        state_.next_in = const_cast<uint8_t*>(next_in);
        state_.avail_in = avail_in;
        state_.next_out = next_out;
        state_.avail_out = avail_out;
      }
      in_member_ = true;
      const int code = isal_inflate(&state_);
      if (code != ISAL_DECOMP_OK && code != ISAL_END_INPUT &&
          code != ISAL_OUT_OVERFLOW) {
        done_ = true;
        Damaged(state_.avail_in, code == ISAL_INCORRECT_CHECKSUM
                                     ? "the gzip checksum does not match"
                                     : "the compressed data is corrupt");
        break;
      }
      if (state_.block_state == ISAL_BLOCK_FINISH) member_finished_ = true;
    }
    return static_cast<size_t>(wanted - state_.avail_out);
  }

 private:
  void Restart() {
    isal_inflate_init(&state_);
    state_.crc_flag = gzip_ ? ISAL_GZIP : ISAL_DEFLATE;
    member_finished_ = false;
    in_member_ = false;
  }

  inflate_state state_;
  bool gzip_;
  bool in_member_ = false;
  bool member_finished_ = false;
  bool done_ = false;
};

class ZstdSource final : public UnpackingSource {
 public:
  explicit ZstdSource(std::unique_ptr<ByteSource> stored)
      : UnpackingSource(std::move(stored)), stream_(ZSTD_createDStream()) {
    ZSTD_initDStream(stream_);
    // Frames that ask for a window above 128 MB are refused: bounded memory.
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, 27);
  }
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }
  ZstdSource(const ZstdSource&) = delete;
  ZstdSource& operator=(const ZstdSource&) = delete;

  Result<size_t> Read(char* to, size_t size) override {
    ZSTD_outBuffer out{to, size, 0};
    while (out.pos == 0 && !done_) {
      if (in_.pos == in_.size) {
        size_t got = 0;
        auto more = Refill(got);
        if (!more) return Fail(more.error());
        if (!*more) {
          done_ = true;
          if (pending_ != 0) Damaged(0, "the compressed data is cut off");
          break;
        }
        in_ = ZSTD_inBuffer{window_.data(), got, 0};
      }
      pending_ = ZSTD_decompressStream(stream_, &out, &in_);
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
  size_t pending_ = 0;
  bool done_ = false;
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

// Moves past the local header of the first zip member.
Result<std::unique_ptr<ByteSource>> OpenZipMember(
    std::unique_ptr<ByteSource> stored) {
  LAMINA_ASSIGN(const std::string header, Take(*stored, 30));
  if (header.size() < 30)
    return Fail(InputError(stored->name(), "the zip header is cut off"));
  const uint16_t method = Little16(header, 8);
  LAMINA_ASSIGN(
      const std::string skipped,
      Take(*stored, size_t{Little16(header, 26)} + Little16(header, 28)));
  if (method != 8) {
    return Fail(InputError(stored->name(),
                           "the first file of the zip is not deflated",
                           "unpack it first"));
  }
  return std::make_unique<InflateSource>(std::move(stored), false);
}

Result<std::unique_ptr<ByteSource>> Unpack(std::unique_ptr<ByteSource> stored) {
  LAMINA_ASSIGN(std::string head, Take(*stored, 4));
  if (head.empty()) {
    return Fail(InputError(stored->name(), "the file is empty",
                           "give a file that the profiler wrote"));
  }
  const Packing packing = DetectPacking(head);
  stored = std::make_unique<PrefixedSource>(std::move(head), std::move(stored));
  switch (packing) {
    case Packing::kGzip:
      return std::make_unique<InflateSource>(std::move(stored), true);
    case Packing::kZstd:
      return std::make_unique<ZstdSource>(std::move(stored));
    case Packing::kZip:
      return OpenZipMember(std::move(stored));
    case Packing::kPlain:
      break;
  }
  return stored;
}

// Reads past `size` bytes; false when there are fewer.
Result<bool> Skip(ByteSource& source, uint64_t size) {
  std::vector<char> block(kStoredBlock);
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
  if (path == "-")
    return Unpack(std::make_unique<FileSource>("-", STDIN_FILENO, 0));
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
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
  const auto size =
      S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
  return Unpack(std::make_unique<FileSource>(path, fd, size));
}

Result<std::unique_ptr<ByteSource>> OpenMemory(std::string name,
                                               std::string_view bytes) {
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
  auto stored = std::make_unique<MemorySource>(name, bytes.substr(2));
  return std::make_unique<InflateSource>(std::move(stored), false);
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

}  // namespace lamina
