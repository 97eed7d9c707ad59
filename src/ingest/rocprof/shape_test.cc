// SPDX-License-Identifier: Apache-2.0
#include "ingest/rocprof/shape.h"

#include <gtest/gtest.h>
#include <string>

namespace lamina::ingest::rocprof {
namespace {

// What the shape of the first record finds in the second: "1 2", start and end;
// "no" when the shape is another one. `start` and `end` are tokens of the
// first.
std::string Read(const std::string& first, const std::string& second,
                 size_t start, size_t end) {
  std::string text = first + "," + second;
  const size_t size = text.size();
  text.append(json::kPadding, '#');
  json::TokenIndex index;
  EXPECT_EQ(index.Build({text.data(), size}), json::TokenIndex::Outcome::kOk);
  const json::Tokens tokens({text.data(), size}, index);
  const size_t behind = tokens.Skip(0);
  FieldValues values{};
  Shape shape;
  size_t at = 0;
  EXPECT_FALSE(shape.Read(tokens, at, values));
  shape.Begin(0);
  shape.AddField(start, kStart);
  shape.AddField(end, kEnd);
  shape.Learn(tokens, behind);
  at = behind + 1;
  if (!shape.Read(tokens, at, values)) {
    EXPECT_EQ(at, behind + 1);
    return "no";
  }
  EXPECT_EQ(at, tokens.count());
  return std::to_string(values[kStart]) + " " + std::to_string(values[kEnd]);
}

TEST(Shape, ReadsTheNumbersOfRecordsLikeTheFirst) {
  // The numbers are the tokens 3 and 10.
  const std::string record = R"({"a": 1, "in": {"x": 22}, "text": "b1"})";
  const auto read = [&](const std::string& other) {
    return Read(record, other, 3, 10);
  };
  EXPECT_EQ(read(record), "1 22");
  EXPECT_EQ(read(R"({"a": 123456789012345678, "in": {"x": 0}, "text": "b1"})"),
            "123456789012345678 0");
  for (const char* other :
       {R"({"b": 1, "in": {"x": 22}, "text": "b1"})",    // a key
        R"({"aa": 1, "in": {"x": 22}, "text": "b1"})",   // a longer one
        R"({"in": {"x": 22}, "a": 1, "text": "b1"})",    // the order
        R"({"a":1, "in": {"x": 22}, "text": "b1"})",     // spaces
        R"({"a": "1", "in": {"x": 22}, "text": "b1"})",  // kinds of values
        R"({"a": 1, "in": {"x": null}, "text": "b1"})",
        R"({"a": 1, "in": {"x": 22.5}, "text": "b1"})",
        R"({"a": 1, "in": {"x": -22}, "text": "b1"})",
        R"({"a": 1, "in": {"x": 1234567890123456789}, "text": "b1"})",
        R"({"a": 1, "in": {"x": 22}, "text": "b2"})",  // other text
        R"({"a": 1, "in": {"x": 22}, "text": "b1 })"   // that does not end
        R"("})",                                       //
        R"({"a": 1, "in": {"x": 22}, "text": "b1", "c": 1})",  // more, less
        R"({"a": 1, "in": {"x": 22}})", R"({"a": 1})"})
    EXPECT_EQ(read(other), "no") << other;
}

// What has no plain numbers has no shape.
TEST(Shape, OtherNumbers) {
  for (const char* value :
       {"-1", "1.5", "1e3", "1234567890123456789", "\"1\"", "+1", "null"}) {
    const std::string record =
        R"({"a": )" + std::string(value) + R"(, "b": 2})";
    EXPECT_EQ(Read(record, record, 3, 7), "no") << value;
  }
}

// The text that is known may be longer than what is left of the input.
TEST(Shape, LongRecords) {
  for (const size_t size : {size_t{10}, size_t{4000}, size_t{1} << 20}) {
    const std::string key(size, 'k');
    const std::string record = R"({"b": 2, ")" + key + R"(": 3})";
    EXPECT_EQ(Read(record, record, 3, 7), size <= 4000 ? "2 3" : "no");
    EXPECT_EQ(Read(record, R"({"b": 2})", 3, 7), "no");
  }
}

}  // namespace
}  // namespace lamina::ingest::rocprof
