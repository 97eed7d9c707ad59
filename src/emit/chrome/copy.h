// SPDX-License-Identifier: Apache-2.0
//
// A copy of a Chrome JSON trace with additions. Every byte of the input is
// written as it stands and in its order; only the additions are new. Nothing
// is parsed but the records that are added to, and memory is bounded by the
// longest of them. Only an input that is no JSON throughout is copied record
// by record, mended.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/byte_sink.h"
#include "base/byte_source.h"
#include "base/status.h"
#include "emit/chrome/filter.h"

namespace lamina::emit {

struct Addition {
  // Of the record in the unpacked input, as trace::Slices::offset has it.
  uint64_t offset = 0;
  // Members for the record's "args": "\"lamina_op\":\"aten::mm\"", separated
  // by commas; may be empty.
  std::string args;
  // Whole records to stand in front of it, each followed by a comma; may be
  // empty.
  std::string before;
};

// Copies `source` to `sink`. `additions` are by offset, at most one each.
// Errors: the input ends before the last of them, or there is no record at one.
Status CopyWithAdditions(ByteSource& source, ByteSink& sink,
                         std::span<const Addition> additions);

// The same with additions made one by one when their place is reached, for
// those that together would not fit into memory. `make(i, addition)` fills an
// empty addition for `offsets[i]`.
Status CopyWithAdditions(ByteSource& source, ByteSink& sink,
                         std::span<const uint64_t> offsets,
                         const std::function<void(size_t, Addition&)>& make);

// The same from file to file, and the result is JSON by the letter whatever
// the input is: the second copy is made when the first meets a fault. Says what
// that cost.
Result<CopyLoss> CopyFile(const std::string& input, const std::string& output,
                          std::span<const uint64_t> offsets,
                          const std::function<void(size_t, Addition&)>& make);

// An event with a duration, followed by a comma and a line end. Times in
// nanoseconds; `args` as in Addition.
void AppendSpan(std::string& out, std::string_view name,
                std::string_view category, int64_t pid, int64_t tid,
                int64_t start_ns, int64_t dur_ns, std::string_view args);
// The start of a flow at a call, to the device work with the same number.
void AppendFlowStart(std::string& out, int64_t id, std::string_view pid,
                     std::string_view tid, int64_t time_ns);
// Metadata: the place of a process among the others, lowest first.
void AppendSortIndex(std::string& out, int64_t pid, int64_t index);
// Metadata: the name of a process ("process_name") or thread.
void AppendName(std::string& out, std::string_view what, int64_t pid,
                int64_t tid, std::string_view name);

}  // namespace lamina::emit
