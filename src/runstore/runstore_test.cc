// SPDX-License-Identifier: Apache-2.0
//
// A store that older programs made, that two write at once, whose writer is
// killed; and what trend and check say of runs with a planted change.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fmt/core.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <sqlite3.h>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "runstore/store.h"
#include "runstore/trend.h"

namespace lamina::runstore {
namespace {

using ::testing::HasSubstr;

// A folder of a test, removed at its end.
class Folder {
 public:
  Folder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "lamina-runs-XXXXXX")
            .string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

constexpr size_t kKernels = 30;

// A training of 8 steps, each of `step_us`.
Record Training(const std::string& name, double step_us) {
  Record out;
  out.content = fmt::format("{:064x}", std::hash<std::string>()(name));
  out.name = name;
  out.source = "/runs/" + name;
  out.format = "kineto";
  out.bytes = 1234;
  out.model = "Llama, 4 x LlamaDecoderLayer";
  out.device = "H100";
  out.type = "bf16";
  out.tags = {{"commit", "c" + name}, {"branch", "main"}};
  out.environment = {{"driver", "550"}};
  out.units.settled = true;
  std::mt19937 random(static_cast<uint32_t>(std::hash<std::string>()(name)));
  std::normal_distribution<double> noise(1, 0.003);
  ClassTimes times;
  times.units = 8;
  std::vector<int64_t> all;
  for (size_t i = 0; i < 9; ++i) {
    runs::Unit& unit = out.units.units.emplace_back();
    unit.number = i;
    unit.phase = runs::Phase::kTrain;
    unit.load_name = "2048 tokens";
    unit.tokens = 2048;
    unit.start_ns = static_cast<int64_t>(i) * 2'000'000;
    unit.unit_ns = std::llround(step_us * 1000 * noise(random));
    unit.kernel_ns = unit.busy_ns = unit.unit_ns - 1000;
    unit.events = kKernels;
    if (i == 0) {
      unit.left_out = "partial_first";
    } else {
      all.push_back(unit.unit_ns);
      times.mean_ns += static_cast<double>(unit.unit_ns) / 8;
    }
  }
  std::sort(all.begin(), all.end());
  times.p10_ns = all[1];
  times.p50_ns = (all[3] + all[4]) / 2;
  times.p90_ns = all[6];
  out.classes.push_back(
      {runs::Phase::kTrain, "2048 tokens", 1, times, times, times, 1});
  const double gemm = times.mean_ns - 500'000;
  out.account.parts = {{runs::Phase::kTrain, "attention", "gemm", 9, gemm},
                       {runs::Phase::kTrain, "", "idle", 0, 500'000}};
  out.account.modules = {
      {runs::Phase::kTrain, "Llama/LlamaDecoderLayer/LlamaMLP", 4, gemm}};
  for (size_t k = 0; k < kKernels; ++k) {
    out.account.kernels.push_back({runs::Phase::kTrain,
                                   fmt::format("kernel_{}", k), "aten::mm",
                                   "gemm", 1, gemm / kKernels});
  }
  out.key = KeyOf(out);
  return out;
}

Store OpenNew(const std::string& path) {
  auto store = Store::Open(path, Store::Mode::kCreate);
  EXPECT_TRUE(store) << store.error().ToString();
  return std::move(*store);
}

void Add(Store& store, const Record& record) {
  const auto added = store.Add(record, "me");
  ASSERT_TRUE(added) << added.error().ToString();
  EXPECT_TRUE(*added);
}

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

// One number of a statement, read beside the store.
int64_t Ask(const std::string& path, const char* sql) {
  sqlite3* database = nullptr;
  sqlite3_open(path.c_str(), &database);
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(database, sql, -1, &statement, nullptr);
  int64_t out = -1;
  if (sqlite3_step(statement) == SQLITE_ROW)
    out = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  sqlite3_close(database);
  return out;
}

TEST(Record, UnitsComeBackAsTheyWere) {
  Record record = Training("one", 1800);
  record.units.units[3].load.generating = 16;
  record.units.units[3].load.generating_context = 16'000;
  record.units.units[4].tokens.reset();
  const std::string bytes = PackUnits(record.classes, record.units);
  const auto back = UnpackUnits(record.classes, bytes);
  ASSERT_TRUE(back);
  ASSERT_EQ(back->units.size(), record.units.units.size());
  EXPECT_TRUE(back->settled);
  for (size_t i = 0; i < back->units.size(); ++i) {
    const runs::Unit &x = back->units[i], &y = record.units.units[i];
    EXPECT_EQ(std::tie(x.number, x.phase, x.start_ns, x.unit_ns, x.kernel_ns,
                       x.busy_ns, x.events, x.tokens, x.load.generating,
                       x.load.generating_context, x.load_name, x.left_out),
              std::tie(y.number, y.phase, y.start_ns, y.unit_ns, y.kernel_ns,
                       y.busy_ns, y.events, y.tokens, y.load.generating,
                       y.load.generating_context, y.load_name, y.left_out));
  }
}

TEST(Record, DamagedUnitsAreAnErrorAndNothingElse) {
  const Record record = Training("one", 1800);
  const std::string bytes = PackUnits(record.classes, record.units);
  EXPECT_FALSE(UnpackUnits(record.classes, ""));
  EXPECT_FALSE(UnpackUnits({}, bytes));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(UnpackUnits(record.classes, bytes.substr(0, size)));
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string other = bytes;
    other[random() % other.size()] = static_cast<char>(random());
    // It may be read as other numbers, and must not crash.
    (void)UnpackUnits(record.classes, other);
  }
}

TEST(Record, NamesAndCommitsAreThoseOfTheFile) {
  EXPECT_EQ(NameOf("runs/run-00.trace.gz"), "run-00");
  EXPECT_EQ(NameOf("h100-qwen1.5-0.5b.json.gz"), "h100-qwen1.5-0.5b");
  EXPECT_EQ(NameOf("job/ranks/"), "ranks");
  const Folder folder;
  const std::string commit(40, 'a');
  std::filesystem::create_directories(folder.File(".git/refs/heads"));
  std::filesystem::create_directories(folder.File("out"));
  std::ofstream(folder.File(".git/HEAD")) << "ref: refs/heads/topic/x\n";
  std::ofstream(folder.File(".git/packed-refs"))
      << "# pack-refs\n"
      << commit << " refs/heads/topic/x\n";
  for (const char* name :
       {"GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILDKITE_COMMIT",
        "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "GIT_BRANCH",
        "BUILDKITE_BRANCH"})
    unsetenv(name);
  Tags tags = CommitTags(folder.File("out/a.json"));
  EXPECT_EQ(tags["commit"], commit);
  EXPECT_EQ(tags["branch"], "topic/x");
  // What CI says it checked out counts first; a name that leads out is none.
  setenv("GITHUB_SHA", "0123", 1);
  std::ofstream(folder.File(".git/HEAD")) << "ref: refs/../../secret\n";
  tags = CommitTags(folder.File("out/a.json"));
  EXPECT_EQ(tags["commit"], "0123");
  EXPECT_FALSE(tags.contains("branch"));
  unsetenv("GITHUB_SHA");
}

TEST(Store, KeepsARunAndItsTags) {
  const Folder folder;
  Store store = OpenNew(folder.File("deep/er/s.sqlite"));
  Record record = Training("one", 1800);
  Add(store, record);
  record.tags["config"] = "fp8";
  const auto again = store.Add(record, "me");
  ASSERT_TRUE(again);
  EXPECT_FALSE(*again);
  const auto runs = store.Runs({{"config", "fp8"}});
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 1u);
  const runstore::Run& run = runs->front();
  EXPECT_EQ(run.tags.at("branch"), "main");
  EXPECT_EQ(run.model, record.model);
  EXPECT_EQ(run.classes[0].unit.p50_ns, record.classes[0].unit.p50_ns);
  EXPECT_EQ(run.classes[0].left_out, 1u);
  const auto side = store.SideOf(run);
  ASSERT_TRUE(side);
  EXPECT_EQ(side->units.units.size(), 9u);
  EXPECT_EQ(side->parts.size(), 2u);
  for (const char* word : {"1", "one", "latest", "00"}) {
    const auto found = store.Find(
        word == std::string("00") ? record.content.substr(0, 60) : word);
    ASSERT_TRUE(found) << word;
    EXPECT_EQ(found->id, 1);
  }
  EXPECT_FALSE(store.Find("nobody"));
  EXPECT_FALSE(store.Find("baseline:main"));
}

TEST(Store, ComesFromAnOlderSchemaAfterACopy) {
  const Folder folder;
  const std::string path = folder.File("s.sqlite");
  {
    auto old = Store::Open(path, Store::Mode::kCreate, 1);
    ASSERT_TRUE(old);
    Add(*old, Training("one", 1800));
    Add(*old, Training("two", 1810));
  }
  ASSERT_EQ(Ask(path, "SELECT schema FROM store"), 1);
  ASSERT_EQ(Ask(path,
                "SELECT count(*) FROM sqlite_master WHERE name = "
                "'baseline'"),
            0);
  const std::string before = BytesOf(path);
  auto store = Store::Open(path, Store::Mode::kExisting);
  ASSERT_TRUE(store) << store.error().ToString();
  const int64_t schema = Ask(path, "SELECT schema FROM store");
  EXPECT_GT(schema, 1);
  EXPECT_EQ(BytesOf(fmt::format("{}.before-{}", path, schema)), before);
  const auto runs = store->Runs({});
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 2u);
  ASSERT_TRUE(store->SetBaseline("main", runs->front(), "me", "first"));
  const auto found = store->Find("baseline:main");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->id, runs->front().id);
}

TEST(Store, OfALaterSchemaOrOfSomebodyElseStaysAsItIs) {
  const Folder folder;
  const std::string later = folder.File("later.sqlite");
  OpenNew(later);
  Ask(later, "UPDATE store SET schema = 999, made_by = '9.9'");
  const std::string text = folder.File("text.sqlite");
  std::ofstream(text) << "no database";
  const std::string other = folder.File("other.sqlite");
  Ask(other, "CREATE TABLE kernels(id INTEGER)");
  const std::pair<std::string, const char*> files[] = {
      {later, "made by lamina 9.9"},
      {text, "is no store of runs"},
      {other, "no store of runs"}};
  for (const auto& [path, what] : files) {
    const std::string before = BytesOf(path);
    for (const auto mode : {Store::Mode::kExisting, Store::Mode::kCreate}) {
      const auto store = Store::Open(path, mode);
      ASSERT_FALSE(store);
      EXPECT_EQ(store.error().kind, ErrorKind::kInput);
      EXPECT_THAT(store.error().what, HasSubstr(what));
    }
    EXPECT_EQ(BytesOf(path), before);
  }
  EXPECT_FALSE(Store::Open(folder.File("none"), Store::Mode::kExisting));
  EXPECT_FALSE(std::filesystem::exists(folder.File("none")));
}

// Adds runs in a process of its own; one byte for each that Add() said is
// there.
pid_t StartWriter(const std::string& path, const std::string& prefix,
                  size_t count, int said) {
  const pid_t child = fork();
  if (child != 0) return child;
  auto store = Store::Open(path, Store::Mode::kCreate);
  if (!store) _exit(2);
  for (size_t i = 0; i < count; ++i) {
    const auto added =
        store->Add(Training(fmt::format("{}{}", prefix, i), 1800), "me");
    if (!added || write(said, ".", 1) != 1) _exit(3);
  }
  _exit(0);
}

TEST(Store, TwoProgramsWriteAtOnceAndLoseNothing) {
  const Folder folder;
  const std::string path = folder.File("s.sqlite");
  int said[2];
  ASSERT_EQ(pipe(said), 0);
  constexpr size_t kEach = 30;
  const pid_t writers[] = {StartWriter(path, "a", kEach, said[1]),
                           StartWriter(path, "b", kEach, said[1])};
  for (const pid_t writer : writers) {
    int status = -1;
    ASSERT_EQ(waitpid(writer, &status, 0), writer);
    EXPECT_EQ(status, 0);
  }
  close(said[0]);
  close(said[1]);
  Store store = OpenNew(path);
  const auto runs = store.Runs({});
  ASSERT_TRUE(runs);
  std::set<std::string> names;
  for (const runstore::Run& run : *runs) names.insert(run.name);
  EXPECT_EQ(names.size(), 2 * kEach);
  EXPECT_EQ(Ask(path, "SELECT count(*) FROM kernel"), 2 * kEach * kKernels);
}

TEST(Store, AWriterThatIsKilledLeavesWholeRunsOnly) {
  const Folder folder;
  const std::string path = folder.File("s.sqlite");
  std::mt19937 random(11);
  size_t least = 0, most = 0;
  for (int round = 0; round < 12; ++round) {
    int said[2];
    ASSERT_EQ(pipe(said), 0);
    const pid_t writer =
        StartWriter(path, fmt::format("r{}-", round), 1000, said[1]);
    close(said[1]);
    // Somewhere within the run that follows the third.
    size_t acknowledged = 0;
    char byte;
    while (acknowledged < 3 && read(said[0], &byte, 1) == 1) ++acknowledged;
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    ASSERT_EQ(kill(writer, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(writer, &status, 0), writer);
    ASSERT_TRUE(WIFSIGNALED(status));
    while (read(said[0], &byte, 1) == 1) ++acknowledged;
    close(said[0]);
    least += acknowledged;
    most += acknowledged + 1;  // one may be in the store that was not said
    Store store = OpenNew(path);
    const auto runs = store.Runs({});
    ASSERT_TRUE(runs) << runs.error().ToString();
    EXPECT_GE(runs->size(), least);
    EXPECT_LE(runs->size(), most);
    EXPECT_EQ(Ask(path,
                  "SELECT count(*) FROM pragma_integrity_check WHERE "
                  "integrity_check = 'ok'"),
              1);
    for (const char* table : {"kernel", "part", "module", "class", "tag"}) {
      const int64_t each =
          table == std::string("kernel") ? kKernels
          : table == std::string("part") || table == std::string("tag") ? 2
                                                                        : 1;
      EXPECT_EQ(
          Ask(path, fmt::format("SELECT count(*) FROM {}", table).c_str()),
          each * static_cast<int64_t>(runs->size()))
          << table;
    }
    for (const runstore::Run& run : *runs) ASSERT_TRUE(store.SideOf(run));
  }
}

TEST(Store, RemovesRunsAndWhatOnlyTheyUsed) {
  const Folder folder;
  const std::string path = folder.File("s.sqlite");
  Store store = OpenNew(path);
  for (int i = 0; i < 40; ++i) {
    Record record = Training(fmt::format("r{}", i), 1800);
    for (auto& kernel : record.account.kernels)
      kernel.name += fmt::format("_of_{}_{}", i, std::string(200, 'x'));
    Add(store, record);
  }
  const auto before = std::filesystem::file_size(path);
  const auto runs = store.Runs({});
  ASSERT_TRUE(runs);
  ASSERT_TRUE(store.SetBaseline("main", runs->at(0), "me", ""));
  ASSERT_TRUE(store.SetBaseline("main", runs->at(39), "me", ""));
  std::vector<int64_t> gone;
  for (size_t i = 0; i < 39; ++i) gone.push_back(runs->at(i).id);
  const Status removed = store.Remove(gone);
  ASSERT_TRUE(removed) << removed.error().ToString();
  EXPECT_LT(std::filesystem::file_size(path), before / 4);
  EXPECT_EQ(Ask(path, "SELECT count(*) FROM kernel"), kKernels);
  EXPECT_EQ(Ask(path, "SELECT count(*) FROM text WHERE value LIKE 'kernel_%'"),
            kKernels);
  // A baseline that holds keeps its run.
  EXPECT_FALSE(store.Remove({runs->at(39).id}));
  ASSERT_TRUE(store.EndBaseline("main"));
  EXPECT_FALSE(store.EndBaseline("main"));
  EXPECT_TRUE(store.Remove({runs->at(39).id}));
}

TEST(Store, IsAFileOrAServerAndRepeatsNoPassword) {
  const auto refused = StorePath("postgresql://me:secret-word@host/db");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(refused.error().ToString().find("secret-word"), std::string::npos);
  EXPECT_THAT(refused.error().ToString(), HasSubstr("pgpass"));
  EXPECT_FALSE(StorePath("postgresql://host/db?password=secret-word"));
  EXPECT_FALSE(StorePath("mysql://host/db"));
  EXPECT_EQ(*StorePath("postgresql://me@host/db"), "postgresql://me@host/db");
  EXPECT_EQ(*StorePath("sqlite:a.db"), "a.db");
  setenv("LAMINA_STORE", "from-variable", 1);
  EXPECT_EQ(*StorePath(""), "from-variable");
  EXPECT_EQ(*StorePath("named"), "named");
  unsetenv("LAMINA_STORE");
}

TEST(Store, ReadsTimesAsPeopleWriteThem) {
  EXPECT_EQ(DateText(*ParseDate("1750000000")), "2025-06-15T15:06:40Z");
  EXPECT_EQ(DateText(*ParseDate("2025-06-15T15:06:40Z")),
            "2025-06-15T15:06:40Z");
  EXPECT_EQ(DateText(*ParseDate("2025-06-15")), "2025-06-15T00:00:00Z");
  for (const char* text :
       {"", "yesterday", "-1", "1e30", "nan", "2025-06-15T15:06:40+02:00"})
    EXPECT_FALSE(ParseDate(text)) << text;
}

// --- what trend and check say ---

// Runs with these factors, in order.
Store StoreOf(const std::string& path, const std::vector<double>& factors) {
  Store store = OpenNew(path);
  for (size_t i = 0; i < factors.size(); ++i) {
    Record record = Training(fmt::format("r{:02}", i), 1800 * factors[i]);
    record.ordinal = static_cast<int64_t>(i);
    if (factors[i] > 1.02) record.environment["driver"] = "560";
    Add(store, record);
  }
  return store;
}

std::vector<double> Factors(size_t count, size_t from, double change,
                            uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(1, 0.004);
  std::vector<double> out;
  for (size_t i = 0; i < count; ++i)
    out.push_back(noise(random) * (i >= from ? change : 1));
  return out;
}

TEST(Trend, NamesTheRunThePartAndTheDriver) {
  const Folder folder;
  Store store = StoreOf(folder.File("s.sqlite"), Factors(24, 17, 1.05, 4));
  const auto runs = store.Runs({});
  ASSERT_TRUE(runs);
  const auto trend = Trend(store, *runs, {});
  ASSERT_TRUE(trend);
  const Table& changes = *trend->Find("trend_changes");
  ASSERT_EQ(changes.rows(), 1u);
  EXPECT_EQ(changes.At(0, "name").text(), "r17");
  EXPECT_EQ(changes.At(0, "previous").text(), "r16");
  EXPECT_EQ(changes.At(0, "part").text(), "attention/gemm");
  EXPECT_EQ(changes.At(0, "env").text(), "driver: 550 -> 560");
  EXPECT_NEAR(changes.At(0, "change_percent").real(), 5, 0.6);
  EXPECT_EQ(trend->Find("trend")->At(0, "kind").text(), "step");
  EXPECT_EQ(trend->Find("trend_points")->rows(), 24u);
  for (const char* metric :
       {"part:attention/gemm", "part:gemm", "module:LlamaMLP", "op:aten::mm",
        "kernel", "busy", "train"}) {
    const auto other = Trend(store, *runs, {metric});
    ASSERT_TRUE(other) << metric;
    ASSERT_EQ(other->Find("trend")->rows(), 1u) << metric;
    EXPECT_EQ(other->Find("trend")->At(0, "kind").text(), "step") << metric;
  }
  EXPECT_FALSE(Trend(store, *runs, {"speed"}));
}

TEST(Trend, AnotherMixOfLoadsMovesNothing) {
  const Folder folder;
  Store store = OpenNew(folder.File("s.sqlite"));
  // Two classes, whose shares turn over half way; one run has only the first.
  for (size_t i = 0; i < 20; ++i) {
    Record record = Training(fmt::format("r{:02}", i), 1800);
    ClassRecord other = record.classes[0];
    other.name = "4096 tokens";
    other.unit.p50_ns *= 2;
    record.classes[0].share = i < 10 ? 0.8 : 0.2;
    other.share = 1 - record.classes[0].share;
    if (i != 5) record.classes.push_back(other);
    Add(store, record);
  }
  const auto runs = store.Runs({});
  ASSERT_TRUE(runs);
  const auto trend = Trend(store, *runs, {});
  ASSERT_TRUE(trend);
  EXPECT_EQ(trend->Find("trend")->At(0, "kind").text(), "none");
  EXPECT_EQ(trend->Find("trend")->At(0, "runs").integer(), 19);
  const Table& points = *trend->Find("trend_points");
  EXPECT_EQ(points.At(points.rows() - 1, "flag").text(), "left");
  EXPECT_EQ(points.At(points.rows() - 1, "name").text(), "r05");
}

struct Said {
  std::string verdict, reason, since;
};

Said CheckOf(const std::vector<double>& factors, double limit = 0.015) {
  const Folder folder;
  Store store = StoreOf(folder.File("s.sqlite"), factors);
  const auto runs = store.Runs({});
  EXPECT_TRUE(runs);
  CheckOptions options;
  options.fail_above = limit;
  const auto checked = Check(store, *runs, options);
  EXPECT_TRUE(checked) << checked.error().ToString();
  const Table& verdict = *checked->result.Find("runs_verdict");
  EXPECT_EQ(verdict.rows(), 1u);
  EXPECT_EQ(checked->verdict == runs::Verdict::kFail,
            verdict.At(0, "verdict").text() == "fail");
  return {std::string(verdict.At(0, "verdict").text()),
          std::string(verdict.At(0, "reason").text()),
          std::string(verdict.At(0, "since").text())};
}

TEST(Check, SaysSinceWhenItIsSlower) {
  const Said said = CheckOf(Factors(24, 18, 1.05, 4));
  EXPECT_EQ(said.verdict, "fail");
  EXPECT_EQ(said.since, "r18");
}

TEST(Check, PassesWhatDidNotChangeAndWhatBecameFaster) {
  EXPECT_EQ(CheckOf(Factors(24, 99, 1, 4)).verdict, "pass");
  const Said said = CheckOf(Factors(24, 18, 0.95, 4));
  EXPECT_EQ(said.verdict, "pass");
  EXPECT_EQ(said.reason, "not_slower");
}

TEST(Check, OneSlowRunIsSuspectTwoAreSlower) {
  std::vector<double> factors = Factors(20, 99, 1, 4);
  factors.back() = 1.06;
  EXPECT_EQ(CheckOf(factors).verdict, "suspect");
  factors[18] = 1.06;
  const Said said = CheckOf(factors);
  EXPECT_EQ(said.verdict, "fail");
  EXPECT_EQ(said.since, "r18");
}

TEST(Check, AnAccidentBehindAChangeHidesItNot) {
  std::vector<double> factors = Factors(28, 18, 1.05, 4);
  factors.back() = 1.12;
  const Said said = CheckOf(factors);
  EXPECT_EQ(said.verdict, "fail");
  EXPECT_EQ(said.since, "r18");
}

TEST(Check, OfFewRunsIsUnknown) {
  const Said said = CheckOf({1, 1, 1, 1.2});
  EXPECT_EQ(said.verdict, "unknown");
  EXPECT_EQ(said.reason, "few_runs");
}

TEST(Check, AgainstABaselineComparesUnits) {
  const Folder folder;
  Store store = StoreOf(folder.File("s.sqlite"), Factors(12, 99, 1, 4));
  Record slow = Training("slow", 1800 * 1.06);
  slow.ordinal = 50;
  Add(store, slow);
  const auto runs = store.Runs({});
  ASSERT_TRUE(runs);
  CheckOptions options;
  options.against = &runs->at(2);
  const auto checked = Check(store, *runs, options);
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->verdict, runs::Verdict::kFail);
  const Table& verdict = *checked->result.Find("runs_verdict");
  EXPECT_EQ(verdict.At(0, "run").text(), "slow");
  EXPECT_EQ(
      checked->result.Find("diff_verdict")->At(0, "run_noise_from").text(),
      "measured");
}

}  // namespace
}  // namespace lamina::runstore
