// SPDX-License-Identifier: Apache-2.0
//
// Reads a JSON document of any size as small values plus arrays of records.
//
// Trace files are one object with a few small members and one or more huge
// arrays of objects. JsonStream walks the outer structure (document.h), hands
// over the small values, and cuts the arrays at record boundaries into chunks
// that any thread can parse on its own (cutter.h). Memory is bounded by the
// chunk size; the text of the file is never held.
//
// Broken text is salvaged: a record that cannot be read is reported with its
// offset and skipped, a cut file keeps everything before the cut.
#pragma once

#include <cstdint>
#include <memory>

#include "base/byte_source.h"
#include "base/byte_window.h"
#include "base/json/cutter.h"
#include "base/json/document.h"
#include "base/json/router.h"
#include "base/status.h"

namespace lamina::json {

class JsonStream {
 public:
  using Options = RecordCutter::Options;

  JsonStream(std::unique_ptr<ByteSource> source, Router* router,
             Options options);
  JsonStream(const JsonStream&) = delete;
  JsonStream& operator=(const JsonStream&) = delete;

  // The next chunk of records; false at the end of the input. Fails only when
  // the input is not JSON or the device fails. Calls must not overlap.
  Result<bool> Next(Chunk& chunk);

  const ByteSource& source() const { return *source_; }
  // Bytes of the unpacked input used so far.
  uint64_t offset() const { return window_.offset(); }

 private:
  enum class Where { kDocument, kRecords, kDone };

  Status WalkDocument();
  Result<bool> CutRecords(Chunk& chunk);

  std::unique_ptr<ByteSource> source_;
  Router& router_;
  ByteWindow window_;
  Document document_;
  RecordCutter cutter_;

  Where where_ = Where::kDocument;
  uint32_t arrays_ = 0;  // of records, ended so far
  uint64_t sequence_ = 0;
};

}  // namespace lamina::json
