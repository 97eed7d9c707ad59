// SPDX-License-Identifier: Apache-2.0
#include "findings/suppressions.h"

#include <cerrno>
#include <filesystem>

#include "base/byte_source.h"
#include "base/opened.h"

namespace lamina::findings {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFile = size_t{1} << 20;

// The file that stands nearest above a trace; empty: none.
std::string Nearest(const std::string& trace) {
  std::error_code error;
  fs::path folder = fs::absolute(trace, error);
  if (!fs::is_directory(folder, error)) folder = folder.parent_path();
  error.clear();
  while (!error && !folder.empty()) {
    const std::string file = folder / ".lamina-findings.yaml";
    const NameToRead read(file);
    // Above the folders that may be read nobody looks.
    if (read.error() == EXDEV) break;
    if (fs::is_regular_file(read.text(), error)) return file;
    if (fs::exists(folder / ".git", error) || folder == folder.root_path())
      break;
    folder = folder.parent_path();
  }
  return "";
}

}  // namespace

bool Suppression::Names(const Finding& finding) const {
  return (GlobMatches(rule, finding.rule->id) || rule == finding.id) &&
         (anchor.empty() || GlobMatches(anchor, finding.anchor));
}

Result<std::vector<Suppression>> LoadSuppressions(const std::string& file,
                                                  const std::string& trace) {
  std::vector<Suppression> out;
  const std::string path = file.empty() ? Nearest(trace) : file;
  if (path.empty()) return out;
  LAMINA_ASSIGN(std::string text, ReadAll(path, kMaxFile));
  LAMINA_ASSIGN(const rules::DataFile data,
                rules::ParseYaml(path, std::move(text)));
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
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace lamina::findings
