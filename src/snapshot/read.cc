// SPDX-License-Identifier: Apache-2.0
//
// Opens a snapshot: header and directory, facts, then one pass over all blocks
// in which each is held against its digest and its rows against their ranges,
// and at last what depends on several of them.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/parallel.h"
#include "snapshot/check.h"
#include "snapshot/facts.h"
#include "snapshot/format.h"

namespace lamina::snapshot {
namespace {

Error Refused(std::string why) {
  return InputError("snapshot", std::move(why));
}

// Another machine can cut a file of such a file system, or the network end:
// its mapped pages are gone then, and the process with them.
bool PagesStay(int fd) {
  struct statfs info {};
  if (::fstatfs(fd, &info) != 0) return false;
  switch (static_cast<uint32_t>(info.f_type)) {
    case 0x6969:      // NFS
    case 0x517B:      // SMB
    case 0xFF534D42:  // CIFS
    case 0xFE534D42:  // SMB2
    case 0x65735546:  // FUSE
    case 0x01021997:  // 9P
    case 0x0BD00BD0:  // Lustre
    case 0x47504653:  // GPFS
    case 0x00C36400:  // Ceph
    case 0x5346414F:  // AFS
      return false;
    default:
      return true;
  }
}

bool ReadAt(int fd, char* to, size_t size, uint64_t offset) {
  while (size > 0) {
    const ssize_t got = ::pread(fd, to, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    size -= static_cast<size_t>(got);
    offset += static_cast<uint64_t>(got);
  }
  return true;
}

// A section of the file that is there in full.
struct Section {
  const SectionInfo* info = nullptr;
  Entry entry{};
};

// Gives columns and rows their part of the mapping.
class Binder {
 public:
  Binder(const std::vector<Section>& sections, char* data)
      : sections_(sections), data_(data) {}

  template <class Row, class F, class T>
  void Column(const std::string& name, const trace::FieldInfo& /*info*/,
              PodVector<T>& column) {
    Bind(name, column);
  }
  template <class Row, class R>
  void Rows(std::string_view name, R& rows) {
    Bind(name, rows);
  }
  template <class T>
  std::span<T> Span(std::string_view name) const {
    const Entry& entry = Find(name);
    return {reinterpret_cast<T*>(data_ + entry.offset), entry.count};
  }
  const Entry& Find(std::string_view name) const {
    return std::find_if(
               sections_.begin(), sections_.end(),
               [name](const Section& s) { return s.info->name == name; })
        ->entry;
  }

 private:
  template <class T>
  void Bind(std::string_view name, PodVector<T>& column) const {
    const std::span<T> values = Span<T>(name);
    column = PodVector<T>::Borrow(values.data(), values.size());
  }
  template <class T>
  void Bind(std::string_view name, std::vector<T>& rows) const {
    const std::span<T> values = Span<T>(name);
    rows.assign(values.begin(), values.end());
  }

  const std::vector<Section>& sections_;
  char* data_;
};

class Reader {
 public:
  Reader(const Mapping& mapping, int threads)
      : data_(mapping.data()), size_(mapping.size()), threads_(threads) {}

  Status Open(const Key& key, trace::Trace& trace) {
    LAMINA_TRY(Directory(key));
    LAMINA_TRY(Facts(trace));
    Limits(trace);
    LAMINA_TRY(Blocks());
    return Join(trace);
  }

 private:
  Status Directory(const Key& key) {
    Header header;
    if (size_ < sizeof(header)) return Fail(Refused("is too short"));
    std::memcpy(&header, data_, sizeof(header));
    if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 ||
        header.format != kFormat)
      return Fail(Refused("is none"));
    if (header.key != key) return Fail(Refused("is of another input"));
    const std::vector<SectionInfo>& wanted = Sections();
    if (header.file_bytes != size_ || header.input_bytes > kMostInput ||
        header.input_bytes > size_ - sizeof(header) ||
        header.sections != wanted.size() || header.blocks > size_ / 8 ||
        header.directory_offset % 8 != 0 || header.directory_offset > size_ ||
        size_ - header.directory_offset !=
            header.sections * sizeof(Entry) + header.blocks * sizeof(uint64_t))
      return Fail(Refused("its header cannot be"));
    std::string head(data_, sizeof(header) + header.input_bytes);
    std::memset(head.data() + offsetof(Header, digest), 0, sizeof(uint64_t));
    if (Digest(head.data(), head.size()) != header.digest)
      return Fail(Refused("its header is damaged"));
    const char* at = data_ + header.directory_offset;
    if (Digest(at, size_ - header.directory_offset) != header.directory_digest)
      return Fail(Refused("its directory is damaged"));
    uint64_t end = sizeof(header) + header.input_bytes;
    uint64_t blocks = 0;
    sections_.resize(wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      Entry& entry = sections_[i].entry;
      std::memcpy(&entry, at + i * sizeof(Entry), sizeof(entry));
      sections_[i].info = &wanted[i];
      if (entry.Name() != wanted[i].name ||
          entry.element_bytes != wanted[i].element_bytes ||
          entry.offset % kAlignment != 0 || entry.offset < end ||
          entry.offset > header.directory_offset ||
          entry.count >
              (header.directory_offset - entry.offset) / entry.element_bytes ||
          entry.first_block != blocks)
        return Fail(Refused("its directory cannot be"));
      end = entry.offset + entry.count * entry.element_bytes;
      blocks += BlocksOf(entry.element_bytes, entry.count);
      // Rows are numbered with 32 bits; columns of one kind are equally long.
      if (!wanted[i].kind.empty() &&
          (entry.count >= trace::kNoRow ||
           (i > 0 && wanted[i - 1].kind == wanted[i].kind &&
            sections_[i - 1].entry.count != entry.count)))
        return Fail(Refused("its columns cannot be"));
    }
    if (blocks != header.blocks) return Fail(Refused("its blocks cannot be"));
    digests_ = {
        reinterpret_cast<const uint64_t*>(at + header.sections * sizeof(Entry)),
        blocks};
    const Binder binder(sections_, data_);
    const uint64_t strings = binder.Find(kStringOffsets).count;
    if (strings < 2 || strings >= StringId::kNone ||
        binder.Find(kDeviceOrder).count >= trace::kNoRow)
      return Fail(Refused("its texts cannot be"));
    return {};
  }

  bool IsWhole(const Section& section, uint64_t block) const {
    const Entry& entry = section.entry;
    const uint64_t each = BlockElements(entry.element_bytes);
    const uint64_t first = block * each;
    const uint64_t count = std::min(each, entry.count - first);
    return Digest(data_ + entry.offset + first * entry.element_bytes,
                  count * entry.element_bytes) ==
           digests_[entry.first_block + block];
  }

  // What other checks need to know.
  Status Facts(trace::Trace& trace) {
    for (const Section& section : sections_) {
      if (section.info->name != kFacts) continue;
      const uint64_t blocks = BlocksOf(1, section.entry.count);
      for (uint64_t i = 0; i < blocks; ++i) {
        if (!IsWhole(section, i)) return Fail(Refused("its facts are damaged"));
      }
      if (!ReadFacts({data_ + section.entry.offset, section.entry.count},
                     trace))
        return Fail(Refused("its facts cannot be"));
    }
    return {};
  }

  void Limits(const trace::Trace& trace) {
    const Binder binder(sections_, data_);
    bounds_.string_offsets = binder.Find(kStringOffsets).count;
    bounds_.strings = bounds_.string_offsets - 1;
    bounds_.string_bytes = binder.Find(kStringBytes).count;
    bounds_.tracks = trace.tracks.size();
    bounds_.streams = trace.streams.size();
    bounds_.categories = trace.categories.size();
    for (const Section& section : sections_)
      bounds_.rows.emplace_back(section.info->kind, section.entry.count);
    bounds_.kinds = binder.Span<trace::Kind>("slice.kind").data();
    using trace::Kind;
    const auto have = [&](std::initializer_list<Kind> kinds,
                          std::string_view rows, bool must) {
      for (const Kind kind : kinds) {
        bounds_.arguments[static_cast<size_t>(kind)] = bounds_.RowsOf(rows);
        bounds_.must_have[static_cast<size_t>(kind)] = must;
      }
    };
    have({Kind::kOp, Kind::kAnnotation, Kind::kGpuAnnotation}, "op_arg", false);
    // kOther: see trace/sync_record.h.
    have({Kind::kRuntime, Kind::kDriver, Kind::kOther}, "api_arg", false);
    have({Kind::kKernel, Kind::kMemcpy, Kind::kMemset, Kind::kGraph},
         "device_arg", true);
    have({Kind::kPython}, "python_arg", false);
  }

  Status Blocks() {
    struct Task {
      const Section* section;
      uint64_t block;
    };
    std::vector<Task> tasks;
    for (const Section& section : sections_) {
      const uint64_t blocks =
          BlocksOf(section.entry.element_bytes, section.entry.count);
      for (uint64_t i = 0; i < blocks; ++i) tasks.push_back({&section, i});
    }
    constexpr size_t kNone = ~size_t{0};
    std::atomic<size_t> bad = kNone;
    ParallelFor(threads_, tasks.size(), [&](size_t i) {
      if (bad != kNone) return;
      const Section& section = *tasks[i].section;
      const Entry& entry = section.entry;
      const uint64_t each = BlockElements(entry.element_bytes);
      const uint64_t first = tasks[i].block * each;
      if (!IsWhole(section, tasks[i].block) ||
          (section.info->check != nullptr &&
           !section.info->check(data_ + entry.offset, first,
                                std::min(first + each, entry.count), bounds_)))
        bad = i;
    });
    if (bad != kNone)
      return Fail(Refused("is damaged in " + tasks[bad].section->info->name));
    return {};
  }

  // Facts name texts; device work has streams and an order.
  Status Join(trace::Trace& trace) {
    Binder binder(sections_, data_);
    const auto is_text = [this](StringId id) {
      return !id.valid() || id.value < bounds_.strings;
    };
    for (const StringId id : trace.categories) {
      if (!is_text(id)) return Fail(Refused("its categories cannot be"));
    }
    for (const trace::Track& track : trace.tracks) {
      if (!is_text(track.pid) || !is_text(track.tid) ||
          !is_text(track.process_name) || !is_text(track.process_labels) ||
          !is_text(track.thread_name))
        return Fail(Refused("its tracks cannot be"));
    }
    for (const trace::Stream& stream : trace.streams) {
      if (!is_text(stream.pid)) return Fail(Refused("its streams cannot be"));
    }
    ForEachRowSection(trace, binder);
    const auto texts = binder.Span<const char>(kStringBytes);
    trace.strings =
        StringPool::Borrow({texts.data(), texts.size()},
                           binder.Span<const uint64_t>(kStringOffsets));
    const auto order = binder.Span<const trace::SliceId>(kDeviceOrder);
    trace.device_order.assign(order.begin(), order.end());
    if (order.size() != bounds_.device_slices)
      return Fail(Refused("its order of device work cannot be"));
    std::pair<int64_t, uint32_t> last;
    // What is counted by row is counted by slice.
    std::vector<bool> taken(trace.device.size());
    for (size_t i = 0; i < order.size(); ++i) {
      const trace::SliceId s = order[i];
      if (s.value >= trace.slices.size() || !trace::IsDevice(trace.KindOf(s)))
        return Fail(Refused("its device work cannot be"));
      const uint32_t row = trace.slices.detail[s.value];
      const trace::StreamId lane = trace.device[row].lane;
      const std::pair<int64_t, uint32_t> key(trace.Start(s), trace.Uid(s));
      if (taken[row] || !lane.valid() || (i > 0 && key <= last))
        return Fail(Refused("its device work has no order"));
      taken[row] = true;
      last = key;
      trace.streams[lane.value].slices.push_back(s);
    }
    if (trace.slices.size() > 0) trace.first_ns = bounds_.first_ns;
    return {};
  }

  char* data_;
  uint64_t size_;
  int threads_;
  std::vector<Section> sections_;
  std::span<const uint64_t> digests_;
  Bounds bounds_;
};

}  // namespace

std::shared_ptr<const Mapping> Mapping::Of(int fd, size_t size, int threads) {
  if (size == 0) return nullptr;
  if (PagesStay(fd)) {
    // Writable, so that columns are as those of a parsed trace: a page that is
    // written becomes this process's own.
    void* const at =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) return nullptr;
    return std::shared_ptr<const Mapping>(
        new Mapping(static_cast<char*>(at), size));
  }
  void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  std::shared_ptr<const Mapping> mapping(
      new Mapping(static_cast<char*>(at), size));
  constexpr size_t kPart = size_t{4} << 20;
  std::atomic<bool> good = true;
  ParallelFor(threads, (size + kPart - 1) / kPart, [&](size_t i) {
    const size_t from = i * kPart;
    if (!ReadAt(fd, mapping->data() + from, std::min(kPart, size - from), from))
      good = false;
  });
  return good ? mapping : nullptr;
}

std::shared_ptr<const Mapping> Mapping::Of(std::string_view bytes) {
  if (bytes.empty()) return nullptr;
  void* const at = ::mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  std::memcpy(at, bytes.data(), bytes.size());
  return std::shared_ptr<const Mapping>(
      new Mapping(static_cast<char*>(at), bytes.size()));
}

Mapping::~Mapping() { ::munmap(data_, size_); }

Result<trace::Trace> Read(std::shared_ptr<const Mapping> mapping,
                          const Key& key, int threads) {
  trace::Trace trace;
  LAMINA_TRY(Reader(*mapping, threads).Open(key, trace));
  trace.holds = std::move(mapping);
  return trace;
}

Result<Head> ReadHead(int fd) {
  Header header;
  struct stat info {};
  if (::fstat(fd, &info) != 0 ||
      !ReadAt(fd, reinterpret_cast<char*>(&header), sizeof(header), 0) ||
      std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 ||
      header.format != kFormat || header.input_bytes > kMostInput)
    return Fail(Refused("is none"));
  Head head;
  head.key = header.key;
  head.file_bytes = static_cast<uint64_t>(info.st_size);
  head.input.resize(header.input_bytes);
  if (!ReadAt(fd, head.input.data(), head.input.size(), sizeof(header)))
    return Fail(Refused("is too short"));
  return head;
}

}  // namespace lamina::snapshot
