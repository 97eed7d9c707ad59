// SPDX-License-Identifier: Apache-2.0
//
// One door for output: standard output, a file, a gzip file, memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace lamina {

// Buffered writing. An error (full disk, closed pipe) is kept and returned by
// Close(); writing after it does nothing, so callers need no check per write.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;

  void Write(std::string_view bytes) {
    if (bytes.size() > kBuffer - buffer_.size()) Flush();
    if (bytes.size() >= kBuffer) {
      Send(bytes);
    } else {
      buffer_.append(bytes);
    }
  }
  // Writes what is buffered, finishes the format and, for files, puts the
  // finished file in place under its name.
  Status Close();

 protected:
  ByteSink() { buffer_.reserve(kBuffer); }
  virtual Status DoWrite(std::string_view bytes) = 0;
  virtual Status DoClose() = 0;

 private:
  static constexpr size_t kBuffer = size_t{256} << 10;
  void Flush();
  void Send(std::string_view bytes);

  std::string buffer_;
  Status status_;
  bool closed_ = false;
};

// "-" is standard output. A file is written beside its place and renamed by
// Close(): no half file, the mode of what it replaces, links written through;
// .gz: gzip. Errors: no output replaces what was read (base/opened.h).
Result<std::unique_ptr<ByteSink>> CreateFileSink(const std::string& path);

// Compresses with gzip into another sink, which Close() closes. The library
// takes sizes of 32 bits: longer writes go to it in pieces of `most_at_once`.
std::unique_ptr<ByteSink> CreateGzipSink(std::unique_ptr<ByteSink> to,
                                         size_t most_at_once = size_t{1} << 30);

// Appends to `*out`, which must outlive the sink.
std::unique_ptr<ByteSink> CreateStringSink(std::string* out);

// Writes a whole file.
Status WriteFile(const std::string& path, std::string_view bytes);

// Sends all of the file `from`. Errors: it cannot be read to its end; those of
// writing wait for Close().
Status SendFile(const std::string& from, ByteSink& to);

// Creates a directory and its parents; fine when it exists.
Status MakeDirectory(const std::string& path);

}  // namespace lamina
