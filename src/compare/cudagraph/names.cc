// SPDX-License-Identifier: Apache-2.0

#include "compare/cudagraph/names.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <re2/re2.h>
#include <string_view>
#include <utility>

#include "base/cpp_name.h"
#include "base/decimal.h"
#include "base/text.h"
#include "compare/cudagraph/stretches.h"
#include "table/row_columns.h"

namespace lamina::cudagraph {

bool IsLaunch(std::string_view name) {
  return Contains(name, "LaunchKernel") ||
         Contains(name, "LaunchCooperativeKernel") ||
         Contains(name, "Memcpy") || Contains(name, "Memset");
}

std::string TokenOf(std::string_view name) {
  if (Contains(name, "fillBuffer") || Contains(name, "Memset")) return "(fill)";
  if (Contains(name, "copyBuffer") || Contains(name, "Memcpy")) return "(copy)";
  if (name.ends_with(".kd")) name.remove_suffix(3);
  std::string plain = Demangle(name);
  const size_t clone = plain.find(" [clone");
  if (clone != std::string::npos) plain.resize(clone);
  return plain;
}

std::string TokenOfWork(const trace::Trace& trace, trace::SliceId work) {
  if (trace.KindOf(work) == trace::Kind::kMemcpy) return "(copy)";
  if (trace.KindOf(work) == trace::Kind::kMemset) return "(fill)";
  return TokenOf(trace.Name(work));
}

bool IsFrameworkFrame(std::string_view name) {
  for (const std::string_view word :
       {"torch/", "triton/", "importlib", "contextlib", "<built-in",
        "threading.py", "multiprocessing", "nn.Module: ", "runpy.py",
        "asyncio/"}) {
    if (Contains(name, word)) return true;
  }
  return !Contains(name, ".py(");
}

int64_t BatchOf(std::string_view range) {
  static const RE2 kCapture(R"(^capture_(\d+)_)");
  // vLLM: all tokens of the step; a step of generation only has one of each
  // request.
  static const RE2 kTokens(R"(^execute_(\d+)_context_\d+\()");
  static const RE2 kGeneration(R"(^execute_context_0\(.*_generation_(\d+)\()");
  static const RE2 kDiffusion(R"(^execute_diffusion_(\d+)_)");
  static const RE2 kSglang(R"(^step\[.*\b(?:bs|toks)=(\d+))");
  const re2::StringPiece text(range.data(), range.size());
  for (const RE2* pattern :
       {&kCapture, &kTokens, &kGeneration, &kDiffusion, &kSglang}) {
    int64_t batch = -1;
    if (RE2::PartialMatch(text, *pattern, &batch)) return batch;
  }
  return -1;
}

namespace {

using tree::ModulePathId;
using tree::Modules;

// The number of a module that is named like a layer, by its class
// ("DecoderLayer_12") or by its attribute ("layers_12"); -1 for others. A part
// of a layer can have the word in its name, too ("LayerNorm_12"): without
// modules of its own it must end in it.
int64_t OwnNumber(std::string_view name, bool has_modules) {
  static const RE2 kEnds(
      R"((?:.*(?:(?:Layer|Block)[0-9]*|layers?|blocks?)|h)_([0-9]{1,9}))");
  static const RE2 kHas(R"(.*(?:Layer|Block)[A-Za-z0-9]*_([0-9]{1,9}))");
  int64_t number = -1;
  const re2::StringPiece text(name.data(), name.size());
  if (!RE2::FullMatch(text, kEnds, &number) && has_modules)
    RE2::FullMatch(text, kHas, &number);
  return number;
}

}  // namespace

// Of layers inside each other the outermost one counts that has siblings of its
// class: a "TransformerBlock_0" around all layers has none. Where only one
// layer was recorded, the innermost counts.
LayerNumbers::LayerNumbers(const trace::Trace& trace, const Modules& modules) {
  const auto& paths = modules.paths();
  std::vector<bool> has_modules(paths.size());
  std::map<std::pair<uint32_t, std::string_view>, size_t> siblings;
  const auto class_of = [&](const Modules::Path& path) {
    return std::pair(path.parent.value,
                     Modules::ClassName(trace.Text(path.name)));
  };
  for (const Modules::Path& path : paths) {
    if (path.parent.valid()) has_modules[path.parent.value] = true;
    ++siblings[class_of(path)];
  }
  std::vector<bool> repeated(paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    const Modules::Path& path = paths[i];
    int64_t number = -1;
    if (path.parent.valid()) {
      number = number_[path.parent.value];
      repeated[i] = repeated[path.parent.value];
    }
    if (!repeated[i]) {
      const int64_t own =
          OwnNumber(Modules::ShortName(trace.Text(path.name)), has_modules[i]);
      if (own >= 0) {
        number = own;
        repeated[i] = siblings[class_of(path)] > 1;
      }
    }
    number_.push_back(number);
  }
}

namespace {

using trace::Kind;
using trace::SliceId;

// Distinct tags by name, in order of first use.
class Adder {
 public:
  explicit Adder(NameTags& names) : names_(names) {
    for (const auto& [name, tags] : names)
      known_[name].insert(tags.begin(), tags.end());
  }
  void Add(const std::string& name, std::string tag) {
    if (known_[name].insert(tag).second) names_[name].push_back(std::move(tag));
  }

 private:
  NameTags& names_;
  absl::flat_hash_map<std::string, absl::flat_hash_set<std::string>> known_;
};

// Null if the name of the kernel has none.
const std::vector<std::string>* FindTags(const analysis::Context& replay,
                                         const NameTags& names, bool classic,
                                         SliceId kernel) {
  if (classic && replay.trace.KindOf(kernel) != Kind::kKernel) return nullptr;
  const auto it = classic ? names.find(replay.trace.Name(kernel))
                          : names.find(TokenOfWork(replay.trace, kernel));
  return it == names.end() ? nullptr : &it->second;
}

struct NameRow {
  std::string_view kernel;
  int64_t kernels, time;
  size_t tags;
  std::string source_lines;
};

struct MethodRow {
  std::string_view tag;
  int64_t kernels, name_one, name_several, name_none, aligned_fact,
      aligned_likely, aligned_rest;
};

}  // namespace

std::string_view TagKindName(TagKind kind) {
  switch (kind) {
    case TagKind::kRange:
      return "range";
    case TagKind::kInstance:
      return "instance";
    case TagKind::kOp:
      return "op";
    case TagKind::kModule:
      return "module";
    case TagKind::kLine:
      return "line";
  }
  return "";
}

std::optional<TagKind> FindTagKind(std::string_view name) {
  for (const TagKind kind : kTagKinds) {
    if (TagKindName(kind) == name) return kind;
  }
  return std::nullopt;
}

std::string TagText(const Tags& tags, TagKind kind) {
  switch (kind) {
    case TagKind::kRange:
      return tags.ranges;
    case TagKind::kInstance:
      return tags.op_uid == UINT32_MAX
                 ? std::string()
                 : tags.op + " #" + std::to_string(tags.op_uid);
    case TagKind::kOp:
      return tags.op;
    case TagKind::kModule:
      return tags.module;
    case TagKind::kLine:
      return tags.line;
  }
  return {};
}

Status AddClassicTags(const analysis::Context& context, const std::string& tags,
                      NameTags& names) {
  const RE2 pattern(tags, RE2::Quiet);
  if (!pattern.ok()) {
    return Fail(UsageError("⟨tags⟩: " + pattern.error(),
                           "expected a regular expression (RE2)"));
  }
  const trace::Trace& trace = context.trace;
  const Ranges ranges(trace, pattern);
  std::vector<SliceId> kernels;
  for (const SliceId s : trace.device_slices()) {
    if (trace.KindOf(s) == Kind::kKernel) kernels.push_back(s);
  }
  std::sort(kernels.begin(), kernels.end(),
            [&](SliceId a, SliceId b) { return trace.Uid(a) < trace.Uid(b); });
  Adder adder(names);
  for (const SliceId kernel : kernels) {
    const tree::NodeId node = context.tree.launch(kernel);
    if (!node.valid() || context.tree.name(node) != "cudaLaunchKernel")
      continue;
    const SliceId launch = context.tree.slice(node);
    SliceId first;
    for (const SliceId range :
         ranges.At(trace.slices.track[launch.value], trace.Start(launch))) {
      if (ranges.IsTag(range) &&
          (!first.valid() || trace.Uid(range) < trace.Uid(first)))
        first = range;
    }
    if (first.valid()) {
      adder.Add(std::string(trace.Name(kernel)),
                std::string(trace.Name(first)));
    }
  }
  return {};
}

NameTags TagsByName(const std::vector<Segment>& segments, TagKind kind) {
  NameTags names;
  Adder adder(names);
  for (const Segment& segment : segments) {
    if (!segment.names) continue;
    for (const Tags& tags : segment.launches) {
      std::string text = TagText(tags, kind);
      if (kind == TagKind::kInstance && !text.empty()) {
        // Event numbers repeat from file to file.
        text += "@" + std::to_string(segment.file);
      }
      if (!text.empty()) adder.Add(tags.name, std::move(text));
    }
  }
  return names;
}

std::string JoinedTags(const analysis::Context& replay, const NameTags& names,
                       bool classic, SliceId kernel) {
  std::string joined;
  if (const auto* tags = FindTags(replay, names, classic, kernel)) {
    for (const std::string& tag : *tags)
      joined += (joined.empty() ? "" : ", ") + tag;
  }
  return joined;
}

ResultSet NameResult(const analysis::Context& replay,
                     const Annotation& annotation, const NameTags& names,
                     bool classic) {
  const RowColumns<NameRow> columns{
      "annotate_names",
      "Replayed kernels by name with the tags of that name.",
      {{"kernel", ColumnType::kText, "Name.", &NameRow::kernel},
       {"kernels", ColumnType::kInt, "Device events.", &NameRow::kernels},
       {"time_us", ColumnType::kTime, "Sum of durations.", &NameRow::time},
       {"tags", ColumnType::kInt, "Distinct tags of the name.", &NameRow::tags},
       {"source_lines", ColumnType::kText,
        "The tags, in the order of their first use.", &NameRow::source_lines}}};
  Table table(columns.schema());
  struct Row {
    int64_t kernels = 0;
    int64_t ns = 0;
    SliceId first;
  };
  std::map<StringId, Row> rows;
  for (const Replay& of : annotation.replays) {
    for (const SliceId s : of.work) {
      Row& row = rows[replay.trace.slices.name[s.value]];
      if (row.kernels++ == 0) row.first = s;
      row.ns += replay.trace.Duration(s);
    }
  }
  std::vector<Row> sorted;
  for (const auto& [name, row] : rows) sorted.push_back(row);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Row& a, const Row& b) { return a.ns > b.ns; });
  int64_t all = 0, tagged = 0, single = 0;
  for (const Row& row : sorted) {
    const auto* tags = FindTags(replay, names, classic, row.first);
    const size_t count = tags != nullptr ? tags->size() : 0;
    all += row.kernels;
    if (count > 0) tagged += row.kernels;
    if (count == 1) single += row.kernels;
    columns.Add(
        table, {.kernel = replay.trace.Name(row.first),
                .kernels = row.kernels,
                .time = row.ns,
                .tags = count,
                .source_lines = JoinedTags(replay, names, classic, row.first)});
  }
  ResultSet result;
  result.tables.push_back(std::move(table));
  result.notes.push_back(MakeNote(
      Severity::kVerdict, "annotated_by_name",
      fmt::format("{} of {} replayed kernels have a tag by their name, {} of "
                  "them one only.",
                  GroupDigits(tagged), GroupDigits(all), GroupDigits(single)),
      {{"annotate_names", "", "", {}}}));
  return result;
}

Table MethodTable(const analysis::Context& replay,
                  const Annotation& annotation) {
  const RowColumns<MethodRow> columns{
      "annotate_methods",
      "Replayed kernels that get their tag: by the name alone, and by "
      "alignment.",
      {{"tag", ColumnType::kText,
        "Kind of tag; an instance is one call of an op.", &MethodRow::tag},
       {"kernels", ColumnType::kInt, "Replayed device events.",
        &MethodRow::kernels},
       {"name_one", ColumnType::kInt, "The name has this tag only.",
        &MethodRow::name_one},
       {"name_several", ColumnType::kInt, "The name has several tags.",
        &MethodRow::name_several},
       {"name_none", ColumnType::kInt, "The name has none.",
        &MethodRow::name_none},
       {"aligned_fact", ColumnType::kInt, "Known for sure by alignment.",
        &MethodRow::aligned_fact},
       {"aligned_likely", ColumnType::kInt, "Likely by alignment.",
        &MethodRow::aligned_likely},
       {"aligned_rest", ColumnType::kInt,
        "Without a tag of their own after it.", &MethodRow::aligned_rest}}};
  Table table(columns.schema());
  for (const TagKind kind : kTagKinds) {
    const NameTags names = TagsByName(annotation.segments, kind);
    // By segment and launch: whether it has such a tag.
    std::vector<std::vector<bool>> tagged;
    bool any = false;
    for (const Segment& segment : annotation.segments) {
      std::vector<bool>& own = tagged.emplace_back();
      for (const Tags& tags : segment.launches) {
        own.push_back(!TagText(tags, kind).empty());
        any = any || own.back();
      }
    }
    if (!any) continue;
    std::map<StringId, size_t> counts;
    int64_t kernels = 0, one = 0, several = 0, facts = 0, likely = 0;
    for (const Replay& of : annotation.replays) {
      for (size_t i = 0; i < of.work.size(); ++i) {
        const SliceId s = of.work[i];
        ++kernels;
        const auto [it, is_new] =
            counts.try_emplace(replay.trace.slices.name[s.value], 0);
        if (is_new) {
          const auto* tags = FindTags(replay, names, false, s);
          it->second = tags != nullptr ? tags->size() : 0;
        }
        one += it->second == 1;
        several += it->second > 1;
        const Match& match = annotation.MatchesOf(of)[i];
        if (match.partner == Match::kNoPartner || of.segment < 0 ||
            !tagged[static_cast<size_t>(of.segment)][match.partner])
          continue;
        const Confidence confidence = ConfidenceOf(match.level);
        facts += confidence == Confidence::kFact;
        likely += confidence == Confidence::kLikely;
      }
    }
    columns.Add(table, {.tag = TagKindName(kind),
                        .kernels = kernels,
                        .name_one = one,
                        .name_several = several,
                        .name_none = kernels - one - several,
                        .aligned_fact = facts,
                        .aligned_likely = likely,
                        .aligned_rest = kernels - facts - likely});
  }
  return table;
}

}  // namespace lamina::cudagraph
