// SPDX-License-Identifier: Apache-2.0
//
// Snapshots in memory, and how to change them: plainly, which digests find, or
// with digests that fit, which only the checks of rows can find.
#pragma once

#include <random>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "snapshot/facts.h"
#include "snapshot/format.h"

namespace lamina::snapshot {

inline constexpr Key kTestKey = {1, 2, 3};

inline std::string BytesOf(const trace::Trace& trace, int threads = 2) {
  const int fd = ::memfd_create("snapshot", MFD_CLOEXEC);
  const auto size = Write(trace, kTestKey, "input.json", fd, threads);
  if (!size) return {};
  std::string bytes(*size, 0);
  const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), 0);
  ::close(fd);
  return got == static_cast<ssize_t>(bytes.size()) ? bytes : std::string();
}

inline Result<trace::Trace> Reopen(std::string_view bytes, int threads = 1) {
  auto mapping = Mapping::Of(bytes);
  if (mapping == nullptr) return Fail(InputError("snapshot", "is empty"));
  return Read(std::move(mapping), kTestKey, threads);
}

inline Header HeaderOf(const std::string& bytes) {
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

inline std::vector<Entry> EntriesOf(const std::string& bytes) {
  const Header header = HeaderOf(bytes);
  std::vector<Entry> entries(header.sections);
  std::memcpy(entries.data(), bytes.data() + header.directory_offset,
              entries.size() * sizeof(Entry));
  return entries;
}

// Makes all digests fit what is there.
inline void Seal(std::string& bytes) {
  Header header = HeaderOf(bytes);
  char* const directory = bytes.data() + header.directory_offset;
  uint64_t at = header.sections * sizeof(Entry);
  for (const Entry& entry : EntriesOf(bytes)) {
    const uint64_t each = BlockElements(entry.element_bytes);
    for (uint64_t i = 0; i < entry.count; i += each) {
      const uint64_t count = std::min(each, entry.count - i);
      const uint64_t digest =
          Digest(bytes.data() + entry.offset + i * entry.element_bytes,
                 count * entry.element_bytes);
      std::memcpy(directory + at, &digest, sizeof(digest));
      at += sizeof(digest);
    }
  }
  header.directory_digest =
      Digest(directory, bytes.size() - header.directory_offset);
  header.digest = 0;
  std::memcpy(bytes.data(), &header, sizeof(header));
  header.digest = Digest(bytes.data(), sizeof(header) + header.input_bytes);
  std::memcpy(bytes.data(), &header, sizeof(header));
}

// Changes a value in a section to one that is likely to hurt.
inline void Hurt(std::string& bytes, std::mt19937_64& random) {
  const auto entries = EntriesOf(bytes);
  const Entry& entry = entries[random() % entries.size()];
  const uint64_t size = entry.count * entry.element_bytes;
  if (size == 0) return;
  char* const data = bytes.data() + entry.offset;
  const uint64_t width =
      std::min<uint64_t>(size, uint64_t{1} << (random() % 4));
  const uint64_t at = random() % (size / width) * width;
  uint64_t value = 0;
  std::memcpy(&value, data + at, width);
  switch (random() % 6) {
    case 0:
      value ^= uint64_t{1} << (random() % (width * 8));
      break;
    case 1:
      value = ~uint64_t{0};
      break;
    case 2:
      value = random();
      break;
    case 3:
      value += random() % 3 - 1;
      break;
    case 4:
      value = entry.count + random() % 2;
      break;
    default:  // what stands elsewhere in the section
      std::memcpy(&value, data + random() % (size / width) * width, width);
  }
  std::memcpy(data + at, &value, width);
}

}  // namespace lamina::snapshot
