// SPDX-License-Identifier: Apache-2.0

#include "base/json/cutter.h"

#include <algorithm>
#include <cstring>

#include "base/json/tokens.h"

namespace lamina::json {

namespace {

// The careful scan hands back to the fast one after this many good records.
constexpr int kGoodRecordsToTrust = 64;
// The first block of an array, and how much larger each next one is.
constexpr size_t kFirstBlockBytes = 4096;
constexpr size_t kBlockGrowth = 4;
// Kept of a window that was searched in vain for the start of a record.
constexpr size_t kOverlap = 4096;
// Reading stops after this many broken records without a good one between.
constexpr int kMaxBrokenInRow = 100000;

// Records that do not end are tried this often: others that begin inside them
// end no sooner, and each try looks through all that is there.
constexpr int kMaxEndlessInRow = 8;

constexpr std::string_view kBroken = "a record cannot be read";

// The buffer of a chunk with room for `bytes` and the padding.
char* Room(Chunk& chunk, size_t bytes) {
  if (chunk.buffer.size() < bytes + kPadding)
    chunk.buffer.resize(bytes + kPadding);
  return chunk.buffer.data();
}

size_t SkipSeparators(std::string_view text, size_t pos) {
  while (pos < text.size() && (IsSpace(text[pos]) || text[pos] == ',')) ++pos;
  return pos;
}

}  // namespace

void RecordCutter::Start() {
  place_ = Place::kInside;
  block_bytes_ = std::min(kFirstBlockBytes, options_.chunk_bytes);
  Trust();
}

void RecordCutter::Trust() {
  careful_ = false;
  scanner_.Reset();
  scanned_ = 0;
}

Result<bool> RecordCutter::Next(Chunk& chunk) {
  return careful_ ? NextCareful(chunk) : NextFast(chunk);
}

// Reads one block straight into the buffer of the chunk, behind the partial
// record that the last chunk left, and cuts at the last record boundary.
Result<bool> RecordCutter::NextFast(Chunk& chunk) {
  size_t capacity = scanned_ + block_bytes_;
  block_bytes_ = std::min(block_bytes_ * kBlockGrowth, options_.chunk_bytes);
  char* data = Room(chunk, capacity);
  chunk.offset = window_.offset();
  chunk.suspect = false;
  size_t size = 0;
  while (true) {
    LAMINA_ASSIGN(const size_t got, window_.Take(data + size, capacity - size));
    size += got;
    const RecordScanner::Result scan = scanner_.Scan({data, size}, scanned_);
    scanned_ = size;
    const bool array_end = scan.stop == RecordScanner::Stop::kArrayEnd;
    careful_ =
        !array_end &&
        (scan.stop == RecordScanner::Stop::kSuspicious || window_.empty() ||
         (scan.last_end == 0 && size >= options_.chunk_bytes * 4));
    if (scan.last_end == 0 && !array_end && !careful_) {
      // A record longer than the block: read on behind it.
      capacity = size * 2;
      data = Room(chunk, capacity);
      continue;
    }
    const size_t keep = array_end ? scan.at : scan.last_end;
    window_.PutBack({data + keep, size - keep});
    scanned_ -= keep;
    if (array_end) {
      window_.Consume(1);
      place_ = Place::kBehind;
    }
    chunk.text = {data, keep};
    return keep > 0;
  }
}

// One run of good records found by the careful scan.
Result<bool> RecordCutter::NextCareful(Chunk& chunk) {
  LAMINA_ASSIGN(const bool found, FindGoodRecord());
  if (found) CutRun(chunk);
  return found;
}

// Consumes what stands in front of the next good record; false when the array
// or the input ends before one.
Result<bool> RecordCutter::FindGoodRecord() {
  size_t want = options_.chunk_bytes;
  while (true) {
    window_.Consume(SkipSeparators(window_.text(), 0));
    const std::string_view text = window_.text();
    if (text.empty()) {
      LAMINA_ASSIGN(const bool more, window_.Fill(want));
      if (more) continue;
      return GiveUp(kListWithoutEnd);
    }
    if (text.front() == ']') {
      window_.Consume(1);
      place_ = Place::kBehind;
      return false;
    }
    const ScanResult scan = ScanValue(text, 0);
    if (scan.kind == ScanResult::Kind::kOk) return true;
    if (scan.kind == ScanResult::Kind::kIncomplete &&
        text.size() < options_.max_record_bytes) {
      LAMINA_ASSIGN(const bool more, window_.Fill(want));
      want *= 2;
      if (more) continue;
    }
    LAMINA_ASSIGN(const bool go_on, SkipBroken(scan));
    if (!go_on) return false;
  }
}

// Copies the good records at the start of the window out.
void RecordCutter::CutRun(Chunk& chunk) {
  broken_in_row_ = 0;
  endless_in_row_ = 0;
  const std::string_view text = window_.text();
  int good = 0;
  size_t end = 0;  // of the run
  bool broken = false;
  for (size_t next = 0; next < text.size() && end < options_.chunk_bytes;
       next = SkipSeparators(text, end)) {
    const ScanResult scan = ScanValue(text, next);
    broken = scan.kind == ScanResult::Kind::kError;
    if (scan.kind != ScanResult::Kind::kOk) break;
    ++good;
    end = scan.end;
  }
  chunk.text = {Room(chunk, end), end};
  chunk.offset = window_.offset();
  chunk.suspect = true;
  std::memcpy(chunk.buffer.data(), text.data(), end);
  window_.Consume(end);
  if (!broken && good >= kGoodRecordsToTrust) Trust();
}

// The record at the start of the window is broken: goes on at the next start
// of a record. False when there is none.
Result<bool> RecordCutter::SkipBroken(const ScanResult& scan) {
  if (++broken_in_row_ > kMaxBrokenInRow)
    return GiveUp("too many broken records in a row: the rest is not read");
  const bool cut = scan.kind == ScanResult::Kind::kIncomplete;
  size_t from = cut ? 1 : ResumeFrom(0, scan.end);
  if (cut && ++endless_in_row_ > kMaxEndlessInRow) {
    from = ResumeFrom(0, window_.text().size());
    endless_in_row_ = 0;
  }
  LAMINA_ASSIGN(const size_t next, FindNextStart(from));
  if (next == std::string_view::npos)
    return GiveUp(cut ? "the last record is cut off" : kBroken);
  router_.Lost(kBroken, window_.offset(), next);
  window_.Consume(next);
  return true;
}

// The start of the next record, reading on until there is one.
Result<size_t> RecordCutter::FindNextStart(size_t search_from) {
  size_t next = FindRecordStart(window_.text(), search_from);
  while (next == std::string_view::npos && !window_.at_end()) {
    const size_t searched = window_.text().size();
    if (searched > options_.max_record_bytes) {
      // Drop what was searched, keeping the window small.
      router_.Lost(kBroken, window_.offset(), searched - kOverlap);
      window_.Consume(searched - kOverlap);
      search_from = 0;
    } else if (searched > kOverlap) {
      search_from = std::max(search_from, searched - kOverlap);
    }
    LAMINA_ASSIGN(const bool more, window_.Fill(options_.chunk_bytes));
    if (!more) break;
    next = FindRecordStart(window_.text(), search_from);
  }
  return next;
}

bool RecordCutter::GiveUp(std::string_view reason) {
  router_.Lost(reason, window_.offset(), window_.text().size());
  window_.Close();
  place_ = Place::kInputEnded;
  return false;
}

JsonStream::JsonStream(std::unique_ptr<ByteSource> source, Router* router,
                       Options options)
    : source_(std::move(source)),
      router_(*router),
      window_(source_.get()),
      document_(&window_, router),
      cutter_(&window_, router, options) {}

Result<bool> JsonStream::Next(Chunk& chunk) {
  chunk.text = {};
  while (where_ != Where::kDone) {
    if (where_ == Where::kDocument) {
      LAMINA_TRY(WalkDocument());
      continue;
    }
    LAMINA_ASSIGN(const bool any, CutRecords(chunk));
    if (any) return true;
  }
  return false;
}

Status JsonStream::WalkDocument() {
  LAMINA_ASSIGN(const bool records, document_.NextArray());
  if (records) {
    cutter_.Start();
    where_ = Where::kRecords;
    return {};
  }
  where_ = Where::kDone;
  if (const auto damage = source_->damage())
    router_.Lost(damage->what, damage->offset, 0);
  return {};
}

Result<bool> JsonStream::CutRecords(Chunk& chunk) {
  LAMINA_ASSIGN(const bool any, cutter_.Next(chunk));
  if (any) {
    chunk.array = arrays_;
    chunk.sequence = sequence_++;
  }
  switch (cutter_.place()) {
    case RecordCutter::Place::kInside:
      break;
    case RecordCutter::Place::kBehind:
      document_.LeaveArray();
      ++arrays_;
      where_ = Where::kDocument;
      break;
    case RecordCutter::Place::kInputEnded:
      document_.Abandon();
      where_ = Where::kDocument;
      break;
  }
  return any;
}

}  // namespace lamina::json
