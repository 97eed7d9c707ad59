// SPDX-License-Identifier: Apache-2.0
#include "findings/suppressions.h"

#include <cerrno>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "base/byte_source.h"
#include "base/opened.h"

namespace lamina::findings {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFile = size_t{1} << 20;

constexpr const char* kName = ".lamina-findings.yaml";

// Whose files decide what a gate lets pass: one's own, and the administrator's.
bool IsTrusted(const std::string& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 &&
         (info.st_uid == ::geteuid() || info.st_uid == 0);
}

// The folder of a trace and those above it that belong to its repository, the
// nearest first; without a repository its folder alone.
std::vector<fs::path> FoldersToLookIn(const std::string& trace) {
  std::error_code error;
  fs::path folder = fs::absolute(trace, error);
  if (error) return {};
  if (!fs::is_directory(folder, error)) folder = folder.parent_path();
  std::vector<fs::path> folders;
  while (true) {
    // Above the folders that may be read nobody looks.
    if (NameToRead(folder / kName).error() == EXDEV) break;
    folders.push_back(folder);
    if (fs::exists(folder / ".git", error)) return folders;
    if (folder == folder.root_path()) break;
    folder = folder.parent_path();
  }
  if (folders.size() > 1) folders.resize(1);
  return folders;
}

// The file that is nearest to a trace.
void FindNearest(const std::string& trace, Suppressions& out) {
  std::error_code error;
  for (const fs::path& folder : FoldersToLookIn(trace)) {
    const std::string file = folder / kName;
    const NameToRead read(file);
    if (!fs::is_regular_file(read.text(), error)) continue;
    if (IsTrusted(read.text())) {
      out.file = file;
      return;
    }
    if (out.refused.empty()) out.refused = file;
  }
}

}  // namespace

bool Suppression::Names(const Finding& finding) const {
  return (GlobMatches(rule, finding.rule->id) || rule == finding.id) &&
         (anchor.empty() || GlobMatches(anchor, finding.anchor));
}

Result<Suppressions> LoadSuppressions(const std::string& file,
                                      const std::string& trace) {
  Suppressions out;
  out.file = file;
  if (file.empty()) FindNearest(trace, out);
  if (out.file.empty()) return out;
  LAMINA_ASSIGN(std::string text, ReadAll(out.file, kMaxFile));
  LAMINA_ASSIGN(const rules::DataFile data,
                rules::ParseYaml(out.file, std::move(text)));
  if (!data.root.IsList()) {
    return Fail(data.ErrorAt(data.root, "expected a list of suppressions",
                             "- {rule: host.other, reason: ...}"));
  }
  static constexpr std::string_view kKeys[] = {"rule", "id", "anchor",
                                               "max_share", "reason"};
  for (const rules::Node& node : data.root.items) {
    LAMINA_ASSIGN(const rules::Members m,
                  rules::Members::Of(data, node, kKeys));
    Suppression one;
    one.rule = m.TextOr("rule", m.TextOr("id", ""));
    if (one.rule.empty()) return Fail(m.ErrorAt("expected a rule or an id"));
    one.anchor = m.TextOr("anchor", "");
    LAMINA_ASSIGN(const auto share, m.OptionalNumber("max_share"));
    one.max_share = share.value_or(1);
    LAMINA_ASSIGN(one.reason, m.Text("reason"));
    out.all.push_back(std::move(one));
  }
  return out;
}

}  // namespace lamina::findings
