// SPDX-License-Identifier: Apache-2.0
#include "emit/chrome/filter.h"

#include <optional>
#include <string>

#include "base/counted.h"
#include "base/escape.h"
#include "base/json/cutter.h"
#include "base/json/scan.h"
#include "base/json/strict.h"
#include "base/json/tokens.h"

namespace lamina::emit {
namespace {

// Writes the document around the records as it passes by.
class DocumentCopy final : public json::Router {
 public:
  DocumentCopy(ByteSink& sink, CopyLoss& loss) : sink_(sink), loss_(loss) {}

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

  void Captured(json::Path path, std::string_view raw,
                uint64_t offset) override {
    if (path.size() != 1) return;
    const auto text = Strict(raw, offset);
    if (!text) {
      Note(loss_.parts, offset);
      return;
    }
    Key(path[0]);
    sink_.Write(*text);
  }

  void Lost(std::string_view reason, uint64_t offset, uint64_t) override {
    // The cutter and the document say of what.
    const bool record = reason.find("record") != std::string_view::npos;
    Note(record ? loss_.records : loss_.parts, offset);
  }

  // As it may be written; nothing when it cannot be mended.
  std::optional<std::string> Strict(std::string_view raw, uint64_t offset) {
    if (json::IsStrict(raw)) return std::string(raw);
    auto mended = json::MakeStrict(raw);
    if (mended) Note(loss_.mended, offset);
    return mended;
  }
  void NoteRecord(uint64_t offset) { Note(loss_.records, offset); }

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

  void Note(uint64_t& count, uint64_t offset) {
    if (loss_.records + loss_.parts + loss_.mended == 0 ||
        offset < loss_.first_offset)
      loss_.first_offset = offset;
    ++count;
  }

  ByteSink& sink_;
  CopyLoss& loss_;
  std::string_view end_;
  bool any_member_ = false;
  bool any_record_ = false;
  bool in_records_ = false;
};

class Filter {
 public:
  using Rewrite = std::function<void(const Record&, const RecordSink&)>;

  Filter(DocumentCopy& copy, const Rewrite& rewrite)
      : copy_(copy), rewrite_(rewrite) {}

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
      if (tokens.Kind(token) == '{') {
        Offer(offset + begin, tokens.Raw(token, behind));
      } else {
        copy_.NoteRecord(offset + begin);
      }
      ++number_;
      token = behind;
    }
    return text.size();
  }

  void DoCarefully(std::string_view text, uint64_t offset) {
    size_t pos = 0;
    json::RecordSpan span;
    while (json::NextRecord(text, pos, span)) {
      const std::string_view raw =
          text.substr(span.begin, span.end - span.begin);
      if (!span.broken && raw.starts_with('{')) {
        Offer(offset + span.begin, raw);
      } else {
        copy_.NoteRecord(offset + span.begin);
      }
      ++number_;
    }
  }

  void Offer(uint64_t offset, std::string_view raw) {
    const auto text = copy_.Strict(raw, offset);
    if (!text) {
      copy_.NoteRecord(offset);
      return;
    }
    rewrite_({offset, number_, *text},
             [&](std::string_view record) { copy_.Write(record); });
  }

  DocumentCopy& copy_;
  const Rewrite& rewrite_;
  json::TokenIndex index_;
  uint64_t number_ = 0;
};

}  // namespace

Status CopyRecords(
    std::unique_ptr<ByteSource> source, ByteSink& sink,
    const std::function<void(const Record&, const RecordSink&)>& rewrite,
    CopyLoss* loss) {
  CopyLoss found;
  DocumentCopy copy(sink, found);
  json::JsonStream stream(std::move(source), &copy, {});
  Filter filter(copy, rewrite);
  json::Chunk chunk;
  for (;;) {
    LAMINA_ASSIGN(const bool more, stream.Next(chunk));
    if (!more) break;
    filter.Do(chunk);
  }
  copy.Finish();
  if (loss != nullptr) *loss = found;
  return {};
}

Status CopyRecords(std::unique_ptr<ByteSource> source, ByteSink& sink,
                   const std::function<bool(const Record&)>& keep,
                   CopyLoss* loss) {
  return CopyRecords(
      std::move(source), sink,
      [&](const Record& record, const RecordSink& write) {
        if (keep(record)) write(record.text);
      },
      loss);
}

std::string CopyLoss::ToString() const {
  std::string text;
  if (records > 0) text = Counted(records, "record") + " left out";
  if (parts > 0) {
    text += (text.empty() ? "" : ", ") + Counted(parts, "part") +
            " of the document left out";
  }
  if (mended > 0)
    text += (text.empty() ? "" : ", ") + Counted(mended, "value") + " repaired";
  if (text.empty()) return "the document is written anew";
  return text + ", the first at byte " + std::to_string(first_offset);
}

std::string_view MemberOf(std::string_view record, std::string_view name) {
  json::MemberScan members(record);
  for (json::Member member; members.Next(member);) {
    if (member.key == name) return member.value;
  }
  return {};
}

}  // namespace lamina::emit
