// SPDX-License-Identifier: Apache-2.0
#include "emit/chrome/copy.h"

#include <algorithm>
#include <fmt/core.h>
#include <optional>
#include <string_view>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/scan.h"

namespace lamina::emit {
namespace {

constexpr size_t kRead = size_t{1} << 20;
// A longer record is no event.
constexpr size_t kMaxRecord = size_t{64} << 20;

// Places inside a record, as offsets from its first byte.
struct Places {
  size_t end = 0;          // one past the closing brace
  size_t args = 0;         // one past the brace that opens "args"; 0: none
  bool args_empty = true;  // no member in args
  bool empty = true;       // no member in the record
};

// Nothing when the text is no JSON object.
std::optional<Places> FindPlaces(std::string_view record) {
  Places places;
  places.end = record.size();
  size_t pos = json::SkipSpace(record, 0);
  if (pos >= record.size() || record[pos] != '{') return std::nullopt;
  ++pos;
  for (;;) {
    pos = json::SkipSpace(record, pos);
    if (pos >= record.size()) return std::nullopt;
    if (record[pos] == '}') return places;
    if (record[pos] == ',') {
      ++pos;
      continue;
    }
    const json::ScanResult key = json::ScanValue(record, pos);
    if (key.kind != json::ScanResult::Kind::kOk) return std::nullopt;
    const std::string_view name = record.substr(pos, key.end - pos);
    pos = json::SkipSpace(record, key.end);
    if (pos >= record.size() || record[pos] != ':') return std::nullopt;
    pos = json::SkipSpace(record, pos + 1);
    const json::ScanResult value = json::ScanValue(record, pos);
    if (value.kind != json::ScanResult::Kind::kOk) return std::nullopt;
    places.empty = false;
    if (name == "\"args\"" && record[pos] == '{') {
      places.args = pos + 1;
      const size_t first = json::SkipSpace(record, pos + 1);
      places.args_empty = first < record.size() && record[first] == '}';
    }
    pos = value.end;
  }
}

// Bytes of the input with a window to look ahead.
class Window {
 public:
  explicit Window(ByteSource& source) : source_(source) {}

  uint64_t offset() const { return offset_; }
  std::string_view text() const {
    return {buffer_.data() + begin_, buffer_.size() - begin_};
  }
  // Reads more; false at the end of the input.
  Result<bool> More() {
    if (begin_ > 0) {
      buffer_.erase(0, begin_);
      begin_ = 0;
    }
    const size_t old = buffer_.size();
    buffer_.resize(old + kRead);
    LAMINA_ASSIGN(const size_t count,
                  source_.Read(buffer_.data() + old, kRead));
    buffer_.resize(old + count);
    return count > 0;
  }
  void Drop(size_t bytes) {
    begin_ += bytes;
    offset_ += bytes;
  }

 private:
  ByteSource& source_;
  std::string buffer_;
  size_t begin_ = 0;
  uint64_t offset_ = 0;
};

Error NoRecord(const ByteSource& source, uint64_t offset) {
  return InputErrorAt(source.name(), offset,
                      "expected an event here; the file has changed since it "
                      "was read",
                      "run the command again");
}

}  // namespace

Status CopyWithAdditions(ByteSource& source, ByteSink& sink,
                         std::span<const Addition> additions) {
  std::vector<uint64_t> offsets;
  for (const Addition& addition : additions) offsets.push_back(addition.offset);
  return CopyWithAdditions(
      source, sink, offsets,
      [&](size_t i, Addition& addition) { addition = additions[i]; });
}

Status CopyWithAdditions(ByteSource& source, ByteSink& sink,
                         std::span<const uint64_t> offsets,
                         const std::function<void(size_t, Addition&)>& make) {
  Window window(source);
  for (size_t i = 0; i < offsets.size(); ++i) {
    Addition addition;
    make(i, addition);
    addition.offset = offsets[i];
    LAMINA_CHECK(addition.offset >= window.offset());
    // Up to the record.
    while (window.offset() < addition.offset) {
      const uint64_t left = addition.offset - window.offset();
      if (window.text().empty()) {
        LAMINA_ASSIGN(const bool more, window.More());
        if (!more) return Fail(NoRecord(source, addition.offset));
        continue;
      }
      const size_t take =
          static_cast<size_t>(std::min<uint64_t>(left, window.text().size()));
      sink.Write(window.text().substr(0, take));
      window.Drop(take);
    }
    sink.Write(addition.before);
    if (addition.args.empty()) continue;
    // The whole record.
    json::ScanResult scan = json::ScanValue(window.text(), 0);
    while (scan.kind == json::ScanResult::Kind::kIncomplete &&
           window.text().size() < kMaxRecord) {
      LAMINA_ASSIGN(const bool more, window.More());
      if (!more) break;
      scan = json::ScanValue(window.text(), 0);
    }
    if (scan.kind != json::ScanResult::Kind::kOk)
      return Fail(NoRecord(source, addition.offset));
    const std::string_view record = window.text().substr(0, scan.end);
    const auto places = FindPlaces(record);
    if (!places) return Fail(NoRecord(source, addition.offset));
    if (places->args > 0) {
      sink.Write(record.substr(0, places->args));
      sink.Write(addition.args);
      if (!places->args_empty) sink.Write(",");
      sink.Write(record.substr(places->args));
    } else {
      const size_t close = record.rfind('}');
      sink.Write(record.substr(0, close));
      sink.Write(places->empty ? "\"args\":{" : ",\"args\":{");
      sink.Write(addition.args);
      sink.Write("}");
      sink.Write(record.substr(close));
    }
    window.Drop(scan.end);
  }
  for (;;) {
    sink.Write(window.text());
    window.Drop(window.text().size());
    LAMINA_ASSIGN(const bool more, window.More());
    if (!more) return {};
  }
}

void AppendSpan(std::string& out, std::string_view name,
                std::string_view category, int64_t pid, int64_t tid,
                int64_t start_ns, int64_t dur_ns, std::string_view args) {
  out += "{\"ph\":\"X\",\"cat\":";
  AppendJsonQuoted(out, category);
  out += ",\"name\":";
  AppendJsonQuoted(out, name);
  out += fmt::format(",\"pid\":{},\"tid\":{},\"ts\":", pid, tid);
  AppendMicroseconds(out, start_ns);
  out += ",\"dur\":";
  AppendMicroseconds(out, dur_ns);
  out += ",\"args\":{";
  out += args;
  out += "}},\n";
}

namespace {

// Numbers as numbers, other names as text.
void AppendId(std::string& out, std::string_view id) {
  if (ParseInt(id)) {
    out += id;
  } else {
    AppendJsonQuoted(out, id);
  }
}

}  // namespace

void AppendFlowStart(std::string& out, int64_t id, std::string_view pid,
                     std::string_view tid, int64_t time_ns) {
  out += fmt::format("{{\"ph\":\"s\",\"id\":{},\"pid\":", id);
  AppendId(out, pid);
  out += ",\"tid\":";
  AppendId(out, tid);
  out += ",\"ts\":";
  AppendMicroseconds(out, time_ns);
  out +=
      ",\"cat\":\"ac2g\",\"name\":\"ac2g\","
      "\"args\":{\"added_by\":\"lamina\"}},\n";
}

void AppendSortIndex(std::string& out, int64_t pid, int64_t index) {
  out += fmt::format(
      "{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{},\"tid\":0,"
      "\"args\":{{\"sort_index\":{}}}}},\n",
      pid, index);
}

void AppendName(std::string& out, std::string_view what, int64_t pid,
                int64_t tid, std::string_view name) {
  out += "{\"ph\":\"M\",\"name\":";
  AppendJsonQuoted(out, what);
  out += fmt::format(",\"pid\":{},\"tid\":{},\"args\":{{\"name\":", pid, tid);
  AppendJsonQuoted(out, name);
  out += "}},\n";
}

}  // namespace lamina::emit
