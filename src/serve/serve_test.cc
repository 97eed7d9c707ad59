// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "base/leftovers.h"
#include "base/opened.h"
#include "serve/guard.h"
#include "serve/worker.h"

namespace lamina::serve {
namespace {

TEST(Frames, AnyCutGivesTheSame) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Frame> sent;
    std::string text;
    for (int i = 0; i < 5; ++i) {
      Frame frame{"qcpor"[random() % 5], random() % 1000,
                  static_cast<int>(random() % 600),
                  std::string(random() % 50, '\n')};
      text += FrameText(frame);
      sent.push_back(std::move(frame));
    }
    FrameReader reader;
    std::vector<Frame> got;
    for (size_t at = 0; at < text.size();) {
      const size_t size = std::min<size_t>(1 + random() % 9, text.size() - at);
      reader.Feed(std::string_view(text).substr(at, size));
      at += size;
      while (auto frame = reader.Next()) got.push_back(*std::move(frame));
    }
    EXPECT_FALSE(reader.damaged());
    ASSERT_EQ(got.size(), sent.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(FrameText(got[i]), FrameText(sent[i]));
  }
}

TEST(Frames, WhatIsNoneEndsIt) {
  for (const char* text :
       {"\n", "r\n", "r 1 2\n", "r 1 2 -1\n", "r 1 2 3 4\n", "rr 1 2 3\n",
        "r 1 2 99999999999\n", "r x 2 3\n", "r 1 2 3",
        "r 18446744073709551616 "
        "0 0\n"}) {
    FrameReader reader;
    reader.Feed(text);
    EXPECT_FALSE(reader.Next().has_value()) << text;
    EXPECT_EQ(reader.damaged(), std::string_view(text).ends_with('\n')) << text;
  }
  FrameReader reader;
  reader.Feed(std::string(100, 'r'));
  EXPECT_FALSE(reader.Next().has_value());
  EXPECT_TRUE(reader.damaged());
}

TEST(Guard, TokensAreNotEqual) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string token = MakeToken();
    EXPECT_TRUE(IsToken(token)) << token;
    EXPECT_TRUE(seen.insert(token).second);
  }
  for (const char* text :
       {"", "x", "../../../../../../../../../../../../../etc"})
    EXPECT_FALSE(IsToken(text));
}

TEST(Guard, NamesOfTunnels) {
  Guard guard(MakeToken(), {"Laptop.lan"});
  const auto status = [&](const char* host, const char* origin) {
    HttpRequest request;
    request.method = "GET";
    request.path = "/";
    request.headers.emplace_back("hOST", host);
    if (origin != nullptr) request.headers.emplace_back("Origin", origin);
    const auto refused = guard.Check(request);
    return refused ? refused->status : 200;
  };
  EXPECT_EQ(status("laptop.lan", nullptr), 200);
  EXPECT_EQ(status("LAPTOP.lan:8250", "http://laptop.lan:8250"), 200);
  EXPECT_EQ(status("laptop.lan:8250", "http://127.0.0.1:8250"), 403);
  // A proxy that speaks HTTPS with the browser.
  EXPECT_EQ(status("laptop.lan", "https://laptop.lan"), 200);
  EXPECT_EQ(status("laptop.lan", "https://evil.lan"), 403);
  EXPECT_EQ(status("127.0.0.1:8250", "https://127.0.0.1:8250"), 403);
  EXPECT_EQ(status("laptop.lan.evil", nullptr), 421);
  EXPECT_EQ(status("xlaptop.lan", nullptr), 421);
}

std::string TextOf(const Descriptor& file) {
  std::string text(100, '\0');
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

using Opens = Descriptor (*)(const Descriptor&, const std::string&);
class Beneath : public testing::TestWithParam<Opens> {};

TEST_P(Beneath, NothingLeadsOut) {
  namespace fs = std::filesystem;
  const auto made = MakeTemporaryFolder();
  ASSERT_TRUE(made);
  const fs::path top = made->path();
  const auto write = [](const fs::path& path, const char* text) {
    std::ofstream(path) << text;
  };
  fs::create_directories(top / "served/a/b");
  fs::create_directories(top / "other/b");
  write(top / "served/a/b/c", "inside");
  write(top / "served/d", "inside");
  write(top / "other/b/c", "outside");
  write(top / "other/d", "outside");
  const Descriptor root = HoldFolder(top / "served");
  ASSERT_TRUE(root.open());
  const auto text = [&](const char* name) {
    const Descriptor file = GetParam()(root, name);
    return file.open() ? TextOf(file) : "error " + std::to_string(errno);
  };
  const auto error = [](int number) {
    return "error " + std::to_string(number);
  };
  EXPECT_EQ(text("a/b/c"), "inside");
  EXPECT_EQ(text("d"), "inside");
  EXPECT_EQ(text("none"), error(ENOENT));
  EXPECT_EQ(text("../other/d"), error(EXDEV));
  EXPECT_EQ(text("/etc/passwd"), error(EXDEV));
  EXPECT_EQ(text("a"), error(EINVAL));
  EXPECT_EQ(text("d/e"), error(ENOTDIR));
  ASSERT_EQ(::mkfifo((top / "served/pipe").c_str(), 0600), 0);
  // Who waits for a reader of a pipe is not let go on by a look at it.
  std::atomic<bool> met = false;
  const std::string pipe = top / "served/pipe";
  std::thread writer([&] {
    const Descriptor end(::open(pipe.c_str(), O_WRONLY | O_CLOEXEC));
    met = true;
  });
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(text("pipe"), error(EINVAL));
  EXPECT_FALSE(met);
  ::close(::open(pipe.c_str(), O_RDONLY | O_CLOEXEC));
  writer.join();
  // What was a file or a folder when it was listed is a link now.
  fs::remove(top / "served/d");
  fs::create_symlink("../other/d", top / "served/d");
  EXPECT_EQ(text("d"), error(ELOOP));
  fs::rename(top / "served/a", top / "served/was");
  fs::create_directory_symlink(top / "other", top / "served/a");
  EXPECT_EQ(text("a/b/c"), error(ELOOP));
  EXPECT_EQ(text("was/b/c"), "inside");
  // So is the folder itself; what is held is meant.
  fs::rename(top / "served", top / "moved");
  fs::create_directory_symlink("other", top / "served");
  EXPECT_EQ(text("b/c"), error(ENOENT));
  EXPECT_EQ(text("was/b/c"), "inside");
}

TEST_P(Beneath, WhoeverSwapsNamesMeanwhile) {
  namespace fs = std::filesystem;
  const auto made = MakeTemporaryFolder();
  ASSERT_TRUE(made);
  const fs::path top = made->path();
  fs::create_directories(top / "served/a");
  fs::create_directories(top / "other");
  std::ofstream(top / "served/a/c") << "inside";
  std::ofstream(top / "served/d") << "inside";
  std::ofstream(top / "other/c") << "outside";
  std::ofstream(top / "other/d") << "outside";
  fs::create_symlink("../other/d", top / "served/link");
  fs::create_directory_symlink("../other", top / "served/folder");
  const Descriptor root = HoldFolder(top / "served");
  if (::renameat2(root.get(), "d", root.get(), "link", RENAME_EXCHANGE) != 0)
    GTEST_SKIP() << "this file system exchanges no names";
  std::atomic<bool> stop = false;
  // Each name is now the file or folder, now a link that leads out.
  std::thread swapper([&] {
    const auto swap = [&](const char* one, const char* other) {
      ::renameat2(root.get(), one, root.get(), other, RENAME_EXCHANGE);
    };
    while (!stop) {
      swap("d", "link");
      swap("a", "folder");
    }
  });
  std::map<std::string, int> seen;
  for (int i = 0; i < 20'000; ++i) {
    for (const char* name : {"d", "a/c"}) {
      const Descriptor file = GetParam()(root, name);
      ++seen[file.open() ? TextOf(file) : WhyNotOpened(errno)];
    }
  }
  stop = true;
  swapper.join();
  EXPECT_EQ(seen.count("outside"), 0U);
  EXPECT_GT(seen["inside"], 0);
  EXPECT_GT(seen[WhyNotOpened(ELOOP)], 0);
}

TEST(NotOpened, SaysWhy) {
  std::set<std::string> said;
  for (const int number :
       {ELOOP, EXDEV, EACCES, EINVAL, ENOENT, ENOTDIR, EMFILE, EAGAIN, EIO})
    EXPECT_TRUE(said.insert(WhyNotOpened(number)).second) << number;
}

TEST(ReadInstead, IsNotForOtherPrograms) {
  const int file = ::open("/dev/null", O_RDONLY);
  ASSERT_GE(file, 0);
  ReadInstead("given", file);
  EXPECT_NE(::fcntl(file, F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(NameToRead("given").text(),
            "/proc/self/fd/" + std::to_string(file));
  EXPECT_EQ(NameToRead("other").text(), "other");
}

INSTANTIATE_TEST_SUITE_P(Both, Beneath,
                         testing::Values(&OpenBeneath, &OpenByParts));

}  // namespace
}  // namespace lamina::serve
