// SPDX-License-Identifier: Apache-2.0
#include "emit/chrome/filter.h"

#include <string>

#include "base/escape.h"
#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/json/stream.h"
#include "base/json/tokens.h"

namespace lamina::emit {
namespace {

// Writes the document around the records as it passes by.
class DocumentCopy final : public json::Router {
 public:
  explicit DocumentCopy(ByteSink& sink) : sink_(sink) {}

  json::Action Route(json::Path path, char first) override {
    CloseRecords();
    if (path.empty()) {
      if (first == '[') {
        sink_.Write("[");
        end_ = "]";
        in_records_ = true;
        return json::Action::kRecords;
      }
      sink_.Write("{");
      end_ = "}";
      return json::Action::kDescend;
    }
    if (path.size() > 1) return json::Action::kSkip;
    if (path[0] != "traceEvents" || first != '[') return json::Action::kCapture;
    Key(path[0]);
    sink_.Write("[");
    in_records_ = true;
    return json::Action::kRecords;
  }

  void Captured(json::Path path, std::string_view raw, uint64_t) override {
    if (path.size() != 1) return;
    Key(path[0]);
    sink_.Write(raw);
  }

  // The reader of the trace has said so.
  void Lost(std::string_view, uint64_t, uint64_t) override {}

  std::string_view recovery_key() const override { return "\"traceEvents\""; }

  void Write(std::string_view record) {
    sink_.Write(any_record_ ? ",\n" : "\n");
    any_record_ = true;
    sink_.Write(record);
  }

  void Finish() {
    CloseRecords();
    sink_.Write(end_);
    sink_.Write("\n");
  }

 private:
  void Key(std::string_view key) {
    if (any_member_) sink_.Write(",");
    any_member_ = true;
    sink_.Write("\n");
    sink_.Write(JsonQuote(key));
    sink_.Write(": ");
  }
  void CloseRecords() {
    // The end of a document that is an array closes its records.
    if (in_records_ && end_ == "}") sink_.Write("\n]");
    in_records_ = false;
    if (end_ == "}") any_record_ = false;
  }

  ByteSink& sink_;
  std::string_view end_;
  bool any_member_ = false;
  bool any_record_ = false;
  bool in_records_ = false;
};

class Filter {
 public:
  Filter(DocumentCopy& copy, const std::function<bool(const Record&)>& keep)
      : copy_(copy), keep_(keep) {}

  void Do(const json::Chunk& chunk) {
    size_t done = 0;
    if (!chunk.suspect) done = DoFast(chunk.text, chunk.offset);
    if (done < chunk.text.size())
      DoCarefully(chunk.text.substr(done), chunk.offset + done);
  }

 private:
  // Returns where the grammar ended.
  size_t DoFast(std::string_view text, uint64_t offset) {
    if (text.empty() || index_.Build(text) != json::TokenIndex::Outcome::kOk)
      return 0;
    const json::Tokens tokens(text, index_);
    for (size_t token = 0; token < tokens.count();) {
      if (tokens.Kind(token) == ',') {
        ++token;
        continue;
      }
      const size_t begin = tokens.Position(token);
      const size_t behind = tokens.Skip(token);
      if (behind > tokens.count()) return begin;
      if (tokens.Kind(token) == '{')
        Offer(offset + begin, tokens.Raw(token, behind));
      ++number_;
      token = behind;
    }
    return text.size();
  }

  void DoCarefully(std::string_view text, uint64_t offset) {
    size_t pos = 0;
    json::RecordSpan span;
    while (json::NextRecord(text, pos, span)) {
      if (!span.broken) {
        const std::string_view raw =
            text.substr(span.begin, span.end - span.begin);
        if (raw.starts_with('{'))
          Offer(offset + span.begin, json::Sanitize(raw));
      }
      ++number_;
    }
  }

  void Offer(uint64_t offset, std::string_view text) {
    if (!keep_({offset, number_, text})) return;
    // The token walk sees brackets only.
    const json::ScanResult scan = json::ScanValue(text, 0);
    if (scan.kind == json::ScanResult::Kind::kOk && scan.end == text.size())
      copy_.Write(text);
  }

  DocumentCopy& copy_;
  const std::function<bool(const Record&)>& keep_;
  json::TokenIndex index_;
  uint64_t number_ = 0;
};

}  // namespace

Status CopyRecords(std::unique_ptr<ByteSource> source, ByteSink& sink,
                   const std::function<bool(const Record&)>& keep) {
  DocumentCopy copy(sink);
  json::JsonStream stream(std::move(source), &copy, {});
  Filter filter(copy, keep);
  json::Chunk chunk;
  for (;;) {
    LAMINA_ASSIGN(const bool more, stream.Next(chunk));
    if (!more) break;
    filter.Do(chunk);
  }
  copy.Finish();
  return {};
}

std::string_view MemberOf(std::string_view record, std::string_view name) {
  json::MemberScan members(record);
  for (json::Member member; members.Next(member);) {
    if (member.key == name) return member.value;
  }
  return {};
}

}  // namespace lamina::emit
