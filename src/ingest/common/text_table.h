// SPDX-License-Identifier: Apache-2.0
//
// A table of (id, text) in a database. Only texts that something refers to
// become names of the trace: such tables also hold what nobody asked for, the
// environment of the recorded process for one.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <optional>

#include "ingest/common/database.h"
#include "ingest/common/filler.h"

namespace lamina::ingest {

class TextTable {
 public:
  // `table` may be null: then there are no texts.
  TextTable(const Database& database, const DatabaseTable* table,
            std::string_view id_column, std::string_view text_column,
            Filler* filler);

  // Invalid when there is no such text.
  StringId Find(std::optional<int64_t> id);

 private:
  Filler& filler_;
  // Look-ups by key, or everything that is there when `id` is no key.
  std::unique_ptr<Rows> lookup_;
  absl::flat_hash_map<int64_t, StringId> found_;
  absl::flat_hash_map<int64_t, std::string> all_;
};

}  // namespace lamina::ingest
