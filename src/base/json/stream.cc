// SPDX-License-Identifier: Apache-2.0
#include "base/json/stream.h"

#include <algorithm>
#include <cstring>

#include "base/escape.h"
#include "base/json/scan.h"
#include "base/json/tokens.h"

namespace lamina::json {
namespace {

constexpr size_t kDocumentBlock = size_t{256} << 10;
constexpr size_t kMaxCapture = size_t{64} << 20;
// The careful scan hands back to the fast one after this many good records.
constexpr int kGoodRecordsToTrust = 64;
// Kept of a window that was searched in vain for the start of a record.
constexpr size_t kOverlap = 4096;
// Reading stops after this many broken records without a good one between.
constexpr int kMaxBrokenInRow = 100000;

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

std::string Printable(char c) {
  return "'" + EscapeTerminal(std::string_view(&c, 1)) + "'";
}

}  // namespace

JsonStream::JsonStream(std::unique_ptr<ByteSource> source, Router* router,
                       Options options)
    : source_(std::move(source)), router_(router), options_(options) {}

Result<bool> JsonStream::Fill(size_t bytes) {
  if (at_end_) return false;
  if (pending_begin_ > 0) {
    pending_.erase(pending_.begin(),
                   pending_.begin() + static_cast<ptrdiff_t>(pending_begin_));
    pending_begin_ = 0;
  }
  const size_t old_size = pending_.size();
  pending_.resize(old_size + bytes);
  size_t have = old_size;
  while (have < pending_.size()) {
    auto got = source_->Read(pending_.data() + have, pending_.size() - have);
    if (!got) return Fail(std::move(got).error());
    if (*got == 0) {
      at_end_ = true;
      break;
    }
    have += *got;
  }
  pending_.resize(have);
  return have > old_size;
}

void JsonStream::Consume(size_t bytes) {
  pending_begin_ += bytes;
  offset_ += bytes;
  if (pending_begin_ == pending_.size()) {
    pending_.clear();
    pending_begin_ = 0;
  }
}

Error JsonStream::NotJson(uint64_t offset, std::string_view expected) const {
  const size_t at = static_cast<size_t>(offset - offset_) + pending_begin_;
  std::string found = "the end of the file";
  if (at < pending_.size()) found = Printable(pending_[at]);
  std::string hint = "give the JSON file that the profiler wrote";
  if (offset < 16 && found == "'<'")
    hint = "this looks like HTML: download the trace file itself";
  return InputErrorAt(source_->name(), offset,
                      "not a JSON document: expected " + std::string(expected) +
                          ", found " + found,
                      hint);
}

Result<bool> JsonStream::Next(Chunk& chunk) {
  chunk.text = {};
  while (true) {
    switch (where_) {
      case Where::kStart:
      case Where::kDocument: {
        LAMINA_ASSIGN(const bool records, WalkDocument());
        if (!records) {
          where_ = Where::kDone;
          if (const auto damage = source_->damage())
            router_->Lost(damage->what, damage->offset, 0);
          continue;
        }
        where_ = Where::kRecords;
        any_records_ = true;
        scanner_.Reset();
        scanned_ = 0;
        careful_ = false;
        break;
      }
      case Where::kRecords: {
        auto got = careful_ ? NextCareful(chunk) : NextFast(chunk);
        if (!got) return Fail(std::move(got).error());
        if (*got) return true;
        break;
      }
      case Where::kDone:
        return false;
    }
  }
}

// --------------------------------------------------------------------------
// The outer document

Result<bool> JsonStream::WalkDocument() {
  while (true) {
    // The next character that is no white space.
    while (true) {
      while (pending_begin_ < pending_.size() &&
             IsSpace(pending_[pending_begin_]))
        Consume(1);
      if (pending_begin_ < pending_.size()) break;
      LAMINA_ASSIGN(const bool more, Fill(kDocumentBlock));
      if (!more) {
        if (where_ == Where::kStart)
          return Fail(NotJson(offset_, "'{' or '['"));
        if (!levels_.empty())
          router_->Lost("the file ends inside the document", offset_, 0);
        return false;
      }
      // A byte order mark is not part of the text.
      if (offset_ == 0 && pending_.size() >= 3 &&
          std::memcmp(pending_.data(), "\xEF\xBB\xBF", 3) == 0)
        Consume(3);
    }
    const char c = pending_[pending_begin_];
    if (where_ == Where::kStart) {
      if (c != '{' && c != '[') return Fail(NotJson(offset_, "'{' or '['"));
      where_ = Where::kDocument;
      LAMINA_ASSIGN(const bool records, EnterValue());
      if (records) return true;
      continue;
    }
    if (levels_.empty()) {
      router_->Lost("unknown bytes follow the document", offset_,
                    pending_.size() - pending_begin_);
      return false;
    }
    Level& level = levels_.back();
    if (c == (level.object ? '}' : ']')) {
      Consume(1);
      levels_.pop_back();
      if (!path_.empty()) path_.pop_back();
      continue;
    }
    if (c == ',' && !level.first) {
      Consume(1);
      level.first = true;  // a member must follow
      continue;
    }
    if (!level.first) {
      LAMINA_ASSIGN(
          const bool go_on,
          Recover(offset_, level.object ? "',' or '}'" : "',' or ']'"));
      if (!go_on) return false;
      continue;
    }
    level.first = false;
    if (!level.object) {
      path_.push_back(std::to_string(level.next_index++));
      LAMINA_ASSIGN(const bool records, EnterValue());
      if (records) return true;
      continue;
    }
    // A key and a colon.
    size_t want = 256;
    ScanResult key;
    std::string_view text;
    while (true) {
      text = {pending_.data() + pending_begin_,
              pending_.size() - pending_begin_};
      if (text[0] != '"') break;
      key = ScanValue(text, 0);
      if (key.kind != ScanResult::Kind::kIncomplete &&
          SkipSpace(text, key.end) < text.size())
        break;
      LAMINA_ASSIGN(const bool more, Fill(want));
      want = std::min(want * 2, kDocumentBlock);
      if (!more) break;
    }
    text = {pending_.data() + pending_begin_, pending_.size() - pending_begin_};
    const size_t colon = text[0] == '"' ? SkipSpace(text, key.end) : 0;
    if (text[0] != '"' || key.kind != ScanResult::Kind::kOk ||
        colon >= text.size() || text[colon] != ':') {
      LAMINA_ASSIGN(const bool go_on,
                    Recover(offset_, text[0] == '"' ? "a key and ':'"
                                                    : "a key in quotes"));
      if (!go_on) return false;
      continue;
    }
    path_.push_back(DecodeString(text.substr(1, key.end - 2)));
    Consume(colon + 1);
    // White space in front of the value.
    bool have_value = true;
    while (true) {
      while (pending_begin_ < pending_.size() &&
             IsSpace(pending_[pending_begin_]))
        Consume(1);
      if (pending_begin_ < pending_.size()) break;
      LAMINA_ASSIGN(const bool more, Fill(kDocumentBlock));
      if (!more) {
        have_value = false;
        break;
      }
    }
    if (!have_value) {
      router_->Lost("the file ends inside the document", offset_, 0);
      return false;
    }
    LAMINA_ASSIGN(const bool records, EnterValue());
    if (records) return true;
  }
}

// At the first character of a value whose path is path_.
Result<bool> JsonStream::EnterValue() {
  const char c = pending_[pending_begin_];
  Action action = router_->Route(path_, c);
  if (action == Action::kDescend && c != '{' && c != '[')
    action = Action::kSkip;
  if (action == Action::kRecords && c != '[') action = Action::kSkip;
  switch (action) {
    case Action::kRecords:
      Consume(1);
      return true;
    case Action::kDescend:
      if (levels_.size() >= static_cast<size_t>(kMaxDepth)) {
        return Fail(InputErrorAt(source_->name(), offset_,
                                 "the document is nested too deeply"));
      }
      Consume(1);
      levels_.push_back({c == '{', 0, true});
      return false;
    case Action::kCapture: {
      LAMINA_TRY(CaptureValue());
      break;
    }
    case Action::kSkip: {
      LAMINA_TRY(SkipValue());
      break;
    }
  }
  if (!path_.empty() && !levels_.empty()) path_.pop_back();
  return false;
}

Status JsonStream::CaptureValue() {
  size_t want = kDocumentBlock;
  while (true) {
    const std::string_view text(pending_.data() + pending_begin_,
                                pending_.size() - pending_begin_);
    const ScanResult scan = ScanValue(text, 0);
    if (scan.kind == ScanResult::Kind::kOk &&
        (scan.end < text.size() || at_end_)) {
      router_->Captured(path_, text.substr(0, scan.end), offset_);
      Consume(scan.end);
      return {};
    }
    if (scan.kind == ScanResult::Kind::kError) {
      LAMINA_ASSIGN(const bool go_on,
                    Recover(offset_ + scan.end, scan.expected));
      (void)go_on;
      return {};
    }
    if (text.size() > kMaxCapture) {
      router_->Lost("a value larger than 64 MiB is not read", offset_,
                    text.size());
      return SkipValue();
    }
    LAMINA_ASSIGN(const bool more, Fill(want));
    want *= 2;
    if (!more && scan.kind == ScanResult::Kind::kIncomplete) {
      router_->Lost("the file ends inside the document", offset_, text.size());
      Consume(pending_.size() - pending_begin_);
      levels_.clear();
      return {};
    }
  }
}

// Reads past one value with nothing but bracket depth and string state, so
// that a skipped member of any size costs no memory.
Status JsonStream::SkipValue() {
  int64_t depth = 0;
  bool in_string = false;
  bool escaped = false;
  bool any = false;
  while (true) {
    const char* data = pending_.data() + pending_begin_;
    const size_t size = pending_.size() - pending_begin_;
    size_t i = 0;
    for (; i < size; ++i) {
      const char c = data[i];
      if (in_string) {
        if (escaped) {
          escaped = false;
        } else if (c == '\\') {
          escaped = true;
        } else if (c == '"') {
          in_string = false;
          if (depth == 0) {
            Consume(i + 1);
            return {};
          }
        }
        continue;
      }
      if (c == '"') {
        in_string = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (depth == 0) {  // behind a scalar
          Consume(i);
          return {};
        }
        if (--depth == 0) {
          Consume(i + 1);
          return {};
        }
      } else if (depth == 0 && (c == ',' || (any && IsSpace(c)))) {
        Consume(i);
        return {};
      }
      any = true;
    }
    Consume(i);
    LAMINA_ASSIGN(const bool more, Fill(kDocumentBlock));
    if (!more) {
      if (depth > 0 || in_string)
        router_->Lost("the file ends inside the document", offset_, 0);
      levels_.clear();
      return {};
    }
  }
}

// The outer document is broken at `offset`. With records already read the
// rest is given up; else reading goes on at the recovery key. Returns false
// when the document is over.
Result<bool> JsonStream::Recover(uint64_t offset, std::string_view expected) {
  const std::string_view key = router_->recovery_key();
  if (any_records_) {
    router_->Lost("the document is broken behind the records", offset, 0);
    levels_.clear();
    pending_.clear();
    pending_begin_ = 0;
    at_end_ = true;
    return false;
  }
  if (key.empty() || recovered_) return Fail(NotJson(offset, expected));
  const Error error = NotJson(offset, expected);
  recovered_ = true;
  const uint64_t from = offset_;
  while (true) {
    const std::string_view text(pending_.data() + pending_begin_,
                                pending_.size() - pending_begin_);
    const size_t found = text.find(key);
    if (found != std::string_view::npos) {
      Consume(found);
      router_->Lost("part of the document outside the records is broken",
                    offset, offset_ - from);
      path_.clear();
      levels_.assign(1, Level{true, 0, true});
      return true;
    }
    if (text.size() > key.size()) Consume(text.size() - key.size());
    LAMINA_ASSIGN(const bool more, Fill(kDocumentBlock));
    if (!more) return Fail(error);
  }
}

// --------------------------------------------------------------------------
// Records

void JsonStream::FinishChunk(Chunk& chunk, size_t begin, size_t end,
                             bool suspect) {
  chunk.text = {chunk.buffer.data() + begin, end - begin};
  chunk.array = arrays_;
  chunk.suspect = suspect;
  chunk.sequence = sequence_++;
}

// Reads one block straight into the buffer of the chunk, behind the partial
// record that the last chunk left, and cuts at the last record boundary.
Result<bool> JsonStream::NextFast(Chunk& chunk) {
  const size_t carry = pending_.size() - pending_begin_;
  size_t capacity = carry + options_.chunk_bytes;
  if (chunk.buffer.size() < capacity + kPadding)
    chunk.buffer.resize(capacity + kPadding);
  char* data = chunk.buffer.data();
  if (carry > 0) std::memcpy(data, pending_.data() + pending_begin_, carry);
  size_t size = carry;
  const uint64_t base = offset_;
  while (true) {
    while (size < capacity && !at_end_) {
      auto got = source_->Read(data + size, capacity - size);
      if (!got) return Fail(std::move(got).error());
      if (*got == 0) at_end_ = true;
      size += *got;
    }
    const RecordScanner::Result scan = scanner_.Scan({data, size}, scanned_);
    scanned_ = size;
    const bool array_end = scan.stop == RecordScanner::Stop::kArrayEnd;
    const bool suspicious =
        scan.stop == RecordScanner::Stop::kSuspicious ||
        (!array_end && at_end_) ||
        (scan.last_end == 0 && !array_end && size >= options_.chunk_bytes * 4);
    if (scan.last_end == 0 && !array_end && !suspicious) {
      // A record longer than the block: read on behind it.
      capacity = size * 2;
      chunk.buffer.resize(capacity + kPadding);
      data = chunk.buffer.data();
      continue;
    }
    const size_t keep = array_end ? scan.at : scan.last_end;
    // What is left goes back to pending_.
    const size_t rest = array_end ? scan.at + 1 : keep;
    pending_.assign(data + rest, data + size);
    pending_begin_ = 0;
    offset_ = base + rest;
    chunk.offset = base;
    const bool any = keep > 0;
    if (any) FinishChunk(chunk, 0, keep, false);
    if (array_end) {
      where_ = Where::kDocument;
      ++arrays_;
      if (!path_.empty() && !levels_.empty()) path_.pop_back();
      if (levels_.empty()) path_.clear();
    } else if (suspicious) {
      careful_ = true;
    } else {
      scanned_ = size - keep;
    }
    return any;
  }
}

// One run of good records found by the careful scan.
Result<bool> JsonStream::NextCareful(Chunk& chunk) {
  size_t run_begin = 0;  // within pending
  size_t run_end = 0;
  bool in_run = false;
  int good = 0;
  size_t pos = 0;
  size_t want = options_.chunk_bytes;
  const auto text = [&] {
    return std::string_view(pending_.data() + pending_begin_,
                            pending_.size() - pending_begin_);
  };
  // Copies the run out, drops everything up to `drop`.
  const auto finish = [&](size_t drop) {
    const bool any = in_run && run_end > run_begin;
    if (any) {
      const size_t length = run_end - run_begin;
      if (chunk.buffer.size() < length + kPadding)
        chunk.buffer.resize(length + kPadding);
      std::memcpy(chunk.buffer.data(), text().data() + run_begin, length);
      chunk.offset = offset_ + run_begin;
      FinishChunk(chunk, 0, length, true);
    }
    Consume(drop);
    return any;
  };
  while (true) {
    // Commas and space between records.
    while (pos < text().size() && (IsSpace(text()[pos]) || text()[pos] == ','))
      ++pos;
    if (pos == text().size()) {
      if (in_run && (at_end_ || good >= kGoodRecordsToTrust)) {
        if (!at_end_) {
          careful_ = false;
          scanner_.Reset();
          scanned_ = 0;
        }
        return finish(pos);
      }
      LAMINA_ASSIGN(const bool more, Fill(want));
      if (more) continue;
      router_->Lost("the file ends inside the list of records", offset_ + pos,
                    0);
      where_ = Where::kDocument;
      const bool any = finish(pos);
      levels_.clear();
      return any;
    }
    if (text()[pos] == ']') {
      const bool any = finish(pos + 1);
      where_ = Where::kDocument;
      careful_ = false;
      ++arrays_;
      if (!path_.empty() && !levels_.empty()) path_.pop_back();
      if (levels_.empty()) path_.clear();
      return any;
    }
    const ScanResult scan = ScanValue(text(), pos);
    if (scan.kind == ScanResult::Kind::kOk) {
      if (!in_run) {
        in_run = true;
        run_begin = pos;
      }
      run_end = scan.end;
      pos = scan.end;
      ++good;
      broken_in_row_ = 0;
      if (run_end - run_begin >= options_.chunk_bytes) {
        if (good >= kGoodRecordsToTrust) {
          careful_ = false;
          scanner_.Reset();
          scanned_ = 0;
        }
        return finish(run_end);
      }
      continue;
    }
    if (scan.kind == ScanResult::Kind::kIncomplete && !at_end_ &&
        text().size() - pos < options_.max_record_bytes) {
      if (in_run) return finish(pos);
      LAMINA_ASSIGN(const bool more, Fill(want));
      want *= 2;
      if (more) continue;
    }
    // A broken record at pos.
    if (in_run) return finish(pos);
    const bool cut = scan.kind == ScanResult::Kind::kIncomplete;
    if (++broken_in_row_ > kMaxBrokenInRow) {
      router_->Lost("too many broken records in a row: the rest is not read",
                    offset_ + pos, text().size() - pos);
      where_ = Where::kDone;
      return false;
    }
    size_t search_from = cut ? pos + 1 : ResumeFrom(pos, scan.end);
    size_t next = FindRecordStart(text(), search_from);
    while (next == std::string_view::npos && !at_end_) {
      if (text().size() > kOverlap)
        search_from = std::max(search_from, text().size() - kOverlap);
      const size_t before = text().size();
      LAMINA_ASSIGN(const bool more, Fill(want));
      if (!more || text().size() == before) break;
      next = FindRecordStart(text(), search_from);
      if (next == std::string_view::npos &&
          text().size() > options_.max_record_bytes) {
        // Drop what was searched, keeping the window small.
        const size_t drop = text().size() - kOverlap;
        router_->Lost("a record cannot be read", offset_ + pos, drop - pos);
        Consume(drop);
        pos = 0;
        search_from = 0;
      }
    }
    if (next == std::string_view::npos) {
      router_->Lost(
          cut ? "the last record is cut off" : "a record cannot be read",
          offset_ + pos, text().size() - pos);
      Consume(text().size());
      where_ = Where::kDocument;
      levels_.clear();
      return false;
    }
    router_->Lost("a record cannot be read", offset_ + pos, next - pos);
    Consume(next);
    pos = 0;
    good = 0;
  }
}

}  // namespace lamina::json
