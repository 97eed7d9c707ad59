// SPDX-License-Identifier: Apache-2.0
//
// What a store needs of a database. A file of SQLite is one; a server of
// PostgreSQL is another, in a plug-in, so that the program starts without
// libpq. SQL is what both understand; where they differ, is_server() says which
// one it is. From one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace lamina::runstore {

// Why a statement failed.
struct Fault {
  enum class Kind : uint8_t {
    kOther,
    kBusy,     // locked for as long as one waits
    kNoStore,  // the file is of another kind
    kDamaged,
    kFull,
    kIo,
    kReadOnly,
    kCannotOpen,
    kUnreachable,  // the server, or it refuses us
    kUsage,        // the address cannot be meant
  };
  Kind kind = Kind::kOther;
  std::string text;  // of the database, without secrets
};

struct Bytes {
  std::string value;
};
using Cell = std::variant<std::monostate, int64_t, double, std::string, Bytes>;

// A statement with values for its marks "?" or "?1", which may run many times.
class Prepared {
 public:
  virtual ~Prepared() = default;
  // What ran before is given up.
  virtual void Start(std::span<const Cell> values) = 0;
  // The next row; false: there is none, or a fault.
  virtual bool Next() = 0;
  virtual const std::optional<Fault>& fault() const = 0;
  // Of the row, by column from 0. Text also of bytes.
  virtual bool IsNull(int column) const = 0;
  virtual int64_t Int(int column) const = 0;
  virtual double Real(int column) const = 0;
  virtual std::string Text(int column) const = 0;
};

class Database {
 public:
  virtual ~Database() = default;
  virtual std::unique_ptr<Prepared> Prepare(std::string_view sql) = 0;
  // Statements without values and rows. Types and keys are those of SQLite.
  virtual std::optional<Fault> Execute(const char* sql) = 0;
  virtual bool is_server() const = 0;
  // For messages: "postgresql://host/name", or the file.
  virtual const std::string& name() const = 0;
};

// Opens, or makes, a file of SQLite. Nothing: `fault` says why.
std::unique_ptr<Database> OpenSqlite(const std::string& path, bool create,
                                     Fault& fault);

// The plug-in with PostgreSQL. `interface` is kPostgresInterface of the caller;
// null without a fault: it is of another version.
inline constexpr const char* kPostgresPluginFile = "lamina_postgres.so";
inline constexpr const char* kPostgresEntry = "lamina_postgres_open";
inline constexpr int kPostgresInterface = 1;
// Until a lock, or an answer to a connection, is given up.
inline constexpr int kBusySeconds = 30, kConnectSeconds = 10;
using PostgresEntry = Database* (*)(int interface, const char* address,
                                    Fault* fault);

}  // namespace lamina::runstore
