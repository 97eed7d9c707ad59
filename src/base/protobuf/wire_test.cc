// SPDX-License-Identifier: Apache-2.0
//
// libprotobuf's own coded streams are the slow, obviously right twin.
#include "base/protobuf/wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "base/byte_source.h"

namespace lamina::protobuf {
namespace {

using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;

std::string Varint(uint64_t value) {
  std::string out;
  {
    StringOutputStream stream(&out);
    CodedOutputStream(&stream).WriteVarint64(value);
  }
  return out;
}

std::string Tag(uint32_t number, int type) {
  return Varint(uint64_t{number} << 3 | static_cast<uint64_t>(type));
}

// A message as a list of what is in it: "1=5 2{3=7} 4:abc".
std::string Describe(Walker walk, int depth) {
  std::string out;
  while (walk.Next()) {
    out += std::to_string(walk->number);
    if (walk->IsBytes() && depth > 0 && walk->number == 2) {
      out += "{" + Describe(Walker(walk.field()), depth - 1) + "}";
    } else if (walk->IsBytes()) {
      out += ":" + std::string(walk->bytes);
    } else {
      out += "=" + std::to_string(walk->value);
    }
    out += ' ';
  }
  return out + (walk.damage() ? "!" : "");
}

std::string Describe(Stream& stream, int depth) {
  std::string out;
  while (stream.Next()) {
    const Field field = stream.field();
    out += std::to_string(field.number);
    if (field.IsBytes() && depth > 0 && field.number == 2) {
      stream.Enter();
      const std::string inner = Describe(stream, depth - 1);
      out += "{" + inner + "}";
      if (stream.damage()) return out + " !";
      stream.Leave();
    } else if (field.IsBytes()) {
      if (!stream.Take()) return out + ":!";
      out += ":" + std::string(stream.bytes());
    } else {
      out += "=" + std::to_string(field.value);
    }
    out += ' ';
  }
  return out + (stream.damage() ? "!" : "");
}

std::string RandomMessage(std::mt19937& random, int depth) {
  Encoder encoder;
  const int fields = static_cast<int>(random() % 6);
  for (int i = 0; i < fields; ++i) {
    const uint32_t number = 1 + random() % 20;
    switch (random() % 4) {
      case 0:
        encoder.Varint(number == 2 ? 3 : number,
                       uint64_t{random()} << (random() % 40));
        break;
      case 1:
        encoder.Fixed64(number == 2 ? 3 : number, random());
        break;
      case 2:
        encoder.Bytes(number == 2 ? 3 : number,
                      std::string(random() % 300, 'x'));
        break;
      default:
        if (depth > 0) encoder.Bytes(2, RandomMessage(random, depth - 1));
    }
  }
  return encoder.bytes();
}

TEST(Wire, VarintsAsLibprotobufWritesThem) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10000; ++i) {
    const uint64_t value = random() >> (random() % 64);
    const std::string bytes = Varint(value);
    const char* at = bytes.data();
    uint64_t found = 0;
    ASSERT_EQ(ReadVarint(&at, bytes.data() + bytes.size(), &found), nullptr);
    EXPECT_EQ(found, value);
    EXPECT_EQ(at, bytes.data() + bytes.size());
    Encoder encoder;
    encoder.Varint(7, value);
    EXPECT_EQ(encoder.bytes(), Tag(7, 0) + bytes);
  }
}

TEST(Wire, NegativeNumbersTakeTenBytes) {
  Encoder encoder;
  encoder.Int(1, -1);
  EXPECT_EQ(encoder.bytes().size(), 11u);
  Walker walk(encoder.bytes());
  ASSERT_TRUE(walk.Next());
  EXPECT_EQ(walk->Int(), -1);
  EXPECT_FALSE(walk.Next());
  EXPECT_FALSE(walk.damage());
}

TEST(Wire, DamageHasAnOffset) {
  struct Case {
    std::string bytes;
    uint64_t offset;
    std::string what;
  };
  const std::string good = Tag(1, 0) + Varint(300);
  for (const Case& c : {
           Case{good + std::string(11, '\xFF'), 3, "longer than ten bytes"},
           Case{good + Tag(1, 0) + "\x80", 3, "ends inside a number"},
           Case{good + Tag(1, 2) + Varint(9) + "abc", 3,
                "longer than the message"},
           Case{good + Tag(1, 1) + "abc", 3, "ends inside a number"},
           Case{good + Tag(1, 5) + "abc", 3, "ends inside a number"},
           Case{good + Tag(1, 3), 3, "type that is not in use"},
           Case{good + Varint(0), 3, "number that cannot be"},
       }) {
    Walker walk(c.bytes);
    EXPECT_TRUE(walk.Next());
    EXPECT_FALSE(walk.Next());
    ASSERT_TRUE(walk.damage()) << c.what;
    EXPECT_EQ(walk.damage().offset, c.offset);
    EXPECT_NE(std::string(walk.damage().what).find(c.what), std::string::npos)
        << walk.damage().what;
  }
}

TEST(Wire, PackedAndSingleListsReadAlike) {
  Encoder packed;
  packed.Bytes(4, Varint(1) + Varint(300) + Varint(2));
  Encoder single;
  for (const uint64_t value : {1, 300, 2}) single.Varint(4, value);
  for (const std::string& bytes : {packed.bytes(), single.bytes()}) {
    std::vector<uint64_t> found;
    for (Walker walk(bytes); walk.Next();)
      ForEachVarint(walk.field(), [&](uint64_t v) { found.push_back(v); });
    EXPECT_EQ(found, (std::vector<uint64_t>{1, 300, 2}));
  }
}

TEST(ProtobufStream, ReadsWhatTheWalkerReads) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = RandomMessage(random, 3);
    if (i % 3 == 0 && !bytes.empty()) bytes.resize(random() % bytes.size());
    if (i % 5 == 0 && !bytes.empty())
      bytes[random() % bytes.size()] = static_cast<char>(random());
    auto source = OpenMemory("test", bytes);
    if (!source) continue;  // taken for a packed file
    Stream stream(**source);
    const std::string found = Describe(stream, 3);
    const std::string expected = Describe(Walker(bytes), 3);
    // Behind damage they differ: the walker checks a length before it looks.
    const size_t same = std::min(found.find('!'), expected.find('!'));
    EXPECT_EQ(found.substr(0, same), expected.substr(0, same));
    EXPECT_EQ(found.find('!') == std::string::npos,
              expected.find('!') == std::string::npos)
        << found << "\n"
        << expected;
  }
}

TEST(ProtobufStream, RecoversBehindADamagedMessage) {
  Encoder outer;
  outer.Bytes(2, Tag(1, 0) + Varint(5) + Varint(0));
  outer.Varint(1, 6);
  auto source = OpenMemory("test", outer.bytes());
  ASSERT_TRUE(source);
  Stream stream(**source);
  ASSERT_TRUE(stream.Next());
  stream.Enter();
  EXPECT_TRUE(stream.Next());
  EXPECT_FALSE(stream.Next());
  ASSERT_TRUE(stream.damage());
  EXPECT_EQ(stream.damage().offset, 4u);
  ASSERT_TRUE(stream.Recover());
  stream.Leave();
  ASSERT_TRUE(stream.Next());
  EXPECT_EQ(stream.field().value, 6u);
  EXPECT_FALSE(stream.Next());
  EXPECT_FALSE(stream.damage());
}

}  // namespace
}  // namespace lamina::protobuf
