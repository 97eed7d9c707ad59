// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/database.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sqlite3.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/byte_source.h"
#include "base/descriptor.h"
#include "base/opened.h"
#include "base/text.h"
#include "ingest/common/input.h"
#include "ingest/common/table_reader.h"

namespace lamina::ingest {
namespace {

// The longest value that is read; a longer one counts as damage.
constexpr int kMaxValueBytes = 16 << 20;
// The smallest row of a table takes this much of its page.
constexpr uint64_t kMinRowBytes = 4;
// How often a reader may go over all of a file.
constexpr uint64_t kPasses = 3;

// An open file below /proc by the name that it has there: SQLite follows links
// by itself, which gives the name that the file once had.
constexpr std::string_view kOpenFiles = "/proc/self/fd/";

int OpenAsNamed(const char* path, int flags, int mode) {
  if (std::string_view(path).starts_with(kOpenFiles)) flags &= ~O_NOFOLLOW;
  return ::open(path, flags, mode);
}

int KeepName(sqlite3_vfs*, const char* name, int size, char* out) {
  const size_t length = std::strlen(name);
  if (length >= static_cast<size_t>(size)) return SQLITE_CANTOPEN;
  std::memcpy(out, name, length + 1);
  return SQLITE_OK;
}

// The name of the file system of SQLite that has these; null: the usual one.
const char* AsNamed() {
  static constexpr const char* kName = "lamina-as-named";
  static const bool made = [] {
    sqlite3_vfs* const usual = sqlite3_vfs_find(nullptr);
    if (usual == nullptr || usual->iVersion < 3 ||
        usual->xSetSystemCall(
            usual, "open",
            reinterpret_cast<sqlite3_syscall_ptr>(&OpenAsNamed)) != SQLITE_OK)
      return false;
    static sqlite3_vfs as_named = *usual;
    as_named.zName = kName;
    as_named.pNext = nullptr;
    as_named.xFullPathname = &KeepName;
    return sqlite3_vfs_register(&as_named, 0) == SQLITE_OK;
  }();
  return made ? kName : nullptr;
}

// A path as the file part of a URI.
std::string UriPath(std::string_view path) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  static constexpr std::string_view kPlain = "/._-~";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
        (c >= 'a' && c <= 'z') || kPlain.find(c) != kPlain.npos) {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

// Settings under which a hostile file is harmless.
void Restrain(sqlite3* connection) {
  const auto set = [&](int option, int value) {
    sqlite3_db_config(connection, option, value, nullptr);
  };
  set(SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0);
  set(SQLITE_DBCONFIG_ENABLE_TRIGGER, 0);
  set(SQLITE_DBCONFIG_ENABLE_VIEW, 0);
  set(SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0);
  // Lets a file whose end is missing be read up to there.
  set(SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1);
  sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, kMaxValueBytes);
  sqlite3_limit(connection, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(connection, SQLITE_LIMIT_WORKER_THREADS, 0);
  sqlite3_exec(connection, "PRAGMA cell_size_check = ON", nullptr, nullptr,
               nullptr);
}

uint64_t Big(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// The size of a database by its first 100 bytes; 0: these are none.
uint64_t BytesOfHeader(std::string_view head) {
  if (head.size() < 100) return 0;
  const uint64_t page = Big(head, 16, 2) == 1 ? 65536 : Big(head, 16, 2);
  return page * Big(head, 28, 4);
}

}  // namespace

// A packed database, or one whose newest records are in a log beside it, as a
// temporary file that is removed when nobody reads it any more: SQLite jumps
// about in a file, and opens it by name.
class UnpackedCopy {
 public:
  UnpackedCopy(int file, std::string path)
      : file_(file), path_(std::move(path)) {}
  ~UnpackedCopy() {
    ::close(file_);
    ::unlink(path_.c_str());
  }
  UnpackedCopy(const UnpackedCopy&) = delete;
  UnpackedCopy& operator=(const UnpackedCopy&) = delete;

  // Null for a file that is neither packed nor has a log. The last one is kept:
  // formats look at a file one after the other.
  static Result<std::shared_ptr<const UnpackedCopy>> Of(
      const std::string& path);

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }
  // The log that was applied to the copy, "-wal" or "-journal"; empty: none.
  const std::string& log() const { return log_; }

 private:
  static Result<std::shared_ptr<const UnpackedCopy>> Make(
      const std::string& path, const std::string& log);
  Status Add(const std::string& path, int file);
  Status Apply(const std::string& path, const std::string& log);

  int file_;
  std::string path_;
  uint64_t bytes_ = 0;
  std::string log_;
};

namespace {

// Unpacked copies are not longer than this, and leave this much room.
constexpr uint64_t kMostUnpackedBytes = uint64_t{64} << 30;
constexpr uint64_t kRoomLeftBytes = uint64_t{256} << 20;

Error NoRoomToUnpack(const std::string& path, const std::string& why) {
  return InputError(path, "cannot be unpacked to a temporary file: " + why,
                    "set TMPDIR to a folder with room, or unpack it yourself");
}

}  // namespace

Result<std::shared_ptr<const UnpackedCopy>> UnpackedCopy::Make(
    const std::string& path, const std::string& log) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  if (error) return Fail(NoRoomToUnpack(path, error.message()));
  std::string name = (folder / "lamina-database-XXXXXX").string();
  const int file = ::mkstemp(name.data());
  if (file < 0) return Fail(NoRoomToUnpack(path, std::strerror(errno)));
  auto copy = std::make_shared<UnpackedCopy>(file, std::move(name));
  LAMINA_TRY(copy->Add(path, file));
  if (!log.empty()) LAMINA_TRY(copy->Apply(path, log));
  return copy;
}

// Copies all bytes that a path gives.
Status UnpackedCopy::Add(const std::string& path, int file) {
  LAMINA_ASSIGN(const auto source, OpenByteSource(path));
  const std::filesystem::path folder =
      std::filesystem::path(path_).parent_path();
  std::vector<char> block(size_t{1} << 20);
  while (true) {
    LAMINA_ASSIGN(const size_t got, source->Read(block.data(), block.size()));
    if (got == 0) return {};
    std::error_code error;
    const auto room = std::filesystem::space(folder, error);
    if (bytes_ + got > kMostUnpackedBytes ||
        (!error && room.available < kRoomLeftBytes + got))
      return Fail(NoRoomToUnpack(path, "it is too long"));
    for (size_t done = 0; done < got;) {
      const ssize_t put = ::write(file, block.data() + done, got - done);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return Fail(NoRoomToUnpack(path, std::strerror(errno)));
      done += static_cast<size_t>(put);
    }
    bytes_ += got;
  }
}

// Lets SQLite do to the copy what the next program that opens the database
// would do to it: take over its newest records from the log, or undo what was
// half written. The input stays as it is.
Status UnpackedCopy::Apply(const std::string& path, const std::string& log) {
  const std::string beside = path_ + log;
  const Descriptor to(
      ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!to.open()) return Fail(NoRoomToUnpack(path, std::strerror(errno)));
  Status added = Add(path + log, to.get());
  sqlite3* connection = nullptr;
  int code = SQLITE_ERROR;
  if (added) {
    code = sqlite3_open_v2(path_.c_str(), &connection, SQLITE_OPEN_READWRITE,
                           nullptr);
  }
  if (code == SQLITE_OK) {
    Restrain(connection);
    code = sqlite3_exec(connection,
                        "SELECT count(*) FROM sqlite_master; "
                        "PRAGMA wal_checkpoint(TRUNCATE); "
                        "PRAGMA journal_mode = DELETE",
                        nullptr, nullptr, nullptr);
  }
  sqlite3_close_v2(connection);
  for (const char* const end : {"-wal", "-shm", "-journal"})
    ::unlink((path_ + end).c_str());
  if (!added) return added;
  if (code != SQLITE_OK) {
    return Fail(InputError(
        path,
        "its newest records are in " + path + log + ", which cannot be applied",
        "let the profiler end, or run sqlite3 FILE 'PRAGMA "
        "wal_checkpoint(TRUNCATE)' on the file where it was written"));
  }
  std::error_code error;
  bytes_ = std::filesystem::file_size(path_, error);
  log_ = log;
  return {};
}

namespace {

// The end of the name of a log with records that the database lacks; empty:
// there is none. A log that was taken over keeps its size and has no header.
std::string LogOf(const std::string& path) {
  constexpr size_t kWalHeader = 32;
  const auto head_of = [&](const char* end) {
    const NameToRead read(path + end);
    std::ifstream file(read.text(), std::ios::binary);
    std::string head(kWalHeader + 1, '\0');
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<size_t>(file.gcount()));
    return head;
  };
  const std::string wal = head_of("-wal");
  if (wal.size() > kWalHeader && wal.starts_with("\x37\x7f\x06")) return "-wal";
  const std::string journal = head_of("-journal");
  if (journal.starts_with("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"))
    return "-journal";
  return {};
}

// The copy of the last such file.
struct LastCopy {
  std::mutex mutex;
  std::string path;
  std::filesystem::file_time_type written;
  std::shared_ptr<const UnpackedCopy> copy;
};

LastCopy& Last() {
  static LastCopy last;
  return last;
}

}  // namespace

void ForgetUnpackedCopy() {
  LastCopy& last = Last();
  const std::lock_guard lock(last.mutex);
  last.copy = nullptr;
}

Result<std::shared_ptr<const UnpackedCopy>> UnpackedCopy::Of(
    const std::string& path) {
  LastCopy& last = Last();
  std::string head(16, '\0');
  const NameToRead read(path);
  const std::string& name = read.text();
  std::ifstream file(name, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  std::string log;
  if (DetectPacking(head) == Packing::kPlain) {
    if (head.starts_with(kSqliteMagic)) log = LogOf(path);
    if (log.empty()) return std::shared_ptr<const UnpackedCopy>();
  }
  std::error_code error;
  auto written = std::filesystem::last_write_time(name, error);
  if (!log.empty()) {
    const NameToRead beside(path + log);
    written = std::max(written,
                       std::filesystem::last_write_time(beside.text(), error));
  }
  const std::lock_guard lock(last.mutex);
  if (last.copy == nullptr || last.path != path || last.written != written) {
    last.copy = nullptr;
    LAMINA_ASSIGN(last.copy, Make(path, log));
    last.path = path;
    last.written = written;
  }
  return last.copy;
}

// --------------------------------------------------------------------------

bool DatabaseTable::Has(std::string_view column) const {
  return std::any_of(columns.begin(), columns.end(), [&](const std::string& c) {
    return EqualsIgnoringCase(c, column);
  });
}

// --------------------------------------------------------------------------

Result<std::unique_ptr<Database>> Database::Open(const std::string& path) {
  std::unique_ptr<Database> database(new Database);
  database->name_ = path;
  LAMINA_ASSIGN(database->unpacked_, UnpackedCopy::Of(path));
  if (database->unpacked_) database->log_ = database->unpacked_->log();
  std::string head(100, '\0');
  const NameToRead read(path);
  const std::string& name =
      database->unpacked_ ? database->unpacked_->path() : read.text();
  std::ifstream file(name, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  std::error_code error;
  const uint64_t size = database->unpacked_
                            ? database->unpacked_->bytes()
                            : std::filesystem::file_size(name, error);
  if (error) return Fail(InputError(path, "cannot open", "check the path"));
  LAMINA_TRY(database->Connect());
  LAMINA_TRY(database->Begin(head, size));
  // Where the size of the header ends, another one may begin.
  const uint64_t end = BytesOfHeader(head);
  if (end > 0 && end < size) {
    std::string behind(kSqliteMagic.size(), '\0');
    file.clear();
    file.seekg(static_cast<std::streamoff>(end));
    file.read(behind.data(), static_cast<std::streamsize>(behind.size()));
    if (file && behind == kSqliteMagic) database->another_at_ = end;
  }
  return database;
}

Result<std::unique_ptr<Database>> Database::OpenBytes(std::string name,
                                                      std::string_view bytes) {
  std::unique_ptr<Database> database(new Database);
  database->name_ = std::move(name);
  database->bytes_ = std::make_shared<const std::string>(bytes);
  LAMINA_TRY(database->Connect());
  LAMINA_TRY(database->Begin(bytes.substr(0, 100), bytes.size()));
  return database;
}

Result<std::unique_ptr<Database>> Database::Again() const {
  std::unique_ptr<Database> database(new Database);
  database->name_ = name_;
  database->bytes_ = bytes_;
  database->unpacked_ = unpacked_;
  database->file_bytes_ = file_bytes_;
  database->missing_bytes_ = missing_bytes_;
  database->rows_left_ = rows_left_;
  database->tables_ = tables_;
  database->unreadable_tables_ = unreadable_tables_;
  database->places_ = places_;
  LAMINA_TRY(database->Connect());
  return database;
}

Database::~Database() { sqlite3_close_v2(connection_); }

Status Database::Connect() {
  // Each connection is used by one thread at a time.
  constexpr int kFlags = SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
  const NameToRead read(name_);
  const std::string& file = unpacked_ ? unpacked_->path() : read.text();
  const int code =
      bytes_ != nullptr
          ? sqlite3_open_v2(":memory:", &connection_,
                            kFlags | SQLITE_OPEN_READWRITE, nullptr)
          : sqlite3_open_v2(
                ("file:" + UriPath(file) + "?mode=ro&immutable=1").c_str(),
                &connection_, kFlags | SQLITE_OPEN_READONLY,
                file.starts_with(kOpenFiles) ? AsNamed() : nullptr);
  if (code != SQLITE_OK) {
    return Fail(InputError(
        name_, std::string("cannot open: ") + sqlite3_errmsg(connection_)));
  }
  if (bytes_ != nullptr) {
    // Read-only, so that SQLite leaves the shared bytes as they are.
    auto* bytes =
        reinterpret_cast<unsigned char*>(const_cast<char*>(bytes_->data()));
    const auto size = static_cast<sqlite3_int64>(bytes_->size());
    if (sqlite3_deserialize(connection_, "main", bytes, size, size,
                            SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
      return Fail(InputError(name_, "cannot open"));
  }
  Restrain(connection_);
  pass_ = std::make_unique<Pass*>(nullptr);
  if (sqlite3_create_function_v2(
          connection_, kRowFunction.data(), -1, SQLITE_UTF8 | SQLITE_DIRECTONLY,
          pass_.get(), nullptr, &OnRow, [](sqlite3_context*) {},
          nullptr) != SQLITE_OK)
    return Fail(InputError(name_, "cannot open"));
  return {};
}

Status Database::Begin(std::string_view head, uint64_t file_bytes) {
  file_bytes_ = file_bytes;
  rows_left_ = kPasses * file_bytes / kMinRowBytes;
  if (DetectPacking(head) != Packing::kPlain) {
    return Fail(InputErrorAt(name_, 0, "is a database that was packed twice",
                             "unpack it first"));
  }
  if (head.size() < 100 || !head.starts_with(kSqliteMagic)) {
    return Fail(InputErrorAt(name_, 0, "is no SQLite database",
                             "give the database that the profiler wrote"));
  }
  const uint64_t promised = BytesOfHeader(head);
  if (promised > file_bytes) missing_bytes_ = promised - file_bytes;

  // What is neither of the kinds of entries that there are is damaged, and so
  // is an entry without a name, a kind or (where tables have one) a text.
  sqlite3_stmt* list = nullptr;
  int code = sqlite3_prepare_v2(
      connection_,
      "WITH entry AS (SELECT IFNULL(name, '') AS name, IFNULL(type, '') AS "
      "type, IFNULL(sql, '') AS sql FROM sqlite_master) "
      "SELECT name, type = 'table' AND sql LIKE 'CREATE TABLE%' AND name <> '' "
      "FROM entry WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND "
      "NOT (sql LIKE 'CREATE VIRTUAL TABLE%' AND type = 'table') AND "
      "type NOT IN ('index', 'view', 'trigger') ORDER BY name",
      -1, &list, nullptr);
  std::vector<std::string> names;
  while (code == SQLITE_OK) {
    const int step = sqlite3_step(list);
    if (step != SQLITE_ROW) {
      code = step;
      break;
    }
    const unsigned char* text = sqlite3_column_text(list, 0);
    const std::string name(
        text == nullptr ? "" : reinterpret_cast<const char*>(text));
    if (sqlite3_column_int(list, 1) != 0) {
      names.push_back(name);
    } else {
      unreadable_tables_.push_back(name.empty() ? "(without a name)" : name);
    }
    if (names.size() + unreadable_tables_.size() > file_bytes_ / kMinRowBytes)
      code = SQLITE_CORRUPT;
  }
  sqlite3_finalize(list);
  if (code != SQLITE_DONE && names.empty()) {
    return Fail(InputErrorAt(
        name_, 0,
        std::string("the list of tables cannot be read: ") +
            sqlite3_errmsg(connection_),
        missing_bytes_ > 0 ? "the file is cut off: copy or export it again"
                           : "the database is damaged: write it again"));
  }
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) {
    DatabaseTable table;
    table.name = name;
    sqlite3_stmt* info = nullptr;
    const std::string sql = "PRAGMA table_xinfo(" + QuotedName(name) + ")";
    if (sqlite3_prepare_v2(connection_, sql.c_str(), -1, &info, nullptr) ==
        SQLITE_OK) {
      int keys = 0;
      std::vector<std::string> row_ids = {"rowid", "_rowid_", "oid"};
      while (sqlite3_step(info) == SQLITE_ROW) {
        const unsigned char* column = sqlite3_column_text(info, 1);
        if (column == nullptr) continue;
        std::erase(row_ids, LowerCase(reinterpret_cast<const char*>(column)));
        // Generated columns are not read.
        if (sqlite3_column_int(info, 6) != 0) continue;
        table.columns.emplace_back(reinterpret_cast<const char*>(column));
        if (sqlite3_column_int(info, 5) > 0 && ++keys == 1)
          table.primary_key = table.columns.back();
      }
      if (keys != 1) table.primary_key.clear();
      if (!row_ids.empty()) table.row_id = row_ids.front();
    }
    sqlite3_finalize(info);
    if (table.columns.empty()) {
      unreadable_tables_.push_back(name);
      continue;
    }
    places_.try_emplace(LowerCase(name), tables_.size());
    tables_.push_back(std::move(table));
  }
  return {};
}

const DatabaseTable* Database::Find(std::string_view table) const {
  const auto it = places_.find(LowerCase(table));
  return it == places_.end() ? nullptr : &tables_[it->second];
}

const DatabaseTable* Database::FindVersion(std::string_view table) const {
  if (const DatabaseTable* const plain = Find(table)) return plain;
  const DatabaseTable* newest = nullptr;
  for (int version = 2; version < 100; ++version) {
    const DatabaseTable* const found =
        Find(std::string(table) + "_V" + std::to_string(version));
    if (found != nullptr) newest = found;
  }
  return newest;
}

}  // namespace lamina::ingest
