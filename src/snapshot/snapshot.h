// SPDX-License-Identifier: Apache-2.0
//
// A trace as a file that need not be parsed: its columns and rows as they lie
// in memory, to be mapped.
//
// The file is a header, sections that begin at multiples of 64, and a directory
// of them, with a digest of every block of every section. The sections follow
// from trace/fields.h. It holds what a reader gives, nothing that rules,
// devices or captures decide, and only the build of lamina that wrote it reads
// it: its key says so.
//
// Nothing in a file is trusted. Digests find accidents; apart from them every
// row number, id and enum is held against its range before anything uses it,
// so that no file, whatever its bytes, can make a reader of the trace leave its
// arrays.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "trace/trace.h"

namespace lamina::snapshot {

// What a file is of: the input and the build (input_key.h).
using Key = std::array<uint8_t, 16>;

// Bytes in memory that may be written without the file being changed.
class Mapping {
 public:
  // The whole file; of a file system whose pages others can take away a copy.
  // Null: no room, or the file cannot be read.
  static std::shared_ptr<const Mapping> Of(int fd, size_t size, int threads);
  // A copy of bytes.
  static std::shared_ptr<const Mapping> Of(std::string_view bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  Mapping(char* data, size_t size) : data_(data), size_(size) {}
  char* data_;
  size_t size_;
};

// What can be known of a file from its first bytes.
struct Head {
  Key key{};
  std::string input;  // path of the input, as it was when the file was written
  uint64_t file_bytes = 0;
};

// Writes `trace` to an empty file. `input` is the path of what it was read
// from, for people. The trace is one that a reader gave: without what rules add
// and without captured calls. Returns the size. Errors: those of the device.
Result<uint64_t> Write(const trace::Trace& trace, const Key& key,
                       const std::string& input, int fd, int threads);

// The trace, which stands on the mapping. Errors: a file of another key, or one
// whose content cannot be; `what` says which.
Result<trace::Trace> Read(std::shared_ptr<const Mapping> mapping,
                          const Key& key, int threads);

Result<Head> ReadHead(int fd);

}  // namespace lamina::snapshot
