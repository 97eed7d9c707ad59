// SPDX-License-Identifier: Apache-2.0

#include "page/events.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

#include "engine/report.h"
#include "engine/session.h"
#include "page/thin.h"
#include "render/html/columns_testing.h"
#include "source_dir.h"

namespace lamina::page {

namespace {

using render::ReadColumn;

// Null where the page has no such block.
const render::Block* FindBlock(const render::Page& page,
                               std::string_view name) {
  for (const render::Block& block : page.blocks)
    if (block.name() == name) return &block;
  return nullptr;
}

class PageEventsTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    engine::OpenOptions open;
    open.threads = 2;
    auto session = engine::Session::Open(
        std::string(LAMINA_SOURCE_DIR "/samples/") + GetParam(), open);
    ASSERT_TRUE(session);
    session_ = std::move(*session);
    auto document = MakeReport(*session_, report_, nullptr);
    ASSERT_TRUE(document);
    document_ = std::move(*document);
    auto context = session_->ContextFor(tree::LinkMode::kAuto, false,
                                        engine::SettingsOf(report_));
    ASSERT_TRUE(context);
    context_ = *context;
    const auto layers = context_->Get<analysis::layers::LayerModel>();
    ASSERT_TRUE(layers);
    layers_ = **layers;
    const auto rules = context_->Get<analysis::layers::LayerRules>();
    ASSERT_TRUE(rules);
    auto tables =
        analysis::layers::LayerTables(*context_, *(*rules)->rules, layers_, {});
    ASSERT_TRUE(tables);
    document_.result.Append(*std::move(tables));
    rows_ = DeviceRows(*context_, layers_, document_);
  }

  // Time and number of the events of each row of a table, by its own columns.
  void ExpectSums(std::string_view name, uint32_t DeviceRow::*column) const {
    const Table* table = document_.result.Find(name);
    ASSERT_NE(table, nullptr) << name;
    std::vector<int64_t> found(table->rows() + 2), expected(found);
    for (const DeviceRow& row : rows_) found.at(row.*column) += row.dur_ns;
    const size_t time = table->schema().IndexOf("kernel_time_us");
    for (size_t row = 0; row < table->rows(); ++row)
      expected[row + 1] = table->Int(row, time);
    found[0] = expected[0];  // in no row of the table
    EXPECT_EQ(found, expected) << name;
  }

  ReportOptions report_;
  std::unique_ptr<engine::Session> session_;
  Document document_;
  const analysis::Context* context_ = nullptr;
  analysis::layers::LayerModel layers_;
  std::vector<DeviceRow> rows_;
};

TEST_P(PageEventsTest, RowsAreTheEventsOfTheTrace) {
  const trace::Trace& trace = session_->trace();
  std::set<uint32_t> seen;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const DeviceRow& row = rows_[i];
    EXPECT_EQ(row.start_ns, trace.Start(row.slice) - trace.first_ns);
    EXPECT_EQ(row.dur_ns, trace.Duration(row.slice));
    EXPECT_EQ(row.lane, trace.Device(row.slice)->lane.value);
    seen.insert(row.slice.value);
    if (i == 0) continue;
    EXPECT_LE(rows_[i - 1].lane, row.lane);
    if (rows_[i - 1].lane == row.lane) {
      EXPECT_LE(rows_[i - 1].start_ns, row.start_ns);
    }
  }
  EXPECT_EQ(seen.size(), rows_.size());
  EXPECT_EQ(rows_.size(), trace.device_slices().size());
}

TEST_P(PageEventsTest, RowsOfTablesAddUp) {
  ExpectSums("kernels", &DeviceRow::kernel);
  ExpectSums("op_efficiency", &DeviceRow::op);
  ExpectSums("layers", &DeviceRow::layer);
  ExpectSums("passes", &DeviceRow::pass);
}

TEST_P(PageEventsTest, KernelsHaveTheNameOfTheirRow) {
  const trace::Trace& trace = session_->trace();
  const Table* kernels = document_.result.Find("kernels");
  ASSERT_NE(kernels, nullptr);
  const size_t name = kernels->schema().IndexOf("kernel");
  const size_t family = kernels->schema().IndexOf("family");
  for (const DeviceRow& row : rows_) {
    ASSERT_GT(row.kernel, 0u);
    EXPECT_EQ(kernels->At(row.kernel - 1, name).text(), trace.Name(row.slice));
    EXPECT_EQ(kernels->At(row.kernel - 1, family).text(),
              context_->catalog.families()[row.family].name);
  }
}

TEST_P(PageEventsTest, BlocksHoldTheRows) {
  render::Page page(document_);
  AddEvents(*context_, rows_, nullptr, {}, page);
  const render::Block* const device_block = FindBlock(page, "device");
  const render::Block* const host_block = FindBlock(page, "host");
  ASSERT_NE(device_block, nullptr);
  ASSERT_NE(host_block, nullptr);
  const render::Block& device = *device_block;
  const std::pair<const char*, uint32_t DeviceRow::*> columns[] = {
      {"kernel", &DeviceRow::kernel}, {"family", &DeviceRow::family},
      {"op", &DeviceRow::op},         {"module", &DeviceRow::module},
      {"layer", &DeviceRow::layer},   {"pass", &DeviceRow::pass},
      {"step", &DeviceRow::step}};
  for (const auto& [name, column] : columns) {
    std::vector<int64_t> expected;
    for (const DeviceRow& row : rows_) expected.push_back(row.*column);
    EXPECT_EQ(ReadColumn(device, name), expected) << name;
  }
  const auto start = ReadColumn(device, "start");
  const auto dur = ReadColumn(device, "dur");
  const auto uid = ReadColumn(device, "uid");
  const auto launch = ReadColumn(device, "launch");
  const auto host_uid = ReadColumn(*host_block, "uid");
  size_t launched = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    EXPECT_EQ(start[i], rows_[i].start_ns);
    EXPECT_EQ(dur[i], rows_[i].dur_ns);
    EXPECT_EQ(uid[i], session_->trace().Uid(rows_[i].slice));
    const tree::NodeId call = context_->tree.launch(rows_[i].slice);
    ASSERT_EQ(launch[i] > 0, call.valid());
    if (!call.valid()) continue;
    ++launched;
    EXPECT_EQ(host_uid[launch[i] - 1],
              session_->trace().Uid(context_->tree.slice(call)));
  }
  EXPECT_GT(launched, 0u);
}

// Each pair of ops of the block is one of the tree, and none is missing.
TEST_P(PageEventsTest, AutogradPairsAreThoseOfTheTree) {
  render::Page page(document_);
  AddEvents(*context_, rows_, nullptr, {}, page);
  const tree::Tree& tree = context_->tree;
  const auto uid = [&](tree::NodeId node) {
    return int64_t{session_->trace().Uid(tree.slice(node))};
  };
  std::vector<std::pair<int64_t, int64_t>> expected, found;
  for (uint32_t n = 0; n < tree.size(); ++n) {
    const tree::NodeId node(n);
    if (tree.IsOp(node) && tree.backward(node).valid())
      expected.emplace_back(uid(node), uid(tree.backward(node)));
  }
  if (const render::Block* const pairs = FindBlock(page, "autograd")) {
    const auto host_uid = ReadColumn(*FindBlock(page, "host"), "uid");
    const auto forward = ReadColumn(*pairs, "forward");
    const auto backward = ReadColumn(*pairs, "backward");
    for (size_t i = 0; i < forward.size(); ++i)
      found.emplace_back(host_uid[forward[i] - 1], host_uid[backward[i] - 1]);
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(found.empty(), GetParam() != std::string("train_step.json.gz"));
}

// Of some device events: all that was open on the thread at their launches.
TEST_P(PageEventsTest, HostAboveIsWhatWasOpenAtTheLaunches) {
  using trace::Kind;
  using trace::SliceId;
  const trace::Trace& trace = session_->trace();
  std::vector<SliceId> devices;
  for (size_t i = 0; i < rows_.size(); i += 7)
    devices.push_back(rows_[i].slice);
  std::set<uint32_t> launches;
  for (const SliceId device : devices) {
    const tree::NodeId call = context_->tree.launch(device);
    if (call.valid()) launches.insert(context_->tree.slice(call).value);
  }
  const auto is_above = [&](SliceId s, SliceId launch) {
    return s == launch ||
           (!trace::IsApiCall(trace.KindOf(s)) &&
            trace.slices.track[s.value] == trace.slices.track[launch.value] &&
            trace.Start(s) <= trace.Start(launch) &&
            trace.End(s) > trace.Start(launch));
  };
  const HostMask mask = HostAbove(*context_, devices);
  ASSERT_EQ(mask.size(), trace.slices.size());
  size_t above = 0;
  for (uint32_t i = 0; i < mask.size(); ++i) {
    const SliceId s(i);
    const Kind kind = trace.KindOf(s);
    const bool expected =
        kind == Kind::kAnnotation ||
        ((kind == Kind::kPython || kind == Kind::kOp ||
          trace::IsApiCall(kind)) &&
         std::any_of(launches.begin(), launches.end(),
                     [&](uint32_t l) { return is_above(s, SliceId(l)); }));
    EXPECT_EQ(mask[i], expected) << trace.Name(s);
    above += mask[i];
  }
  EXPECT_GT(above, launches.size());
}

INSTANTIATE_TEST_SUITE_P(Samples, PageEventsTest,
                         testing::Values("train_step.json.gz", "serve.json.gz",
                                         "moe.json.gz"),
                         [](const auto& sample) {
                           const std::string name = sample.param;
                           return name.substr(0, name.find('.'));
                         });

}  // namespace

namespace {

struct Sample {
  std::vector<DeviceRow> rows;
  std::vector<uint32_t> names;
  std::vector<bool> found;
};

// Lanes of work with gaps; in the last one events overlap.
Sample MakeSample(uint32_t seed, size_t per_lane) {
  std::mt19937 random(seed);
  Sample sample;
  for (uint32_t lane = 0; lane < 3; ++lane) {
    int64_t at = 1000 + random() % 5000;
    for (size_t i = 0; i < per_lane; ++i) {
      DeviceRow row;
      row.lane = lane;
      row.start_ns = at;
      row.dur_ns = random() % 9 == 0 ? 0 : random() % 20000;
      row.family = random() % 5;
      row.kernel = 1 + random() % 7;
      row.op = random() % 3;
      row.module = random() % 4;
      row.layer = static_cast<uint32_t>(i / 10);
      row.pass = static_cast<uint32_t>(i / 100);
      row.step = static_cast<uint32_t>(i / 500);
      at += (lane == 2 ? row.dur_ns / 3 : row.dur_ns) + random() % 800;
      sample.rows.push_back(row);
      sample.names.push_back(row.kernel / 2);
      sample.found.push_back(random() % 900 == 0);
    }
  }
  return sample;
}

using Totals = std::map<uint32_t, std::pair<int64_t, int64_t>>;

void Count(Totals& totals, uint32_t key, int64_t events, int64_t dur_ns) {
  totals[key].first += events;
  totals[key].second += dur_ns;
}

TEST(ThinTest, SinglesAndMergedRowsAreEverything) {
  for (const size_t most : {50u, 400u, 2000u}) {
    const Sample sample = MakeSample(7, 1500);
    const ThinRows thin = Thin(sample.rows, sample.names, sample.found, most);
    const std::pair<std::string_view, uint32_t DeviceRow::*> columns[] = {
        {"lane", &DeviceRow::lane},     {"kernel", &DeviceRow::kernel},
        {"family", &DeviceRow::family}, {"op", &DeviceRow::op},
        {"module", &DeviceRow::module}, {"layer", &DeviceRow::layer},
        {"pass", &DeviceRow::pass},     {"step", &DeviceRow::step}};
    for (const auto& [name, column] : columns) {
      if (std::find(thin.dropped.begin(), thin.dropped.end(), name) !=
          thin.dropped.end())
        continue;
      Totals all, held;
      for (const DeviceRow& row : sample.rows)
        Count(all, row.*column, 1, row.dur_ns);
      for (const uint32_t i : thin.singles)
        Count(held, sample.rows[i].*column, 1, sample.rows[i].dur_ns);
      for (const MergedRow& row : thin.merged)
        Count(held, row.of.*column, row.events, row.of.dur_ns);
      EXPECT_EQ(held, all) << name << " " << most;
    }
    EXPECT_LE(thin.buckets.size(), most);
  }
}

TEST(ThinTest, ColumnsAreDroppedOnlyWhereTheyMustBe) {
  const Sample sample = MakeSample(8, 1500);
  EXPECT_TRUE(
      Thin(sample.rows, sample.names, sample.found, 4000).dropped.empty());
  // 3 lanes, 7 kernels, 5 families, 3 ops and 4 modules, each with 3 steps.
  EXPECT_EQ(Thin(sample.rows, sample.names, sample.found, 3500).dropped,
            std::vector<std::string_view>{"layer"});
  EXPECT_EQ(Thin(sample.rows, sample.names, sample.found, 100).dropped,
            (std::vector<std::string_view>{"layer", "pass", "step"}));
}

TEST(ThinTest, KeepsTheSlowestOfEachNameAndWhatIsAroundFindings) {
  const Sample sample = MakeSample(9, 1500);
  constexpr size_t kMost = 300;
  const ThinRows thin = Thin(sample.rows, sample.names, sample.found, kMost);
  std::vector<bool> kept(sample.rows.size());
  for (const uint32_t i : thin.singles) kept[i] = true;
  std::vector<bool> around(sample.rows.size());
  for (size_t i = 0; i < sample.rows.size(); ++i) {
    for (size_t k = 0; k < sample.rows.size(); ++k) {
      const size_t away = i < k ? k - i : i - k;
      if (sample.found[k] && away <= kAround &&
          sample.rows[i].lane == sample.rows[k].lane)
        around[i] = true;
    }
    EXPECT_TRUE(kept[i] || !around[i]) << i;
  }
  // Of a name nothing that was left out is slower than what was kept.
  std::map<uint32_t, int64_t> fastest_kept, slowest_left;
  size_t slow = 0;
  for (size_t i = 0; i < sample.rows.size(); ++i) {
    const int64_t dur = sample.rows[i].dur_ns;
    const uint32_t name = sample.names[i];
    if (!kept[i]) slowest_left[name] = std::max(slowest_left[name], dur);
    if (!kept[i] || around[i]) continue;
    ++slow;
    const auto [it, is_new] = fastest_kept.emplace(name, dur);
    it->second = std::min(it->second, dur);
  }
  EXPECT_EQ(fastest_kept.size(), 4u);
  for (const auto& [name, dur] : fastest_kept)
    EXPECT_LE(slowest_left[name], dur) << name;
  EXPECT_LE(slow, kMost);
  EXPECT_GT(slow, kMost / 2);
}

TEST(ThinTest, BucketsHoldEveryNanosecond) {
  const Sample sample = MakeSample(10, 700);
  const ThinRows thin = Thin(sample.rows, sample.names, sample.found, 500);
  // The slow way: every row into every bucket it touches.
  std::map<std::tuple<uint32_t, int64_t, uint32_t>, int64_t> expected, found;
  for (const DeviceRow& row : sample.rows) {
    const int64_t begin = row.start_ns - thin.origin_ns;
    for (int64_t b = 0; b * thin.bucket_ns < begin + row.dur_ns; ++b) {
      const int64_t part =
          std::min(begin + row.dur_ns, (b + 1) * thin.bucket_ns) -
          std::max(begin, b * thin.bucket_ns);
      if (part > 0) expected[{row.lane, b, row.family}] += part;
    }
  }
  for (const BucketRow& b : thin.buckets)
    found[{b.lane, b.bucket, b.family}] += b.busy_ns;
  EXPECT_EQ(found, expected);
  EXPECT_EQ(found.size(), thin.buckets.size());
  EXPECT_LE(thin.buckets.size(), 500u);
}

TEST(ThinTest, NothingAndOneBucket) {
  EXPECT_TRUE(Thin({}, {}, {}, 10).merged.empty());
  const Sample sample = MakeSample(11, 20);
  // Fewer than one bucket of each lane and family: the limit gives way.
  const ThinRows thin = Thin(sample.rows, sample.names, sample.found, 1);
  int64_t busy = 0, all = 0;
  for (const BucketRow& b : thin.buckets) busy += b.busy_ns;
  for (const DeviceRow& row : sample.rows) all += row.dur_ns;
  EXPECT_EQ(busy, all);
}

}  // namespace

}  // namespace lamina::page
