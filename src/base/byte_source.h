// SPDX-License-Identifier: Apache-2.0
//
// One door for bytes: a plain file, gzip, zstd, a file in a zip archive, or
// standard input, all read front to back through ByteSource. The kind is
// found from the first bytes, never from the name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace lamina {

// Something wrong inside the bytes that does not stop what came before from
// being used: a truncated gzip member, a bad checksum.
struct SourceDamage {
  uint64_t offset = 0;  // in the file as stored (compressed)
  std::string what;
};

// A file of an archive that is not read: one at a time is.
struct OtherMember {
  std::string name;
  uint64_t bytes = 0;     // unpacked
  bool document = false;  // README, LICENSE ...: nothing is lost by it
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills up to `size` bytes and returns how many; 0 at the end. Damage ends
  // the data early: Read() returns 0 and damage() says why. An error is
  // returned only for a failing device.
  Result<size_t> Read(char* to, size_t size) {
    // Some unpackers would wait for a byte that nobody asked for.
    if (size == 0) return size_t{0};
    return DoRead(to, size);
  }

  virtual std::optional<SourceDamage> damage() const { return std::nullopt; }

  // What else the archive holds that this comes from.
  virtual std::vector<OtherMember> others() const { return {}; }

  // Bytes of the stored file, 0 when unknown (a pipe).
  virtual uint64_t stored_size() const { return 0; }
  // Bytes of the stored file consumed so far, for progress.
  virtual uint64_t stored_position() const = 0;
  // True when the stored bytes are the data, so that an offset in the data is
  // an offset in the file.
  virtual bool plain() const { return true; }

  const std::string& name() const { return name_; }

 protected:
  explicit ByteSource(std::string name) : name_(std::move(name)) {}
  // Read() of one byte or more.
  virtual Result<size_t> DoRead(char* to, size_t size) = 0;

 private:
  std::string name_;
};

// How the bytes of a file are packed.
enum class Packing { kPlain, kGzip, kZstd, kZip };

// Opens `path` ("-" is standard input) and unpacks it; of a zip archive the
// first file that is no README or the like, itself unpacked. Errors: a missing
// or unreadable file, a directory, an empty file, an archive without a file.
Result<std::unique_ptr<ByteSource>> OpenByteSource(const std::string& path);

// Bytes in memory, for tests, fuzzers and embedded samples. Unpacks like a
// file. `name` appears in messages.
Result<std::unique_ptr<ByteSource>> OpenMemory(std::string name,
                                               std::string_view bytes);

// A zlib stream in memory (RFC 1950), as Perfetto packs packets. Errors: the
// bytes do not begin like one.
Result<std::unique_ptr<ByteSource>> OpenDeflated(std::string name,
                                                 std::string_view bytes);

// The first `size` bytes of a file after unpacking; shorter at the end.
Result<std::string> ReadHead(const std::string& path, size_t size);

// A whole file after unpacking, for small files; fails above `limit` bytes.
Result<std::string> ReadAll(const std::string& path, size_t limit);

// Bytes [offset, offset + size) of the unpacked data of a file; shorter at the
// end. A packed file is unpacked up to there.
Result<std::string> ReadRange(const std::string& path, uint64_t offset,
                              size_t size);

Packing DetectPacking(std::string_view head);

// Packed bytes as a ByteSource of what is in them. What is wrong inside ends
// the data early and is told by damage().

// gzip, several members joined; zero bytes may follow the last one.
std::unique_ptr<ByteSource> UnpackGzip(std::unique_ptr<ByteSource> stored);
// Deflate data without a frame of its own, as in a zip member.
std::unique_ptr<ByteSource> UnpackDeflate(std::unique_ptr<ByteSource> stored);
// Frames that ask for a window above 128 MB are refused: bounded memory.
std::unique_ptr<ByteSource> UnpackZstd(std::unique_ptr<ByteSource> stored);

// A file of the zip archive in the open file `fd`, which stays the caller's, or
// in `bytes`, which must stay; `name` is that of the archive. Null when the
// list of files at its end is missing or damaged. Errors: no file in it, one
// that cannot be opened (a password).
Result<std::unique_ptr<ByteSource>> OpenZipFile(const std::string& name,
                                                int fd);
Result<std::unique_ptr<ByteSource>> OpenZipBytes(const std::string& name,
                                                 std::string_view bytes);

// The bytes of an input that are read and not yet used, to look at in place
// before using them. The offset of every byte in the unpacked input is known.

class ByteWindow {
 public:
  explicit ByteWindow(ByteSource* source) : source_(*source) {}

  // What stands in the window; valid until the window changes.
  std::string_view text() const {
    return {bytes_.data() + begin_, bytes_.size() - begin_};
  }
  // Of text()[0] in the unpacked input.
  uint64_t offset() const { return offset_; }
  // Nothing follows text().
  bool at_end() const { return at_end_; }
  // Nothing is left at all.
  bool empty() const { return at_end_ && text().empty(); }
  const ByteSource& source() const { return source_; }

  // Reads up to `bytes` more behind text(); false when there are none.
  Result<bool> Fill(size_t bytes);
  // Drops the first bytes of text().
  void Consume(size_t bytes);
  // Gives up the rest of the input.
  void Close();

  // For a caller with a buffer of its own, which saves a copy of every byte:
  // moves text() and then what follows it to `to`; fewer bytes than `size`
  // only at the end.
  Result<size_t> Take(char* to, size_t size);
  // Returns the last of the bytes that Take() moved.
  void PutBack(std::string_view rest);

 private:
  // Fewer bytes than `size` only at the end; does not move the offset.
  Result<size_t> ReadFully(char* to, size_t size);

  ByteSource& source_;
  std::vector<char> bytes_;
  size_t begin_ = 0;  // of text() in bytes_
  uint64_t offset_ = 0;
  bool at_end_ = false;
};

}  // namespace lamina
