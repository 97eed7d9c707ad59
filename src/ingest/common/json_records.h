// SPDX-License-Identifier: Apache-2.0
//
// The loop over the records of a chunk of JSON: fast while the text is good,
// record by record with the grammar checked where it is not.
#pragma once

#include <string>
#include <string_view>

#include "base/json/tokens.h"
#include "ingest/common/record_reader.h"

namespace lamina::ingest {

// The text of a value and the character it starts with: '"' (text without the
// quotes), '{', '[' or the first byte of a scalar; 0 when absent.
struct RawValue {
  std::string_view text;
  char kind = '\0';
  bool present() const { return kind != '\0'; }
};
// The value at `token`; moves behind it. False when none can stand there.
bool ReadValue(const json::Tokens& tokens, size_t& token, RawValue& value);

class JsonRecordParser : public RecordParser {
 public:
  void Parse(const json::Chunk& chunk, trace::Segment& segment) final;

 protected:
  // Called before the records of a chunk; false: they are no events, which are
  // counted.
  virtual bool BeginChunk(const json::Chunk& chunk) {
    (void)chunk;
    return true;
  }
  // Called behind them.
  virtual void EndChunk() {}
  // Reads the object at `token` and moves behind it; false when it breaks the
  // grammar. Adds nothing to the segment.
  virtual bool ReadRecord(const json::Tokens& tokens, size_t& token) = 0;
  // Adds what the last ReadRecord read. `offset` is that of the record.
  virtual void EmitRecord(const json::Tokens& tokens, uint64_t offset) = 0;

  trace::Segment& segment() { return *segment_; }
  void Lost(std::string_view reason, std::string_view text, uint64_t offset);

 private:
  size_t ParseFast(std::string_view text, uint64_t offset);
  void ParseCarefully(std::string_view text, uint64_t offset);

  trace::Segment* segment_ = nullptr;
  uint32_t counted_ = 1;  // events per record
  json::TokenIndex index_;
  json::TokenIndex record_index_;
  std::string padded_;
};

}  // namespace lamina::ingest
