// SPDX-License-Identifier: Apache-2.0
#include "emit/chrome/copy.h"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <optional>
#include <string_view>

#include "base/byte_source.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/scan.h"
#include "base/json/strict.h"
#include "base/json/tokens.h"

namespace lamina::emit {
namespace {

constexpr size_t kRead = size_t{1} << 20;
// A longer record is no event.
constexpr size_t kMaxRecord = size_t{64} << 20;

// Places inside a record, as offsets from its first byte.
struct Places {
  size_t args = 0;         // one past the brace that opens "args"; 0: none
  bool args_empty = true;  // no member in args
  bool empty = true;       // no member in the record
};

// Nothing when the text is no JSON object.
std::optional<Places> FindPlaces(std::string_view record) {
  Places places;
  json::MemberScan members(record);
  for (json::Member member; members.Next(member);) {
    places.empty = false;
    if (member.key != "args" || !member.value.starts_with('{')) continue;
    places.args = member.position + 1;
    places.args_empty = member.value[json::SkipSpace(member.value, 1)] == '}';
  }
  if (!members.closed()) return std::nullopt;
  return places;
}

// A record with members added to its "args"; nothing when it is no object.
std::optional<std::string> WithArgs(std::string_view record,
                                    std::string_view args) {
  const auto places = FindPlaces(record);
  if (!places) return std::nullopt;
  std::string out;
  out.reserve(record.size() + args.size() + 16);
  if (places->args > 0) {
    out += record.substr(0, places->args);
    out += args;
    if (!places->args_empty) out += ',';
    out += record.substr(places->args);
  } else {
    const size_t close = record.rfind('}');
    out += record.substr(0, close);
    out += places->empty ? "\"args\":{" : ",\"args\":{";
    out += args;
    out += '}';
    out += record.substr(close);
  }
  return out;
}

// Passes on what it gets and learns whether that is JSON.
class CheckedSink final : public ByteSink {
 public:
  explicit CheckedSink(ByteSink* to) : to_(to) {}
  bool strict() { return check_.Finish(); }

 protected:
  Status DoWrite(std::string_view bytes) override {
    if (!check_.Feed(bytes)) {
      return Fail(InputError("", "not JSON"));  // ends the copy early
    }
    if (to_ != nullptr) to_->Write(bytes);
    return {};
  }
  Status DoClose() override { return {}; }

 private:
  ByteSink* to_;
  json::StrictCheck check_;
};

// Record by record, each mended; `additions` are put in where they belong.
Status Salvage(const std::string& input, ByteSink& sink,
               std::span<const uint64_t> offsets,
               const std::function<void(size_t, Addition&)>& make,
               CopyLoss& loss) {
  LAMINA_ASSIGN(auto source, OpenByteSource(input));
  size_t next = 0;
  const auto rewrite = [&](const Record& record, const RecordSink& write) {
    std::string text(record.text);
    while (next < offsets.size() && offsets[next] <= record.offset) {
      Addition addition;
      make(next, addition);
      std::string_view before = addition.before;
      while (before.ends_with('\n') || before.ends_with(','))
        before.remove_suffix(1);
      if (!before.empty()) write(before);
      if (offsets[next] == record.offset && !addition.args.empty())
        text = WithArgs(text, addition.args).value_or(text);
      ++next;
    }
    write(text);
  };
  return CopyRecords(std::move(source), sink, rewrite, &loss);
}

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
  ByteWindow window(&source);
  for (size_t i = 0; i < offsets.size(); ++i) {
    Addition addition;
    make(i, addition);
    addition.offset = offsets[i];
    LAMINA_CHECK(addition.offset >= window.offset());
    // Up to the record.
    while (window.offset() < addition.offset) {
      const uint64_t left = addition.offset - window.offset();
      if (window.text().empty()) {
        LAMINA_ASSIGN(const bool more, window.Fill(kRead));
        if (!more) return Fail(NoRecord(source, addition.offset));
        continue;
      }
      const size_t take =
          static_cast<size_t>(std::min<uint64_t>(left, window.text().size()));
      sink.Write(window.text().substr(0, take));
      window.Consume(take);
    }
    sink.Write(addition.before);
    if (addition.args.empty()) continue;
    // The whole record.
    json::ScanResult scan = json::ScanValue(window.text(), 0);
    while (scan.kind == json::ScanResult::Kind::kIncomplete &&
           window.text().size() < kMaxRecord) {
      LAMINA_ASSIGN(const bool more, window.Fill(kRead));
      if (!more) break;
      scan = json::ScanValue(window.text(), 0);
    }
    if (scan.kind != json::ScanResult::Kind::kOk)
      return Fail(NoRecord(source, addition.offset));
    const std::string_view record = window.text().substr(0, scan.end);
    const auto added = WithArgs(record, addition.args);
    if (!added) return Fail(NoRecord(source, addition.offset));
    sink.Write(*added);
    window.Consume(scan.end);
  }
  for (;;) {
    sink.Write(window.text());
    window.Consume(window.text().size());
    LAMINA_ASSIGN(const bool more, window.Fill(kRead));
    if (!more) return {};
  }
}

Result<CopyLoss> CopyFile(const std::string& input, const std::string& output,
                          std::span<const uint64_t> offsets,
                          const std::function<void(size_t, Addition&)>& make) {
  std::error_code none_there;
  const bool in_place =
      output == "-" || (std::filesystem::exists(output, none_there) &&
                        !std::filesystem::is_regular_file(output, none_there));
  LAMINA_ASSIGN(auto sink, CreateFileSink(output));
  // What is written in place cannot be taken back: it is tried before.
  CheckedSink checked(in_place ? nullptr : sink.get());
  LAMINA_ASSIGN(auto source, OpenByteSource(input));
  Status copied = CopyWithAdditions(*source, checked, offsets, make);
  if (const Status closed = checked.Close(); copied && !closed) copied = closed;
  const bool whole = copied && checked.strict() && !source->damage();
  CopyLoss loss;
  if (!whole || in_place) {
    if (!in_place) {
      LAMINA_ASSIGN(sink, CreateFileSink(output));
    }
    if (whole) {
      LAMINA_ASSIGN(source, OpenByteSource(input));
      LAMINA_TRY(CopyWithAdditions(*source, *sink, offsets, make));
    } else {
      LAMINA_TRY(Salvage(input, *sink, offsets, make, loss));
      loss.anew = true;
    }
  }
  LAMINA_TRY(sink->Close());
  return loss;
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
