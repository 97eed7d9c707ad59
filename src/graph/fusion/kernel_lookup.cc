// SPDX-License-Identifier: Apache-2.0

#include "graph/fusion/kernel_lookup.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <set>

#include "base/byte_source.h"
#include "base/text.h"
#include "graph/types.h"
#include "table/row_columns.h"

namespace lamina::fusion {

namespace {

constexpr size_t kMostByWords = 5;

std::string Place(const Mention& mention) {
  return mention.file + ":" + std::to_string(mention.line);
}

// Ops that are references or plumbing, not kernels of their own.
bool IsReference(std::string_view op) {
  return Contains(op, ".torch_") && !Contains(op, "quant");
}

// Steps that every chain may hold.
bool IsPlain(const std::string& step) {
  return step == "mul" || step == "add" || step == "shift" || step == "div" ||
         step == "sum" || step.starts_with("scale") ||
         step.starts_with("shift") || step.starts_with("get") ||
         step.starts_with("to[") || step.starts_with("part");
}

}  // namespace

KernelLookup::KernelLookup(const OpTable& ops, const SourceIndex* tree)
    : ops_(ops), tree_(tree) {}

FoundKernel KernelLookup::ByName(std::string_view op) const {
  FoundKernel out;
  out.op = op;
  // PyTorch's own ops are there with every tree.
  if (tree_ != nullptr && !graph::IsOfPyTorch(op)) {
    // With a tree only the tree answers, and a use is no definition.
    if (op.ends_with(".default")) op.remove_suffix(8);
    const Mention* const found = tree_->Find(op, Mention::Kind::kDefinition);
    if (found == nullptr) {
      const Mention* use = tree_->Find(op, Mention::Kind::kUse);
      if (use == nullptr) use = tree_->Find(op, Mention::Kind::kFake);
      out.evidence = use != nullptr
                         ? "not_found: used_not_defined, " + Place(*use)
                         : "not_found: not in " + tree_->tree;
      if (const KnownOp* const known = ops_.Find(op)) {
        out.evidence += fmt::format(
            "; built-in table: {} ({})",
            known->source.empty() ? "file not known" : known->source,
            known->evidence);
      }
      return out;
    }
    {
      out.score = 1;
      out.evidence = Place(*found);
      const Mention* const test = tree_->Find(op, Mention::Kind::kTest);
      if (test != nullptr) out.tests = Place(*test);
      return out;
    }
  }
  const KnownOp* const known = ops_.Find(op);
  if (known != nullptr) {
    out.score = 1;
    out.evidence =
        fmt::format("{} (built-in table, {})",
                    known->source.empty() ? "file not known" : known->source,
                    known->evidence);
  }
  return out;
}

FoundKernel KernelLookup::Transform(const graph::Rule& rule) const {
  FoundKernel out;
  out.op = rule.name;
  if (tree_ == nullptr) {
    out.score = 1;
    out.evidence = fmt::format("transform {}: {} (built-in table, {})",
                               rule.name, rule.source, rule.confidence);
    return out;
  }
  const Mention* const found =
      tree_->Find(rule.name, Mention::Kind::kTransform);
  if (found == nullptr) {
    out.evidence =
        "not_found: no transform " + rule.name + " in " + tree_->tree;
    return out;
  }
  out.score = 1;
  out.evidence = "transform " + rule.name + ": " + Place(*found);
  return out;
}

std::vector<std::string> KernelLookup::WordsOfName(
    std::string_view name) const {
  std::set<std::string> words;
  for (const auto& [part, word] : ops_.tokens()) {
    if (Contains(name, part)) words.insert(word);
  }
  return {words.begin(), words.end()};
}

std::vector<std::string> KernelLookup::WordsOf(
    const graph::Graph& graph, const std::vector<graph::NodeId>& nodes) const {
  std::set<std::string> words;
  for (const graph::NodeId id : nodes) {
    const std::string_view op = graph.op(id);
    if (ops_.ClassOf(op) == OpClass::kView) continue;
    // Adding a constant is no addition of two tensors.
    const bool scalar = graph.Inputs(id).size() < 2;
    const std::string_view name = op.substr(op.find('.') + 1);
    const std::vector<std::string> own = WordsOfName(name);
    for (const std::string& word : own) {
      // A constant scales or shifts: a step of its own.
      words.insert(scalar && word == "mul"   ? "scale"
                   : scalar && word == "add" ? "shift"
                                             : word);
    }
    // A step that no word names is one all the same: without it clamp would
    // vanish between silu and mul.
    if (own.empty() && !ops_.MayBeFree(op) &&
        ops_.ClassOf(op) != OpClass::kHost)
      words.emplace(name.substr(0, name.find('.')));
  }
  // A chain is named for what it computes, not for its steps.
  const bool rope = words.contains("neg") && words.contains("cat");
  if (rope) {
    words = {"rope"};
  } else if (words.contains("norm")) {
    // The inside of a norm: x * rsqrt(mean(x^2) + eps) * w.
    for (const char* const inside : {"mul", "pow", "mean", "shift"})
      words.erase(inside);
  }
  return {words.begin(), words.end()};
}

std::vector<FoundKernel> KernelLookup::ByMeaning(
    const graph::Graph& graph, const std::vector<graph::NodeId>& nodes,
    const std::vector<std::string>& words) const {
  std::vector<FoundKernel> out;
  // What a matrix product computes its name does not tell.
  if (words.empty() || words == std::vector<std::string>{"linear"}) return out;
  const Meaning chain(graph, nodes, ops_);
  if (chain.results().empty()) return out;
  std::set<std::string> telling;
  for (const std::string& step : chain.Steps(chain.results())) {
    if (!IsPlain(step)) telling.insert(step);
  }
  std::set<std::string> names;
  for (const KnownOp& op : ops_.ops()) names.insert(op.op);
  if (tree_ != nullptr) {
    for (const Mention& mention : tree_->mentions) {
      if (mention.kind == Mention::Kind::kDefinition)
        names.insert(mention.name);
    }
  }
  for (const std::string& name : names) {
    if (IsReference(name)) continue;
    const KnownOp* const known = ops_.Find(name);
    if (known == nullptr || known->means.empty()) {
      std::vector<std::string> has = WordsOfName(name);
      if (has.empty() || has != words) continue;
      FoundKernel found = ByName(name);
      if (found.score == 0) continue;
      found.score = 0;
      found.fit = Fit::kUnknown;
      found.why_not = "unknown meaning";
      out.push_back(std::move(found));
      continue;
    }
    const Judged judged = Compare(chain, *known);
    // Of ops that do something else only those that share a step which tells
    // what they are for.
    if (judged.fit == Fit::kConflict) {
      Meaning own;
      own.Parse(known->means[0]);
      const auto steps = own.Steps(own.results());
      const bool near = std::any_of(
          steps.begin(), steps.end(),
          [&](const std::string& step) { return telling.contains(step); });
      if (!near) continue;
    }
    FoundKernel found = ByName(name);
    if (found.score == 0) continue;
    if (judged.fit > Fit::kLayout) found.score = 0;
    found.fit = judged.fit;
    found.why_not = judged.why_not;
    out.push_back(std::move(found));
  }
  std::stable_sort(
      out.begin(), out.end(),
      [](const FoundKernel& a, const FoundKernel& b) { return a.fit < b.fit; });
  // The best ones, and some of what nearly fits.
  size_t others = 0;
  std::erase_if(out, [&](const FoundKernel& one) {
    return one.score == 0 && ++others > kMostByWords;
  });
  return out;
}

// A source tree as text: lines that define, use or test ops.

namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFile = size_t{8} << 20;
constexpr size_t kMaxFiles = 50000;

// Where ops, transforms and their tests live in a checkout.
constexpr std::string_view kFolders[] = {
    "tensorrt_llm/_torch/auto_deploy/custom_ops",
    "tensorrt_llm/_torch/auto_deploy/transform/library",
    "tensorrt_llm/_torch/auto_deploy/utils",
    "tensorrt_llm/_torch/custom_ops",
    "cpp/tensorrt_llm/thop",
    "tests/unittest/auto_deploy",
    "tests/unittest/_torch/auto_deploy",
};

bool IsSource(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".py" || extension == ".cpp" || extension == ".cc" ||
         extension == ".cu" || extension == ".h";
}

class Scanner {
 public:
  Scanner(std::string_view file, std::string_view text,
          std::vector<Mention>& out)
      : file_(file), text_(text), out_(out) {}

  void Run() {
    for (size_t i = 0; i < text_.size(); i = End(i) + 1) {
      line_ += 1;
      Line(i, text_.substr(i, End(i) - i));
    }
  }

 private:
  size_t End(size_t at) const {
    const size_t end = text_.find('\n', at);
    return end == std::string_view::npos ? text_.size() : end;
  }

  void Add(Mention::Kind kind, std::string name) {
    if (name.empty()) return;
    out_.push_back({kind, std::move(name), file_, line_});
  }

  // The first string behind `from`, at most two lines on: black breaks lines
  // behind a parenthesis.
  std::string StringBehind(size_t from) const {
    size_t i = from;
    int lines = 0;
    while (i < text_.size() && text_[i] != '"' && text_[i] != '\'') {
      if (text_[i] == '\n' && ++lines > 2) return {};
      if (text_[i] == ')') return {};
      ++i;
    }
    if (i >= text_.size()) return {};
    const size_t end = text_.find(text_[i], i + 1);
    if (end == std::string_view::npos || end - i > 200) return {};
    return std::string(text_.substr(i + 1, end - i - 1));
  }

  // "ns::name(schema)" -> "ns.name"; without a namespace that of the library.
  std::string OpName(std::string name) const {
    name.resize(std::min(name.find('('), name.size()));
    const size_t colons = name.find("::");
    if (colons != std::string::npos)
      return name.substr(0, colons) + "." + name.substr(colons + 2);
    if (library_.empty() || name.empty()) return {};
    return library_ + "." + name;
  }

  static std::string NameAt(std::string_view text) {
    size_t end = 0;
    while (end < text.size() && IsWordCharacter(text[end])) ++end;
    return std::string(text.substr(0, end));
  }

  void Line(size_t offset, std::string_view line) {
    const auto behind = [&](std::string_view word) -> size_t {
      const size_t at = line.find(word);
      return at == std::string_view::npos ? 0 : at + word.size();
    };
    if (const size_t at = behind("TORCH_LIBRARY_FRAGMENT(")) {
      library_ = NameAt(line.substr(at));
    } else if (const size_t impl = behind("TORCH_LIBRARY_IMPL(")) {
      library_ = NameAt(line.substr(impl));
    } else if (const size_t library = behind("TORCH_LIBRARY(")) {
      library_ = NameAt(line.substr(library));
    } else if (const size_t made = behind("Library(")) {
      library_ = StringBehind(offset + made);
    }
    if (const size_t at = behind("custom_op(")) {
      Add(Mention::Kind::kDefinition, OpName(StringBehind(offset + at)));
    } else if (const size_t fake = behind("register_fake(")) {
      Add(Mention::Kind::kFake, OpName(StringBehind(offset + fake)));
    } else if (const size_t defined = behind(".define(")) {
      Add(Mention::Kind::kDefinition, OpName(StringBehind(offset + defined)));
    } else if (const size_t def = behind("m.def(")) {
      Add(Mention::Kind::kDefinition, OpName(StringBehind(offset + def)));
    } else if (const size_t impl = behind("m.impl(")) {
      Add(Mention::Kind::kImplementation, OpName(StringBehind(offset + impl)));
    }
    if (const size_t at = behind("TransformRegistry.register("))
      Add(Mention::Kind::kTransform, StringBehind(offset + at));
    if (behind("register_ad_pattern(") || behind("ADPatternMatcherPass("))
      Add(Mention::Kind::kPattern, function_.empty() ? "module" : function_);
    Functions(line);
    Uses(line);
  }

  void Functions(std::string_view line) {
    const size_t first = line.find_first_not_of(' ');
    if (first == std::string_view::npos) return;
    const std::string_view text = line.substr(first);
    if (text.starts_with("@triton.jit")) {
      triton_ = true;
      return;
    }
    if (!text.starts_with("def ")) return;
    function_ = NameAt(text.substr(4));
    if (triton_) Add(Mention::Kind::kTriton, function_);
    triton_ = false;
    // A function of the module that may be a target: "fn.name".
    const bool offered =
        Contains(file_, "custom_ops/") || Contains(file_, "utils/");
    if (first == 0 && offered && !Contains(file_, "tests/") &&
        !function_.starts_with('_') && !function_.starts_with("test_"))
      Add(Mention::Kind::kDefinition, "fn." + function_);
    in_test_ = function_.starts_with("test_");
    if (in_test_) Add(Mention::Kind::kTest, function_);
  }

  void Uses(std::string_view line) {
    constexpr std::string_view kOps = "torch.ops.";
    for (size_t at = line.find(kOps); at != std::string_view::npos;
         at = line.find(kOps, at + 1)) {
      const std::string_view rest = line.substr(at + kOps.size());
      const std::string space = NameAt(rest);
      if (space.size() >= rest.size() || rest[space.size()] != '.') continue;
      const std::string name = NameAt(rest.substr(space.size() + 1));
      if (name.empty()) continue;
      Add(in_test_ ? Mention::Kind::kTest : Mention::Kind::kUse,
          space + "." + name);
    }
  }

  std::string file_;
  std::string_view text_;
  std::vector<Mention>& out_;
  uint32_t line_ = 0;
  std::string library_;
  std::string function_;
  bool triton_ = false;
  bool in_test_ = false;
};

struct MentionRow {
  std::string_view kind, name, file;
  uint32_t line;
};

}  // namespace

std::string_view Name(Mention::Kind kind) {
  switch (kind) {
    case Mention::Kind::kDefinition:
      return "definition";
    case Mention::Kind::kFake:
      return "shape function";
    case Mention::Kind::kImplementation:
      return "implementation";
    case Mention::Kind::kUse:
      return "use";
    case Mention::Kind::kTransform:
      return "transform";
    case Mention::Kind::kPattern:
      return "pattern";
    case Mention::Kind::kTriton:
      return "triton kernel";
    case Mention::Kind::kTest:
      return "test";
  }
  return {};
}

const Mention* SourceIndex::Find(std::string_view name,
                                 Mention::Kind kind) const {
  for (const Mention& mention : mentions) {
    if (mention.kind == kind && mention.name == name) return &mention;
  }
  return nullptr;
}

void ScanText(std::string_view file, std::string_view text,
              std::vector<Mention>& out) {
  Scanner(file, text, out).Run();
}

Result<SourceIndex> ScanTree(const std::string& tree) {
  SourceIndex out;
  out.tree = tree;
  std::error_code error;
  if (!fs::is_directory(tree, error)) {
    return Fail(UsageError("⟨tree⟩: '" + tree + "' is no folder",
                           "give a source checkout of TensorRT-LLM"));
  }
  std::vector<fs::path> roots;
  for (const std::string_view folder : kFolders) {
    const fs::path path = fs::path(tree) / folder;
    if (fs::is_directory(path, error)) roots.push_back(path);
  }
  if (roots.empty()) roots.emplace_back(tree);
  std::vector<std::string> files;
  for (const fs::path& root : roots) {
    fs::recursive_directory_iterator it(
        root, fs::directory_options::skip_permission_denied, error);
    for (const fs::recursive_directory_iterator end;
         !error && it != end && files.size() < kMaxFiles; it.increment(error)) {
      std::error_code ignored;
      if (it->is_regular_file(ignored) && !it->is_symlink(ignored) &&
          IsSource(it->path()))
        files.push_back(it->path().string());
    }
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    const auto text = ReadAll(file, kMaxFile);
    if (!text) continue;
    ++out.files;
    ScanText(fs::path(file).lexically_relative(tree).string(), *text,
             out.mentions);
  }
  return out;
}

Table SourceTable(const SourceIndex& index) {
  const RowColumns<MentionRow> columns{
      "source_index",
      "What the source tree says of ops.",
      {{"kind", ColumnType::kText, "What the line does.", &MentionRow::kind},
       {"name", ColumnType::kText, "Op, transform or function.",
        &MentionRow::name},
       {"file", ColumnType::kText, "File below the tree.", &MentionRow::file},
       {"line", ColumnType::kInt, "Line.", &MentionRow::line}}};
  Table table(columns.schema());
  for (const Mention& mention : index.mentions)
    columns.Add(table, {.kind = Name(mention.kind),
                        .name = mention.name,
                        .file = mention.file,
                        .line = mention.line});
  return table;
}

}  // namespace lamina::fusion
