// SPDX-License-Identifier: Apache-2.0
//
// Long, because which reader takes a text, what of it is read and which files
// beside it name its weights all depend on what the content is.
#include "graph/dialects/read.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sys/stat.h>

#include "base/byte_source.h"
#include "base/escape.h"
#include "base/opened.h"
#include "graph/dialects/log_text.h"
#include "graph/dialects/readers.h"
#include "graph/folder.h"
#include "rules/document.h"

namespace lamina::graph {
namespace {

constexpr size_t kHead = size_t{64} << 10;

// A line that begins with one of the words, blanks in front left out.
bool HasLine(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != kNone; at = text.find(word, at + 1)) {
    size_t begin = at;
    while (begin > 0 && (text[begin - 1] == ' ' || text[begin - 1] == '\t'))
      --begin;
    if (begin == 0 || text[begin - 1] == '\n') return true;
  }
  return false;
}

bool Has(std::string_view text, std::string_view word) {
  return text.find(word) != kNone;
}

// The dialect of text without prefixes.
std::string_view RecognisePlain(std::string_view text) {
  if (HasLine(text, "opcode ") && Has(text, "\n----")) return "fx-table";
  // Values of MLIR without indentation look like nodes of AutoDeploy.
  if (HasLine(text, "func.func ")) return "mlir";
  if (LooksLikeDump(text)) return "autodeploy";
  if (HasLine(text, "HloModule ")) return "hlo";
  if (Has(text, "func.func") ||
      ((HasLine(text, "module ") || HasLine(text, "func @") ||
        Has(text, "\"builtin.module\"(")) &&
       (Has(text, "stablehlo.") || Has(text, "mhlo.") || Has(text, "chlo."))))
    return "mlir";
  if (Has(text, "AsyncCompile()") || Has(text, "async_compile.triton("))
    return "inductor";
  if (Has(text, "def forward(")) return "fx";
  if (HasLine(text, "graph(") &&
      (Has(text, "[num_users=") || Has(text, "[#users=") ||
       HasLine(text, "return ")))
    return "fx-graph";
  return {};
}

// Which lines of the head are decorated.
std::string_view RecogniseLog(std::string_view head) {
  size_t pos = 0;
  for (int i = 0; i < 400 && pos < head.size(); ++i) {
    const size_t end = std::min(head.find('\n', pos), head.size());
    const std::string_view line = head.substr(pos, end - pos);
    if (IsTraceRecord(line)) return "trace";
    const LogPrefix prefix = ReadLogPrefix(line);
    if (prefix.length > 0 && !prefix.artifact.empty()) return "log";
    pos = end + 1;
  }
  return {};
}

void ReadAs(std::string_view dialect, const SourceText& source,
            std::string_view name, Builder& out, std::string& main) {
  if (dialect == "fx") ReadFxText(source, name, out);
  if (dialect == "fx-graph") ReadFxGraph(source, name, out);
  if (dialect == "fx-table") ReadFxTable(source, name, out);
  if (dialect == "inductor") ReadInductor(source, name, out);
  if (dialect == "mlir") ReadMlir(source, name, out);
  if (dialect == "hlo") ReadHlo(source, name, out, main);
}

// Whether a payload of a trace may hold a graph: those that say so, and others
// that begin like one. Guards, metrics, keys of caches quote graphs.
bool MayHoldGraph(std::string_view payload, std::string_view text) {
  if (payload.empty()) return true;                  // a message of a log
  if (payload == "fx_graph_runnable") return false;  // the same graph again
  if (payload == "inductor_output_code" || payload == "exported_program" ||
      payload.ends_with("_graph"))
    return true;
  const size_t begin = text.find_first_not_of(" \n\r\t");
  if (begin == kNone) return false;
  text.remove_prefix(begin);
  for (const std::string_view word :
       {"class ", "def forward(", "graph(", "ExportedProgram", "HloModule",
        "module "}) {
    if (text.starts_with(word)) return true;
  }
  return false;
}

Error NoDump(const std::string& name, std::string_view text) {
  const std::string_view line =
      text.substr(0, std::min<size_t>(text.find('\n'), 80));
  return InputErrorAt(
      name, 0,
      "this is no graph dump: expected the begin of one, found '" +
          EscapeTerminal(line) + "'",
      "known are dumps of AutoDeploy (AD_DUMP_GRAPHS_DIR), FX graphs "
      "(print_readable, print, print_tabular), TORCH_LOGS and TORCH_TRACE, "
      "output code of Inductor, StableHLO and HLO text");
}

// The dialects, and how a graph of each begins.
constexpr std::pair<std::string_view, std::string_view> kBegins[] = {
    {"autodeploy", "'# GraphModule: NAME' between two rulers of '='"},
    {"fx", "'def forward('"},
    {"fx-graph", "'graph():' and lines '%x : [num_users=1] = ...'"},
    {"fx-table", "a line 'opcode  name  target  args  kwargs'"},
    {"inductor",
     "comments '# %x : [num_users=1] = call_function[target=...](...)' above "
     "kernels"},
    {"mlir", "'func.func @NAME(...) {'"},
    {"hlo", "'HloModule NAME' and 'ENTRY NAME {'"},
    {"log", "lines with a prefix of TORCH_LOGS and graphs behind them"},
    {"trace", "records of TORCH_TRACE with graphs below them"},
};

std::string_view BeginOf(std::string_view dialect) {
  for (const auto& [name, begin] : kBegins) {
    if (name == dialect) return begin;
  }
  return {};
}

// No graph in the form that was asked for.
Error NotOfDialect(const std::string& name, std::string_view text,
                   std::string_view dialect) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  const std::string_view rest =
      begin == kNone ? std::string_view() : text.substr(begin);
  const std::string_view line =
      rest.substr(0, std::min<size_t>(rest.find_first_of("\r\n"), 80));
  const std::string_view is = RecogniseDialect(text);
  std::string hint;
  if (!is.empty() && is != dialect) {
    hint = "the content looks like '" + std::string(is) +
           "'; without ⟨dialect⟩ the content decides";
  }
  return InputErrorAt(name, 0,
                      "no graph of the dialect '" + std::string(dialect) +
                          "': expected " + std::string(BeginOf(dialect)) +
                          ", found " +
                          (line.empty() ? std::string("nothing")
                                        : "'" + EscapeTerminal(line) + "'"),
                      hint);
}

using Inputs = std::vector<Builder::Input>;

bool NamesAny(const Inputs& inputs) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const auto& one) { return !one.path.empty(); });
}

using SharedInputs = std::shared_ptr<const Inputs>;
SharedInputs InputsOf(const std::string& path);

// Files with graphs of dynamo that a graph may be of, the nearest first.
class Sources {
 public:
  // More than so many leave it open which it is.
  static constexpr size_t kMost = 256;

  std::vector<std::string> paths;

  void Offer(Builder& out) {
    out.more_primals = paths.size() > kMost;
    out.primals = [this](size_t i) { return At(i); };
  }
  // Null behind the last.
  const Inputs* At(size_t i) {
    if (i >= paths.size()) return nullptr;
    while (read_.size() <= i) read_.push_back(InputsOf(paths[read_.size()]));
    return read_[i].get();
  }
  std::string PathOf(const Inputs* inputs) const {
    for (size_t i = 0; i < read_.size(); ++i) {
      if (read_[i].get() == inputs) return paths[i];
    }
    return {};
  }

 private:
  std::vector<SharedInputs> read_;
};

size_t OpsOf(const Graph& graph) {
  size_t out = 0;
  for (const NodeId id : graph.nodes())
    out += graph[id].kind == NodeKind::kOp ? 1 : 0;
  return out;
}

// Whether a reader that the content did not ask for found anything.
bool HoldsAny(const Dump& dump) {
  return std::any_of(dump.graphs.begin(), dump.graphs.end(),
                     [](const Graph& one) { return OpsOf(one) > 0; }) ||
         (!dump.graphs.empty() &&
          RecogniseDialect(*dump.text) ==
              (dump.dialect.empty() ? "autodeploy" : dump.dialect));
}

// Of the frame with the largest graph what was compiled last: earlier ones were
// thrown away. `compiles` names that of each graph: "0/1", frame and number.
std::string LastCompiled(const std::vector<Graph>& graphs,
                         const std::vector<std::string_view>& compiles) {
  const auto largest = [&](auto fits) {
    size_t best = graphs.size();
    size_t most = 0;
    for (size_t i = 0; i < graphs.size(); ++i) {
      if (!fits(i)) continue;
      const size_t ops = OpsOf(graphs[i]);
      if (best < graphs.size() && ops <= most) continue;
      best = i;
      most = ops;
    }
    return best;
  };
  const auto frame = [&](size_t i) {
    return compiles[i].substr(0, compiles[i].find('/'));
  };
  const size_t first = largest([](size_t) { return true; });
  if (first == graphs.size() || compiles[first].empty()) return {};
  size_t last = first;
  for (size_t i = 0; i < graphs.size(); ++i) {
    if (frame(i) == frame(first)) last = i;
  }
  return graphs[largest(
                    [&](size_t i) { return compiles[i] == compiles[last]; })]
      .name();
}

// `options.dialect` names the parts to read of a log or trace, else nothing.
// `sources`: where the inputs of the graph stand that dynamo made; null: not
// known. `own`: gets those of the graph that was read last.
Result<Dump> ParseForeign(std::string_view dialect, std::string name,
                          std::string text, const ParseOptions& options,
                          Sources* sources = nullptr,
                          Inputs* own_inputs = nullptr) {
  Dump dump;
  dump.name = std::move(name);
  dump.text = std::make_shared<const std::string>(std::move(text));
  dump.dialect = dialect;
  const std::string_view file = *dump.text;
  Builder out(dump, options.ops ? options.ops : std::make_shared<StringPool>(),
              dialect);
  if (dialect == "trace" || dialect == "log") {
    const std::vector<LogPart> parts =
        dialect == "trace" ? TracePayloads(file) : LogMessages(file);
    std::set<std::string_view> frames;
    for (const LogPart& part : parts) {
      if (!part.frame.empty()) frames.insert(part.frame);
    }
    // Graphs of AOT name no parameters: they are the inputs, in their order, of
    // the graph that dynamo made in the same compilation.
    std::map<std::string, Inputs, std::less<>> inputs;
    std::vector<std::string_view> compiles;  // by graph
    for (const LogPart& part : parts) {
      const std::string_view own = part.source.text();
      if (!MayHoldGraph(part.name, own)) continue;
      const std::string_view kind = RecognisePlain(own.substr(0, kHead));
      if (kind.empty() || kind == "autodeploy") continue;
      if (!options.dialect.empty() && options.dialect != dialect &&
          options.dialect != kind)
        continue;
      const size_t before = dump.graphs.size();
      out.prefix =
          frames.size() > 1 && !part.frame.empty() ? part.frame + " " : "";
      const auto known = inputs.find(part.frame);
      out.primals = [&](size_t i) {
        return known == inputs.end() || i > 0 ? nullptr : &known->second;
      };
      out.inputs.clear();
      ReadAs(kind, part.source, part.name, out, dump.main);
      out.prefix.clear();
      out.primals = nullptr;
      compiles.resize(dump.graphs.size(), part.frame);
      if (NamesAny(out.inputs)) inputs[part.frame] = std::move(out.inputs);
      if (part.cut && dump.graphs.size() > before)
        out.Warn(own.empty() ? 0 : part.source.ToFile(own.size() - 1),
                 "truncated: the file ends inside of this payload");
    }
    if (frames.size() > 1 && dump.main.empty())
      dump.main = LastCompiled(dump.graphs, compiles);
  } else {
    const SourceText source = WithoutColours(file, 0, file.size());
    if (sources != nullptr) sources->Offer(out);
    ReadAs(dialect, source, {}, out, dump.main);
    if (sources != nullptr) dump.weights_from = sources->PathOf(out.named_by);
    if (own_inputs != nullptr) *own_inputs = std::move(out.inputs);
  }
  out.Finish();
  if (!options.dialect.empty() && !HoldsAny(dump))
    return Fail(NotOfDialect(dump.name, file, options.dialect));
  if (dump.graphs.empty()) {
    return Fail(InputErrorAt(dump.name, file.size(),
                             "no graph in the file: expected one in the form "
                             "'" +
                                 std::string(dialect) + "', found its end"));
  }
  if (options.strict) {
    for (const Diagnostic& one : dump.diagnostics.kept()) {
      if (one.level == Level::kError || one.what.starts_with("truncated"))
        return Fail(ToError(one, dump.name));
    }
  }
  return dump;
}

}  // namespace

std::string_view RecogniseDialect(std::string_view text) {
  const std::string_view head = text.substr(0, kHead);
  // The most frequent one without a look at anything else.
  if (head.starts_with("# Transform: ")) return "autodeploy";
  const std::string_view log = RecogniseLog(head);
  return log.empty() ? RecognisePlain(head) : log;
}

std::span<const std::string_view> Dialects() {
  static const auto names = [] {
    std::vector<std::string_view> out;
    for (const auto& [name, begin] : kBegins) out.push_back(name);
    return out;
  }();
  return names;
}

std::string WrongDialect(std::string_view name) {
  const std::span<const std::string_view> known = Dialects();
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  std::string out = "expected one of ";
  for (const std::string_view one : known)
    out += (one == known.front() ? "" : ", ") + std::string(one);
  out += ", found '" + EscapeTerminal(name) + "'";
  if (name == "onnx") return out + "; ONNX is not read";
  // Names of the languages inside.
  std::string_view near =
      name == "stablehlo" || name == "mhlo" || name == "chlo"
          ? std::string_view("mlir")
          : rules::Nearest(name, known);
  if (!near.empty()) out += "; did you mean '" + std::string(near) + "'?";
  return out;
}

namespace {

Result<std::string_view> DialectOf(const std::string& name,
                                   std::string_view text,
                                   const ParseOptions& options) {
  const std::string_view found = RecogniseDialect(text);
  if (options.dialect.empty()) {
    if (found.empty()) return Fail(NoDump(name, text));
    return found;
  }
  const std::string wrong = WrongDialect(options.dialect);
  if (!wrong.empty()) return Fail(UsageError("dialect: " + wrong));
  // The name is to live as long as the program.
  const std::span<const std::string_view> known = Dialects();
  return (found == "log" || found == "trace") && options.dialect != "autodeploy"
             ? found
             : *std::find(known.begin(), known.end(), options.dialect);
}

Result<Dump> ParseOwn(std::string name, std::string text,
                      const ParseOptions& options) {
  if (options.dialect.empty())
    return ParseDump(std::move(name), std::move(text), options);
  const std::string head = text.substr(0, kHead);
  Result<Dump> dump = ParseDump(name, std::move(text), options);
  if (dump ? !HoldsAny(*dump) : !options.strict)
    return Fail(NotOfDialect(name, head, "autodeploy"));
  return dump;
}

}  // namespace

Result<Dump> ParseAnyDump(std::string name, std::string text,
                          const ParseOptions& options) {
  if (text.size() > kMaxDumpBytes) {
    return Fail(InputError(std::move(name), "the dump is larger than 1 GiB",
                           "cut it into its graphs"));
  }
  LAMINA_ASSIGN(const std::string_view dialect, DialectOf(name, text, options));
  if (dialect == "autodeploy")
    return ParseOwn(std::move(name), std::move(text), options);
  return ParseForeign(dialect, std::move(name), std::move(text), options);
}

namespace {

struct FileText {
  std::string text;
  std::optional<SourceDamage> damage;
};

// All of a file that begins like a dump, or of `any` file.
Result<FileText> ReadText(const std::string& path, const std::string& name,
                          bool any = false) {
  LAMINA_ASSIGN(const auto source, OpenByteSource(path));
  std::string text;
  constexpr size_t kBlock = size_t{1} << 20;
  size_t block = kBlock;
  size_t size = 0;
  bool known = any;
  for (;;) {
    text.resize(size + block);
    LAMINA_ASSIGN(const size_t got, source->Read(text.data() + size, block));
    size += got;
    if (!known && (got == 0 || size >= kBlock)) {
      const std::string_view head = std::string_view(text).substr(0, size);
      if (RecogniseDialect(head).empty()) return Fail(NoDump(name, head));
      known = true;
    }
    if (got == 0) break;
    if (size > kMaxDumpBytes) {
      return Fail(InputError(name, "the dump is larger than 1 GiB",
                             "cut it into its graphs"));
    }
    block = std::max(kBlock, std::min(size, size_t{64} << 20));
  }
  text.resize(size);
  return FileText{std::move(text), source->damage()};
}

// Inputs of a graph of dynamo; none of what is no such graph.
Inputs ReadInputs(const std::string& path) {
  auto file = ReadText(path, path);
  Inputs inputs;
  if (!file || RecogniseDialect(file->text) != "fx") return inputs;
  const auto dump =
      ParseForeign("fx", path, std::move(file->text), {}, {}, &inputs);
  return dump ? inputs : Inputs();
}

// Those of the graphs that were read last: a run asks for each once for every
// graph that was made of it.
class InputsOfFiles {
 public:
  SharedInputs Of(const std::string& path) {
    NoteInput(path);
    struct stat now = {};
    // A file that was just written may be written again within one tick.
    const bool known = !IsReadInstead(path) && stat(path.c_str(), &now) == 0 &&
                       now.st_mtim.tv_sec + 2 < std::time(nullptr);
    if (known) {
      const std::lock_guard lock(mutex_);
      const auto found = kept_.find(path);
      if (found != kept_.end() && IsSame(found->second.file, now))
        return found->second.inputs;
    }
    auto made = std::make_shared<const Inputs>(ReadInputs(path));
    if (known && made->size() <= kMostInputs) {
      const std::lock_guard lock(mutex_);
      if (kept_.size() >= kMostFiles || count_ + made->size() > kMostInputs) {
        kept_.clear();
        count_ = 0;
      }
      count_ += made->size();
      kept_[path] = {now, made};
    }
    return made;
  }

 private:
  static constexpr size_t kMostFiles = 256;
  static constexpr size_t kMostInputs = size_t{1} << 18;

  struct Kept {
    struct stat file = {};
    SharedInputs inputs;
  };
  std::mutex mutex_;
  std::map<std::string, Kept> kept_;
  size_t count_ = 0;
};

SharedInputs InputsOf(const std::string& path) {
  static InputsOfFiles files;
  return files.Of(path);
}

}  // namespace

Result<Dump> ReadDump(const std::string& path, const ParseOptions& options) {
  const std::string name = path == "-" ? "(stdin)" : path;
  LAMINA_ASSIGN(FileText file, ReadText(path, name, !options.dialect.empty()));
  LAMINA_ASSIGN(const std::string_view dialect,
                DialectOf(name, file.text, options));
  const bool fx = path != "-" && dialect == "fx";
  Sources sources;
  if (fx) sources.paths = SourceGraphsBeside(path);
  LAMINA_ASSIGN(
      Dump dump,
      sources.paths.empty()
          ? ParseAnyDump(name, std::move(file.text), options)
          : ParseForeign("fx", name, std::move(file.text), options, &sources));
  if (const auto& damage = file.damage) {
    Diagnostic out;
    out.what = "the file is damaged at byte " + std::to_string(damage->offset) +
               ": " + damage->what;
    dump.diagnostics.Add(std::move(out));
  }
  return dump;
}

}  // namespace lamina::graph
