// SPDX-License-Identifier: Apache-2.0
#include "base/byte_source.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/byte_sink.h"

namespace lamina {
namespace {

std::string Text(size_t size) {
  std::string text;
  uint32_t state = 1;
  while (text.size() < size) {
    state = state * 1664525 + 1013904223;
    text += "event " + std::to_string(state % 5000) + ", ";
  }
  text.resize(size);
  return text;
}

// `window_bits` also tells zlib from gzip (+16).
std::string Deflate(const std::string& text, int window_bits) {
  std::string out;
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  out.resize(deflateBound(&stream, text.size()) + 64);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Gzip(const std::string& text) { return Deflate(text, 15 + 16); }

std::string Zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(
      ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

struct ReadBack {
  std::string text;
  std::optional<SourceDamage> damage;
};

ReadBack Drain(ByteSource& source, size_t step) {
  ReadBack out;
  std::string block(step, '\0');
  while (true) {
    const auto got = source.Read(block.data(), block.size());
    EXPECT_TRUE(got.has_value());
    if (*got == 0) break;
    out.text.append(block, 0, *got);
  }
  out.damage = source.damage();
  return out;
}

ReadBack Drain(std::string_view bytes, size_t step = 1000) {
  const auto source = OpenMemory("memory", bytes);
  EXPECT_TRUE(source.has_value());
  return Drain(**source, step);
}

TEST(ByteSource, ReadsEveryPacking) {
  for (const size_t size : {1, 1000, 700000}) {
    const std::string text = Text(size);
    for (const std::string& packed : {text, Gzip(text), Zstd(text)}) {
      const ReadBack back = Drain(packed);
      EXPECT_EQ(back.text, text);
      EXPECT_FALSE(back.damage.has_value());
    }
  }
}

TEST(ByteSource, JoinsGzipMembers) {
  const std::string text = Text(5000);
  const ReadBack back = Drain(Gzip(text) + Gzip("tail"), 77);
  EXPECT_EQ(back.text, text + "tail");
  EXPECT_FALSE(back.damage.has_value());
}

TEST(ByteSource, CutDataKeepsItsPrefixAndSaysSo) {
  const std::string text = Text(300000);
  for (const std::string& packed : {Gzip(text), Zstd(text)}) {
    for (const size_t cut : {packed.size() / 3, packed.size() - 1}) {
      const ReadBack back = Drain(std::string_view(packed).substr(0, cut));
      EXPECT_TRUE(back.damage.has_value());
      EXPECT_EQ(back.text, text.substr(0, back.text.size()));
    }
  }
}

// How much is read at a time changes nothing: what the decoder holds when its
// input ends is still given.
TEST(ByteSource, ReadsTheSameInStepsOfAnySize) {
  const std::string text = Text(5000);
  const std::string zlib = Deflate(text, 15);
  for (const size_t step : {1, 2, 77, 1000, 100000}) {
    auto source = OpenDeflated("memory", zlib);
    ASSERT_TRUE(source.has_value());
    const ReadBack back = Drain(**source, step);
    EXPECT_EQ(back.text, text) << step;
    EXPECT_FALSE(back.damage.has_value()) << step;
  }
  for (const std::string& packed : {Gzip(text), Zstd(Text(200000))}) {
    const auto cut = std::string_view(packed).substr(0, packed.size() * 3 / 4);
    const std::string whole = Drain(cut, 1 << 20).text;
    EXPECT_GT(whole.size(), 2000u);
    for (const size_t step : {1, 77, 1000})
      EXPECT_EQ(Drain(cut, step).text.size(), whole.size()) << step;
  }
}

// Unpackers read on until they have a byte: nothing asked for is no such case.
TEST(ByteSource, ReadsNothingWhenNothingIsAskedFor) {
  const std::string text = Text(5000);
  for (const std::string& packed : {text, Gzip(text), Zstd(text)}) {
    const auto source = OpenMemory("memory", packed);
    ASSERT_TRUE(source.has_value());
    EXPECT_EQ((*source)->Read(nullptr, 0).value(), 0u);
    EXPECT_EQ(Drain(**source, 1000).text, text);
    EXPECT_EQ((*source)->Read(nullptr, 0).value(), 0u);
  }
}

TEST(ByteSource, CorruptDataIsDamageNotACrash) {
  const std::string text = Text(100000);
  std::string packed = Gzip(text);
  for (size_t at = 12; at < packed.size(); at += 97) {
    std::string broken = packed;
    broken[at] = static_cast<char>(broken[at] ^ 0x55);
    const ReadBack back = Drain(broken);
    EXPECT_TRUE(back.damage.has_value() || back.text == text);
  }
}

TEST(ByteSource, GarbageBehindGzipIsNamed) {
  const ReadBack back = Drain(Gzip("text") + "garbage");
  EXPECT_EQ(back.text, "text");
  ASSERT_TRUE(back.damage.has_value());
  // Zero padding is common and harmless.
  EXPECT_FALSE(Drain(Gzip("text") + std::string(512, '\0')).damage.has_value());
}

TEST(ByteSource, ErrorsNameTheFile) {
  EXPECT_FALSE(OpenMemory("empty", "").has_value());
  const auto missing = OpenByteSource("/no/such/file.json");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().ToString(),
            "/no/such/file.json: cannot open: No such file or directory; "
            "check the path");
  const auto directory = OpenByteSource("/");
  ASSERT_FALSE(directory.has_value());
  EXPECT_NE(directory.error().what.find("directory"), std::string::npos);
}

TEST(ByteSink, FilesAppearWholeOrNotAtAll) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("sink_test" + std::to_string(getpid()));
  fs::create_directories(folder);
  const std::string path = (folder / "out.json.gz").string();
  const std::string text = Text(900000);
  {
    auto sink = CreateFileSink(path);
    ASSERT_TRUE(sink.has_value());
    (*sink)->Write(text);
    EXPECT_FALSE(fs::exists(path));
    ASSERT_TRUE((*sink)->Close().has_value());
  }
  const auto back = ReadAll(path, 1 << 20);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(*back, text);
  {
    auto abandoned = CreateFileSink((folder / "never.txt").string());
    (*abandoned)->Write("half");
  }
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder))
    ++files;
  EXPECT_EQ(files, 1u);
  fs::remove_all(folder);
}

// A write that is longer than the library takes at once goes to it in pieces.
TEST(ByteSink, GzipOfOneLongWriteIsWhole) {
  const std::string text = Text(700000);
  for (const size_t most : {size_t{1000}, text.size() / 2, text.size()}) {
    std::string packed;
    const auto sink = CreateGzipSink(CreateStringSink(&packed), most);
    sink->Write(text);
    ASSERT_TRUE(sink->Close().has_value());
    const ReadBack back = Drain(packed);
    EXPECT_EQ(back.text, text) << most;
    EXPECT_FALSE(back.damage.has_value()) << most;
  }
}

TEST(ByteSink, FailureIsReportedByClose) {
  auto sink = CreateFileSink("/dev/full");
  ASSERT_TRUE(sink.has_value());
  (*sink)->Write(std::string(1 << 20, 'x'));
  EXPECT_FALSE((*sink)->Close().has_value());
}

}  // namespace
}  // namespace lamina
