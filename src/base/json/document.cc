// SPDX-License-Identifier: Apache-2.0
#include "base/json/document.h"

#include <algorithm>

#include "base/escape.h"
#include "base/json/scan.h"

namespace lamina::json {
namespace {

constexpr size_t kWindow = size_t{256} << 10;
constexpr size_t kMaxCapture = size_t{64} << 20;
// A key with its quotes and what stands in front of its colon.
constexpr size_t kMaxKey = size_t{128} << 10;

std::string Printable(char c) {
  return "'" + EscapeTerminal(std::string_view(&c, 1)) + "'";
}

// Finds the end of one value with nothing but bracket depth and string state.
class ValueEnd {
 public:
  // How many bytes of `text` belong to the value, which goes on behind the
  // text unless done() is true then.
  size_t Find(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (in_string_) {
        if (ClosesString(c) && depth_ == 0) return DoneAt(i + 1);
        continue;
      }
      if (c == '"') {
        in_string_ = true;
      } else if (c == '{' || c == '[') {
        ++depth_;
      } else if (c == '}' || c == ']') {
        if (depth_ == 0) return DoneAt(i);  // it closes what is around
        if (--depth_ == 0) return DoneAt(i + 1);
      } else if (depth_ == 0 && (c == ',' || (any_ && IsSpace(c)))) {
        return DoneAt(i);
      }
      any_ = true;
    }
    return text.size();
  }
  bool done() const { return done_; }
  bool inside() const { return depth_ > 0 || in_string_; }

 private:
  size_t DoneAt(size_t end) {
    done_ = true;
    return end;
  }
  bool ClosesString(char c) {
    const bool escaped = escaped_;
    escaped_ = !escaped && c == '\\';
    in_string_ = escaped || c != '"';
    return !in_string_;
  }

  int64_t depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  bool any_ = false;
  bool done_ = false;
};

}  // namespace

Error Document::NotJson(uint64_t offset, std::string_view expected) const {
  const size_t at = static_cast<size_t>(offset - window_.offset());
  const std::string_view text = window_.text();
  std::string found = "the end of the file";
  if (at < text.size()) found = Printable(text[at]);
  std::string hint = "give the JSON file that the profiler wrote";
  if (offset < 16 && found == "'<'")
    hint = "this looks like HTML: download the trace file itself";
  return InputErrorAt(window_.source().name(), offset,
                      "not a JSON document: expected " + std::string(expected) +
                          ", found " + found,
                      hint);
}

Result<bool> Document::SkipToText() {
  while (true) {
    window_.Consume(SkipSpace(window_.text(), 0));
    if (!window_.text().empty()) return true;
    LAMINA_ASSIGN(const bool more, window_.Fill(kWindow));
    if (!more) return false;
    // A byte order mark is not part of the text.
    if (window_.offset() == 0 && window_.text().starts_with("\xEF\xBB\xBF"))
      window_.Consume(3);
  }
}

Result<bool> Document::NextArray() {
  while (true) {
    LAMINA_ASSIGN(const Step step, Walk());
    if (step == Step::kGoOn) continue;
    any_records_ = any_records_ || step == Step::kRecords;
    return step == Step::kRecords;
  }
}

namespace {

constexpr std::string_view kBytesBehind = "unknown bytes follow the document";

// Whether a text begins an object with members or a list of objects: another
// recording behind the first, not some stray bytes.
bool BeginsDocument(std::string_view text) {
  const auto next = [&](size_t from) {
    const size_t at = text.find_first_not_of(" \t\r\n", from);
    return at == text.npos ? text.size() : at;
  };
  const size_t first = next(0);
  const size_t second = next(first + 1);
  if (second >= text.size()) return false;
  return (text[first] == '{' && text[second] == '"') ||
         (text[first] == '[' && text[second] == '{');
}

}  // namespace

Document::Step Document::Ended() {
  router_.Lost("the file ends inside the document", window_.offset(),
               window_.text().size());
  window_.Close();
  levels_.clear();
  return Step::kOver;
}

// From the place of the walk past one token or value.
Result<Document::Step> Document::Walk() {
  LAMINA_ASSIGN(const bool any, SkipToText());
  const char c = any ? window_.text().front() : '\0';
  if (!started_) {
    if (c != '{' && c != '[')
      return Fail(NotJson(window_.offset(), "'{' or '['"));
    started_ = true;
    return EnterValue();
  }
  if (levels_.empty()) {
    if (any) {
      router_.Lost(
          BeginsDocument(window_.text()) ? kAnotherDocument : kBytesBehind,
          window_.offset(), window_.text().size());
    }
    return Step::kOver;
  }
  if (!any) return Ended();
  Level& level = levels_.back();
  if (c == (level.object ? '}' : ']')) {
    window_.Consume(1);
    levels_.pop_back();
    LeaveValue();
    return Step::kGoOn;
  }
  if (level.wants_member) {
    level.wants_member = false;
    return EnterMember();
  }
  if (c != ',') {
    return Recover(window_.offset(),
                   level.object ? "',' or '}'" : "',' or ']'");
  }
  window_.Consume(1);
  level.wants_member = true;
  return Step::kGoOn;
}

Result<Document::Step> Document::EnterMember() {
  Level& level = levels_.back();
  if (!level.object) {
    path_.push_back(std::to_string(level.next_index++));
    return EnterValue();
  }
  const bool quoted = window_.text().front() == '"';
  LAMINA_ASSIGN(auto key, ReadKey());
  if (!key) {
    return Recover(window_.offset(),
                   quoted ? "a key and ':'" : "a key in quotes");
  }
  path_.push_back(*std::move(key));
  LAMINA_ASSIGN(const bool any, SkipToText());
  if (!any) return Ended();
  return EnterValue();
}

Result<std::optional<std::string>> Document::ReadKey() {
  size_t want = 256;
  while (window_.text().front() == '"') {
    const std::string_view text = window_.text().substr(0, kMaxKey);
    const ScanResult key = ScanValue(text, 0);
    if (key.kind != ScanResult::Kind::kIncomplete) {
      const size_t colon = SkipSpace(text, key.end);
      if (colon < text.size()) {
        if (key.kind != ScanResult::Kind::kOk || text[colon] != ':') break;
        std::string decoded = DecodeString(text.substr(1, key.end - 2));
        window_.Consume(colon + 1);
        return decoded;
      }
    }
    if (text.size() == kMaxKey) break;
    LAMINA_ASSIGN(const bool more, window_.Fill(want));
    if (!more) break;
    want *= 2;
  }
  return std::nullopt;
}

// At the first character of a value whose path is path_.
Result<Document::Step> Document::EnterValue() {
  const char c = window_.text().front();
  Action action = router_.Route(path_, c);
  if (action == Action::kDescend && c != '{' && c != '[')
    action = Action::kSkip;
  if (action == Action::kRecords && c != '[') action = Action::kSkip;
  switch (action) {
    case Action::kRecords:
      window_.Consume(1);
      return Step::kRecords;
    case Action::kDescend:
      if (levels_.size() >= static_cast<size_t>(kMaxDepth)) {
        return Fail(InputErrorAt(window_.source().name(), window_.offset(),
                                 "the document is nested too deeply"));
      }
      window_.Consume(1);
      levels_.push_back({c == '{', 0, true});
      return Step::kGoOn;
    case Action::kCapture:
      return CaptureValue();
    case Action::kSkip: {
      LAMINA_TRY(SkipValue());
      break;
    }
  }
  return Step::kGoOn;
}

void Document::LeaveValue() {
  if (!path_.empty()) path_.pop_back();
}

Result<Document::Step> Document::CaptureValue() {
  size_t want = kWindow;
  while (true) {
    const std::string_view text = window_.text();
    const ScanResult scan = ScanValue(text, 0);
    // A number at the end of the window may go on behind it.
    if (scan.kind == ScanResult::Kind::kOk &&
        (scan.end < text.size() || window_.at_end())) {
      router_.Captured(path_, text.substr(0, scan.end), window_.offset());
      window_.Consume(scan.end);
      LeaveValue();
      return Step::kGoOn;
    }
    if (scan.kind == ScanResult::Kind::kError)
      return Recover(window_.offset() + scan.end, scan.expected);
    if (text.size() > kMaxCapture) {
      router_.Lost("a value larger than 64 MiB is not read", window_.offset(),
                   text.size());
      LAMINA_TRY(SkipValue());
      return Step::kGoOn;
    }
    LAMINA_ASSIGN(const bool more, window_.Fill(want));
    want *= 2;
    if (!more && scan.kind == ScanResult::Kind::kIncomplete) return Ended();
  }
}

// Reads past one value of any size without holding it.
Status Document::SkipValue() {
  ValueEnd end;
  while (true) {
    window_.Consume(end.Find(window_.text()));
    if (end.done()) break;
    LAMINA_ASSIGN(const bool more, window_.Fill(kWindow));
    if (more) continue;
    if (end.inside()) Ended();
    break;
  }
  LeaveValue();
  return {};
}

// The document is broken at `offset`. With records already read the rest is
// given up; else the walk goes on at the recovery key.
Result<Document::Step> Document::Recover(uint64_t offset,
                                         std::string_view expected) {
  if (any_records_) {
    router_.Lost("the document is broken behind the records", offset, 0);
    window_.Close();
    levels_.clear();
    return Step::kOver;
  }
  const std::string_view key = router_.recovery_key();
  const Error error = NotJson(offset, expected);
  if (key.empty() || recovered_) return Fail(error);
  recovered_ = true;
  const uint64_t from = window_.offset();
  while (true) {
    const std::string_view text = window_.text();
    const size_t found = text.find(key);
    if (found != std::string_view::npos) {
      window_.Consume(found);
      router_.Lost("part of the document outside the records is broken", offset,
                   window_.offset() - from);
      path_.clear();
      levels_.assign(1, Level{true, 0, true});
      return Step::kGoOn;
    }
    if (text.size() > key.size()) window_.Consume(text.size() - key.size());
    LAMINA_ASSIGN(const bool more, window_.Fill(kWindow));
    if (!more) return Fail(error);
  }
}

}  // namespace lamina::json
