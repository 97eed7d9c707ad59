// SPDX-License-Identifier: Apache-2.0
//
// Snapshots of the samples: the same trace comes back, and no damage gives
// another one.
#include <gtest/gtest.h>

#include "edit.h"
#include "engine/session.h"
#include "ingest/ingest.h"
#include "source_dir.h"
#include "tree/tree.h"

namespace lamina::snapshot {
namespace {

const std::string kSamples = LAMINA_SOURCE_DIR "/samples/";

trace::Trace Parse(const std::string& sample) {
  ingest::ReadOptions options;
  options.threads = 2;
  auto trace = ingest::ReadTrace(kSamples + sample, options);
  EXPECT_TRUE(trace.has_value());
  return trace ? std::move(*trace) : trace::Trace();
}

// What is not among the bytes that Write() makes.
void ExpectSameDerived(const trace::Trace& a, const trace::Trace& b) {
  EXPECT_EQ(a.first_ns, b.first_ns);
  ASSERT_EQ(a.streams.size(), b.streams.size());
  for (size_t i = 0; i < a.streams.size(); ++i)
    EXPECT_EQ(a.streams[i].slices, b.streams[i].slices);
  for (uint32_t i = 0; i < a.strings.size(); ++i) {
    const std::string_view text = a.strings[StringId(i)];
    ASSERT_EQ(text, b.strings[StringId(i)]);
    ASSERT_EQ(a.strings.Find(text), b.strings.Find(text));
  }
}

class OfSample : public testing::TestWithParam<const char*> {};

TEST_P(OfSample, ComesBack) {
  const trace::Trace parsed = Parse(GetParam());
  ASSERT_GT(parsed.slices.size(), 0u);
  const std::string bytes = BytesOf(parsed);
  ASSERT_FALSE(bytes.empty());
  const auto mapped = Reopen(bytes);
  ASSERT_TRUE(mapped.has_value()) << mapped.error().what;
  EXPECT_TRUE(mapped->slices.start_ns.borrowed());
  EXPECT_EQ(BytesOf(*mapped), bytes);
  ExpectSameDerived(parsed, *mapped);
}

TEST_P(OfSample, DoesNotDependOnThreads) {
  const trace::Trace parsed = Parse(GetParam());
  const std::string bytes = BytesOf(parsed, 1);
  EXPECT_EQ(BytesOf(parsed, 7), bytes);
  const auto one = Reopen(bytes, 1), many = Reopen(bytes, 7);
  ASSERT_TRUE(one && many);
  ExpectSameDerived(*one, *many);
}

// A mapped trace may be changed: rules add frames to it, and neither the file
// nor another trace on it sees that.
TEST_P(OfSample, GrowsLikeAnother) {
  const std::string bytes = BytesOf(Parse(GetParam()));
  auto mapping = Mapping::Of(bytes);
  auto trace = Read(mapping, kTestKey, 1);
  ASSERT_TRUE(trace.has_value());
  const size_t slices = trace->slices.size();
  trace::SliceRow row;
  row.name = trace->strings.Intern("a text that no sample has");
  row.track = trace::TrackId(0);
  row.start_ns = 7;
  trace->slices.push_back(row);
  EXPECT_FALSE(trace->slices.start_ns.borrowed());
  EXPECT_EQ(trace->slices.size(), slices + 1);
  EXPECT_EQ(trace->Name(trace::SliceId(static_cast<uint32_t>(slices))),
            "a text that no sample has");
  EXPECT_EQ(trace->strings.Find(trace->Name(trace::SliceId(0))),
            trace->slices.name[0]);
  EXPECT_EQ(std::string_view(mapping->data(), mapping->size()), bytes);
}

INSTANTIATE_TEST_SUITE_P(All, OfSample,
                         testing::Values("train_step.json.gz", "serve.json.gz",
                                         "moe.json.gz", "jax.xplane.pb"));

TEST(Snapshot, IsOfItsKeyOnly) {
  const std::string bytes = BytesOf(Parse("jax.xplane.pb"));
  EXPECT_FALSE(Read(Mapping::Of(bytes), Key{3, 2, 1}, 1).has_value());
}

TEST(Snapshot, AnEmptyTraceComesBack) {
  const trace::Trace empty;
  const std::string bytes = BytesOf(empty);
  const auto mapped = Reopen(bytes);
  ASSERT_TRUE(mapped.has_value()) << mapped.error().what;
  EXPECT_EQ(BytesOf(*mapped), bytes);
}

// A small trace with every kind of row, for many tries.
const std::string& Small() {
  static const std::string bytes = BytesOf(Parse("jax.xplane.pb"));
  return bytes;
}

// Any damage is found, or is where nothing stands.
TEST(Damage, IsRefused) {
  const std::string& good = Small();
  const std::string again = BytesOf(*Reopen(good));
  std::mt19937_64 random(1);
  uint64_t refused = 0;
  constexpr uint64_t kTries = 50'000;
  for (uint64_t i = 0; i < kTries; ++i) {
    std::string bytes = good;
    switch (random() % 5) {
      case 0:
        bytes.resize(random() % bytes.size());
        break;
      case 1:
        bytes.append(1 + random() % 100, static_cast<char>(random()));
        break;
      case 2: {
        const size_t from = random() % bytes.size();
        const size_t size = std::min(bytes.size() - from, random() % 5000);
        std::memset(bytes.data() + from, 0, size);
        break;
      }
      case 3: {  // a part stands where another was
        const size_t size = 1 + random() % 64;
        const size_t a = random() % (bytes.size() - size);
        const size_t b = random() % (bytes.size() - size);
        bytes.replace(a, size, std::string(bytes, b, size));
        break;
      }
      default:
        bytes[random() % bytes.size()] ^=
            static_cast<char>(1u << (random() % 8));
    }
    const auto mapped = Reopen(bytes);
    if (!mapped) {
      ++refused;
    } else if (i % 16 == 0) {
      ASSERT_EQ(BytesOf(*mapped, 1), again) << "try " << i;
    }
  }
  // The rest are changes of no byte, or of those between sections.
  EXPECT_GT(refused, kTries * 8 / 10);
}

// With digests that fit: whatever opens can be walked without leaving an array
// (that is for a sanitizer to say), and does not stop the program.
void ExpectHarmless(const std::string& good, uint64_t tries) {
  std::mt19937_64 random(2);
  uint64_t opened = 0;
  for (uint64_t i = 0; i < tries; ++i) {
    std::string bytes = good;
    for (uint64_t n = 1 + random() % 3; n > 0; --n) Hurt(bytes, random);
    Seal(bytes);
    auto mapped = Reopen(bytes);
    if (!mapped) continue;
    ++opened;
    tree::Tree::Build(*mapped, {});
    // All analyses of some.
    if (opened % 100 != 0) continue;
    engine::OpenOptions options;
    static const auto catalog =
        rules::Catalog::Load(rules::DataSet(std::string()));
    options.catalog = *catalog;
    auto session = engine::Session::Adopt(std::move(*mapped), options);
    ASSERT_TRUE(session.has_value());
    const auto context =
        (*session)->ContextFor(tree::LinkMode::kAuto, true, {});
    ASSERT_TRUE(context.has_value());
    std::vector<std::string_view> names;
    for (const auto& info : analysis::Analyses()) names.push_back(info.name);
    EXPECT_TRUE((*session)->RunAnalyses(names, **context).has_value());
  }
  EXPECT_GT(opened, tries / 20);
}

TEST(Damage, ThatDigestsDoNotShowIsHarmless) {
  ExpectHarmless(Small(), 50'000);
}

TEST(Damage, ThatDigestsDoNotShowIsHarmlessWithPython) {
  ExpectHarmless(BytesOf(Parse("train_step.json.gz")), 5'000);
}

// Each way in which a row can leave its range.
TEST(Damage, OfEveryRoleIsRefused) {
  const std::string& good = Small();
  const auto set = [&](std::string_view section, uint64_t element, size_t place,
                       auto value) {
    std::string bytes = good;
    for (const Entry& entry : EntriesOf(bytes)) {
      if (entry.Name() != section) continue;
      EXPECT_LT(element, entry.count) << section;
      std::memcpy(
          bytes.data() + entry.offset + element * entry.element_bytes + place,
          &value, sizeof(value));
    }
    Seal(bytes);
    const auto mapped = Reopen(bytes);
    return mapped ? std::string("opened") : mapped.error().what;
  };
  constexpr uint32_t kFar = 0x7FFFFFFF;
  EXPECT_EQ(set("no section", 0, 0, kFar), "opened");
  EXPECT_NE(set("slice.name", 3, 0, kFar), "opened");
  EXPECT_NE(set("slice.name", 3, 0, ~0u), "opened");
  EXPECT_NE(set("slice.kind", 3, 0, uint8_t{trace::kKinds}), "opened");
  EXPECT_NE(set("slice.category", 3, 0, uint8_t{255}), "opened");
  EXPECT_NE(set("slice.track_id", 3, 0, kFar), "opened");
  EXPECT_NE(set("slice.arg_id", 3, 0, kFar), "opened");
  EXPECT_NE(set("slice.start_ns", 3, 0, int64_t{1} << 62), "opened");
  EXPECT_NE(set("slice.dur_ns", 3, 0, int64_t{-1}), "opened");
  EXPECT_NE(set("op_arg", 1, offsetof(trace::OpArgs, dims), kFar), "opened");
  EXPECT_NE(set("op_arg", 1, offsetof(trace::OpArgs, instruction), kFar),
            "opened");
  EXPECT_NE(set("device_arg", 0, offsetof(trace::DeviceArgs, lane), kFar),
            "opened");
  EXPECT_NE(
      set("instruction", 0, offsetof(trace::Instruction, exact), uint8_t{2}),
      "opened");
  EXPECT_NE(set("device_order", 0, 0, kFar), "opened");
  EXPECT_NE(set("device_order", 1, 0, uint32_t{0}), "opened");
  // Two kernels with the arguments of one.
  const auto parsed = Parse("jax.xplane.pb");
  const auto& order = parsed.device_order;
  EXPECT_NE(set("slice.arg_id", order[1].value, 0,
                parsed.slices.detail[order[0].value]),
            "opened");
  EXPECT_NE(set("strings.offsets", 2, 0, ~uint64_t{0}), "opened");
  EXPECT_NE(set("strings.offsets", 1, 0, uint64_t{1}), "opened");
}

}  // namespace
}  // namespace lamina::snapshot
