// SPDX-License-Identifier: Apache-2.0
//
// A table of (id, text) in a database: read once and shared by all threads.
// Only texts that something refers to become names of the trace: such tables
// also hold what nobody asked for, the environment of the recorded process for
// one.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/string_pool.h"
#include "ingest/common/table_reader.h"

namespace lamina::ingest {

class TextTable {
 public:
  // `table` may be null: then there are no texts.
  TextTable(TableReader& reader, const DatabaseTable* table,
            std::string_view id_column, std::string_view text_column);

  bool empty() const { return texts_.size() == 0; }

 private:
  friend class TextNames;

  const DatabaseTable* table_ = nullptr;
  std::string id_column_, text_column_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  IdTable<std::string_view> texts_;
  // The pass over the table broke off: more may be found by key.
  bool partial_ = false;
};

// The same texts as names of one thread.
class TextNames {
 public:
  TextNames(const TextTable& table, const Database& database, Filler* filler);

  // Invalid when there is no such text.
  StringId Find(std::optional<int64_t> id);

 private:
  StringId LookUp(int64_t id);

  const TextTable& table_;
  Filler& filler_;
  std::vector<StringId> names_;  // by place in the table
  std::unique_ptr<Rows> lookup_;
  absl::flat_hash_map<int64_t, StringId> found_;
};

}  // namespace lamina::ingest
