// SPDX-License-Identifier: Apache-2.0
//
// The library as a program outside the project uses it: nothing but the
// headers of include/lamina/ is on the include path.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <lamina/engine.h>
#include <sstream>

#include "source_dir.h"

namespace {

const std::string kSample = LAMINA_SOURCE_DIR "/samples/train_step.json.gz";

TEST(Api, ReportsAndWrites) {
  lamina::ReportOptions options;
  options.threads = 1;
  const auto document = lamina::MakeReport(kSample, options);
  ASSERT_TRUE(document) << document.error().ToString();
  const lamina::Table* kernels = document->result.Find("kernels");
  const lamina::Table* timeline = document->result.Find("gpu_timeline");
  ASSERT_NE(kernels, nullptr);
  ASSERT_NE(timeline, nullptr);
  EXPECT_EQ(kernels->Sum("count"), 212);
  EXPECT_EQ(document->result.notes.front().severity,
            lamina::Severity::kVerdict);

  const auto path = std::filesystem::temp_directory_path() / "lamina_api.json";
  ASSERT_TRUE(lamina::WriteDocument(*document, "json", path.string()));
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_NE(text.str().find("\"kernels\""), std::string::npos);
  std::filesystem::remove(path);
}

TEST(Api, ErrorsAreValues) {
  const auto missing = lamina::MakeReport("/nowhere/trace.json", {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, lamina::ErrorKind::kInput);

  lamina::ReportOptions options;
  options.only = {"kernel"};
  const auto table = lamina::MakeReport(kSample, options);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().kind, lamina::ErrorKind::kUsage);
  EXPECT_EQ(table.error().hint, "did you mean 'kernels'?");

  options = {};
  options.layout = "other";
  const auto layout = lamina::MakeReport(kSample, options);
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().kind, lamina::ErrorKind::kUsage);

  const lamina::Document empty;
  const auto format = lamina::WriteDocument(empty, "yaml", "-");
  ASSERT_FALSE(format);
  EXPECT_EQ(format.error().kind, lamina::ErrorKind::kUsage);
  EXPECT_EQ(format.error().hint,
            "formats: csv, html, json, markdown, table, xlsx");
}

}  // namespace
