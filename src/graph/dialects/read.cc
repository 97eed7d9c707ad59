// SPDX-License-Identifier: Apache-2.0
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

namespace lamina::graph {
namespace {

constexpr size_t kNone = std::string_view::npos;
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

Result<Dump> ParseAnyDump(std::string name, std::string text,
                          const ParseOptions& options) {
  if (text.size() > kMaxDumpBytes) {
    return Fail(InputError(std::move(name), "the dump is larger than 1 GiB",
                           "cut it into its graphs"));
  }
  const std::string_view dialect = RecogniseDialect(text);
  if (dialect.empty()) return Fail(NoDump(name, text));
  if (dialect == "autodeploy")
    return ParseDump(std::move(name), std::move(text), options);
  return ParseForeign(dialect, std::move(name), std::move(text), options);
}

namespace {

struct FileText {
  std::string text;
  std::optional<SourceDamage> damage;
};

// All of a file that begins like a dump.
Result<FileText> ReadText(const std::string& path, const std::string& name) {
  LAMINA_ASSIGN(const auto source, OpenByteSource(path));
  std::string text;
  constexpr size_t kBlock = size_t{1} << 20;
  size_t block = kBlock;
  size_t size = 0;
  bool known = false;
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
  LAMINA_ASSIGN(FileText file, ReadText(path, name));
  const bool fx = path != "-" && RecogniseDialect(file.text) == "fx";
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
