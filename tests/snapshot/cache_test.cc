// SPDX-License-Identifier: Apache-2.0
//
// The folder of snapshots: what is found again, what is not, who makes room,
// and many at once.
#include "snapshot/cache.h"

#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "base/leftovers.h"
#include "edit.h"
#include "ingest/ingest.h"
#include "source_dir.h"

namespace lamina::snapshot {
namespace {

namespace fs = std::filesystem;
using std::string_literals::operator""s;

class CacheTest : public testing::Test {
 protected:
  CacheTest() : root_(*MakeTemporaryFolder()) {
    ::setenv("LAMINA_CACHE_DIR", Folder().c_str(), 1);
    ::unsetenv("LAMINA_CACHE_LIMIT");
  }
  ~CacheTest() override { ::unsetenv("LAMINA_CACHE_DIR"); }

  std::string Folder() const { return root_.path() + "/made/cache"; }
  // A copy of a sample, which is as good as a large file that is old.
  std::string Input(const std::string& name) const {
    const std::string path = root_.path() + "/" + name;
    fs::copy_file(LAMINA_SOURCE_DIR "/samples/train_step.json.gz", path);
    return path;
  }
  static trace::Trace Parse(const std::string& path) {
    auto trace = ingest::ReadTrace(path, {});
    EXPECT_TRUE(trace.has_value());
    trace->info.input_bytes = kLeastInputBytes;
    return std::move(*trace);
  }
  static InputState Look(const std::string& path) {
    auto state = LookAt(path);
    EXPECT_TRUE(state.has_value());
    state->quiet = true;
    return *state;
  }
  static void Keep(const std::string& path) {
    Cache().Keep(Look(path), Parse(path), 2);
  }
  static bool Finds(const std::string& path) {
    return Cache().Find(Look(path), 2).has_value();
  }
  static std::string FileOf(const std::string& path) {
    return Cache().folder() + "/" + Look(path).file;
  }

  Leftover root_;
};

TEST_F(CacheTest, FindsWhatItKept) {
  const std::string path = Input("a.json.gz");
  EXPECT_FALSE(Finds(path));
  Keep(path);
  const auto found = Cache().Find(Look(path), 2);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->info.file, path);
  EXPECT_EQ(BytesOf(*found), BytesOf(Parse(path)));
  struct stat info {};
  ASSERT_EQ(::stat(Folder().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_EQ(::stat(FileOf(path).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(CacheTest, KnowsAnInputByAnotherPath) {
  const std::string path = Input("a.json.gz");
  Keep(path);
  const std::string other = root_.path() + "/./a.json.gz";
  const auto found = Cache().Find(Look(other), 2);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->info.file, other);
}

TEST_F(CacheTest, SeesThatAnInputChanged) {
  const std::string path = Input("a.json.gz");
  Keep(path);
  // In place, with the same size and the time of before.
  struct stat before {};
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(1000);
    file.put('x');
  }
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_FALSE(Finds(path));
  // A new state takes the place of the old one.
  EXPECT_FALSE(fs::exists(FileOf(path)));
}

TEST_F(CacheTest, KeepsNothingSmallNothingNewAndNothingThatChanges) {
  const std::string path = Input("a.json.gz");
  trace::Trace trace = Parse(path);
  trace.info.input_bytes = kLeastInputBytes - 1;
  Cache().Keep(Look(path), trace, 1);
  EXPECT_FALSE(Finds(path));
  trace.info.input_bytes = kLeastInputBytes;
  EXPECT_FALSE(LookAt(path)->quiet);
  Cache().Keep(*LookAt(path), trace, 1);
  EXPECT_FALSE(Finds(path));
  const InputState before = Look(path);
  std::ofstream(path, std::ios::app) << "more";
  Cache().Keep(before, trace, 1);
  EXPECT_FALSE(fs::exists(FileOf(path)));
}

TEST_F(CacheTest, RemovesADamagedFile) {
  const std::string path = Input("a.json.gz");
  Keep(path);
  {
    std::fstream file(FileOf(path),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(FileOf(path)) / 2));
    file.write("damaged", 7);
  }
  EXPECT_FALSE(Finds(path));
  EXPECT_FALSE(fs::exists(FileOf(path)));
}

TEST_F(CacheTest, TrustsNoFileThatOthersCanWrite) {
  const std::string path = Input("a.json.gz");
  Keep(path);
  ASSERT_EQ(::chmod(FileOf(path).c_str(), 0620), 0);
  EXPECT_FALSE(Finds(path));
  ASSERT_EQ(::chmod(FileOf(path).c_str(), 0600), 0);
  EXPECT_TRUE(Finds(path));
  // A link is no file of the cache.
  fs::rename(FileOf(path), root_.path() + "/elsewhere");
  fs::create_symlink(root_.path() + "/elsewhere", FileOf(path));
  EXPECT_FALSE(Finds(path));
}

TEST_F(CacheTest, TrustsNoFolderThatOthersCanWrite) {
  fs::create_directories(Folder());
  ASSERT_EQ(::chmod(Folder().c_str(), 0777), 0);
  const std::string path = Input("a.json.gz");
  Keep(path);
  EXPECT_FALSE(Finds(path));
}

TEST_F(CacheTest, MakesRoomForNewOnes) {
  std::vector<std::string> paths;
  for (int i = 0; i < 5; ++i)
    paths.push_back(Input("t" + std::to_string(i) + ".json.gz"));
  Keep(paths[0]);
  const uint64_t each = fs::file_size(FileOf(paths[0]));
  ::setenv("LAMINA_CACHE_LIMIT", std::to_string(each * 3 + each / 2).c_str(),
           1);
  for (int i = 0; i < 5; ++i) {
    Keep(paths[static_cast<size_t>(i)]);
    // Used one after the other, the first one again and again.
    const timespec times[2] = {{1000 + i, 0}, {1000 + i, 0}};
    ::utimensat(AT_FDCWD, FileOf(paths[static_cast<size_t>(i)]).c_str(), times,
                0);
    EXPECT_TRUE(Finds(paths[0]));
  }
  EXPECT_TRUE(Finds(paths[4]));
  EXPECT_TRUE(Finds(paths[3]));
  EXPECT_FALSE(Finds(paths[1]));
  EXPECT_LE(Cache().List().size(), 3u);
  // One that takes more than half of the limit is not kept, and a limit of
  // nothing is no cache.
  for (const std::string& limit : {std::to_string(each * 2 - 2), "0"s}) {
    ::setenv("LAMINA_CACHE_LIMIT", limit.c_str(), 1);
    Keep(paths[2]);
    EXPECT_FALSE(fs::exists(FileOf(paths[2])));
  }
}

TEST_F(CacheTest, ReadsSizes) {
  const auto limit = [](const char* text) {
    ::setenv("LAMINA_CACHE_LIMIT", text, 1);
    return Cache().limit_bytes();
  };
  const uint64_t usual = limit("");
  EXPECT_GT(usual, 0u);
  EXPECT_EQ(limit("0"), 0u);
  EXPECT_EQ(limit("123"), 123u);
  EXPECT_EQ(limit("5B"), 5u);
  EXPECT_EQ(limit("2G"), uint64_t{2} << 30);
  EXPECT_EQ(limit("2GB"), uint64_t{2} << 30);
  EXPECT_EQ(limit("3MiB"), uint64_t{3} << 20);
  for (const char* wrong : {"x", "-1", "1X", "G", "99999999999T", "1 G"})
    EXPECT_EQ(limit(wrong), usual) << wrong;
}

TEST_F(CacheTest, SaysWhatIsInIt) {
  const std::string current = Input("current.json.gz");
  const std::string changed = Input("changed.json.gz");
  const std::string gone = Input("gone.json.gz");
  for (const std::string& path : {current, changed, gone}) Keep(path);
  fs::remove(gone);
  std::ofstream(changed, std::ios::app) << "more";
  std::ofstream(Folder() + "/0.lsnap") << "nothing";
  ::chmod((Folder() + "/0.lsnap").c_str(), 0600);
  std::map<std::string, std::string> states;
  for (const Kept& kept : Cache().List())
    states[fs::path(kept.input).filename()] = kept.state;
  EXPECT_THAT(states, testing::UnorderedElementsAre(
                          testing::Pair("current.json.gz", "current"),
                          testing::Pair("changed.json.gz", "changed"),
                          testing::Pair("gone.json.gz", "gone"),
                          testing::Pair("", "damaged")));
  EXPECT_EQ(Cache().Prune(), 3u);
  EXPECT_TRUE(Finds(current));
  EXPECT_EQ(Cache().Clear().value(), 1u);
  EXPECT_TRUE(Cache().List().empty());
  EXPECT_FALSE(Finds(current));
}

TEST_F(CacheTest, ManyAtOnce) {
  const std::string a = Input("a.json.gz"), b = Input("b.json.gz");
  const std::string bytes = BytesOf(Parse(a), 1);
  std::atomic<int> found = 0, wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 12; ++i) {
        const std::string& path = (t + i) % 2 == 0 ? a : b;
        if (i % 3 == 0) Keep(path);
        if (t == 0 && i % 5 == 4) ::unlink(FileOf(path).c_str());
        auto trace = Cache().Find(Look(path), 1);
        if (!trace) continue;
        ++found;
        trace->info.file = a;
        wrong += BytesOf(*trace, 1) != bytes;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(found, 0);
  // Nothing is left but what was kept.
  for (const auto& file : fs::directory_iterator(Folder()))
    EXPECT_EQ(file.path().extension(), ".lsnap") << file.path();
}

TEST_F(CacheTest, AFolderThatCannotBeIsAnEmptyOne) {
  const std::string path = Input("a.json.gz");
  std::ofstream(root_.path() + "/made") << "a file";
  StageTimes times;
  const Cache cache(&times);
  EXPECT_FALSE(cache.Find(Look(path), 1).has_value());
  cache.Keep(Look(path), Parse(path), 1);
  EXPECT_EQ(times.notes().size(), 2u);
  EXPECT_TRUE(cache.List().empty());
  EXPECT_EQ(cache.Clear().value(), 0u);
  ::setenv("LAMINA_CACHE_DIR", "relative", 1);
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("HOME");
  EXPECT_EQ(Cache().folder(), "");
  EXPECT_FALSE(Cache().Find(Look(path), 1).has_value());
}

TEST_F(CacheTest, LooksAtFilesOnly) {
  EXPECT_FALSE(LookAt("-").has_value());
  EXPECT_FALSE(LookAt(root_.path()).has_value());
  EXPECT_FALSE(LookAt("/dev/null").has_value());
  EXPECT_FALSE(LookAt(root_.path() + "/none").has_value());
  const std::string pipe = root_.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(LookAt(pipe).has_value());
  // A database is not all that its file holds while another one stands beside
  // it.
  const std::string database = root_.path() + "/x.sqlite";
  std::ofstream(database) << "SQLite format 3" << std::string(5000, '\0');
  EXPECT_TRUE(LookAt(database).has_value());
  std::ofstream(database + "-wal") << "rows";
  EXPECT_FALSE(LookAt(database).has_value());
}

}  // namespace
}  // namespace lamina::snapshot
