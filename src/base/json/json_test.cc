// SPDX-License-Identifier: Apache-2.0
//
// The streaming JSON reader against documents whose records are known.
#include <gtest/gtest.h>
#include <random>

#include "base/json/blocks.h"
#include "base/json/scan.h"
#include "base/json/stream.h"
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
}  // namespace lamina::json
