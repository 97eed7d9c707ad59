// SPDX-License-Identifier: Apache-2.0
//
// What a reader reads. A file may be opened as often as one likes; the bytes
// of a pipe come once, and so do those that were looked at to find the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "base/status.h"
#include "trace/trace.h"

namespace lamina::ingest {

// What is looked at to choose a reader.
inline constexpr size_t kHeadBytes = size_t{64} << 10;

class Input {
 public:
  // `path` is a file, a folder, a pipe, or "-" for standard input.
  explicit Input(std::string path);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  const std::string& path() const { return path_; }
  bool directory() const { return directory_; }
  // No file: its bytes come once.
  bool piped() const { return piped_; }

  // Reads the first bytes; call once, before Open(). Errors: those of
  // OpenByteSource.
  Status Look();
  // The first bytes after unpacking, up to kHeadBytes; empty for a folder.
  const std::string& head() const { return head_; }

  // What else is in the archive that this is a file of.
  const std::vector<OtherMember>& others() const { return others_; }

  // All bytes, from the first one. Of a pipe only once, unless it is kept.
  Result<std::unique_ptr<ByteSource>> Open();
  // Makes Open() work again and again: the bytes of a pipe go to a temporary
  // file first. Errors: no room for it.
  Status Keep();

 private:
  std::string path_;
  std::string head_;
  std::vector<OtherMember> others_;
  bool directory_ = false;
  bool piped_ = false;
  std::unique_ptr<ByteSource> rest_;  // of a pipe, behind the head
  int kept_ = -1;                     // the temporary file
  uint64_t kept_bytes_ = 0;
  bool kept_plain_ = true;
  std::optional<SourceDamage> kept_damage_;
};

// Packed databases are read from an unpacked copy, which is kept while formats
// look at a file. This lets go of it; it is removed when no database reads it.
void ForgetUnpackedCopy();

// The error of a reader that understood the form of a file and found nothing
// in it to show.

// `what` says what is missing, `hint` how to record it. What was lost on the
// way, if anything, is the likely reason: it is told with its place.
Error NothingRead(const trace::Trace& trace, std::string what,
                  std::string hint);

}  // namespace lamina::ingest
