// SPDX-License-Identifier: Apache-2.0
//
// A copy of a Chrome JSON trace with some of its records left out. What stands
// around the records comes along; records are copied byte for byte but for
// what is no JSON in them. Memory is bounded by the longest record.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/byte_sink.h"
#include "base/byte_source.h"
#include "base/status.h"

namespace lamina::emit {

struct Record {
  uint64_t offset = 0;  // in the unpacked input, as trace::Slices::offset
  uint64_t number = 0;  // from 0; broken records count
  std::string_view text;
};

// Copies the records for which `keep` holds, in their order; broken ones are
// left out. Errors: the input is not JSON, or cannot be read.
Status CopyRecords(std::unique_ptr<ByteSource> source, ByteSink& sink,
                   const std::function<bool(const Record&)>& keep);

// The raw text of a member of a record ("\"X\"", "12.5"); empty if there is
// none.
std::string_view MemberOf(std::string_view record, std::string_view name);

}  // namespace lamina::emit
