// SPDX-License-Identifier: Apache-2.0
//
// The cutter alone, on the inside of one array.
#include "base/json/cutter.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>

namespace lamina::json {
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
