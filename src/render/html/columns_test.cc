// SPDX-License-Identifier: Apache-2.0
#include "render/html/columns.h"

#include <cstring>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <zlib.h>

#include "render/html/columns_testing.h"

namespace lamina::render {
namespace {

TEST(BlockTest, ColumnsReadBack) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    const size_t rows = random() % 60;
    std::vector<int64_t> rising(rows), small(rows), signs(rows);
    int64_t t = static_cast<int64_t>(random() % 1000);
    for (size_t i = 0; i < rows; ++i) {
      // Now and then a step that 32 bits cannot hold.
      t += static_cast<int64_t>(random() %
                                (random() % 9 == 0 ? 1ull << 40 : 5000));
      rising[i] = t;
      small[i] = static_cast<int64_t>(random() % (round % 2 ? 200 : 70000));
      signs[i] = static_cast<int64_t>(random() % 2000) - 1000;
    }
    Block block("b", rows);
    block.Add("rising", rising, true);
    block.Add("small", small);
    block.Add("signs", signs, true);
    ASSERT_EQ(block.columns().size(), 3u);
    if (block.columns()[0].width != 8) {
      EXPECT_EQ(ReadColumn(block, size_t{0}), rising);
    }
    EXPECT_EQ(ReadColumn(block, size_t{1}), small);
    EXPECT_EQ(ReadColumn(block, size_t{2}), signs);
    EXPECT_LE(block.columns()[1].width, round % 2 ? 1 : 4);
  }
}

TEST(BlockTest, ManyWideNumbersBecomeDoubles) {
  std::vector<int64_t> values(100);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = (int64_t{1} << 40) + static_cast<int64_t>(i);
  Block block("b", values.size());
  block.Add("v", values);
  ASSERT_EQ(block.columns()[0].width, 8);
  for (size_t i = 0; i < values.size(); ++i) {
    char bytes[8];
    for (size_t plane = 0; plane < 8; ++plane)
      bytes[plane] = block.raw()[plane * values.size() + i];
    double value = 0;
    std::memcpy(&value, bytes, sizeof value);
    EXPECT_EQ(static_cast<int64_t>(value), values[i]);
  }
}

// The bytes of a gzip member; nothing if zlib finds it damaged.
std::optional<std::string> Unzip(std::string_view bytes, size_t size) {
  std::string out(size + 1, '\0');
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in =
      reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // NOLINT
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = inflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return status == Z_STREAM_END ? std::optional(out) : std::nullopt;
}

TEST(GzipTest, PartsJoinToOneMember) {
  std::mt19937 random(1);
  for (const size_t size : {0u, 1u, 1000u, (1u << 20) + 7u, 3u << 20}) {
    std::string bytes(size, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % 7);
    const std::string packed = Gzip(bytes, 4);
    EXPECT_EQ(Unzip(packed, size), bytes);
    EXPECT_EQ(Gzip(bytes, 1), packed);
  }
}

TEST(GzipTest, NoChangedByteReadsBack) {
  std::string bytes(3000, '\0');
  std::mt19937 random(2);
  for (char& c : bytes) c = static_cast<char>(random() % 5);
  const std::string packed = Gzip(bytes, 1);
  // Behind the header, which says nothing of the bytes.
  for (size_t at = 10; at < packed.size(); ++at) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    const auto read = Unzip(damaged, bytes.size());
    EXPECT_TRUE(!read || *read == bytes) << at;
  }
}

TEST(Base64Test, KnownAnswers) {  // RFC 4648, section 10
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foo"), "Zm9v");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(Base64("\xff\xfe"), "//4=");
}

}  // namespace
}  // namespace lamina::render
