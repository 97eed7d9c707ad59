// SPDX-License-Identifier: Apache-2.0
//
// Every writer on one document with hostile text, read back.
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "report/writers.h"

namespace lamina::report {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHostile[] = {
    "plain",
    "comma,quote\"apostrophe'",
    "line\nbreak\r\ttab",
    "<script>alert(1)</script>&amp;",
    "=HYPERLINK(\"http://x\")",
    "\x1b[31mred\x1b[0m\x07",
    "\xE2\x80\xAEright to left",
    "\xff\xfe broken",
    "",
};

Document Sample() {
  Document document;
  document.command = "report";
  document.inputs = {"in \"1\".json"};
  Table table({"names",
               "Hostile names.",
               {{"name", ColumnType::kText, "A name."},
                {"count", ColumnType::kInt, "A count."},
                {"time_us", ColumnType::kTime, "A time."},
                {"share", ColumnType::kReal, "A share.", Shown::kBar}}});
  int64_t i = 0;
  for (const std::string_view text : kHostile) {
    table.Add(text, i, i * 1001, 10.0 * static_cast<double>(i));
    ++i;
  }
  table.Add(std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  document.result.tables.push_back(std::move(table));
  document.result.tables.push_back(
      Table({"empty", "No rows.", {{"x", ColumnType::kInt, "Nothing."}}}));
  Note note;
  note.severity = Severity::kWarning;
  note.id = "hostile";
  note.text = "a \x1b[2J note </script>";
  note.worth_ns = 1500;
  note.claim = "bound";
  note.evidence.push_back({"names", "name", "plain", {1, 2}});
  document.result.notes.push_back(note);
  return document;
}

class Report : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("lamina_report_test_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Written(std::string_view writer, const std::string& name,
                      int threads = 1) {
    WriteOptions options;
    options.output = (folder_ / name).string();
    options.threads = threads;
    const WriterInfo* info = FindWriter(writer);
    EXPECT_NE(info, nullptr);
    const Status status = info->write(Sample(), options);
    EXPECT_TRUE(status.has_value());
    return Read(folder_ / name);
  }
  static std::string Read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  fs::path folder_;
};

// RFC 4180, without mercy for what it does not allow.
std::vector<std::vector<std::string>> ParseCsv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, {""});
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        rows.back().back() += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        rows.back().back() += '"';
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      EXPECT_TRUE(rows.back().back().empty());
      quoted = true;
    } else if (c == ',') {
      rows.back().emplace_back();
    } else if (c == '\n') {
      rows.push_back({""});
    } else {
      rows.back().back() += c;
    }
  }
  EXPECT_FALSE(quoted);
  rows.pop_back();
  return rows;
}

TEST_F(Report, CsvReadsBack) {
  Written("csv", "tables");
  const auto rows = ParseCsv(Read(folder_ / "tables" / "names.csv"));
  ASSERT_EQ(rows.size(), std::size(kHostile) + 2);
  EXPECT_EQ(rows[0],
            (std::vector<std::string>{"name", "count", "time_us", "share"}));
  for (size_t i = 0; i < std::size(kHostile); ++i) {
    const std::string guard = kHostile[i].starts_with('=') ? "'" : "";
    EXPECT_EQ(rows[i + 1][0], guard + std::string(kHostile[i]));
    EXPECT_EQ(rows[i + 1][1], std::to_string(i));
  }
  EXPECT_EQ(rows[2][2], "1.001");
  EXPECT_EQ(rows.back(), (std::vector<std::string>{"", "", "", ""}));
  EXPECT_EQ(Read(folder_ / "tables" / "empty.csv"), "x\n");
}

TEST_F(Report, JsonReadsBack) {
  const auto json = nlohmann::json::parse(Written("json", "out.json"));
  EXPECT_EQ(json["lamina"]["command"], "report");
  EXPECT_EQ(json["lamina"]["inputs"][0], "in \"1\".json");
  const auto& rows = json["tables"]["names"];
  ASSERT_EQ(rows.size(), std::size(kHostile) + 1);
  for (size_t i = 0; i < std::size(kHostile); ++i) {
    const std::string name = rows[i]["name"];
    if (kHostile[i].find('\xff') == std::string_view::npos) {
      EXPECT_EQ(name, kHostile[i]);
    } else {
      EXPECT_EQ(name, "\xEF\xBF\xBD\xEF\xBF\xBD broken");
    }
  }
  EXPECT_TRUE(rows.back()["count"].is_null());
  EXPECT_TRUE(json["tables"]["empty"].empty());
  EXPECT_EQ(json["notes"][0]["severity"], "warning");
  EXPECT_EQ(json["notes"][0]["evidence"][0]["events"].size(), 2U);
}

TEST_F(Report, TerminalTextHasNoControlCharacters) {
  const std::string text = Written("table", "out.txt");
  EXPECT_NE(text.find("names"), std::string::npos);
  for (const char c : text) {
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << text;
  }
  EXPECT_EQ(text.find("\xE2\x80\xAE"), std::string::npos);
  EXPECT_EQ(text.find('\xff'), std::string::npos);
}

TEST_F(Report, MarkdownRowsHaveTheCellsOfTheHeading) {
  std::istringstream text(Written("markdown", "out.md"));
  size_t rows = 0;
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with('|')) continue;
    ++rows;
    size_t bars = 0;
    for (size_t i = 0; i < line.size(); ++i)
      bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\') ? 1 : 0;
    EXPECT_EQ(bars, 5U) << line;
    EXPECT_EQ(line.find('\x1b'), std::string::npos) << line;
  }
  EXPECT_EQ(rows, std::size(kHostile) + 3);
}

TEST_F(Report, XlsxIsAZipWithBothSheets) {
  const std::string bytes = Written("xlsx", "out.xlsx");
  EXPECT_TRUE(bytes.starts_with("PK\x03\x04"));
  EXPECT_NE(bytes.find("xl/worksheets/sheet2.xml"), std::string::npos);
}

// A device or a pipe is written in place and stays what it is.
TEST_F(Report, NoWriterReplacesAPipe) {
  for (const WriterInfo& writer : Writers()) {
    if (writer.name == "html") continue;  // larger than what a pipe holds
    const fs::path fifo = folder_ / (std::string(writer.name) + ".fifo");
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    // Both ends, so that neither side waits for the other to open.
    const int reader = ::open(fifo.c_str(), O_RDWR | O_NONBLOCK);
    ASSERT_GE(reader, 0);
    WriteOptions options;
    options.output = fifo.string();
    const Status status = writer.write(Sample(), options);
    EXPECT_TRUE(status.has_value()) << writer.name;
    EXPECT_TRUE(fs::is_fifo(fifo)) << writer.name;
    char first = 0;
    EXPECT_EQ(::read(reader, &first, 1), 1) << writer.name;
    ::close(reader);
  }
}

TEST_F(Report, BytesDoNotDependOnThreads) {
  for (const WriterInfo& writer : Writers()) {
    if (writer.name == "xlsx") continue;  // holds its time of writing
    const std::string name = std::string(writer.name) + ".out.csv";
    EXPECT_EQ(Written(writer.name, name, 1), Written(writer.name, name, 8))
        << writer.name;
  }
}

TEST_F(Report, AnUnwritablePlaceIsAnError) {
  std::ofstream(folder_ / "file") << "x";
  for (const WriterInfo& writer : Writers()) {
    WriteOptions options;
    options.output = (folder_ / "file" / "below.csv").string();
    const Status status = writer.write(Sample(), options);
    EXPECT_FALSE(status.has_value()) << writer.name;
  }
}

}  // namespace
}  // namespace lamina::report
