// SPDX-License-Identifier: Apache-2.0
//
// Output code of Inductor. The comments above each kernel hold the nodes that
// it computes ("Graph fragment"); together they are a graph.
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include "graph/dialects/readers.h"
#include "graph/line_scan.h"

namespace lamina::graph {
namespace {

constexpr size_t kNone = std::string_view::npos;

// A line `#   %name : ... = ...` of a fragment: the place of its %.
size_t FragmentAt(std::string_view line) {
  size_t pos = 0;
  while (pos < line.size() && (line[pos] == ' ' || line[pos] == '\t')) ++pos;
  if (line.substr(pos, 2) == "//") {
    pos += 2;
  } else if (line.substr(pos, 1) == "#") {
    ++pos;
  } else {
    return kNone;
  }
  while (pos < line.size() && line[pos] == ' ') ++pos;
  return line.substr(pos, 1) == "%" && line.find("[target=", pos) != kNone
             ? pos
             : kNone;
}

template <class Visit>
void ForEachFragment(std::string_view text, Visit visit) {
  for (size_t pos = 0; pos < text.size();) {
    size_t end = std::min(text.find('\n', pos), text.size());
    const size_t next = end + 1;
    if (end > pos && text[end - 1] == '\r') --end;
    const std::string_view line = text.substr(pos, end - pos);
    const size_t at = FragmentAt(line);
    if (at != kNone) visit(Span{pos + at, end});
    pos = next;
  }
}

std::string_view NameAt(std::string_view text, size_t percent) {
  size_t end = percent + 1;
  while (end < text.size() && IsNameByte(text[end])) ++end;
  return text.substr(percent + 1, end - percent - 1);
}

}  // namespace

void ReadInductor(const SourceText& source, std::string_view name,
                  Builder& out) {
  const std::string_view text = source.text();
  out.Begin(source, name.empty() ? "output_code" : std::string(name), 0);
  // Kernels may use what a later definition computes, and extern kernels
  // have no fragment: their values are inputs here.
  absl::flat_hash_set<std::string_view> defined;
  std::vector<std::string_view> used;
  absl::flat_hash_set<std::string_view> seen;
  absl::flat_hash_map<std::string_view, std::string> inputs;  // their results
  ForEachFragment(text, [&](Span line) {
    const std::string_view one = out.Text(line);
    const std::string_view own = NameAt(text, line.begin);
    if (one.find("= PlaceHolder[") == kNone) {
      defined.insert(own);
    } else if (const size_t quote = one.find('"'); quote != kNone) {
      // Since 2.9: `%x : Tensor "f32[8, 16]" = PlaceHolder[target=x]`.
      const size_t end = SkipQuoted(one, quote);
      inputs.try_emplace(
          own, ResultOfAnnotation(one.substr(quote + 1, end - quote - 2)));
    }
    for (size_t at = one.find('%'); at != kNone; at = one.find('%', at + 1)) {
      const std::string_view other = NameAt(one, at);
      if (!other.empty() && seen.insert(other).second) used.push_back(other);
    }
  });
  for (const std::string_view value : used) {
    out.Alias(value, value);
    if (defined.contains(value)) continue;
    Builder::Statement statement;
    statement.kind = NodeKind::kPlaceholder;
    statement.name = value;
    const auto result = inputs.find(value);
    if (result != inputs.end()) statement.result = out.Keep(result->second);
    out.Add(statement);
  }
  ForEachFragment(text, [&](Span line) {
    const std::string_view own = NameAt(text, line.begin);
    if (out.Text(line).find("= PlaceHolder[") != kNone) return;
    const NodeId id = out.graph().Find(own);
    // Several kernels may compute one node.
    if (id.valid() && out.graph()[id].kind == NodeKind::kOp) return;
    ReadFxStatement(line, out);
  });
  out.End();
}

}  // namespace lamina::graph
