// SPDX-License-Identifier: Apache-2.0
//
// A copy of a Chrome JSON trace with some of its records left out or others put
// in. What stands around the records comes along; records are copied byte for
// byte but for what is no JSON in them, and the result is JSON by the letter.
// Memory is bounded by the longest record.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
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

// What of an input is not, or not as it stands, in a copy of it.
struct CopyLoss {
  uint64_t records = 0;  // left out
  uint64_t parts = 0;    // of the document around them, left out
  uint64_t mended = 0;   // records and values that were no JSON by the letter
  uint64_t first_offset = 0;  // of any of these, in the unpacked input
  bool anew = false;          // record by record, for a fault between them
  bool any() const { return anew || records + parts + mended > 0; }
  std::string ToString() const;
};

using RecordSink = std::function<void(std::string_view)>;

// Copies a document; `rewrite` is called with each record, in order, and a
// place to write it to, or others. Broken records are left out. Adds what is
// lost to `loss`, unless it is null. Errors: the input is not JSON, or cannot
// be read.
Status CopyRecords(
    std::unique_ptr<ByteSource> source, ByteSink& sink,
    const std::function<void(const Record&, const RecordSink&)>& rewrite,
    CopyLoss* loss);

// Copies the records for which `keep` holds, in their order; broken ones are
// left out. Errors: the input is not JSON, or cannot be read.
Status CopyRecords(std::unique_ptr<ByteSource> source, ByteSink& sink,
                   const std::function<bool(const Record&)>& keep,
                   CopyLoss* loss = nullptr);

// The raw text of a member of a record ("\"X\"", "12.5"); empty if there is
// none.
std::string_view MemberOf(std::string_view record, std::string_view name);

}  // namespace lamina::emit
