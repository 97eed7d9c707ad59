// SPDX-License-Identifier: Apache-2.0
//
// Every fact has one small function; what they share is finding a class or a
// function in Python text by its indentation. One file, because together they
// are the list of what lamina knows of the API.
#include "graph/generate/tree_api.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>

#include "base/byte_source.h"
#include "base/text.h"

namespace lamina::generate {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNoPlace = std::string_view::npos;
constexpr size_t kMaxFile = size_t{8} << 20;

size_t LineOf(std::string_view text, size_t at) {
  return 1 +
         static_cast<size_t>(std::count(
             text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n'));
}

std::string_view TrimmedLine(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == kNoPlace) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string_view NameAt(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && IsWordCharacter(text[end])) ++end;
  return text.substr(0, end);
}

// A line that begins with `head`, and its body: the deeper lines behind it.
struct Block {
  size_t at = kNoPlace;
  std::string_view body;
  bool found() const { return at != kNoPlace; }
};
Block BlockOf(std::string_view text, std::string_view head) {
  for (size_t at = text.find(head); at != kNoPlace;
       at = text.find(head, at + 1)) {
    const size_t line = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    const std::string_view before = text.substr(line, at - line);
    if (before.find_first_not_of(' ') != kNoPlace) continue;
    if (IsWordCharacter(head.back()) && at + head.size() < text.size() &&
        IsWordCharacter(text[at + head.size()]))
      continue;
    const size_t indent = before.size();
    size_t end = std::min(text.find('\n', at), text.size());
    // Brackets of the head may close on a line of its own indent.
    while (end < text.size()) {
      const size_t next = std::min(text.find('\n', end + 1), text.size());
      const std::string_view row = text.substr(end + 1, next - end - 1);
      const size_t first = row.find_first_not_of(" \r");
      if (first != kNoPlace && first <= indent && row[first] != ')') break;
      end = next;
    }
    return {at, text.substr(at, end - at)};
  }
  return {};
}

// Parameters of the function whose text begins at "def".
std::vector<std::string> ParametersOf(std::string_view text) {
  std::vector<std::string> out;
  const size_t open = text.find('(');
  if (open == kNoPlace) return out;
  size_t depth = 0;
  size_t begin = open + 1;
  for (size_t i = open; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
      if (depth == 1) begin = i + 1;
      continue;
    }
    const bool closes = c == ')' || c == ']' || c == '}';
    if ((c == ',' && depth == 1) || (closes && depth == 1)) {
      const std::string_view name =
          NameAt(TrimmedLine(text.substr(begin, i - begin)));
      if (!name.empty()) out.emplace_back(name);
      begin = i + 1;
    }
    if (closes && --depth == 0) break;
  }
  return out;
}

// "    name: type = value" and "    NAME = value" of a class.
std::vector<std::pair<std::string, std::string>> FieldsOf(
    std::string_view body) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string_view line : SplitLines(body)) {
    if (!line.starts_with("    ") || line.size() < 5 || line[4] == ' ') {
      if (!out.empty()) out.back().second += line;
      continue;
    }
    const std::string_view rest = line.substr(4);
    const std::string_view name = NameAt(rest);
    if (name.empty() || name.size() == rest.size()) continue;
    const std::string_view behind = rest.substr(name.size());
    if (behind.starts_with(": ") || behind.starts_with(" = "))
      out.emplace_back(name, behind);
  }
  return out;
}

class ApiReader {
 public:
  explicit ApiReader(const std::string& tree) { out_.tree = tree; }

  Result<TreeApi> Run() {
    const std::string base = Path("transform/interface.py");
    const auto interface = ReadAll(base, kMaxFile);
    if (!interface) return Fail(Missing("transform/interface.py"));
    LAMINA_TRY(Interface(*interface));
    Matcher();
    Library();
    Tests();
    if (auto text = ReadAll(Path("config/default.yaml"), kMaxFile)) {
      out_.default_yaml = std::move(*text);
      Fact("config", "config/default.yaml", "config/default.yaml", 1);
    } else {
      Fact("config", "", "", 0);
    }
    return std::move(out_);
  }

 private:
  std::string Path(std::string_view file) const {
    return fmt::format("{}/{}/{}", out_.tree, kAutoDeploy, file);
  }
  static Error Missing(std::string_view what) {
    return UsageError(
        "⟨tree⟩: no transform API in this tree: " + std::string(kAutoDeploy) +
            "/" + std::string(what) + " is missing",
        "give a source checkout of TensorRT-LLM");
  }
  Error Unknown(std::string_view row, std::string_view what) const {
    return UsageError(fmt::format("api_unknown: {}: {}", row, what),
                      "this version of AutoDeploy is not known to lamina");
  }
  void Fact(std::string name, std::string form, std::string_view file,
            size_t line) {
    out_.facts.push_back(
        {std::move(name), std::move(form),
         file.empty() ? std::string()
                      : fmt::format("{}/{}:{}", kAutoDeploy, file, line)});
  }

  Status Interface(std::string_view text) {
    constexpr std::string_view kFile = "transform/interface.py";
    const Block base = BlockOf(text, "class BaseTransform");
    if (!base.found()) return Fail(Missing("transform/interface.py"));
    Fact("base", "class BaseTransform", kFile, LineOf(text, base.at));
    const Block apply = BlockOf(base.body, "def _apply(");
    if (!apply.found())
      return Fail(Unknown("apply", "BaseTransform has no _apply"));
    out_.apply_parameters = ParametersOf(apply.body);
    const std::vector<std::string> known = {"self", "gm", "cm", "factory",
                                            "shared_config"};
    if (out_.apply_parameters != known) {
      return Fail(Unknown("apply",
                          fmt::format("_apply takes {}",
                                      fmt::join(out_.apply_parameters, ", "))));
    }
    const bool full = Contains(base.body, "def _apply_to_full_model(");
    Fact("apply",
         full ? "of a graph module, or of the full model" : "of a graph module",
         kFile, LineOf(text, base.at + apply.at));
    const Block info = BlockOf(text, "class TransformInfo");
    if (!info.found()) return Fail(Unknown("info", "no TransformInfo"));
    bool defaults = true;
    std::vector<std::string> names;
    for (const auto& [name, rest] : FieldsOf(info.body)) {
      names.push_back(name);
      if (name == "skipped" || name == "num_matches")
        defaults = defaults && Contains(rest, "=") &&
                   (Contains(rest, "default") || !Contains(rest, "Field("));
    }
    for (const std::string_view field :
         {"skipped", "num_matches", "is_clean", "has_valid_shapes"}) {
      if (std::find(names.begin(), names.end(), field) == names.end())
        return Fail(Unknown("info", fmt::format("no field {}", field)));
    }
    out_.later_infos = defaults;
    Fact("info", defaults ? "all fields have defaults" : "fields are required",
         kFile, LineOf(text, info.at));
    const Block stages = BlockOf(text, "class Stages");
    if (!stages.found()) return Fail(Unknown("stages", "no class Stages"));
    for (const auto& [name, rest] : FieldsOf(stages.body)) {
      const size_t open = rest.find('"');
      const size_t close = open == kNoPlace ? open : rest.find('"', open + 1);
      if (close != kNoPlace && rest.starts_with(" = "))
        out_.stages.push_back(rest.substr(open + 1, close - open - 1));
    }
    if (out_.stages.empty()) return Fail(Unknown("stages", "none found"));
    Fact("stages", fmt::format("{}", fmt::join(out_.stages, ", ")), kFile,
         LineOf(text, stages.at));
    const Block config = BlockOf(text, "class TransformConfig");
    if (!config.found()) return Fail(Unknown("fields", "no TransformConfig"));
    for (const auto& [name, rest] : FieldsOf(config.body)) {
      if (name != "model_config") out_.config_fields.push_back(name);
    }
    Fact("fields", fmt::format("{}", fmt::join(out_.config_fields, ", ")),
         kFile, LineOf(text, config.at));
    return {};
  }

  void Matcher() {
    const auto matcher = ReadAll(Path("utils/pattern_matcher.py"), kMaxFile);
    const Block function =
        matcher ? BlockOf(*matcher, "def register_ad_pattern(") : Block();
    if (function.found()) out_.matcher_parameters = ParametersOf(function.body);
    Fact("matcher",
         function.found()
             ? fmt::format("{}", fmt::join(out_.matcher_parameters, ", "))
             : "",
         function.found() ? "utils/pattern_matcher.py" : "",
         function.found() ? LineOf(*matcher, function.at) : 0);
    const auto utils = ReadAll(Path("utils/node_utils.py"), kMaxFile);
    const Block is_op = utils ? BlockOf(*utils, "def is_op(") : Block();
    out_.has_is_op = is_op.found();
    Fact("is_op", is_op.found() ? "utils/node_utils.py" : "",
         is_op.found() ? "utils/node_utils.py" : "",
         is_op.found() ? LineOf(*utils, is_op.at) : 0);
  }

  // The comment in front of a file that holds a year, and the year.
  static std::pair<int, std::string> HeaderOf(std::string_view text) {
    std::string header;
    int year = 0;
    for (const std::string_view line : SplitLines(text)) {
      if (!line.starts_with('#')) break;
      const size_t at = line.find("20");
      if (Contains(line, "opyright") && at != kNoPlace &&
          at + 4 <= line.size()) {
        for (size_t i = at; i + 4 <= line.size(); ++i) {
          if (line.substr(i, 2) != "20") continue;
          int found = 0;
          for (const char c : line.substr(i, 4))
            found = c >= '0' && c <= '9' ? found * 10 + (c - '0') : -100000;
          year = std::max(year, found);
        }
      }
      header += std::string(line) + "\n";
    }
    return {year, header};
  }

  void Library() {
    std::error_code error;
    const std::string folder = Path("transform/library");
    std::vector<std::string> files;
    for (fs::directory_iterator it(folder, error), end; !error && it != end;
         it.increment(error)) {
      if (it->path().extension() == ".py") files.push_back(it->path().string());
    }
    std::sort(files.begin(), files.end());
    // How most files import what a pass needs.
    const std::string_view symbols[] = {"CachedSequenceInterface",
                                        "ModelFactory", "is_op",
                                        "register_ad_pattern", "ad_logger"};
    std::map<std::string_view, std::map<std::string, size_t>> votes;
    int newest = -1;
    for (const std::string& file : files) {
      const auto text = ReadAll(file, kMaxFile);
      if (!text) continue;
      if (file.ends_with("/__init__.py")) {
        out_.library_init = *text;
        continue;
      }
      const auto [year, header] = HeaderOf(*text);
      if (!header.empty() && year > newest) {
        newest = year;
        out_.header = header;
      }
      for (const std::string_view symbol : symbols) {
        const size_t at = text->find(symbol);
        if (at == kNoPlace) continue;
        const size_t from = text->rfind("from ", at);
        const size_t word =
            from == kNoPlace ? kNoPlace : text->find(" import", from);
        if (word == kNoPlace || word > at) continue;
        const std::string module = text->substr(from + 5, word - from - 5);
        if (module.starts_with("...") && !Contains(module, "\n"))
          ++votes[symbol][module];
      }
    }
    const std::map<std::string_view, std::string> usual = {
        {"CachedSequenceInterface", "...shim.interface"},
        {"ModelFactory", "...models.factory"},
        {"is_op", "...utils.node_utils"},
        {"register_ad_pattern", "...utils.pattern_matcher"},
        {"ad_logger", "...utils.logger"}};
    std::string said;
    for (const auto& [symbol, module] : usual) {
      std::string best = module;
      size_t most = 0;
      for (const auto& [name, count] : votes[symbol]) {
        if (count > most) {
          most = count;
          best = name;
        }
      }
      said += fmt::format("{}{}: {}", said.empty() ? "" : ", ", symbol, best);
      out_.imports.emplace_back(symbol, best);
    }
    Fact("imports", said, "transform/library", 1);
    out_.walks_library = out_.library_init.empty() ||
                         Contains(out_.library_init, "iter_modules");
    Fact("registration",
         out_.walks_library ? "all modules of the folder" : "a list of imports",
         "transform/library/__init__.py", 1);
  }

  void Tests() {
    const std::string_view folders[] = {
        "tests/unittest/auto_deploy/singlegpu/transformations/library",
        "tests/unittest/_torch/auto_deploy/unit/singlegpu/transformations/"
        "library"};
    std::error_code error;
    for (const std::string_view folder : folders) {
      if (!fs::is_directory(fs::path(out_.tree) / folder, error)) continue;
      out_.test_folder = folder;
      out_.test_folder_exists = true;
      break;
    }
    if (out_.test_folder.empty()) out_.test_folder = folders[0];
    out_.facts.push_back(
        {"tests", out_.test_folder_exists ? "found" : "", out_.test_folder});
  }

  TreeApi out_;
};

// Names in `mutates_args=...`; nullopt: it is not read.
std::optional<std::vector<std::string>> MutatedNames(std::string_view text) {
  std::vector<std::string> out;
  const size_t at = text.find("mutates_args");
  if (at == kNoPlace) return out;
  const size_t open = text.find_first_of("([{\"'", at);
  if (open == kNoPlace) return std::nullopt;
  if (text[open] == '"' || text[open] == '\'') return std::nullopt;
  const size_t close = text.find_first_of(")]}", open);
  if (close == kNoPlace) return std::nullopt;
  std::string_view inside = text.substr(open + 1, close - open - 1);
  while (true) {
    const size_t quote = inside.find_first_of("\"'");
    if (quote == kNoPlace) return out;
    const size_t end = inside.find(inside[quote], quote + 1);
    if (end == kNoPlace) return std::nullopt;
    out.emplace_back(inside.substr(quote + 1, end - quote - 1));
    inside.remove_prefix(end + 1);
  }
}

std::optional<std::vector<size_t>> Positions(
    const std::vector<std::string>& names,
    const std::vector<std::string>& parameters) {
  std::vector<size_t> out;
  for (const std::string& name : names) {
    const auto found = std::find(parameters.begin(), parameters.end(), name);
    if (found == parameters.end()) return std::nullopt;
    out.push_back(static_cast<size_t>(found - parameters.begin()));
  }
  return out;
}

size_t OffsetOfLine(std::string_view text, size_t line) {
  size_t at = 0;
  while (--line > 0 && at < text.size())
    at = std::min(text.find('\n', at), text.size() - 1) + 1;
  return at;
}

}  // namespace

std::string TreeApi::ModuleOf(std::string_view symbol) const {
  for (const auto& [name, module] : imports) {
    if (name == symbol) return module;
  }
  return {};
}

Result<TreeApi> ReadTreeApi(const std::string& tree) {
  return ApiReader(tree).Run();
}

std::optional<std::vector<size_t>> MutatedOperands(
    const fusion::SourceIndex& index, std::string_view op) {
  if (op.ends_with(".default")) op.remove_suffix(8);
  const fusion::Mention* const found =
      index.Find(op, fusion::Mention::Kind::kDefinition);
  if (found == nullptr) return std::vector<size_t>();
  const auto text = ReadAll(index.tree + "/" + found->file, kMaxFile);
  if (!text) return std::vector<size_t>();
  const size_t at = OffsetOfLine(*text, found->line);
  const size_t def = text->find("def ", at);
  if (!op.starts_with("fn.")) {
    // The decorator, then the function.
    const std::string_view head =
        std::string_view(*text).substr(at, std::min(def, at + 2000) - at);
    const auto names = MutatedNames(head);
    if (!names || names->empty())
      return names ? std::optional(std::vector<size_t>()) : std::nullopt;
    if (def == kNoPlace) return std::nullopt;
    return Positions(*names, ParametersOf(std::string_view(*text).substr(def)));
  }
  // A function around an op that writes.
  const Block body = BlockOf(std::string_view(*text).substr(at),
                             fmt::format("def {}(", op.substr(3)));
  if (!body.found()) return std::vector<size_t>();
  const std::vector<std::string> own = ParametersOf(body.body);
  std::vector<std::string> names;
  constexpr std::string_view kOps = "torch.ops.";
  for (size_t use = body.body.find(kOps); use != kNoPlace;
       use = body.body.find(kOps, use + 1)) {
    const std::string_view rest = body.body.substr(use + kOps.size());
    const std::string_view space = NameAt(rest);
    if (space.size() >= rest.size() || rest[space.size()] != '.') continue;
    const std::string_view name = NameAt(rest.substr(space.size() + 1));
    const auto inner =
        MutatedOperands(index, fmt::format("{}.{}", space, name));
    if (!inner) return std::nullopt;
    if (inner->empty()) continue;
    const std::vector<std::string> arguments = ParametersOf(rest);
    for (const size_t position : *inner) {
      if (position >= arguments.size()) return std::nullopt;
      names.push_back(arguments[position]);
    }
  }
  return Positions(names, own);
}

std::optional<std::string> WithConfigEntry(const TreeApi& api,
                                           std::string_view stage,
                                           std::string_view entry) {
  const std::vector<std::string_view> lines = SplitLines(api.default_yaml);
  const auto rank = [&](std::string_view name) {
    return static_cast<size_t>(
        std::find(api.stages.begin(), api.stages.end(), name) -
        api.stages.begin());
  };
  const size_t wanted = rank(stage);
  size_t behind = 0;  // lines in front of the entry
  size_t key = 0;     // the line behind the last key of a transform
  bool fits = false;  // the block at hand
  bool inside = false;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    const std::string_view text = TrimmedLine(line);
    if (text.empty() || text.starts_with('#')) continue;
    const size_t indent = line.find_first_not_of(' ');
    if (indent == 0) inside = text.starts_with("transforms:");
    if (!inside || indent == 0) continue;
    if (indent == 2) {
      key = i + 1;
      fits = false;
      // `name: {stage: x}`
      if (!Contains(text, "stage:")) continue;
    }
    if (indent > 2) key = i + 1;
    const size_t at = text.find("stage:");
    if (at != kNoPlace && (at == 0 || !IsWordCharacter(text[at - 1])))
      fits = rank(NameAt(TrimmedLine(text.substr(at + 6)))) <= wanted;
    if (fits) behind = key;
  }
  if (behind == 0) return std::nullopt;
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i == behind) out += entry;
    out += std::string(lines[i]) + "\n";
  }
  if (behind == lines.size()) out += entry;
  return out;
}

std::string UnifiedDiff(std::string_view file, std::string_view before,
                        std::string_view after) {
  constexpr size_t kContext = 3;
  const std::vector<std::string_view> a = SplitLines(before);
  const std::vector<std::string_view> b = SplitLines(after);
  size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  if (head == a.size() && head == b.size()) return {};
  size_t tail = 0;
  while (tail < a.size() - head && tail < b.size() - head &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  const size_t from = head > kContext ? head - kContext : 0;
  const size_t a_end = std::min(a.size(), a.size() - tail + kContext);
  const size_t b_end = std::min(b.size(), b.size() - tail + kContext);
  std::string out =
      fmt::format("--- a/{0}\n+++ b/{0}\n@@ -{1},{2} +{1},{3} @@\n", file,
                  from + 1, a_end - from, b_end - from);
  const auto add = [&](char sign, std::string_view line) {
    out += sign;
    out += line;
    out += '\n';
  };
  for (size_t i = from; i < head; ++i) add(' ', a[i]);
  for (size_t i = head; i < a.size() - tail; ++i) add('-', a[i]);
  for (size_t i = head; i < b.size() - tail; ++i) add('+', b[i]);
  for (size_t i = a.size() - tail; i < a_end; ++i) add(' ', a[i]);
  return out;
}

}  // namespace lamina::generate
