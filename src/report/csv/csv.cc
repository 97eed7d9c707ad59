// SPDX-License-Identifier: Apache-2.0
//
// One CSV file per table, RFC 4180, UTF-8, "\n" line ends. `-o DIR` writes
// DIR/<table>.csv; `-o X.csv` and standard output take one table, or several
// with a `# table` line in front of each.
//
// A folder holds the tables of one document: they are written into a folder
// inside it and moved when all are done, and what an earlier document left is
// removed. DIR/lamina_manifest.json says which files are ours and what they
// are of; other files stay.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "base/byte_sink.h"
#include "base/byte_source.h"
#include "base/escape.h"
#include "base/json/writer.h"
#include "base/leftovers.h"
#include "base/opened.h"
#include "base/parallel.h"
#include "lamina/version.h"
#include "report/common/writer.h"

namespace lamina::report::csv {
namespace {

void AppendCell(std::string& out, const Table& table, size_t row, size_t c) {
  if (table.schema().columns[c].type == ColumnType::kText) {
    AppendSafeCsvField(out, table.At(row, c).text());
  } else {
    AppendCellText(out, table, row, c);
  }
}

// Rows are formatted in parallel, a block at a time, and written in order.
constexpr size_t kBlockRows = 4096;

void WriteTable(const Table& table, int threads, ByteSink& sink) {
  std::string head;
  for (size_t c = 0; c < table.columns(); ++c) {
    if (c > 0) head += ',';
    AppendCsvField(head, table.schema().columns[c].name);
  }
  head += '\n';
  sink.Write(head);
  const size_t blocks = (table.rows() + kBlockRows - 1) / kBlockRows;
  const size_t wave = static_cast<size_t>(std::max(threads, 1)) * 4;
  std::vector<std::string> texts(std::min(wave, blocks));
  for (size_t first = 0; first < blocks; first += wave) {
    const size_t count = std::min(wave, blocks - first);
    ParallelFor(threads, count, [&](size_t i) {
      std::string& text = texts[i];
      text.clear();
      const size_t begin = (first + i) * kBlockRows;
      const size_t end = std::min(table.rows(), begin + kBlockRows);
      for (size_t row = begin; row < end; ++row) {
        for (size_t c = 0; c < table.columns(); ++c) {
          if (c > 0) text += ',';
          AppendCell(text, table, row, c);
        }
        text += '\n';
      }
    });
    for (size_t i = 0; i < count; ++i) sink.Write(texts[i]);
  }
}

constexpr std::string_view kManifest = "lamina_manifest.json";

// A name that a table may have: nothing outside of the folder.
bool IsTableFile(const std::string& name) {
  return name.size() > 4 && name.ends_with(".csv") &&
         name.find('/') == std::string::npos && !name.starts_with('.');
}

// The files of the document that was written here before; none when nobody
// wrote one.
std::vector<std::string> FilesOf(const std::string& manifest) {
  std::vector<std::string> files;
  std::error_code none_there;
  constexpr size_t kLimit = size_t{1} << 20;
  if (!std::filesystem::is_regular_file(manifest, none_there)) return files;
  const auto text = ReadAll(manifest, kLimit);
  ForgetInput(manifest);  // it is written anew
  if (!text) return files;
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("lamina")) return files;
  const auto list = json.find("files");
  if (list == json.end() || !list->is_array()) return files;
  for (const auto& file : *list) {
    if (file.is_string() && IsTableFile(file.get<std::string>()))
      files.push_back(file.get<std::string>());
  }
  return files;
}

std::string Manifest(const Document& document,
                     const std::vector<std::string>& files) {
  std::string out;
  json::Writer w(out, json::Writer::Spaces::kAfter, 1);
  w.Object();
  w.Object("lamina");
  w.Text("version", Version());
  w.Text("command", document.command);
  w.Texts("inputs", document.inputs);
  w.Close();
  w.NewLine();
  w.Texts("files", files);
  w.Close();
  return out + "\n";
}

Status WriteFolder(const Document& document, const WriteOptions& options) {
  namespace fs = std::filesystem;
  const fs::path folder(options.output);
  LAMINA_TRY(MakeDirectory(options.output));
  int made = -1;
  const Leftover unfinished = Leftover::Create(
      (folder / ".lamina-").string(),
      [](const char* path) { return ::mkdir(path, 0700); }, made);
  const auto failed = [&](const std::string& path, int error) {
    return Fail(InputError(path,
                           std::string("cannot write: ") + std::strerror(error),
                           "check the path, its permissions and the free "
                           "space"));
  };
  if (made < 0) return failed(options.output, errno);
  std::vector<std::string> files;
  for (const Table& table : document.result.tables) {
    files.push_back(table.name() + ".csv");
    const fs::path path = fs::path(unfinished.path()) / files.back();
    LAMINA_ASSIGN(const auto sink, CreateFileSink(path.string()));
    WriteTable(table, options.threads, *sink);
    LAMINA_TRY(sink->Close());
    if (IsInput((folder / files.back()).string())) {
      return Fail(UsageError(
          (folder / files.back()).string() + " is an input of this command",
          "it would be replaced; give another folder"));
    }
  }
  const std::string manifest = (folder / kManifest).string();
  for (const std::string& old : FilesOf(manifest)) {
    std::error_code stays;
    if (std::find(files.begin(), files.end(), old) == files.end() &&
        !IsInput((folder / old).string()))
      fs::remove(folder / old, stays);
  }
  // First, so that files which were moved are known to be ours.
  LAMINA_TRY(WriteFile(manifest, Manifest(document, files)));
  for (const std::string& file : files) {
    const std::string from = (fs::path(unfinished.path()) / file).string();
    const std::string to = (folder / file).string();
    if (::rename(from.c_str(), to.c_str()) != 0) return failed(to, errno);
  }
  return {};
}

Status Write(const Document& document, const WriteOptions& options) {
  const auto& tables = document.result.tables;
  // What is there and is no folder (a device, a pipe, a file) takes all tables.
  namespace fs = std::filesystem;
  std::error_code none_there;
  const bool one_file = options.output == "-" ||
                        options.output.ends_with(".csv") ||
                        options.output.ends_with(".csv.gz") ||
                        (fs::exists(options.output, none_there) &&
                         !fs::is_directory(options.output, none_there));
  if (one_file) {
    LAMINA_ASSIGN(const auto sink, CreateFileSink(options.output));
    for (size_t i = 0; i < tables.size(); ++i) {
      if (tables.size() > 1) {
        if (i > 0) sink->Write("\n");
        sink->Write("# " + tables[i].name() + "\n");
      }
      WriteTable(tables[i], options.threads, *sink);
    }
    return sink->Close();
  }
  return WriteFolder(document, options);
}

}  // namespace

WriterInfo Info() { return {"csv", "one CSV file per table", &Write}; }

}  // namespace lamina::report::csv
