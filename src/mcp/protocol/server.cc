// SPDX-License-Identifier: Apache-2.0
//
// Longer than most: both eras of the protocol, message by message.
#include "mcp/protocol/server.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/text.h"
#include "mcp/protocol/answer.h"
#include "mcp/protocol/message.h"

namespace lamina::mcp {
namespace {

constexpr const char* kModern = "2026-07-28";
// With initialize; the first is offered where another is asked for.
constexpr std::array<std::string_view, 2> kLegacy = {"2025-11-25",
                                                     "2025-06-18"};
constexpr const char* kMetaVersion = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kMetaCapabilities =
    "io.modelcontextprotocol/clientCapabilities";
constexpr const char* kMetaServer = "io.modelcontextprotocol/serverInfo";
// Lists do not change while the program runs.
constexpr int64_t kListMs = 3'600'000;

bool IsId(const Input& id) { return id.is_string() || id.is_number_integer(); }

std::string_view CodeName(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return "usage";
    case ErrorKind::kInput:
      return "input";
    case ErrorKind::kCheck:
      return "check";
    case ErrorKind::kCancelled:
      return "cancelled";
    case ErrorKind::kLimit:
      return "limit";
    case ErrorKind::kInternal:
      return "internal";
  }
  return "internal";
}

Json TextContent(std::string text) {
  Json content;
  content["type"] = "text";
  content["text"] = std::move(text);
  return Json::array({std::move(content)});
}

// The error of a tool. Without structured content: clients hold that against
// the schema of answers even here, and would throw the message away.
Json ProblemResult(const Problem& problem) {
  constexpr size_t kMost = 2000;
  std::string text = "error: " + Shorten(problem.error.ToString(), kMost);
  for (size_t i = 0; i < problem.did_you_mean.size(); ++i) {
    text += (i == 0 ? "\ndid you mean: " : ", ") +
            EscapeTerminal(problem.did_you_mean[i]);
  }
  if (!problem.example.empty()) text += "\nexample: " + problem.example;
  Json out;
  out["content"] = TextContent(std::move(text));
  out["isError"] = true;
  Json& error = out["_meta"]["lamina/error"];
  error["code"] = CodeName(problem.error.kind);
  error["what"] = Shorten(problem.error.what, kMost);
  error["hint"] = Shorten(problem.error.hint, kMost);
  error["did_you_mean"] = problem.did_you_mean;
  if (!problem.example.empty()) error["example"] = problem.example;
  return out;
}

std::string ProgressText(const Progress& progress) {
  if (progress.stage.empty()) return "waiting for its turn";
  if (progress.total == 0) return progress.stage;
  return fmt::format("{}: {:.0f} %", progress.stage,
                     100.0 * static_cast<double>(progress.done) /
                         static_cast<double>(progress.total));
}

// Tells of progress at most twice a second, with numbers that rise.
class Teller {
 public:
  Teller(Input token, std::function<void(const std::string&)> notify)
      : token_(std::move(token)), notify_(std::move(notify)) {}

  void Tell(const Progress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (token_.is_null() || !notify_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(500);
    Json params;
    params["progressToken"] = token_;
    params["progress"] = ++told_;
    params["message"] = ProgressText(progress);
    notify_(NotificationText("notifications/progress", params));
  }

 private:
  Input token_;
  std::function<void(const std::string&)> notify_;
  std::chrono::steady_clock::time_point next_ =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  int64_t told_ = 0;
};

Json ServerInfo(const std::string& version) {
  Json out;
  out["name"] = "lamina";
  out["title"] = "lamina: where did my GPU time go";
  out["version"] = version;
  return out;
}

Json Capabilities() {
  Json out;
  // Nothing of these changes while the program runs.
  for (const char* one : {"tools", "resources", "prompts", "completions"})
    out[one] = Json::object();
  return out;
}

Json ToolJson(const Tool& tool) {
  Json out;
  out["name"] = tool.name;
  out["title"] = tool.title;
  out["description"] = tool.doc;
  out["inputSchema"] = InputSchema(tool);
  out["outputSchema"] = OutputSchema();
  Json& hints = out["annotations"];
  hints["readOnlyHint"] = !tool.writes;
  // Nothing that is there is replaced.
  if (tool.writes) hints["destructiveHint"] = false;
  hints["idempotentHint"] = !tool.writes;
  hints["openWorldHint"] = false;
  return out;
}

}  // namespace

void Connection::Cancel(const Input& id) {
  const std::lock_guard lock(mutex_);
  const auto found = in_flight_.find(id.dump());
  if (found == in_flight_.end()) return;
  *found->second = true;
  in_flight_.erase(found);
}

void Connection::CancelAll() {
  const std::lock_guard lock(mutex_);
  for (auto& [id, flag] : in_flight_) *flag = true;
}

size_t Connection::in_flight() const {
  const std::lock_guard lock(mutex_);
  return in_flight_.size();
}

Connection::Flag Connection::Begin(const Input& id) {
  const std::lock_guard lock(mutex_);
  auto flag = std::make_shared<std::atomic<bool>>(false);
  return in_flight_.emplace(id.dump(), flag).second ? flag : nullptr;
}

void Connection::End(const Input& id, const Flag& flag) {
  const std::lock_guard lock(mutex_);
  // Once cancelled its id may be that of another.
  const auto found = in_flight_.find(id.dump());
  if (found != in_flight_.end() && found->second == flag)
    in_flight_.erase(found);
}

Server::Server(ServerOptions options, Inputs& inputs)
    : options_(std::move(options)), inputs_(inputs), jobs_(options_.parallel) {}

const Tool* Server::FindTool(const std::string& name) const {
  for (const Tool& tool : options_.tools) {
    if (tool.name == name) return &tool;
  }
  return nullptr;
}

std::optional<std::string> Server::Handle(std::string_view message,
                                          Connection& connection) {
  Reply reply = Accept(message, connection);
  return reply.later ? reply.later() : std::move(reply.now);
}

Reply Server::Accept(std::string_view message, Connection& connection) {
  const auto error = [](const Input& id, const RpcError& what) {
    return Reply{ErrorText(id, what), {}};
  };
  Rpc<Input> parsed = ParseMessage(message);
  if (!parsed) return error(nullptr, parsed.error());
  const Input& value = *parsed;
  if (value.is_array()) {
    return error(nullptr, {kInvalidRequest,
                           "batches are not part of this protocol: send one "
                           "message a line",
                           {}});
  }
  if (!value.is_object())
    return error(nullptr, {kInvalidRequest, "a message is an object", {}});
  const auto id_found = value.find("id");
  const bool has_id = id_found != value.end();
  const Input id = has_id && IsId(*id_found) ? *id_found : Input();
  const auto method = value.find("method");
  // Answers to requests that this server never sends.
  if (method == value.end() &&
      (value.contains("result") || value.contains("error")))
    return {};
  const auto version = value.find("jsonrpc");
  if (version == value.end() || *version != "2.0" || method == value.end() ||
      !method->is_string()) {
    return error(id, {kInvalidRequest,
                      "a message has \"jsonrpc\": \"2.0\" and a method",
                      {}});
  }
  Request request{id, method->get<std::string>(), Input::object()};
  if (has_id && id.is_null()) {
    return error(nullptr,
                 {kInvalidRequest, "an id is a text or a whole number", {}});
  }
  if (const auto params = value.find("params"); params != value.end()) {
    if (!params->is_object()) {
      if (!has_id) return {};
      return error(id, {kInvalidParams, "params are no object", {}});
    }
    request.params = *params;
  }
  if (!has_id) {
    // Notifications have no answer, whatever they hold.
    if (request.method == "notifications/cancelled" &&
        request.params.contains("requestId"))
      connection.Cancel(request.params["requestId"]);
    return {};
  }
  return Answer(request, connection);
}

Reply Server::Answer(const Request& asked, Connection& connection) {
  Request request = asked;
  const auto error = [&](const RpcError& what) {
    return Reply{ErrorText(request.id, what), {}};
  };
  Input meta = request.params.value("_meta", Input());
  if (!meta.is_null() && !meta.is_object())
    return error({kInvalidParams, "_meta is no object", {}});
  if (meta.is_null()) meta = Input::object();
  request.modern = meta.contains(kMetaVersion) ||
                   meta.contains(kMetaCapabilities) ||
                   request.method == "server/discover";
  if (request.modern) {
    const auto version = meta.find(kMetaVersion);
    if (version == meta.end() || !version->is_string()) {
      return error(
          {kInvalidParams, fmt::format("_meta has no {}", kMetaVersion), {}});
    }
    if (*version != kModern) {
      Json data;
      data["supported"] = Json::array({kModern});
      for (const std::string_view legacy : kLegacy)
        data["supported"].push_back(legacy);
      data["requested"] = version->get<std::string>();
      return error({kUnsupportedVersion, "Unsupported protocol version", data});
    }
    const auto capabilities = meta.find(kMetaCapabilities);
    if (capabilities == meta.end() || !capabilities->is_object()) {
      return error({kInvalidParams,
                    fmt::format("_meta has no {}", kMetaCapabilities),
                    {}});
    }
  } else if (!connection.initialized_ && request.method != "initialize" &&
             request.method != "ping") {
    return error(
        {kInvalidParams,
         fmt::format("neither was this connection initialized nor does _meta "
                     "say {} and {}",
                     kMetaVersion, kMetaCapabilities),
         {}});
  }
  if (request.method != "tools/call") {
    const Rpc<Json> result = Immediate(request, connection);
    if (!result) return error(result.error());
    return {ResultText(request.id, Finish(request, *result)), {}};
  }
  if (connection.in_flight() >= kMostInFlight)
    return error({kInternalError, "too many requests at a time", {}});
  auto cancelled = connection.Begin(request.id);
  if (cancelled == nullptr) {
    return error({kInvalidRequest,
                  "a request with this id has not been answered yet",
                  {}});
  }
  return {std::nullopt, [this, request, cancelled, &connection] {
            std::optional<std::string> text;
            const auto result = CallTool(request, connection, *cancelled);
            if (result) {
              text = *result ? ResultText(request.id, Finish(request, **result))
                             : ErrorText(request.id, result->error());
            }
            connection.End(request.id, cancelled);
            return *cancelled ? std::nullopt : text;
          }};
}

Json Server::Finish(const Request& request, Json result) const {
  if (!request.modern) return result;
  result["resultType"] = "complete";
  result["_meta"][kMetaServer] = ServerInfo(options_.version);
  const bool lists = request.method == "server/discover" ||
                     request.method.ends_with("/list") ||
                     request.method == "resources/read";
  if (lists) {
    result["ttlMs"] = kListMs;
    result["cacheScope"] = "public";
  }
  return result;
}

Rpc<Json> Server::Immediate(const Request& request, Connection& connection) {
  const std::string& method = request.method;
  if (request.modern) {
    if (method == "server/discover") return Discover();
  } else {
    if (method == "initialize") return Initialize(request, connection);
    if (method == "ping") return Json::object();
  }
  if (method == "tools/list") return ListTools(request);
  if (auto found =
          AskLibrary(options_.library, method, request.params, request.modern))
    return *std::move(found);
  return Refuse(kNoSuchMethod,
                "there is no method " + Shorten(EscapeTerminal(method), 80));
}

Rpc<Json> Server::Initialize(const Request& request,
                             Connection& connection) const {
  const auto version = request.params.find("protocolVersion");
  if (version == request.params.end() || !version->is_string())
    return Refuse(kInvalidParams, "initialize needs a protocolVersion");
  const auto asked = version->get<std::string>();
  const bool known =
      std::find(kLegacy.begin(), kLegacy.end(), asked) != kLegacy.end();
  connection.initialized_ = true;
  Json out;
  out["protocolVersion"] = known ? asked : std::string(kLegacy[0]);
  out["capabilities"] = Capabilities();
  out["serverInfo"] = ServerInfo(options_.version);
  out["instructions"] = options_.instructions;
  return out;
}

Json Server::Discover() const {
  Json out;
  out["supportedVersions"] = Json::array({kModern});
  for (const std::string_view version : kLegacy)
    out["supportedVersions"].push_back(version);
  out["capabilities"] = Capabilities();
  out["instructions"] = options_.instructions;
  return out;
}

Rpc<Json> Server::ListTools(const Request& request) const {
  if (request.params.contains("cursor"))
    return Refuse(kInvalidParams, "the list of tools has one page only");
  Json out;
  out["tools"] = Json::array();
  for (const Tool& tool : options_.tools)
    out["tools"].push_back(ToolJson(tool));
  return out;
}

std::optional<Rpc<Json>> Server::CallTool(const Request& request,
                                          Connection& connection,
                                          const std::atomic<bool>& cancelled) {
  if (cancelled) return std::nullopt;
  const auto name = request.params.find("name");
  if (name == request.params.end() || !name->is_string())
    return Refuse(kInvalidParams, "tools/call needs the name of a tool");
  const Tool* const tool = FindTool(name->get<std::string>());
  if (tool == nullptr) {
    std::vector<std::string_view> names;
    for (const Tool& one : options_.tools) names.emplace_back(one.name);
    Json data;
    data["did_you_mean"] = NearestOf(name->get<std::string>(), names);
    data["tools"] = names;
    return Refuse(kInvalidParams,
                  "there is no tool " +
                      Shorten(EscapeTerminal(name->get<std::string>()), 80),
                  std::move(data));
  }
  const auto given = request.params.find("arguments");
  auto arguments = CheckArguments(
      *tool, given == request.params.end() ? Input::object() : *given, inputs_);
  if (!arguments) return ProblemResult(arguments.error());

  // What was asked, with the content of the files that it names.
  std::string key = tool->name + '\n' + arguments->values.dump();
  std::string trace;
  std::vector<std::string> names;
  for (const std::string& path : arguments->paths) {
    const std::string handle = inputs_.HandleOf(path);
    if (trace.empty()) trace = handle;
    names.push_back(inputs_.NameOf(path));
    key += '\n' + handle;
    if (options_.changes) key += ' ' + std::to_string(options_.changes(path));
  }
  Input token;
  if (const auto meta = request.params.find("_meta");
      meta != request.params.end() && meta->is_object()) {
    const auto found = meta->find("progressToken");
    if (found != meta->end() && IsId(*found)) token = *found;
  }
  Teller teller(std::move(token), connection.notify_);
  Call call;
  call.arguments = arguments->values;
  const Jobs::Wait wait =
      jobs_.Ask(key, tool->run, std::move(call), options_.patience,
                [&](const Progress& progress) {
                  if (cancelled) return false;
                  teller.Tell(progress);
                  return true;
                });
  if (wait.end == Jobs::End::kCancelled || cancelled) return std::nullopt;
  if (wait.end == Jobs::End::kTimeout) {
    Json out;
    out["question"] = tool->name;
    out["state"] = "working";
    if (!trace.empty()) out["trace"] = trace;
    out["summary"] = ProgressText(wait.progress);
    out["tables"] = Json::array();
    out["notes"] = Json::array();
    out["truncated"] = false;
    out["next_cursor"] = nullptr;
    Json next;
    next["tool"] = tool->name;
    next["arguments"] = arguments->values;
    next["why"] = "the work goes on; the same call waits for its end";
    out["next"] = Json::array({std::move(next)});
    Json result;
    result["content"] = TextContent("working (" + ProgressText(wait.progress) +
                                    "): call again with the same arguments");
    result["structuredContent"] = std::move(out);
    result["isError"] = false;
    return result;
  }
  if (!wait.outcome->has_value()) {
    const Problem& problem = wait.outcome->error();
    return ProblemResult(problem);
  }
  const Made& made = **wait.outcome;
  const uint64_t digest = Fnv1a(key);
  Position from;
  if (!arguments->paging.cursor.empty()) {
    auto position = ReadCursor(arguments->paging.cursor, digest, made.document);
    if (!position) {
      return Refuse(kInvalidParams,
                    position.error().what + "; " + position.error().hint);
    }
    from = *std::move(position);
  }
  AnswerOptions options;
  options.max_tokens =
      arguments->paging.max_tokens.value_or(options_.max_tokens);
  options.full_names = arguments->paging.full_names;
  auto answer = MakeAnswer(made, trace, names, from, digest, options);
  if (!answer) return ProblemResult(answer.error());
  Json result;
  result["content"] =
      TextContent(options_.json_text ? DumpText(answer->structured)
                                     : std::move(answer->text));
  result["structuredContent"] = std::move(answer->structured);
  result["isError"] = false;
  return result;
}

}  // namespace lamina::mcp
