// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/byte_sink.h"
#include "base/byte_source.h"
#include "base/child_process.h"
#include "base/opened.h"
#include "base/packed.h"

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

// Of an answer among many: what another one reads may change.
TEST(ByteSink, IsPutInPlaceOnlyWhileWatchedInputsStay) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("watch_test" + std::to_string(getpid()));
  fs::create_directories(folder / "ranks");
  const std::string input = (folder / "ranks" / "a.json").string();
  const std::string output = (folder / "ranks" / "out.json").string();
  const auto write = [&](const std::string& text) {
    std::ofstream(input) << text;
  };
  // Whether the output is there when the input was written meanwhile, or not.
  const auto copies = [&](bool changes, const std::string& watch) {
    fs::remove(output);
    write("one");
    WatchedInputs watched;
    if (!watch.empty()) watched.Add(watch);
    auto sink = CreateFileSink(output);
    (*sink)->Write("copy");
    if (changes) write("another");
    const Status closed = (*sink)->Close();
    EXPECT_EQ(closed.has_value(), fs::exists(output));
    if (!closed) {
      EXPECT_EQ(closed.error().what,
                "changed while it was read; no output was written");
    }
    return fs::exists(output);
  };
  for (const std::string& watch : {input, (folder / "ranks").string()}) {
    EXPECT_TRUE(copies(false, watch));
    EXPECT_FALSE(copies(true, watch));
  }
  EXPECT_TRUE(copies(true, ""));
  {
    // One that was read earlier, within which another one is asked.
    write("one");
    const uint64_t state = StateOfInput(input);
    write("another");
    WatchedInputs around;
    around.Add(input, state);
    EXPECT_FALSE(copies(false, ""));
  }
  EXPECT_TRUE(copies(true, ""));
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

namespace {

// Gives a text in pieces of a few bytes, as a pipe does.
class Dripping final : public ByteSource {
 public:
  explicit Dripping(std::string text)
      : ByteSource("drip"), text_(std::move(text)) {}
  Result<size_t> DoRead(char* to, size_t size) override {
    const size_t piece = std::min({size, size_t{3}, text_.size() - at_});
    std::copy_n(text_.data() + at_, piece, to);
    at_ += piece;
    return piece;
  }
  uint64_t stored_position() const override { return at_; }

 private:
  std::string text_;
  size_t at_ = 0;
};

// Whatever the order of the calls, text() is what stands at offset().
TEST(ByteWindow, KeepsTextAndOffsetTogether) {
  std::mt19937 random(3);
  std::string input(500, ' ');
  for (char& c : input) c = static_cast<char>('a' + random() % 26);
  for (int round = 0; round < 200; ++round) {
    Dripping source(input);
    ByteWindow window(&source);
    while (!window.empty()) {
      const size_t from = window.offset();
      ASSERT_EQ(window.text(), input.substr(from, window.text().size()));
      switch (random() % 3) {
        case 0: {
          const size_t before = window.text().size();
          const auto more = window.Fill(1 + random() % 20);
          ASSERT_TRUE(more.has_value());
          EXPECT_EQ(*more, window.text().size() > before);
          break;
        }
        case 1:
          window.Consume(random() % (window.text().size() + 1));
          break;
        default: {
          std::string buffer(random() % (window.text().size() + 20), '\0');
          const auto taken = window.Take(buffer.data(), buffer.size());
          ASSERT_TRUE(taken.has_value());
          buffer.resize(*taken);
          EXPECT_EQ(buffer, input.substr(from, buffer.size()));
          const size_t used = random() % (buffer.size() + 1);
          window.PutBack(std::string_view(buffer).substr(used));
          EXPECT_EQ(window.offset(), from + used);
        }
      }
    }
    EXPECT_EQ(window.offset(), input.size());
  }
}

TEST(ByteWindow, ClosedHasNothingMore) {
  Dripping source("abcdef");
  ByteWindow window(&source);
  ASSERT_TRUE(window.Fill(4).value());
  window.Close();
  EXPECT_EQ(window.text(), "");
  EXPECT_EQ(window.offset(), 4u);
  EXPECT_FALSE(window.Fill(4).value());
}

}  // namespace

namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(PackedFiles, ComeBackAsTheyWere) {
  std::string bytes;
  for (size_t i = 0; i < 100000; ++i) bytes += static_cast<char>(i * i >> 5);
  const std::string packed =
      PackFiles({{"b", bytes}, {"a/empty", ""}, {"c", bytes + "and more"}});
  const PackedFiles files(packed);
  EXPECT_THAT(files.files(), ElementsAre(Pair("a/empty", ""), Pair("b", bytes),
                                         Pair("c", bytes + "and more")));
  EXPECT_EQ(files.Find("b"), bytes);
  EXPECT_EQ(files.Find("a"), std::nullopt);
  EXPECT_EQ(files.Find("d"), std::nullopt);
  // What they share is kept once.
  EXPECT_LT(packed.size(), PackFiles({{"b", bytes}}).size() + 200);
  EXPECT_TRUE(PackedFiles(PackFiles({})).files().empty());
}

TEST(PackedFilesDeathTest, DamageStops) {
  std::string packed = PackFiles({{"name", "text that is packed"}});
  EXPECT_DEATH(PackedFiles(packed.substr(0, packed.size() - 1)), "");
  packed[packed.size() - 1] ^= 1;
  EXPECT_DEATH(PackedFiles{packed}, "");
  EXPECT_DEATH(PackedFiles{""}, "");
}

TEST(Varint, ComesBackAsItWas) {
  std::string bytes;
  const uint32_t values[] = {0, 1, 127, 128, 300, 1u << 21, UINT32_MAX};
  for (const uint32_t value : values) AppendVarint(bytes, value);
  EXPECT_EQ(bytes.size(), 1u + 1 + 1 + 2 + 2 + 4 + 5);
  std::string_view rest = bytes;
  for (const uint32_t value : values) EXPECT_EQ(TakeVarint(rest), value);
  EXPECT_TRUE(rest.empty());
  EXPECT_DEATH(TakeVarint(rest), "");
}

}  // namespace

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLong{60'000};

TEST(ChildProcess, PassesInputAndCollectsOutput) {
  // More than a pipe holds, so that both sides have to move.
  const std::string input(1 << 20, 'x');
  const auto result = RunChild({"/bin/cat"}, input, kLong);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 0);
  EXPECT_EQ(result->out, input);
  EXPECT_EQ(result->err, "");
}

TEST(ChildProcess, KeepsStatusAndErrors) {
  const auto result =
      RunChild({"/bin/sh", "-c", "echo out; echo bad >&2; exit 3"}, "", kLong);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 3);
  EXPECT_EQ(result->out, "out\n");
  EXPECT_EQ(result->err, "bad\n");
}

// Where children are not waited for, as below some job runners, the system
// keeps no status of them.
TEST(ChildProcess, KeepsStatusWhereChildrenAreIgnored) {
  std::signal(SIGCHLD, SIG_IGN);
  const auto result = RunChild({"/bin/sh", "-c", "exit 3"}, "", kLong);
  EXPECT_EQ(std::signal(SIGCHLD, SIG_DFL), SIG_IGN);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 3);
}

TEST(ChildProcess, CutsLongOutput) {
  const auto result = RunChild({"/bin/cat"}, std::string(300'000, 'x'), kLong,
                               /*max_output=*/1000);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 0);
  EXPECT_EQ(result->out.size(), 1000);
}

TEST(ChildProcess, SurvivesAChildThatDoesNotRead) {
  const auto result = RunChild({"/bin/true"}, std::string(1 << 20, 'x'), kLong);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 0);
}

TEST(ChildProcess, StopsAtTheLimitWithWhatItStarted) {
  // The pipe stays open in the grandchild.
  const auto begin = steady_clock::now();
  const auto result = RunChild({"/bin/sh", "-c", "sleep 100 & sleep 100"}, "",
                               milliseconds(200));
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->timed_out);
  EXPECT_EQ(result->exit_status, -1);
  EXPECT_LT(steady_clock::now() - begin, milliseconds(50'000));
  // One that closes its output and goes on.
  const auto quiet =
      RunChild({"/bin/sh", "-c", "exec >&- 2>&-; exec sleep 100"}, "",
               milliseconds(200));
  ASSERT_TRUE(quiet);
  EXPECT_TRUE(quiet->timed_out);
}

TEST(ChildProcess, FindsPrograms) {
  ASSERT_TRUE(FindProgram("sh"));
  EXPECT_TRUE(FindProgram("sh")->ends_with("/sh"));
  EXPECT_FALSE(FindProgram("no-such-program-of-lamina"));
  EXPECT_FALSE(RunChild({"/no/such/program"}, "", kLong));
}

}  // namespace

}  // namespace lamina
