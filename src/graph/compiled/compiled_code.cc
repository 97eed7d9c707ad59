// SPDX-License-Identifier: Apache-2.0
//
// Long, because one pass over the text and what lies around it are read here.
#include "graph/compiled/compiled_code.h"

#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/byte_source.h"
#include "base/text.h"
#include "graph/dialects/log_text.h"
#include "graph/dialects/read.h"
#include "graph/types.h"

namespace lamina::graph {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kNone = std::string_view::npos;
// A folder of a run holds one program per compiled graph.
constexpr size_t kMostFiles = 100000;
constexpr size_t kMostListed = size_t{1} << 22;
constexpr uintmax_t kMostMapping = uintmax_t{64} << 20;

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r' ||
                           text.back() == '\t' || text.back() == ','))
    text.remove_suffix(1);
  return text;
}

std::vector<std::string> Split(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view one = Trim(text.substr(0, comma));
    if (!one.empty()) out.emplace_back(one);
    if (comma == kNone) break;
    text.remove_prefix(comma + 1);
  }
  return out;
}

// The list of `key[a, b]` in a line.
std::optional<std::vector<std::string>> ListOf(std::string_view line,
                                               std::string_view key) {
  const size_t at = line.find(key);
  if (at == kNone) return std::nullopt;
  const size_t begin = at + key.size();
  const size_t end = line.find(']', begin);
  return Split(line.substr(begin, end == kNone ? kNone : end - begin));
}

// What the comments in front of a definition or a call say.
struct Comments {
  std::vector<std::string> ops;
  std::vector<std::string> sources;    // nodes of the dynamo graph
  std::vector<std::string> arrows;     // post grad nodes behind "=>"
  std::vector<std::string> fragments;  // of the graph fragment
  std::string handle;                  // "extern_kernels.mm:4"
  bool any = false;
};

struct RawKernel {
  CompiledKernel kernel;
  std::vector<std::string> sources;
  std::string variable;  // of the definition
  std::string handle;
};

// One program before graphs and mappings are looked at.
struct RawProgram {
  std::string name;
  std::string frame;
  std::vector<RawKernel> kernels;
  std::vector<uint32_t> calls;
  bool cut = false;
};

class CodeReader {
 public:
  RawProgram Read(std::string_view text) {
    for (size_t pos = 0; pos < text.size();) {
      const size_t end = std::min(text.find('\n', pos), text.size());
      const std::string_view line = text.substr(pos, end - pos);
      pos = end + 1;
      const std::string_view body = Trim(line);
      if (body.starts_with("def benchmark_compiled_module")) break;
      if (body.starts_with("#") || body.starts_with("//")) {
        Comment(body.substr(body.starts_with("#") ? 1 : 2));
        continue;
      }
      const size_t open = OpenQuotes(line);
      if (body.find("async_compile.") != kNone)
        Define(body);
      else if (!body.empty())
        Call(body);
      if (open != kNone) {
        // The source of a kernel: not ours.
        const std::string_view quotes = line.substr(open, 3);
        const size_t close = text.find(quotes, pos);
        if (close == kNone) {
          out_.cut = true;
          break;
        }
        pos = std::min(text.find('\n', close), text.size()) + 1;
      }
    }
    return std::move(out_);
  }

 private:
  // Where triple quotes open that the line does not close.
  static size_t OpenQuotes(std::string_view line) {
    for (const std::string_view quotes : {"'''", "\"\"\""}) {
      const size_t at = line.find(quotes);
      if (at != kNone && line.find(quotes, at + 3) == kNone) return at;
    }
    return kNone;
  }

  void Comment(std::string_view text) {
    if (text.find("Source Nodes:") != kNone) {
      comments_ = {};
      comments_.any = true;
      if (auto list = ListOf(text, "Source Nodes: ["))
        comments_.sources = *std::move(list);
      if (auto list = ListOf(text, "Original ATen: ["))
        comments_.ops = *std::move(list);
      return;
    }
    const size_t handle = text.find("[Provenance debug handles] ");
    if (handle != kNone) {
      std::string_view rest = text.substr(handle + 27);
      comments_.handle = Trim(rest.substr(0, rest.find(',')));
      return;
    }
    const std::string_view body = Trim(text);
    if (body.starts_with("%") && body.find("[target=") != kNone) {
      if (body.find("= PlaceHolder[") != kNone) return;
      size_t end = 1;
      while (end < body.size() && IsWordCharacter(body[end])) ++end;
      comments_.fragments.emplace_back(body.substr(1, end - 1));
      return;
    }
    const size_t arrow = body.find(" => ");
    if (arrow != kNone) {
      for (std::string& node : Split(body.substr(arrow + 4)))
        comments_.arrows.push_back(std::move(node));
    }
  }

  // name = async_compile.triton('shown', '''
  void Define(std::string_view line) {
    const size_t equals = line.find(" = async_compile.");
    if (equals == kNone) return;  // async_compile.wait(globals())
    RawKernel one;
    one.variable = line.substr(0, equals);
    one.kernel.name = one.variable;
    const std::string_view call = line.substr(equals + 17);
    if (call.starts_with("triton(") || call.starts_with("multi_kernel(")) {
      const size_t quote = call.find_first_of("'\"");
      const size_t close =
          quote == kNone ? kNone : call.find(call[quote], quote + 1);
      if (close != kNone && close > quote + 1)
        one.kernel.name = call.substr(quote + 1, close - quote - 1);
    }
    Take(one);
    by_variable_[one.variable] = static_cast<uint32_t>(out_.kernels.size());
    out_.kernels.push_back(std::move(one));
  }

  // What the comments say of a kernel; the fragment says it best.
  void Take(RawKernel& one) {
    one.kernel.ops = comments_.ops;
    one.sources = comments_.sources;
    const auto& nodes =
        comments_.fragments.empty() ? comments_.arrows : comments_.fragments;
    absl::flat_hash_set<std::string_view> seen;
    for (const std::string& node : nodes) {
      if (seen.insert(node).second) one.kernel.nodes.push_back(node);
    }
    one.handle = comments_.handle;
    comments_ = {};
  }

  void Call(std::string_view line) {
    if (line.starts_with("def ") || line.starts_with("del ") ||
        line.starts_with("import ") || line.starts_with("from ") ||
        line.starts_with("assert_size_stride") || line.starts_with("return"))
      return;
    const bool defines_aten = Contains(line, " = torch.ops.aten");
    // kernel.run(...), call_kernel(...), kernel(...) of C++.
    for (size_t at = 0; at < line.size(); ++at) {
      if (at > 0 && (IsWordCharacter(line[at - 1]) || line[at - 1] == '.'))
        continue;
      size_t end = at;
      while (end < line.size() && IsWordCharacter(line[end])) ++end;
      if (end == at) continue;
      std::string_view word = line.substr(at, end - at);
      const std::string_view rest = line.substr(end);
      auto found = by_variable_.find(word);
      if (found == by_variable_.end() && word.starts_with("call_"))
        found = by_variable_.find(word.substr(5));
      if (found != by_variable_.end() &&
          (rest.starts_with(".run(") || rest.starts_with("("))) {
        RawKernel& one = out_.kernels[found->second];
        if (one.handle.empty()) one.handle = comments_.handle;
        if (one.kernel.ops.empty()) one.kernel.ops = comments_.ops;
        comments_ = {};
        out_.calls.push_back(found->second);
        return;
      }
      if (word == "extern_kernels" && rest.starts_with(".")) {
        AddCall(CompiledKernel::Kind::kExtern, rest.substr(1));
        return;
      }
      if ((word == "torch" && rest.starts_with(".ops.")) ||
          (word == "aten" && rest.starts_with(".") && !defines_aten)) {
        const std::string_view name =
            word == "torch" ? rest.substr(5) : line.substr(at);
        if (name.substr(0, name.find('(')).size() == name.size()) return;
        AddCall(CompiledKernel::Kind::kOp, name);
        return;
      }
      at = end;
    }
  }

  void AddCall(CompiledKernel::Kind kind, std::string_view call) {
    // Without comments it is plumbing: "aten = torch.ops.aten".
    if (!comments_.any && kind == CompiledKernel::Kind::kOp) return;
    RawKernel one;
    one.kernel.kind = kind;
    std::string_view name = call.substr(0, call.find('('));
    if (kind == CompiledKernel::Kind::kOp) {
      // "aten.randint.low_out": operator and overload.
      const size_t dot = name.find('.');
      const size_t overload = dot == kNone ? kNone : name.find('.', dot + 1);
      name = name.substr(0, overload);
    }
    one.kernel.name = name;
    // The comment stays: several calls may stand below one. A few long lists
    // above many calls would not fit the memory.
    listed_ += comments_.ops.size();
    if (listed_ > kMostListed) {
      out_.cut = true;
      return;
    }
    const Comments kept = comments_;
    Take(one);
    comments_ = kept;
    comments_.handle.clear();
    one.kernel.nodes.clear();
    out_.calls.push_back(static_cast<uint32_t>(out_.kernels.size()));
    out_.kernels.push_back(std::move(one));
  }

  RawProgram out_;
  Comments comments_;
  size_t listed_ = 0;  // ops of all calls below comments
  std::map<std::string, uint32_t, std::less<>> by_variable_;
};

// --- what lies around the code ---

// One thing that was found, in the order of the run.
struct Part {
  std::string name;   // of the payload, message or file
  std::string frame;  // compile id
  std::string text;
  bool cut = false;
};

bool IsPostGrad(std::string_view name) {
  return (Contains(name, "post_grad") || Contains(name, "POST GRAD") ||
          Contains(name, "fx_graph_transformed") ||
          Contains(name, "fx_graph_readable")) &&
         !Contains(name, "before_post") && !Contains(name, "BEFORE");
}

// Of a payload of any name.
bool IsCode(const Part& part) {
  if (Contains(part.name, "wrapper") || Contains(part.name, "runnable"))
    return false;
  if (Contains(part.name, "output_code")) return true;
  return RecogniseDialect(part.text) == "inductor";
}

// Texts of an HTML page: what stands in <pre>, entities undone.
std::string TextOfHtml(std::string_view page) {
  std::string out;
  const size_t pre = page.find("<pre");
  size_t pos = pre == kNone ? 0 : page.find('>', pre) + 1;
  const size_t last = page.rfind("</pre>");
  const size_t end = pre == kNone || last == kNone ? page.size() : last;
  constexpr std::pair<std::string_view, char> kEntities[] = {
      {"&lt;", '<'},   {"&gt;", '>'},   {"&amp;", '&'},
      {"&quot;", '"'}, {"&#39;", '\''}, {"&#x27;", '\''},
      {"&#34;", '"'},  {"&#x2F;", '/'}, {"&apos;", '\''}};
  while (pos < end) {
    if (page[pos] == '<') {
      const size_t close = page.find('>', pos);
      if (close == kNone || close > end) break;
      pos = close + 1;
      continue;
    }
    if (page[pos] == '&') {
      bool known = false;
      for (const auto& [entity, letter] : kEntities) {
        if (!page.substr(pos).starts_with(entity)) continue;
        out += letter;
        pos += entity.size();
        known = true;
        break;
      }
      if (known) continue;
    }
    out += page[pos++];
  }
  return out;
}

// The compile id of a folder of tlparse: "-_0_0_0" or "0_0_0".
std::string FrameOfFolder(std::string_view name) {
  if (name.starts_with("-_")) name.remove_prefix(2);
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = name.find('_');
    parts.push_back(name.substr(0, at));
    if (at == kNone) break;
    name.remove_prefix(at + 1);
  }
  const auto number = [](std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
  };
  if (parts.size() < 2 || parts.size() > 3 ||
      !std::all_of(parts.begin(), parts.end(), number))
    return {};
  return std::string(parts[0]) + "/" + std::string(parts[1]);
}

struct Text {
  std::string text;
  bool cut = false;  // damaged: what lies behind is lost
};
Result<Text> ReadAll(const std::string& path) {
  LAMINA_ASSIGN(const auto source, OpenByteSource(path));
  std::string text;
  constexpr size_t kBlock = size_t{1} << 20;
  for (size_t size = 0;;) {
    text.resize(size + kBlock);
    LAMINA_ASSIGN(const size_t got, source->Read(text.data() + size, kBlock));
    size += got;
    text.resize(size);
    if (got == 0) return Text{std::move(text), source->damage().has_value()};
    if (size > kMaxDumpBytes) {
      return Fail(InputError(path, "the file is larger than 1 GiB",
                             "give the output code alone"));
    }
  }
}

void AddFile(const std::string& path, const std::string& frame, Text&& read,
             std::vector<Part>& out) {
  auto& [text, cut] = read;
  const std::string_view kind = RecogniseDialect(text);
  if (kind == "trace" || kind == "log") {
    for (const LogPart& part :
         kind == "trace" ? TracePayloads(text) : LogMessages(text))
      out.push_back({part.name, part.frame, std::string(part.source.text()),
                     part.cut || cut});
    return;
  }
  const std::string name = fs::path(path).filename().string();
  if (name.ends_with(".html")) text = TextOfHtml(text);
  out.push_back({name, frame, std::move(text), cut});
}

Result<std::vector<Part>> PartsOf(const std::string& path) {
  std::vector<Part> out;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    LAMINA_ASSIGN(Text text, ReadAll(path));
    AddFile(path, {}, std::move(text), out);
    return out;
  }
  // By folder; in one the number behind a name is the order of the run.
  std::vector<std::tuple<std::string, int64_t, std::string>> files;
  fs::recursive_directory_iterator it(
      path, fs::directory_options::skip_permission_denied, error);
  for (; !error && it != fs::recursive_directory_iterator();
       it.increment(error)) {
    std::error_code own;
    if (!it->is_regular_file(own)) continue;
    if (files.size() == kMostFiles) {
      return Fail(InputError(
          path, fmt::format("holds more than {} files of code", kMostFiles),
          "give the folder of one run"));
    }
    const std::string extension = it->path().extension().string();
    const std::string name = it->path().filename().string();
    if (extension != ".py" && extension != ".txt" && extension != ".json" &&
        extension != ".html" && extension != ".log")
      continue;
    if (extension == ".html" && !Contains(name, "output_code")) continue;
    if (Contains(name, "runnable") || name == "compile_directory.json")
      continue;
    // A mapping of names is small; what a profiler wrote beside it is not.
    if (extension == ".json" && it->file_size(own) > kMostMapping) continue;
    std::string stem = it->path().stem().string();
    size_t digits = stem.size();
    while (digits > 0 && stem[digits - 1] >= '0' && stem[digits - 1] <= '9')
      --digits;
    int64_t number = -1;
    if (digits < stem.size() && digits > 0 && stem[digits - 1] == '_' &&
        stem.size() - digits < 10)
      number = std::stoll(stem.substr(digits));
    files.emplace_back(it->path().parent_path().string(), number,
                       it->path().string());
  }
  if (error) {
    return Fail(InputError(path, "cannot be listed: " + error.message(),
                           "check its permissions"));
  }
  std::sort(files.begin(), files.end());
  for (const auto& [folder, number, file] : files) {
    LAMINA_ASSIGN(Text text, ReadAll(file));
    AddFile(file, FrameOfFolder(fs::path(folder).filename().string()),
            std::move(text), out);
  }
  return out;
}

// A list of names under a key of a JSON object.
std::vector<std::string> Names(const Json& object, const std::string& key) {
  std::vector<std::string> out;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return out;
  for (const Json& one : *found) {
    if (one.is_string()) out.push_back(one.get<std::string>());
  }
  return out;
}

// `  File "model.py", line 3, in forward\n    code\n` in the form of graphs.
std::string LineOfStack(std::string_view frame) {
  const size_t file = frame.rfind("File \"");
  if (file == kNone) return {};
  const size_t end = frame.find('"', file + 6);
  if (end == kNone) return {};
  std::string out(frame.substr(file + 6, end - file - 6));
  const size_t line = frame.find("line ", end);
  if (line != kNone) {
    size_t stop = line + 5;
    while (stop < frame.size() && frame[stop] >= '0' && frame[stop] <= '9')
      ++stop;
    out += ":" + std::string(frame.substr(line + 5, stop - line - 5));
  }
  const size_t in = frame.find(", in ", end);
  if (in == kNone) return out;
  const size_t stop = std::min(frame.find('\n', in), frame.size());
  out += " in " + std::string(Trim(frame.substr(in + 5, stop - in - 5)));
  if (stop < frame.size()) {
    const std::string_view code = frame.substr(stop + 1);
    const std::string_view own = Trim(code.substr(0, code.find('\n')));
    if (!own.empty()) out += ", code: " + std::string(own);
  }
  return out;
}

using Graphs = std::vector<std::shared_ptr<const Graph>>;

// Graphs and mappings of one frame that were met.
struct Around {
  Graphs post;    // newest last
  Graphs traced;  // of dynamo
  Graphs other;
  std::map<std::string, std::vector<std::string>> nodes_of;   // by handle
  std::map<std::string, std::vector<std::string>> pre_of;     // by post node
  std::map<std::string, std::vector<std::string>> stacks_of;  // by handle
};

class Joiner {
 public:
  std::vector<CompiledProgram> Run(const std::vector<Part>& parts) {
    // Mappings are written behind the code that they describe.
    std::vector<std::pair<RawProgram, size_t>> programs;
    std::vector<Around> around(1);
    std::map<std::string, size_t> newest;  // by frame
    for (const Part& part : parts) {
      const auto [at, fresh] = newest.try_emplace(part.frame, around.size());
      if (fresh) around.emplace_back();
      if (IsCode(part)) {
        RawProgram program = CodeReader().Read(part.text);
        if (program.kernels.empty()) continue;
        program.cut |= part.cut;
        program.frame = part.frame;
        program.name = part.frame.empty() ? part.name : part.frame;
        programs.emplace_back(std::move(program), at->second);
        used_.insert(at->second);
        continue;
      }
      const std::string_view kind = part.name == "fx_graph_runnable"
                                        ? std::string_view()
                                        : RecogniseDialect(part.text);
      const bool graph = kind == "fx" || kind == "fx-graph";
      if (graph && used_.contains(at->second)) {
        // The next graph of the frame: its backward pass.
        Around next;
        next.traced = around[at->second].traced;
        at->second = around.size();
        around.push_back(std::move(next));
      }
      if (graph) AddGraphs(part, around[at->second]);
      if (!graph) AddMapping(part, around[at->second]);
    }
    std::vector<CompiledProgram> out;
    std::map<std::string, size_t> names;
    for (auto& [program, at] : programs) {
      const size_t number = ++names[program.name];
      if (number > 1) program.name += " #" + std::to_string(number);
      out.push_back(Finish(std::move(program), around[at]));
    }
    return out;
  }

 private:
  static void AddGraphs(const Part& part, Around& around) {
    auto dump = ParseAnyDump(part.name, part.text);
    if (!dump) return;
    auto& list =
        IsPostGrad(part.name) ? around.post
        : Contains(part.name, "dynamo") || Contains(part.name, "graph_code")
            ? around.traced
            : around.other;
    for (Graph& graph : dump->graphs) {
      auto& own = IsPostGrad(graph.name()) ? around.post : list;
      own.push_back(std::make_shared<const Graph>(std::move(graph)));
    }
  }

  static void AddMapping(const Part& part, Around& around) {
    const std::string_view body = Trim(part.text);
    if (!body.starts_with("{")) return;
    if (!Contains(part.name, "stack_traces") &&
        !Contains(part.text, "cppCodeToPost"))
      return;
    const Json json = Json::parse(part.text, nullptr, false);
    if (!json.is_object()) return;
    const auto kernels = json.find("cppCodeToPost");
    if (kernels != json.end() && kernels->is_object()) {
      for (const auto& [handle, nodes] : kernels->items())
        around.nodes_of[handle] = Names(*kernels, handle);
      const auto pre = json.find("postToPre");
      if (pre != json.end() && pre->is_object()) {
        for (const auto& [node, list] : pre->items())
          around.pre_of[node] = Names(*pre, node);
      }
      return;
    }
    if (!Contains(part.name, "stack_traces")) return;
    for (const auto& [handle, list] : json.items())
      around.stacks_of[handle] = Names(json, handle);
  }

  // The graph that holds most of the nodes; of post grad graphs the newest.
  static const Graph* GraphOf(const Graphs& graphs, const RawProgram& program) {
    const Graph* best = nullptr;
    size_t most = 0;
    for (const auto& one_graph : graphs) {
      const Graph& graph = *one_graph;
      size_t hits = 0;
      for (const RawKernel& one : program.kernels) {
        for (const std::string& node : one.kernel.nodes)
          hits += graph.Find(node).valid();
      }
      if (best == nullptr || hits >= most) {
        best = &graph;
        most = hits;
      }
    }
    return best;
  }

  static CompiledProgram Finish(RawProgram program, const Around& around) {
    CompiledProgram out;
    out.name = std::move(program.name);
    out.frame = std::move(program.frame);
    out.calls = std::move(program.calls);
    out.cut = program.cut;
    const Graph* graph = GraphOf(around.post, program);
    if (graph == nullptr) graph = GraphOf(around.other, program);
    absl::flat_hash_set<std::string> claimed;
    for (RawKernel& one : program.kernels) {
      auto mapped = around.nodes_of.find(one.handle);
      if (mapped == around.nodes_of.end())
        mapped = around.nodes_of.find(one.variable);
      if (mapped != around.nodes_of.end() && !mapped->second.empty())
        one.kernel.nodes = mapped->second;
      claimed.insert(one.kernel.nodes.begin(), one.kernel.nodes.end());
    }
    for (RawKernel& one : program.kernels) {
      if (one.kernel.nodes.empty() && graph != nullptr)
        Claim(*graph, one, claimed);
      AddLines(one, graph, around);
      out.kernels.push_back(std::move(one.kernel));
    }
    return out;
  }

  // A call of a library takes the first node of its op that no kernel has.
  static void Claim(const Graph& graph, RawKernel& one,
                    absl::flat_hash_set<std::string>& claimed) {
    if (one.kernel.kind == CompiledKernel::Kind::kTriton) return;
    const std::string op = one.kernel.kind == CompiledKernel::Kind::kExtern
                               ? "aten." + one.kernel.name
                               : one.kernel.name;
    for (const NodeId id : graph.nodes()) {
      if (graph[id].kind != NodeKind::kOp || !MatchesTarget(graph.op(id), op) ||
          !claimed.insert(std::string(graph[id].name)).second)
        continue;
      one.kernel.nodes.emplace_back(graph[id].name);
      return;
    }
  }

  static void AddLines(RawKernel& one, const Graph* graph,
                       const Around& around) {
    std::vector<std::string>& lines = one.kernel.lines;
    const auto add = [&](std::string line) {
      if (!line.empty() &&
          std::find(lines.begin(), lines.end(), line) == lines.end())
        lines.push_back(std::move(line));
    };
    const auto add_of = [&](const Graph& from, const std::string& node) {
      const NodeId id = from.Find(node);
      if (id.valid()) add(std::string(from.OriginOf(id).source));
    };
    if (graph != nullptr) {
      for (const std::string& node : one.kernel.nodes) add_of(*graph, node);
    }
    if (lines.empty()) {
      // By the nodes that dynamo saw.
      std::vector<std::string> before = one.sources;
      for (const std::string& node : one.kernel.nodes) {
        const auto found = around.pre_of.find(node);
        if (found != around.pre_of.end())
          before.insert(before.end(), found->second.begin(),
                        found->second.end());
      }
      for (const auto& from : around.traced) {
        for (const std::string& node : before) add_of(*from, node);
      }
    }
    if (!lines.empty()) return;
    auto stacks = around.stacks_of.find(one.handle);
    if (stacks == around.stacks_of.end())
      stacks = around.stacks_of.find(one.variable);
    if (stacks == around.stacks_of.end()) return;
    for (const std::string& stack : stacks->second) add(LineOfStack(stack));
  }

  absl::flat_hash_set<size_t> used_;
};

}  // namespace

std::string_view Name(CompiledKernel::Kind kind) {
  switch (kind) {
    case CompiledKernel::Kind::kTriton:
      return "triton";
    case CompiledKernel::Kind::kExtern:
      return "extern";
    case CompiledKernel::Kind::kOp:
      return "op";
  }
  return {};
}

CompiledProgram ParseOutputCode(std::string_view text) {
  const auto programs =
      Joiner().Run({{"output_code.py", {}, std::string(text), false}});
  return programs.empty() ? CompiledProgram() : programs[0];
}

Result<std::vector<CompiledProgram>> ReadCompiledPrograms(
    const std::string& path) {
  LAMINA_ASSIGN(const std::vector<Part> parts, PartsOf(path));
  std::vector<CompiledProgram> out = Joiner().Run(parts);
  if (out.empty()) {
    return Fail(InputError(
        path, "no output code of Inductor in it",
        "give output_code.py, a log of TORCH_LOGS=output_code, a TORCH_TRACE "
        "file, or a folder of tlparse or TORCH_COMPILE_DEBUG"));
  }
  return out;
}

}  // namespace lamina::graph
