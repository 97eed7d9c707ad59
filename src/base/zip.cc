// SPDX-License-Identifier: Apache-2.0
//
// One file of a zip archive, by libzip: it reads the list at the end of the
// archive, so folders, stored files and files behind others are found. What an
// archive has for people to read is passed over; every other file that is not
// read is told by others().
#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include "base/byte_source.h"

namespace lamina {
namespace {

// Of a hostile archive; real ones have a few files.
constexpr zip_int64_t kMostMembers = 100'000;

std::string_view BaseName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// What stands in an archive beside the data, by its name.
bool IsDocument(std::string_view path) {
  std::string name(BaseName(path));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  });
  for (const std::string_view start :
       {"readme", "license", "licence", "notice", "changelog", "copying",
        "authors", ".", "thumbs.db", "desktop.ini"}) {
    if (name.starts_with(start)) return true;
  }
  for (const std::string_view end : {".md", ".rst", ".html", ".htm", ".pdf",
                                     ".png", ".jpg", ".svg", ".log"}) {
    if (name.ends_with(end)) return true;
  }
  return path.starts_with("__MACOSX/");
}

struct ArchiveCloser {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct FileCloser {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

class ZipSource final : public ByteSource {
 public:
  static Result<std::unique_ptr<ByteSource>> Open(const std::string& name,
                                                  zip_source_t* bytes,
                                                  uint64_t stored_size) {
    std::unique_ptr<ZipSource> source(new ZipSource(name, stored_size));
    source->archive_.reset(zip_open_from_source(bytes, ZIP_RDONLY, nullptr));
    if (source->archive_ == nullptr) {
      zip_source_free(bytes);
      return std::unique_ptr<ByteSource>();
    }
    LAMINA_TRY(source->Choose());
    return source;
  }

  std::optional<SourceDamage> damage() const override { return damage_; }
  std::vector<OtherMember> others() const override { return others_; }
  uint64_t stored_size() const override { return stored_size_; }
  // Near enough for the progress of reading.
  uint64_t stored_position() const override {
    const double part = size_ == 0 ? 1
                                   : static_cast<double>(position_) /
                                         static_cast<double>(size_);
    return static_cast<uint64_t>(std::min(part, 1.0) *
                                 static_cast<double>(stored_size_));
  }
  bool plain() const override { return false; }

 protected:
  Result<size_t> DoRead(char* to, size_t size) override {
    if (damage_) return size_t{0};
    const zip_int64_t got = zip_fread(file_.get(), to, size);
    if (got < 0) {
      damage_ = SourceDamage{stored_position(),
                             std::string("the archive is damaged: ") +
                                 zip_file_strerror(file_.get())};
      return size_t{0};
    }
    position_ += static_cast<uint64_t>(got);
    return static_cast<size_t>(got);
  }

 private:
  ZipSource(const std::string& name, uint64_t stored_size)
      : ByteSource(name), stored_size_(stored_size) {}

  Status Choose() {
    struct Member {
      zip_uint64_t index = 0;
      OtherMember about;
    };
    std::vector<Member> members;
    const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
    for (zip_int64_t i = 0; i < std::min(count, kMostMembers); ++i) {
      zip_stat_t about;
      zip_stat_init(&about);
      const auto index = static_cast<zip_uint64_t>(i);
      if (zip_stat_index(archive_.get(), index, 0, &about) != 0 ||
          (about.valid & ZIP_STAT_NAME) == 0)
        continue;
      const std::string name = about.name;
      if (name.empty() || name.ends_with('/')) continue;
      members.push_back(
          {index,
           {name, (about.valid & ZIP_STAT_SIZE) != 0 ? about.size : 0,
            IsDocument(name)}});
    }
    if (members.empty()) {
      return Fail(InputError(name(), "the archive holds no file",
                             "give an archive with a trace, or the trace"));
    }
    auto chosen = std::find_if(
        members.begin(), members.end(),
        [](const Member& member) { return !member.about.document; });
    if (chosen == members.end()) chosen = members.begin();
    file_.reset(zip_fopen_index(archive_.get(), chosen->index, 0));
    if (file_ == nullptr) {
      return Fail(InputError(
          name(),
          "the file " + chosen->about.name +
              " of the archive cannot be read: " + zip_strerror(archive_.get()),
          "unpack it first"));
    }
    size_ = chosen->about.bytes;
    for (Member& member : members) {
      if (&member != &*chosen) others_.push_back(std::move(member.about));
    }
    return {};
  }

  std::unique_ptr<zip_t, ArchiveCloser> archive_;
  std::unique_ptr<zip_file_t, FileCloser> file_;
  std::vector<OtherMember> others_;
  std::optional<SourceDamage> damage_;
  uint64_t stored_size_ = 0;
  uint64_t size_ = 0;
  uint64_t position_ = 0;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> OpenZipFile(const std::string& name,
                                                int fd) {
  struct stat info {};
  const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return std::unique_ptr<ByteSource>();
  std::FILE* const file = ::fdopen(own, "rb");
  if (file == nullptr || ::fstat(fd, &info) != 0) {
    file != nullptr ? std::fclose(file) : ::close(own);
    return std::unique_ptr<ByteSource>();
  }
  zip_source_t* const bytes = zip_source_filep_create(file, 0, 0, nullptr);
  if (bytes == nullptr) {
    std::fclose(file);
    return std::unique_ptr<ByteSource>();
  }
  return ZipSource::Open(name, bytes, static_cast<uint64_t>(info.st_size));
}

Result<std::unique_ptr<ByteSource>> OpenZipBytes(const std::string& name,
                                                 std::string_view bytes) {
  zip_source_t* const source =
      zip_source_buffer_create(bytes.data(), bytes.size(), 0, nullptr);
  if (source == nullptr) return std::unique_ptr<ByteSource>();
  return ZipSource::Open(name, source, bytes.size());
}

}  // namespace lamina
