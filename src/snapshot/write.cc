// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cerrno>
#include <cstring>
#include <unistd.h>

#include "base/parallel.h"
#include "snapshot/facts.h"
#include "snapshot/format.h"

namespace lamina::snapshot {
namespace {

// A member that is added to Trace does not compile here before somebody decided
// whether it is a section, a fact, or made anew by Read().
[[maybe_unused]] void KnowsAllOf(const trace::Trace& trace) {
  const auto& [info, diagnostics, strings, categories, tracks, slices, streams,
               ops, api_calls, device, python, configs, collectives, memory,
               graph_nodes, instructions, flows, instants, counters,
               event_counters, captured, device_order, first_ns, holds] = trace;
  (void)info, (void)diagnostics, (void)strings, (void)categories, (void)tracks,
      (void)slices, (void)streams, (void)ops, (void)api_calls, (void)device,
      (void)python, (void)configs, (void)collectives, (void)memory,
      (void)graph_nodes, (void)instructions, (void)flows, (void)instants,
      (void)counters, (void)event_counters, (void)captured, (void)device_order,
      (void)first_ns, (void)holds;
}

// Bytes between members are of no value: they must not reach the file.
template <class Row>
constexpr bool HasGaps() {
  return std::apply(
      [](const auto&... field) {
        return (sizeof(std::declval<Row>().*
                       std::remove_cvref_t<decltype(field)>::kMember) +
                ...) != sizeof(Row);
      },
      trace::Described<Row>::kFields);
}

template <class Row>
void CopyMembers(const char* from, uint64_t count, char* to) {
  const auto* const rows = reinterpret_cast<const Row*>(from);
  std::memset(to, 0, count * sizeof(Row));
  for (uint64_t i = 0; i < count; ++i) {
    const auto copy = [&](const auto& field) {
      const auto& member =
          rows[i].*std::remove_cvref_t<decltype(field)>::kMember;
      std::memcpy(to + i * sizeof(Row) +
                      (reinterpret_cast<const char*>(&member) -
                       reinterpret_cast<const char*>(&rows[i])),
                  &member, sizeof(member));
    };
    std::apply([&](const auto&... field) { (copy(field), ...); },
               trace::Described<Row>::kFields);
  }
}

struct Piece {
  Entry entry{};
  const char* data = nullptr;
  void (*copy)(const char* from, uint64_t count, char* to) = nullptr;
};

struct Pieces {
  std::vector<Piece> all;

  template <class Row, class F, class T>
  void Column(const std::string& name, const trace::FieldInfo& /*info*/,
              const PodVector<T>& column) {
    Add(name, column.data(), column.size());
  }
  template <class Row, class R>
  void Rows(std::string_view name, const R& rows) {
    Add(name, rows.data(), rows.size());
    if (HasGaps<Row>()) all.back().copy = &CopyMembers<Row>;
  }
  template <class T>
  void Add(std::string_view name, const T* data, size_t count) {
    Piece piece;
    std::memcpy(piece.entry.name, name.data(), name.size());
    piece.entry.element_bytes = sizeof(T);
    piece.entry.count = count;
    piece.data = reinterpret_cast<const char*>(data);
    all.push_back(piece);
  }
};

// False: errno says why.
bool WriteAt(int fd, const char* data, size_t size, uint64_t offset) {
  while (size > 0) {
    const ssize_t put = ::pwrite(fd, data, size, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    data += put;
    size -= static_cast<size_t>(put);
    offset += static_cast<uint64_t>(put);
  }
  return true;
}

}  // namespace

Result<uint64_t> Write(const trace::Trace& trace, const Key& key,
                       const std::string& input, int fd, int threads) {
  LAMINA_CHECK(trace.captured.empty());
  Pieces pieces;
  ForEachRowSection(trace, pieces);
  const std::string facts = FactsOf(trace);
  pieces.Add(kFacts, facts.data(), facts.size());
  pieces.Add(kDeviceOrder, trace.device_order.data(),
             trace.device_order.size());
  std::string texts;
  std::vector<uint64_t> offsets{0};
  offsets.reserve(trace.strings.size() + 1);
  for (uint32_t i = 0; i < trace.strings.size(); ++i) {
    texts += trace.strings[StringId(i)];
    offsets.push_back(texts.size());
  }
  pieces.Add(kStringBytes, texts.data(), texts.size());
  pieces.Add(kStringOffsets, offsets.data(), offsets.size());

  const std::string path = input.substr(0, kMostInput);
  uint64_t end = sizeof(Header) + path.size();
  uint64_t blocks = 0;
  struct Task {
    const Piece* piece;
    uint64_t block;  // of the piece
  };
  std::vector<Task> tasks;
  for (Piece& piece : pieces.all) {
    Entry& entry = piece.entry;
    entry.offset = Aligned(end);
    entry.first_block = blocks;
    end = entry.offset + entry.count * entry.element_bytes;
    const uint64_t count = BlocksOf(entry.element_bytes, entry.count);
    for (uint64_t i = 0; i < count; ++i) tasks.push_back({&piece, i});
    blocks += count;
  }
  std::vector<uint64_t> digests(blocks);
  std::atomic<int> error = 0;
  ParallelFor(threads, tasks.size(), [&](size_t i) {
    if (error != 0) return;
    const Piece& piece = *tasks[i].piece;
    const Entry& entry = piece.entry;
    const uint64_t each = BlockElements(entry.element_bytes);
    const uint64_t first = tasks[i].block * each;
    const uint64_t count = std::min(each, entry.count - first);
    const size_t size = count * entry.element_bytes;
    const char* data = piece.data + first * entry.element_bytes;
    std::string clean;
    if (piece.copy != nullptr) {
      clean.resize(size);
      piece.copy(data, count, clean.data());
      data = clean.data();
    }
    digests[entry.first_block + tasks[i].block] = Digest(data, size);
    if (!WriteAt(fd, data, size, entry.offset + first * entry.element_bytes))
      error = errno != 0 ? errno : EIO;
  });

  std::string directory;
  for (const Piece& piece : pieces.all) {
    directory.append(reinterpret_cast<const char*>(&piece.entry),
                     sizeof(Entry));
  }
  directory.append(reinterpret_cast<const char*>(digests.data()),
                   digests.size() * sizeof(uint64_t));
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.format = kFormat;
  header.sections = static_cast<uint32_t>(pieces.all.size());
  header.key = key;
  header.directory_offset = Aligned(end);
  header.file_bytes = header.directory_offset + directory.size();
  header.blocks = blocks;
  header.directory_digest = Digest(directory.data(), directory.size());
  header.input_bytes = path.size();
  std::string head(reinterpret_cast<const char*>(&header), sizeof(header));
  head += path;
  header.digest = Digest(head.data(), head.size());
  head.replace(0, sizeof(header), reinterpret_cast<const char*>(&header),
               sizeof(header));
  // The header last: without it the file is none.
  if (error != 0 ||
      !WriteAt(fd, directory.data(), directory.size(),
               header.directory_offset) ||
      !WriteAt(fd, head.data(), head.size(), 0)) {
    if (error == 0) error = errno;
    return Fail(InputError(input, std::strerror(error)));
  }
  return header.file_bytes;
}

}  // namespace lamina::snapshot
