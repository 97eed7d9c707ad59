// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/json_records.h"

#include "base/json/scan.h"

namespace lamina::ingest {

using json::Tokens;
using trace::Effect;

bool ReadValue(const Tokens& tokens, size_t& token, RawValue& value) {
  const char kind = tokens.Kind(token);
  value.kind = kind;
  switch (kind) {
    case '"': {
      const Tokens::Text text = tokens.String(token);
      if (!text.ok) return false;
      value.text = text.raw;
      ++token;
      return true;
    }
    case '{':
    case '[': {
      const size_t behind = tokens.Skip(token);
      if (behind > tokens.count()) return false;
      value.text = tokens.Raw(token, behind);
      token = behind;
      return true;
    }
    case '}':
    case ']':
    case ':':
    case ',':
    case '\0':
      return false;
    default:
      value.text = tokens.Scalar(token);
      ++token;
      return true;
  }
}

void JsonRecordParser::Parse(const json::Chunk& chunk,
                             trace::Segment& segment) {
  segment_ = &segment;
  counted_ = BeginChunk(chunk) ? 1 : 0;
  const size_t done = chunk.suspect ? 0 : ParseFast(chunk.text, chunk.offset);
  if (done < chunk.text.size())
    ParseCarefully(chunk.text.substr(done), chunk.offset + done);
  EndChunk();
}

void JsonRecordParser::Lost(std::string_view reason, std::string_view text,
                            uint64_t offset) {
  segment_->diagnostics.Add(Effect::kLost, reason, text, offset);
}

// Parses records until one does not fit the grammar; returns where that one
// begins, or the size of the text.
size_t JsonRecordParser::ParseFast(std::string_view text, uint64_t offset) {
  if (text.empty()) return 0;
  if (index_.Build(text) != json::TokenIndex::Outcome::kOk) return 0;
  const Tokens tokens(text, index_);
  size_t token = 0;
  while (token < tokens.count()) {
    if (tokens.Kind(token) == ',') {
      ++token;
      continue;
    }
    const size_t begin = tokens.Position(token);
    if (tokens.Kind(token) != '{') {
      // Something that is no object stands where an event should.
      segment_->next_uid += counted_;
      Lost("not_an_event", "A record is no JSON object.", offset + begin);
      token = tokens.Skip(token);
      continue;
    }
    if (!ReadRecord(tokens, token)) return begin;
    EmitRecord(tokens, offset + begin);
    segment_->next_uid += counted_;
  }
  return text.size();
}

// Record by record, with the grammar checked and what can be repaired
// repaired.
void JsonRecordParser::ParseCarefully(std::string_view text, uint64_t offset) {
  size_t pos = 0;
  json::RecordSpan record;
  while (json::NextRecord(text, pos, record)) {
    const uint64_t at = offset + record.begin;
    if (record.broken) {
      segment_->next_uid += counted_;
      segment_->diagnostics.Add(
          Effect::kLost, "broken_record",
          "A record breaks the grammar of JSON and is skipped.", at, 1,
          record.end - record.begin);
      continue;
    }
    const std::string_view raw =
        text.substr(record.begin, record.end - record.begin);
    padded_.assign(raw);
    size_t length = padded_.size();
    padded_.append(json::kPadding, ' ');
    bool usable = record_index_.Build({padded_.data(), length}) ==
                  json::TokenIndex::Outcome::kOk;
    if (!usable) {
      padded_ = json::Sanitize(raw);
      length = padded_.size();
      padded_.append(json::kPadding, ' ');
      usable = record_index_.Build({padded_.data(), length}) ==
               json::TokenIndex::Outcome::kOk;
      if (usable) {
        segment_->diagnostics.Add(
            Effect::kRepaired, "text_repaired",
            "A record holds broken UTF-8 or raw control characters in a "
            "string; they are replaced.",
            at);
      }
    }
    if (usable) {
      const Tokens tokens({padded_.data(), length}, record_index_);
      size_t token = 0;
      usable = tokens.Kind(0) == '{' && ReadRecord(tokens, token);
      if (usable) EmitRecord(tokens, at);
    }
    if (!usable) Lost("not_an_event", "A record is no JSON object.", at);
    segment_->next_uid += counted_;
  }
}

}  // namespace lamina::ingest
