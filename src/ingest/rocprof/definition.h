// SPDX-License-Identifier: Apache-2.0
//
// One kernel symbol or one message of a marker, as records of their lists.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/json/tokens.h"
#include "ingest/common/json_records.h"
#include "ingest/rocprof/catalog.h"

namespace lamina::ingest::rocprof {

// Members of a symbol. Of the names the first is shown.
inline constexpr std::array<const char*, 3> kSymbolNames = {
    "formatted_kernel_name", "demangled_kernel_name", "kernel_name"};
inline constexpr const char* kSymbolRegisters = "arch_vgpr_count";

class Definition {
 public:
  // Reads the object at `token` and moves behind it; false when it breaks the
  // grammar.
  bool Read(const json::Tokens& tokens, size_t& token);
  // Adds what was read; `offset` is that of the record.
  void AddTo(Definitions& definitions, Domain domain, uint64_t offset) const;

 private:
  std::optional<int64_t> id_;
  int64_t registers_ = trace::kNoInt;
  std::array<std::string_view, kSymbolNames.size()> names_;  // of a kernel
  std::string_view text_;
};

}  // namespace lamina::ingest::rocprof
