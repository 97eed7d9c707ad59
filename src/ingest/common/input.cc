// SPDX-License-Identifier: Apache-2.0

#include "ingest/common/input.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>
#include <vector>

#include "base/leftovers.h"
#include "base/opened.h"

namespace lamina::ingest {

namespace {

namespace fs = std::filesystem;

// The bytes that were looked at, then the others.
class PipeSource final : public ByteSource {
 public:
  PipeSource(std::string head, std::unique_ptr<ByteSource> rest)
      : ByteSource(rest->name()),
        head_(std::move(head)),
        rest_(std::move(rest)) {}
  Result<size_t> DoRead(char* to, size_t size) override {
    if (at_ == head_.size()) return rest_->Read(to, size);
    const size_t count = std::min(size, head_.size() - at_);
    std::memcpy(to, head_.data() + at_, count);
    at_ += count;
    return count;
  }
  std::optional<SourceDamage> damage() const override {
    return at_ == head_.size() ? rest_->damage() : std::nullopt;
  }
  uint64_t stored_size() const override { return rest_->stored_size(); }
  uint64_t stored_position() const override { return rest_->stored_position(); }
  bool plain() const override { return rest_->plain(); }

 private:
  std::string head_;
  size_t at_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

// A temporary file that others read at the same time.
class KeptSource final : public ByteSource {
 public:
  KeptSource(std::string name, int file, uint64_t size, bool plain,
             std::optional<SourceDamage> damage)
      : ByteSource(std::move(name)),
        file_(file),
        size_(size),
        plain_(plain),
        damage_(std::move(damage)) {}
  Result<size_t> DoRead(char* to, size_t size) override {
    while (true) {
      const ssize_t got =
          ::pread(file_, to, size, static_cast<off_t>(position_));
      if (got >= 0) {
        position_ += static_cast<size_t>(got);
        return static_cast<size_t>(got);
      }
      if (errno != EINTR) {
        return Fail(InputErrorAt(
            name(), position_,
            std::string("cannot read its copy: ") + std::strerror(errno)));
      }
    }
  }
  std::optional<SourceDamage> damage() const override { return damage_; }
  uint64_t stored_size() const override { return size_; }
  uint64_t stored_position() const override { return position_; }
  bool plain() const override { return plain_; }

 private:
  int file_;
  uint64_t size_;
  bool plain_;
  std::optional<SourceDamage> damage_;
  uint64_t position_ = 0;
};

Error NoRoom() {
  return InputError("-",
                    std::string("no room for a copy of what the pipe gives: ") +
                        std::strerror(errno),
                    "set TMPDIR to a folder with room, or give a file");
}

Status WriteAll(int file, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t put = ::write(file, data, size);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return Fail(NoRoom());
    data += put;
    size -= static_cast<size_t>(put);
  }
  return {};
}

}  // namespace

Input::Input(std::string path) : path_(std::move(path)) {
  std::error_code error;
  const fs::file_status status = fs::status(NameToRead(path_).text(), error);
  directory_ = path_ != "-" && fs::is_directory(status);
  piped_ = path_ == "-" ||
           (fs::exists(status) && !directory_ && !fs::is_regular_file(status));
}

Input::~Input() {
  if (kept_ >= 0) ::close(kept_);
}

Status Input::Look() {
  if (directory_) return {};
  LAMINA_ASSIGN(auto source, OpenByteSource(path_));
  others_ = source->others();
  head_.resize(kHeadBytes);
  size_t have = 0;
  while (have < head_.size()) {
    LAMINA_ASSIGN(const size_t got,
                  source->Read(head_.data() + have, head_.size() - have));
    if (got == 0) break;
    have += got;
  }
  head_.resize(have);
  if (piped_) rest_ = std::move(source);
  return {};
}

Result<std::unique_ptr<ByteSource>> Input::Open() {
  if (!piped_) return OpenByteSource(path_);
  if (kept_ >= 0) {
    return std::make_unique<KeptSource>(path_, kept_, kept_bytes_, kept_plain_,
                                        kept_damage_);
  }
  if (rest_ == nullptr)
    return Fail(
        InputError(path_, "a pipe can be read only once", "give a file"));
  return std::make_unique<PipeSource>(head_, std::move(rest_));
}

Status Input::Keep() {
  if (!piped_ || kept_ >= 0) return {};
  LAMINA_ASSIGN(const auto source, Open());
  LAMINA_ASSIGN(kept_, MakeTemporaryFile());
  std::vector<char> block(size_t{1} << 20);
  while (true) {
    LAMINA_ASSIGN(const size_t got, source->Read(block.data(), block.size()));
    if (got == 0) break;
    LAMINA_TRY(WriteAll(kept_, block.data(), got));
    kept_bytes_ += got;
  }
  kept_plain_ = source->plain();
  kept_damage_ = source->damage();
  return {};
}

Error NothingRead(const trace::Trace& trace, std::string what,
                  std::string hint) {
  for (const trace::Diagnostic& d : trace.diagnostics.Sorted()) {
    if (d.effect != trace::Effect::kLost) continue;
    what += " (" + d.text;
    if (what.ends_with('.')) what.pop_back();
    what += ')';
    if (d.first_offsets.empty()) break;
    return InputErrorAt(trace.info.file, d.first_offsets[0], std::move(what),
                        std::move(hint));
  }
  if (!trace.info.plain)
    return InputError(trace.info.file, std::move(what), std::move(hint));
  return InputErrorAt(trace.info.file, 0, std::move(what), std::move(hint));
}

}  // namespace lamina::ingest
