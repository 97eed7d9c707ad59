// SPDX-License-Identifier: Apache-2.0
#include "base/unpack.h"

#include <algorithm>
#include <isa-l/igzip_lib.h>
#include <new>
#include <string>
#include <utility>
#include <vector>
#include <zstd.h>

namespace lamina {
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

}  // namespace lamina
