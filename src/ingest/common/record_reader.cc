// SPDX-License-Identifier: Apache-2.0

#include "ingest/common/record_reader.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/escape.h"
#include "base/json/scan.h"
#include "base/parallel.h"

namespace lamina::ingest {

std::unique_ptr<trace::Segment> SegmentJoiner::Take(int worker,
                                                    trace::LocalNames* names) {
  const std::lock_guard lock(mutex_);
  auto& free = free_[worker];
  if (free.empty()) return std::make_unique<trace::Segment>(names);
  auto segment = std::move(free.back());
  free.pop_back();
  return segment;
}

void SegmentJoiner::Add(uint64_t sequence, int worker,
                        std::unique_ptr<trace::Segment> segment, bool last) {
  std::unique_lock lock(mutex_);
  if (ended_) return Drop(worker, std::move(segment));
  waiting_.emplace(sequence, Entry{worker, std::move(segment), last});
  while (!joining_ && !waiting_.empty() && waiting_.begin()->first == next_) {
    joining_ = true;
    Entry entry = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    lock.unlock();
    builder_.Append(*entry.segment);
    entry.segment->Clear();
    lock.lock();
    free_[entry.worker].push_back(std::move(entry.segment));
    joining_ = false;
    ++next_;
    if (entry.last) {
      ended_ = true;
      for (auto& [dropped, rest] : waiting_)
        Drop(rest.worker, std::move(rest.segment));
      waiting_.clear();
    }
    changed_.notify_all();
  }
  // The segment in turn is being parsed by another worker, which never waits
  // here with it, so this ends.
  changed_.wait(lock, [&] { return waiting_.size() < kMaxWaiting; });
}

void SegmentJoiner::Drop(int worker, std::unique_ptr<trace::Segment> segment) {
  builder_.Skip(*segment);
  segment->Clear();
  free_[worker].push_back(std::move(segment));
}

bool SegmentJoiner::InTurn(uint64_t sequence,
                           const std::function<bool()>& known,
                           const std::function<void()>& add) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return known() || next_ == sequence || ended_; });
  if (known()) return true;
  if (ended_) return false;
  add();
  changed_.notify_all();
  return true;
}

bool SegmentJoiner::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void SegmentJoiner::Restart() {
  next_ = 0;
  ended_ = false;
}

namespace {

constexpr uint32_t kRecordsPerSegment = 1 << 16;

}  // namespace

Filler::Filler(trace::TraceBuilder* builder)
    : builder_(builder), segment_(&names_) {}
Filler::~Filler() = default;

StringId Filler::Intern(std::string_view text) {
  return IsValidUtf8(text) ? names_.Intern(text)
                           : names_.Intern(RepairUtf8(text));
}

bool Filler::Usable(int64_t start_ns, int64_t end_ns, uint64_t offset) {
  if (trace::IsUsableTime(start_ns) && trace::IsUsableTime(end_ns) &&
      end_ns >= start_ns && end_ns - start_ns <= trace::kMaxDurationNs)
    return true;
  segment_.diagnostics.Add(
      trace::Effect::kLost, "time_out_of_range",
      "A record ends before it begins, lasts longer than 7 days or has a "
      "time that no clock shows.",
      offset);
  return false;
}

void Filler::AddInstant(int64_t time_ns, StringId name, trace::TrackId track,
                        uint32_t memory) {
  if (!trace::IsUsableTime(time_ns)) return;
  trace::Instants& to = segment_.instants;
  to.time_ns.push_back(time_ns);
  to.name.push_back(name);
  to.track.push_back(track);
  to.uid.push_back(segment_.next_uid);
  to.memory.push_back(memory);
}

void Filler::AddCounter(int64_t time_ns, StringId name, StringId series,
                        trace::TrackId track, double value) {
  if (!trace::IsUsableTime(time_ns)) return;
  trace::Counters& to = segment_.counters;
  to.time_ns.push_back(time_ns);
  to.name.push_back(name);
  to.series.push_back(series);
  to.track.push_back(track);
  to.value.push_back(value);
  to.uid.push_back(segment_.next_uid);
}

void Filler::Next() {
  ++segment_.next_uid;
  if (builder_ != nullptr && segment_.next_uid == kRecordsPerSegment) Flush();
}

void Filler::Flush() {
  segment_.Seal();
  builder_->Append(segment_);
  segment_.Clear();
}

Status ReadChunks(const std::function<Result<bool>(Chunk&)>& next,
                  const ReadOptions& options, trace::TraceBuilder& builder,
                  const MakeRecordParser& make_parser) {
  const int threads = std::max(options.threads, 1);
  SegmentJoiner joiner(&builder);
  std::vector<std::unique_ptr<RecordParser>> parsers;
  for (int i = 0; i < threads; ++i) parsers.push_back(make_parser());
  std::mutex read_mutex;
  bool finished = false;
  std::optional<Error> error;
  RunWorkers(threads, [&](int worker) {
    RecordParser& parser = *parsers[static_cast<size_t>(worker)];
    Chunk chunk;
    while (true) {
      {
        const std::lock_guard lock(read_mutex);
        finished |= options.Stopped();
        if (finished) return;
        auto more = next(chunk);
        if (!more || !*more) {
          finished = true;
          if (!more) error = std::move(more).error();
          return;
        }
        parser.Claim(chunk);
      }
      auto segment = joiner.Take(worker, parser.names());
      parser.Parse(chunk, *segment);
      segment->Seal();
      joiner.Add(chunk.sequence, worker, std::move(segment));
    }
  });
  if (error) return Fail(*error);
  return {};
}

Status ReadRecords(json::JsonStream& stream, const ReadOptions& options,
                   trace::TraceBuilder& builder,
                   const MakeRecordParser& make_parser) {
  const auto next = [&](Chunk& chunk) {
    auto more = stream.Next(chunk);
    if (more && *more && options.progress) {
      options.progress(stream.source().stored_position(),
                       stream.source().stored_size());
    }
    return more;
  };
  return ReadChunks(next, options, builder, make_parser);
}

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
