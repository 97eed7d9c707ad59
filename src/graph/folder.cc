// SPDX-License-Identifier: Apache-2.0
#include "graph/folder.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/opened.h"

namespace lamina::graph {
namespace {

// Stages and transforms both hold underscores: longer stages first.
constexpr std::string_view kStages[] = {
    "post_load_fusion", "pattern_matcher", "export_onnx", "weight_load",
    "post_export",      "cache_init",      "visualize",   "sharding",
    "factory",          "compile",         "export"};

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

std::string StemOf(std::string_view path) {
  std::string_view name = BaseName(path);
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (name.ends_with(packed)) name.remove_suffix(packed.size());
  }
  if (name.ends_with(".txt")) name.remove_suffix(4);
  return std::string(name);
}

bool ParseDumpName(std::string_view path, DumpFile& file) {
  file.path = path;
  file.name = BaseName(path);
  file.stem = StemOf(path);
  std::string_view rest = file.stem;
  if (file.stem.size() == file.name.size()) return false;  // no .txt
  const size_t digits = rest.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos || rest[digits] != '_')
    return false;
  const auto number = ParseInt(rest.substr(0, digits));
  if (!number) return false;
  file.number = *number;
  rest.remove_prefix(digits + 1);
  file.stage.clear();
  file.transform = rest;
  for (const std::string_view stage : kStages) {
    if (!rest.starts_with(stage) || rest.size() <= stage.size() ||
        rest[stage.size()] != '_')
      continue;
    file.stage = stage;
    file.transform = rest.substr(stage.size() + 1);
    break;
  }
  return true;
}

Result<std::vector<DumpFile>> ListDumps(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<DumpFile> out;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    DumpFile file;
    std::error_code ignored;
    if (it->is_regular_file(ignored) &&
        ParseDumpName(it->path().string(), file)) {
      NoteInput(file.path);
      out.push_back(std::move(file));
    }
  }
  if (error) return Fail(InputError(folder, error.message()));
  if (out.empty()) {
    return Fail(InputError(folder, "no graph dump in this folder",
                           "dumps are named like "
                           "016_pattern_matcher_match_rmsnorm_pattern.txt"));
  }
  std::sort(out.begin(), out.end(), [](const DumpFile& a, const DumpFile& b) {
    return std::tie(a.number, a.name) < std::tie(b.number, b.name);
  });
  return out;
}

Result<std::string> PickDump(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  LAMINA_ASSIGN(const std::vector<DumpFile> files, ListDumps(path));
  return files.back().path;
}

std::string NameConflict(const DumpFile& file, const Header& header) {
  if (header.transform.empty() && header.stage.empty()) return {};
  // Of an unknown stage nothing is known about where the name splits.
  if (file.stem.ends_with("_" + header.stage + "_" + header.transform))
    return {};
  return EscapeTerminal(file.name) + ": the header says stage '" +
         EscapeTerminal(header.stage) + "', transform '" +
         EscapeTerminal(header.transform) + "', which is taken";
}

}  // namespace lamina::graph
