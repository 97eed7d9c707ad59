// SPDX-License-Identifier: Apache-2.0
//
// The streaming JSON reader against documents whose records are known.

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <string>

#include "base/json/cutter.h"
#include "base/json/scan.h"
#include "base/json/tokens.h"

namespace lamina::json {

namespace {

using Kind = ScanResult::Kind;

TEST(Scan, FindsTheEndOfValues) {
  const auto end = [](std::string_view text) {
    const ScanResult r = ScanValue(text, 0);
    return r.kind == Kind::kOk ? static_cast<int>(r.end) : -1;
  };
  EXPECT_EQ(end("12, 3"), 2);
  EXPECT_EQ(end("-1.5e+3]"), 7);
  EXPECT_EQ(end("\"a\\\"b\" "), 6);
  EXPECT_EQ(end("{\"a\": [1, {\"b\": null}]}x"), 23);
  EXPECT_EQ(end("[]"), 2);
  EXPECT_EQ(end("NaN,"), 3);
  EXPECT_EQ(end("{\"raw \x01 control\": 1}"), 20);
}

TEST(Scan, NamesTheFirstWrongByte) {
  struct Case {
    std::string_view text;
    size_t at;
    std::string_view expected;
  };
  for (const Case& c :
       {Case{"{\"a\" 1}", 5, "':'"}, Case{"{\"a\":1 \"b\":2}", 7, "',' or '}'"},
        Case{"[1 2]", 3, "',' or ']'"}, Case{"{1:2}", 1, "a key in quotes"},
        Case{"[1,]", 3, "a value"}, Case{"tru", 3, ""}}) {
    const ScanResult r = ScanValue(c.text, 0);
    EXPECT_NE(r.kind, Kind::kOk) << c.text;
    if (!c.expected.empty()) {
      EXPECT_EQ(r.end, c.at) << c.text;
      EXPECT_EQ(r.expected, c.expected) << c.text;
    }
  }
}

TEST(Scan, EveryPrefixIsIncompleteNotWrong) {
  const std::string text =
      "{\"name\": \"a\\u00e9\\\"\", \"args\": [1, -2.5e3, true, null, {}]}";
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_EQ(ScanValue(std::string_view(text).substr(0, size), 0).kind,
              Kind::kIncomplete)
        << size;
}

TEST(Scan, DeepNestingIsRefusedWithoutRecursion) {
  EXPECT_EQ(ScanValue(std::string(1000000, '['), 0).kind, Kind::kError);
}

TEST(Scan, DecodesStrings) {
  EXPECT_EQ(DecodeString("a\\n\\t\\\"\\\\\\/"), "a\n\t\"\\/");
  EXPECT_EQ(DecodeString("\\u00e9\\ud83d\\ude00"), "\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(DecodeString("\\ud800x"), "\xEF\xBF\xBDx");
  EXPECT_EQ(DecodeString("C:\\dir\\"), "C:\\dir\\");
  EXPECT_EQ(DecodeString("\\u12"), "\\u12");
}

TEST(Scan, CanonicalText) {
  EXPECT_EQ(Canonical("[ [1,  2],\n[] , \"a, b\\\" c\"]"),
            "[[1,2],[],\"a, b\\\" c\"]");
}

TEST(Tokens, RawValues) {
  std::string text = "{\"k\" : \"v w\" , \"n\":-1.5 ,\"a\":[1,[2] ]}";
  const size_t size = text.size();
  text.resize(size + kPadding, ' ');
  TokenIndex index;
  ASSERT_EQ(index.Build({text.data(), size}), TokenIndex::Outcome::kOk);
  const Tokens tokens({text.data(), size}, index);
  EXPECT_EQ(tokens.String(1).raw, "k");
  EXPECT_EQ(tokens.String(3).raw, "v w");
  EXPECT_EQ(tokens.Scalar(7), "-1.5");
  const size_t array = 11;
  EXPECT_EQ(tokens.Kind(array), '[');
  EXPECT_EQ(tokens.Raw(array, tokens.Skip(array)), "[1,[2] ]");
  EXPECT_EQ(index.Build("\"open"), TokenIndex::Outcome::kBroken);
}

// --- the stream ---

class Recorder final : public Router {
 public:
  Action Route(Path path, char first) override {
    if (path.empty()) return first == '[' ? Action::kRecords : Action::kDescend;
    if (path.size() == 1 && path[0] == "events") return Action::kRecords;
    if (path.size() == 1 && path[0] == "skip") return Action::kSkip;
    if (path.size() == 1 && path[0] == "deep") return Action::kDescend;
    return Action::kCapture;
  }
  void Captured(Path path, std::string_view raw, uint64_t) override {
    std::string key;
    for (const std::string& part : path) key += "/" + part;
    captured += key + "=" + std::string(raw) + ";";
  }
  void Lost(std::string_view reason, uint64_t offset, uint64_t) override {
    lost.emplace_back(std::string(reason), offset);
  }
  std::string_view recovery_key() const override { return "\"events\""; }

  std::string captured;
  std::vector<std::pair<std::string, uint64_t>> lost;
};

struct Streamed {
  std::vector<std::string> records;
  std::string captured;
  std::vector<std::pair<std::string, uint64_t>> lost;
  std::string error;
};

Streamed Stream(const std::string& document, size_t chunk_bytes) {
  Streamed out;
  auto source = OpenMemory("doc", document);
  EXPECT_TRUE(source.has_value());
  Recorder recorder;
  JsonStream::Options options;
  options.chunk_bytes = chunk_bytes;
  JsonStream stream(std::move(*source), &recorder, options);
  Chunk chunk;
  uint64_t sequence = 0;
  while (true) {
    auto more = stream.Next(chunk);
    if (!more) {
      out.error = more.error().ToString();
      break;
    }
    if (!*more) break;
    EXPECT_EQ(chunk.sequence, sequence++);
    // Offsets point at the text in the document.
    EXPECT_EQ(document.substr(chunk.offset, chunk.text.size()), chunk.text);
    // A parser meets broken records in chunks that the fast scan cut.
    size_t pos = 0;
    RecordSpan record;
    while (NextRecord(chunk.text, pos, record)) {
      if (!record.broken)
        out.records.emplace_back(
            chunk.text.substr(record.begin, record.end - record.begin));
      if (record.broken) recorder.lost.emplace_back("broken", chunk.offset);
    }
  }
  out.captured = recorder.captured;
  out.lost = recorder.lost;
  return out;
}

std::string RandomString(std::mt19937& random) {
  static constexpr std::string_view kParts[] = {
      "name",
      " {",
      "}, {",
      "[",
      "],",
      "\\\"",
      "\\\\",
      "\\n",
      ":",
      "\xC3\xA9",
      "\\u0041",
      "0123456789",
      "void at::native::kernel<float>(int)"};
  std::string out = "\"";
  for (size_t i = random() % 6; i > 0; --i)
    out += kParts[random() % std::size(kParts)];
  return out + "\"";
}

std::string RandomRecord(std::mt19937& random, bool pretty) {
  const char* space = pretty ? "\n    " : "";
  std::string out = std::string("{") + space + "\"ph\": \"X\"";
  for (size_t i = random() % 5; i > 0; --i) {
    out += std::string(",") + space + RandomString(random) + ":";
    switch (random() % 4) {
      case 0:
        out += std::to_string(random() % 100000) + ".5";
        break;
      case 1:
        out += RandomString(random);
        break;
      case 2:
        out += "[[1, 2], [], [" + RandomString(random) + "]]";
        break;
      default:
        out += "{\"x\": {\"y\": " + RandomString(random) + "}}";
    }
  }
  return out + (pretty ? "\n  }" : "}");
}

TEST(Stream, DeliversEveryRecordForEveryChunkSize) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const bool pretty = round % 2 == 0;
    std::vector<std::string> records(random() % 40);
    std::string document =
        "{\"a\": 1, \"skip\": {\"x\": [\"}\"]}, \"events\": [";
    for (std::string& record : records) {
      record = RandomRecord(random, pretty);
      if (&record != &records[0]) document += pretty ? ",\n  " : ",";
      document += record;
    }
    document += "], \"deep\": {\"b\": [1, 2], \"c\": \"t\"}, \"z\": true}\n";
    for (const size_t chunk : {1, 7, 64, 300, 100000}) {
      const Streamed got = Stream(document, chunk);
      ASSERT_EQ(got.records, records);
      ASSERT_EQ(got.captured, "/a=1;/deep/b=[1, 2];/deep/c=\"t\";/z=true;");
      ASSERT_TRUE(got.lost.empty());
      ASSERT_TRUE(got.error.empty());
    }
  }
}

TEST(Stream, ABareArrayIsAListOfRecords) {
  const Streamed got = Stream(" [{\"a\":1}, {\"b\":2}] ", 4);
  EXPECT_EQ(got.records, (std::vector<std::string>{"{\"a\":1}", "{\"b\":2}"}));
}

// Damage in one record costs that record (at worst its neighbour), whatever
// the damage and the layout.
TEST(Stream, SalvagesAroundABrokenRecord) {
  std::mt19937 random(5);
  int exact = 0;
  constexpr int kRounds = 400;
  for (int round = 0; round < kRounds; ++round) {
    const bool pretty = round % 2 == 0;
    std::vector<std::string> records(12);
    for (std::string& record : records) record = RandomRecord(random, pretty);
    const size_t victim = 1 + random() % 10;
    std::string& broken = records[victim];
    const size_t at = random() % broken.size();
    switch (random() % 3) {
      case 0:
        broken.insert(at, "\"");
        break;
      case 1:
        broken.erase(at, 1 + random() % 5);
        break;
      default:
        broken[at] = static_cast<char>(random() % 256);
    }
    std::string document = "{\"events\":[";
    for (const std::string& record : records) {
      if (&record != &records[0]) document += pretty ? ",\n" : ",";
      document += record;
    }
    document += "]}";
    const Streamed got = Stream(document, 50 + random() % 500);
    ASSERT_TRUE(got.error.empty()) << got.error;
    // Every intact record before the damage is there.
    ASSERT_GE(got.records.size(), victim);
    for (size_t i = 0; i < victim; ++i) ASSERT_EQ(got.records[i], records[i]);
    size_t after = 0;
    for (size_t i = victim + 1; i < records.size(); ++i)
      after += std::find(got.records.begin() + static_cast<ptrdiff_t>(victim),
                         got.records.end(), records[i]) != got.records.end();
    exact += after == records.size() - victim - 1;
  }
  // The strings here are full of brackets: where a quote turns such text
  // inside out, a neighbour may be lost with the victim.
  EXPECT_GT(exact, kRounds * 4 / 5);
}

TEST(Stream, TruncationAtEveryByteKeepsTheGoodPrefix) {
  const std::vector<std::string> records = {
      "{\"ph\":\"X\",\"name\":\"a, {\"}", "{\"ph\":\"M\",\"args\":{\"n\":[1]}}",
      "{\"ph\":\"X\"}"};
  const std::string document = "{\"v\": 1, \"events\": [" + records[0] + ", " +
                               records[1] + ",\n" + records[2] +
                               "], \"w\": \"x\"}";
  for (size_t size = 1; size < document.size(); ++size) {
    const Streamed got = Stream(document.substr(0, size), 30);
    ASSERT_LE(got.records.size(), records.size());
    for (size_t i = 0; i < got.records.size(); ++i)
      ASSERT_EQ(got.records[i], records[i]) << size;
    ASSERT_TRUE(!got.lost.empty() || !got.error.empty()) << size;
  }
}

TEST(Stream, RecoversFromABrokenHead) {
  const Streamed got =
      Stream("{\"path\": \"C:\\dir\"quote\", \"events\": [{\"a\":1}]}", 100);
  EXPECT_EQ(got.records, (std::vector<std::string>{"{\"a\":1}"}));
  ASSERT_EQ(got.lost.size(), 1u);
}

TEST(Stream, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(Stream("hello", 100).error,
            "doc:0: not a JSON document: expected '{' or '[', found 'h'; give "
            "the JSON file that the profiler wrote");
  EXPECT_NE(Stream("{\"a\": }", 100)
                .error.find("doc:6: not a JSON document: "
                            "expected a value, found '}'"),
            std::string::npos);
}

TEST(Stream, HostileInputEndsSoon) {
  // Candidates without end, brackets without end, quotes without end.
  std::string nested = "{\"events\":[";
  for (int i = 0; i < 60000; ++i) nested += "{\"k\":[";
  EXPECT_TRUE(Stream(nested, 1000).records.empty());
  EXPECT_TRUE(
      Stream("{\"events\":[" + std::string(300000, '{'), 1000).records.empty());
  EXPECT_FALSE(
      Stream("{\"events\":[" + std::string(300000, '"'), 1000).lost.empty());
}

}  // namespace

namespace {

// "key=value;" for each member, then how the object ended.
std::string ByText(std::string_view text) {
  std::string out;
  MemberScan members(text);
  for (Member member; members.Next(member);) {
    EXPECT_EQ(text.substr(member.position, member.value.size()), member.value);
    out += std::string(member.key) + "=" + std::string(member.value) + ";";
  }
  return out + (members.closed() ? "closed" : "broken");
}

std::string ByTokens(std::string_view text) {
  std::string padded(text);
  padded.append(kPadding, ' ');
  TokenIndex index;
  if (index.Build({padded.data(), text.size()}) != TokenIndex::Outcome::kOk)
    return "no tokens";
  const Tokens tokens({padded.data(), text.size()}, index);
  std::string out;
  size_t token = 0;
  const bool closed =
      WalkObject(tokens, token, [&](std::string_view key, size_t& value) {
        const bool nested =
            tokens.Kind(value) == '{' || tokens.Kind(value) == '[';
        out += std::string(key) + "=";
        if (!nested) out += tokens.Scalar(value);
        const size_t first = value;
        if (!SkipValue(tokens, value)) return false;
        if (nested) out += tokens.Raw(first, value);
        out += ";";
        return true;
      });
  EXPECT_TRUE(!closed || token == tokens.count());
  return out + (closed ? "closed" : "broken");
}

TEST(Members, AreTheSameOverTextAndTokens) {
  for (const auto& [text, expected] :
       {std::pair{"{}", "closed"},
        {" { \"a\" : 1 } ", "a=1;closed"},
        {"{\"a\":{\"b\":[1]},\"c\\\"\":\"x, y\"}",
         "a={\"b\":[1]};c\\\"=\"x, y\";closed"},
        {"{\"a\":1 \"b\":2}", "a=1;broken"},
        {"{\"a\" 1}", "broken"},
        {"{1:2}", "broken"},
        {"{\"a\":1,}", "a=1;broken"},
        {"{\"a\":1", "a=1;broken"},
        {"{,\"a\":1}", "broken"}}) {
    EXPECT_EQ(ByText(text), expected) << text;
    EXPECT_EQ(ByTokens(text), expected) << text;
  }
}

TEST(Members, TextThatIsNoObjectHasNone) {
  for (const char* text : {"", " ", "[1]", "\"a\"", "{\"a\":}", "{\"a\":tru}"})
    EXPECT_EQ(ByText(text), "broken") << text;
}

TEST(Members, StayEndedOnceEnded) {
  MemberScan members("{\"a\" 1, \"b\": 2}");
  Member member;
  EXPECT_FALSE(members.Next(member));
  EXPECT_FALSE(members.Next(member));
}

}  // namespace

// The cutter alone, on the inside of one array.

namespace {

using Place = RecordCutter::Place;

class Losses final : public Router {
 public:
  Action Route(Path, char) override { return Action::kSkip; }
  void Captured(Path, std::string_view, uint64_t) override {}
  void Lost(std::string_view reason, uint64_t offset, uint64_t bytes) override {
    text += std::string(reason) + "@" + std::to_string(offset) + "+" +
            std::to_string(bytes) + ";";
    ++count;
  }
  std::string text;
  size_t count = 0;
};

struct Cut {
  std::string fast;     // of every chunk by the fast scan, then |
  std::string careful;  // the same by the careful one
  std::string lost;
  size_t losses = 0;
  std::string rest;  // what the window holds in the end
  Place place = Place::kInside;
};

Cut CutAll(const std::string& text, RecordCutter::Options options) {
  Cut out;
  Losses losses;
  const auto source = OpenMemory("doc", text);
  ByteWindow window(source->get());
  RecordCutter cutter(&window, &losses, options);
  cutter.Start();
  Chunk chunk;
  while (cutter.place() == Place::kInside) {
    const auto any = cutter.Next(chunk);
    EXPECT_TRUE(any.has_value());
    if (!any || !*any) continue;
    EXPECT_EQ(text.substr(chunk.offset, chunk.text.size()), chunk.text);
    EXPECT_GE(chunk.buffer.size(), chunk.text.size() + 64);
    std::string& side = chunk.suspect ? out.careful : out.fast;
    side += std::string(chunk.text) + "|";
  }
  out.lost = losses.text;
  out.losses = losses.count;
  out.rest = window.text();
  out.place = cutter.place();
  return out;
}

TEST(RecordCutter, LeavesWhatFollowsTheArray) {
  const Cut cut = CutAll("{\"a\":1}, {\"b\":2} ], \"rest\"", {100, 1000});
  EXPECT_EQ(cut.fast, "{\"a\":1}, {\"b\":2} |");
  EXPECT_EQ(cut.careful, "");
  EXPECT_EQ(cut.rest, ", \"rest\"");
  EXPECT_EQ(cut.place, Place::kBehind);
}

TEST(RecordCutter, GrowsForARecordLongerThanABlock) {
  const std::string record = "{\"a\":\"" + std::string(1000, 'x') + "\"}";
  const Cut cut = CutAll(record + "," + record + "]", {300, 10000});
  EXPECT_EQ(cut.fast, record + "|," + record + "|");
  EXPECT_EQ(cut.lost, "");
}

// Around damage the careful scan reads; with enough good records behind it
// the fast one takes over again.
TEST(RecordCutter, TrustsAgainBehindDamage) {
  const std::string good = "{\"a\":1},";
  const std::string broken = "{\"a\":\"raw\x01quote\"x},";
  std::string text;
  for (int i = 0; i < 10; ++i) text += good;
  text += broken;
  for (int i = 0; i < 5000; ++i) text += good;
  text.back() = ']';
  const Cut cut = CutAll(text, {4096, 10000});
  EXPECT_EQ(cut.lost, "a record cannot be read@80+19;");
  EXPECT_GT(cut.fast.size(), cut.careful.size());
  EXPECT_GE(cut.careful.size(), 64 * good.size());
  EXPECT_EQ(cut.place, Place::kBehind);
}

TEST(RecordCutter, SaysWhatACutInputLost) {
  const Cut record = CutAll("{\"a\":1}, {\"b\":", {100, 1000});
  EXPECT_EQ(record.lost, "the last record is cut off@9+5;");
  EXPECT_EQ(record.place, Place::kInputEnded);
  const Cut list = CutAll("{\"a\":1}, ", {100, 1000});
  EXPECT_EQ(list.lost, "the file ends inside the list of records@9+0;");
  EXPECT_EQ(list.fast, "{\"a\":1}|");
}

// A record that never ends is dropped piece by piece; the next is found.
TEST(RecordCutter, DropsARecordBeyondTheLimit) {
  const std::string text =
      "{\"a\":[" + std::string(60000, '1') + "\n{\"b\":2},\n{\"c\":3}]";
  const Cut cut = CutAll(text, {1000, 8000});
  EXPECT_EQ(cut.fast + cut.careful, "{\"b\":2},\n{\"c\":3}|");
  EXPECT_TRUE(cut.lost.starts_with("a record cannot be read@0+")) << cut.lost;
}

// Records inside one that does not end are tried only so often, since each try
// looks through all of the window.
TEST(RecordCutter, GivesUpNestedRecordsThatDoNotEnd) {
  std::string nested;
  for (int depth = 0; depth < 450; ++depth) nested += "{\"a\":[";
  const std::string open = nested + std::string(20000, '1');
  const Cut last = CutAll(open, {1000, 100000});
  EXPECT_LE(last.losses, 20u);
  EXPECT_EQ(last.place, Place::kInputEnded);
  const Cut cut = CutAll(open + "\n{\"b\":2},\n{\"c\":3}]", {1000, 8000});
  EXPECT_EQ(cut.fast + cut.careful, "{\"b\":2},\n{\"c\":3}|");
  EXPECT_LE(cut.losses, 20u);
}

// Counts what was read of an input.
class Counting final : public ByteSource {
 public:
  explicit Counting(std::string text)
      : ByteSource("doc"), text_(std::move(text)) {}
  Result<size_t> DoRead(char* to, size_t size) override {
    const size_t piece = std::min(size, text_.size() - read);
    std::copy_n(text_.data() + read, piece, to);
    read += piece;
    return piece;
  }
  uint64_t stored_position() const override { return read; }

  size_t read = 0;

 private:
  std::string text_;
};

// Many short arrays, as a file made to be slow has them: what lies behind an
// array is not read because of it, or the window would grow with each.
TEST(RecordCutter, ReadsNoFurtherForManyShortArrays) {
  const std::string array = "{\"a\":1}]";
  const size_t count = 3000;
  std::string text;
  for (size_t i = 0; i < count; ++i) text += array;
  Losses losses;
  Counting source(text);
  ByteWindow window(&source);
  RecordCutter cutter(&window, &losses, {1000, 8000});
  Chunk chunk;
  for (size_t i = 0; i < count; ++i) {
    cutter.Start();
    ASSERT_TRUE(cutter.Next(chunk).value());
    ASSERT_EQ(chunk.text, "{\"a\":1}");
    ASSERT_EQ(cutter.place(), Place::kBehind);
    ASSERT_LE(source.read, (i + 1) * array.size() + 1000);
  }
  EXPECT_EQ(losses.text, "");
}

}  // namespace

}  // namespace lamina::json
