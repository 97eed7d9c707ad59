// SPDX-License-Identifier: Apache-2.0
//
// Memory snapshots: whatever the bytes, an error or tables. What is active by
// any key sums to what is active.
#include <cstdint>
#include <string>
#include <string_view>

#include "memory/diff.h"
#include "memory/tables.h"
#include "memory/unpickler.h"
#include "rules/document.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  static const auto rules = *memory::Rules::Load(rules::DataSet());
  static const auto allocator = *memory::AllocatorRules::Load(rules::DataSet());
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const bool salvage : {false, true}) {
    auto source = OpenMemory("fuzz", bytes);
    if (!source) return 0;
    memory::ReadOptions read;
    read.salvage = salvage;
    auto snapshot = memory::ReadSnapshot(**source, read);
    if (!snapshot) continue;
    memory::TableOptions options;
    options.every_kind = true;
    const auto recording =
        memory::MakeRecording(std::move(*snapshot), rules, allocator, options);
    if (!recording) continue;
    const auto tables = memory::MakeTables(*recording, options);
    LAMINA_CHECK(tables.has_value());
    LAMINA_CHECK(tables->Find("memory_peak_op")->Sum("bytes") ==
                 tables->Find("memory_peak_line")->Sum("bytes"));
    LAMINA_CHECK(memory::DiffRecordings(*recording, *recording)
                     ->Find("memory_diff")
                     ->Sum("delta_bytes") == 0);
  }
  return 0;
}
