// SPDX-License-Identifier: Apache-2.0
//
// What ops of a file refer to: texts, and facts about the calls that launched
// them.
#pragma once

#include <array>
#include <cstdint>

#include "ingest/common/id_table.h"
#include "ingest/common/table_reader.h"
#include "ingest/common/text_table.h"

namespace lamina::ingest::rpd {

struct Launch {
  int64_t stream = trace::kNoInt;
  std::array<int64_t, 3> grid{};
  std::array<int64_t, 3> workgroup{};
  int64_t group_bytes = trace::kNoInt;
};

// Of a call that an op may name.
struct CallFacts {
  int64_t pid = 0;
  bool grid_counts_items = false;  // work items; else blocks
};

// Filled before the records that need them and read-only for all threads then.
struct CallTables {
  explicit CallTables(TableReader* reader);

  TextTable strings;
  TextTable unique;             // of newer files: texts of arguments
  IdTable<Launch> launches;     // by call
  IdTable<int64_t> copy_bytes;  // by call
  IdTable<int64_t> api_of_op;
  IdTable<CallFacts> calls;  // filled when the calls are read
};

}  // namespace lamina::ingest::rpd
