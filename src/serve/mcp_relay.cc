// SPDX-License-Identifier: Apache-2.0
//
// Longer than most: both eras of the protocol differ in single headers and
// statuses, all of which stand here.
#include "serve/mcp_relay.h"

#include <sodium.h>

#include "serve/guard.h"

namespace lamina::serve {
namespace {

using mcp::Input;
using mcp::Json;

constexpr int kHeaderMismatch = -32020;
constexpr const char* kVersion = "io.modelcontextprotocol/protocolVersion";

HttpResponse JsonRpc(int status, const std::string& text) {
  HttpResponse response;
  response.status = status;
  response.body = text;
  return response;
}

// What the member `name` of an object says; empty: no text.
std::string TextAt(const Input& object, const char* name) {
  if (!object.is_object()) return {};
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

Input At(const Input& object, const char* name) {
  return object.is_object() ? object.value(name, Input()) : Input();
}

// The value of a header, which is text or "=?base64?...?=".
std::string Decoded(const std::string& value) {
  constexpr std::string_view kBegin = "=?base64?";
  constexpr std::string_view kEnd = "?=";
  if (!value.starts_with(kBegin) || !value.ends_with(kEnd) ||
      value.size() < kBegin.size() + kEnd.size())
    return value;
  const std::string_view packed = std::string_view(value).substr(
      kBegin.size(), value.size() - kBegin.size() - kEnd.size());
  std::string out(packed.size(), '\0');
  size_t size = 0;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(out.data()),
                        out.size(), packed.data(), packed.size(), nullptr,
                        &size, nullptr, sodium_base64_VARIANT_ORIGINAL) != 0)
    return value;
  out.resize(size);
  return out;
}

// What the headers of a modern request say otherwise than its body; empty:
// nothing.
std::string Mismatch(const HttpRequest& request, const Input& message) {
  const Input params = At(message, "params");
  const std::string version = TextAt(At(params, "_meta"), kVersion);
  const std::string method = TextAt(message, "method");
  if (request.Header("MCP-Protocol-Version") != version)
    return "MCP-Protocol-Version";
  if (request.Header("Mcp-Method") != method) return "Mcp-Method";
  const char* name = nullptr;
  if (method == "tools/call" || method == "prompts/get") name = "name";
  if (method == "resources/read") name = "uri";
  if (name != nullptr && At(params, name).is_string() &&
      Decoded(request.Header("Mcp-Name")) != TextAt(params, name))
    return "Mcp-Name";
  return {};
}

int StatusOf(const Json& answer, bool modern) {
  if (!answer.contains("error")) return 200;
  switch (answer["error"].value("code", 0)) {
    case mcp::kParseError:
    case mcp::kInvalidRequest:
      return 400;
    case mcp::kNoSuchMethod:
      return modern ? 404 : 200;
    case mcp::kInvalidParams:
    case mcp::kUnsupportedVersion:
      return modern ? 400 : 200;
    default:
      return 200;
  }
}

}  // namespace

HttpResponse McpRelay::Answer(const HttpRequest& request) {
  if (request.method != "POST") {
    HttpResponse response = Problem(405, "method", "messages come by POST");
    response.headers.emplace_back("Allow", "POST");
    return response;
  }
  auto parsed = mcp::ParseMessage(request.body);
  if (!parsed) return JsonRpc(400, mcp::ErrorText(nullptr, parsed.error()));
  Input message = *std::move(parsed);
  const std::string method = TextAt(message, "method");
  const Input id = At(message, "id");
  const std::string session = request.Header("Mcp-Session-Id");
  if (!message.is_object() || (method.empty() && !message.contains("result") &&
                               !message.contains("error"))) {
    return JsonRpc(
        400, mcp::ErrorText(nullptr, {mcp::kInvalidRequest,
                                      "a message is one object with a method",
                                      {}}));
  }
  if (method.empty() || !message.contains("id")) {
    if (method == "notifications/cancelled" && !session.empty()) {
      const std::string key =
          session + '\n' + At(At(message, "params"), "requestId").dump();
      std::vector<uint64_t> numbers;
      {
        const std::lock_guard lock(mutex_);
        for (const auto& [number, call] : calls_) {
          if (call->cancel_key == key) numbers.push_back(number);
        }
      }
      for (const uint64_t number : numbers) Cancel(number);
    }
    return JsonRpc(202, {});
  }
  if (!id.is_string() && !id.is_number_integer()) {
    return JsonRpc(400,
                   mcp::ErrorText(nullptr, {mcp::kInvalidRequest,
                                            "an id is a text or a whole number",
                                            {}}));
  }
  const bool modern =
      At(At(At(message, "params"), "_meta"), kVersion).is_string();
  if (modern) {
    const std::string header = Mismatch(request, message);
    if (!header.empty()) {
      return JsonRpc(
          400, mcp::ErrorText(id, {kHeaderMismatch,
                                   "the header " + header +
                                       " says something else than the body",
                                   {}}));
    }
  }
  const auto call = std::make_shared<Call>();
  call->id = id;
  if (!session.empty()) call->cancel_key = session + '\n' + id.dump();
  call->token = At(At(At(message, "params"), "_meta"), "progressToken");
  const bool streams =
      !call->token.is_null() &&
      request.Header("Accept").find("text/event-stream") != std::string::npos;
  const auto begun = Begin(call, std::move(message));
  if (!begun) {
    return JsonRpc(
        500, mcp::ErrorText(id, {mcp::kInternalError, begun.error().what, {}}));
  }
  const uint64_t number = *begun;
  HttpResponse response;
  if (streams) {
    response.type = "text/event-stream";
    response.stream = [self = shared_from_this(), call, number,
                       gone = request.gone](
                          const std::function<bool(std::string_view)>& write) {
      while (const auto said = self->Next(call, number, gone)) {
        if (!write("event: message\ndata: " + mcp::DumpText(*said) + "\n\n")) {
          self->Cancel(number);
          return;
        }
      }
    };
    return response;
  }
  while (const auto said = Next(call, number, request.gone)) {
    if (said->contains("method")) continue;  // progress
    response.status = StatusOf(*said, modern);
    response.body = mcp::DumpText(*said);
  }
  if (method == "initialize" && response.status == 200 && session.empty()) {
    // Nothing is kept of it: it only says whose call is cancelled.
    response.headers.emplace_back("Mcp-Session-Id", MakeToken());
  }
  return response;
}

Result<std::shared_ptr<Child>> McpRelay::Process() {
  if (stopped_) return Fail(InputError("lamina mcp", "the server ends"));
  if (child_ != nullptr) return child_;
  const uint64_t generation = ++generation_;
  const auto waiting = std::make_shared<std::string>();
  LAMINA_ASSIGN(
      child_,
      Child::Start(
          words_, {}, memory_bytes_,
          [self = shared_from_this(), waiting](std::string_view bytes) {
            constexpr size_t kMostLine = size_t{64} << 20;
            *waiting += bytes;
            size_t at = 0;
            for (size_t end = 0;
                 (end = waiting->find('\n', at)) != std::string::npos;
                 at = end + 1)
              self->Take(std::string_view(*waiting).substr(at, end - at));
            waiting->erase(0, at);
            return waiting->size() <= kMostLine;
          },
          [self = shared_from_this(), generation](const std::string& why) {
            self->Ended(generation, why);
          }));
  // Requests of the older era need no start of their own then.
  child_->Send(
      R"({"jsonrpc":"2.0","id":"start","method":"initialize","params":)"
      R"({"protocolVersion":"2025-11-25","capabilities":{},)"
      R"("clientInfo":{"name":"lamina serve","version":"1"}}})"
      "\n");
  return child_;
}

Result<uint64_t> McpRelay::Begin(const CallPointer& call, Input message) {
  std::shared_ptr<Child> child;
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    LAMINA_ASSIGN(child, Process());
    number = ++last_;
    calls_[number] = call;
  }
  message["id"] = number;
  if (!call->token.is_null())
    message["params"]["_meta"]["progressToken"] = number;
  child->Send(message.dump(-1, ' ', false, Input::error_handler_t::replace) +
              "\n");
  return number;
}

std::optional<Json> McpRelay::Next(const CallPointer& call, uint64_t number,
                                   const std::function<bool()>& gone) {
  constexpr auto kLook = std::chrono::milliseconds(100);
  std::unique_lock lock(mutex_);
  while (call->said.empty() && !call->done) {
    changed_.wait_for(lock, kLook);
    if (!call->said.empty() || call->done) break;
    lock.unlock();
    if (gone && gone()) Cancel(number);
    lock.lock();
  }
  if (call->said.empty()) return std::nullopt;
  Json said = std::move(call->said.front());
  call->said.pop_front();
  return said;
}

void McpRelay::Cancel(uint64_t number) {
  std::shared_ptr<Child> child;
  {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(number);
    if (found == calls_.end()) return;
    found->second->done = true;
    calls_.erase(found);
    child = child_;
    changed_.notify_all();
  }
  if (child == nullptr) return;
  Json params;
  params["requestId"] = number;
  child->Send(mcp::NotificationText("notifications/cancelled", params) + "\n");
}

void McpRelay::Take(std::string_view line) {
  Json said = Json::parse(line, nullptr, false);
  if (!said.is_object()) return;
  const bool answer = said.contains("id");
  const Json name =
      answer
          ? said["id"]
          : said.value("params", Json::object()).value("progressToken", Json());
  if (!name.is_number_unsigned()) return;
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(name.get<uint64_t>());
  if (found == calls_.end()) return;
  const CallPointer call = found->second;
  if (answer) {
    said["id"] = call->id;
    call->done = true;
    calls_.erase(found);
  } else {
    said["params"]["progressToken"] = call->token;
  }
  call->said.push_back(std::move(said));
  changed_.notify_all();
}

void McpRelay::Ended(uint64_t generation, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (generation != generation_) return;
  child_ = nullptr;
  for (auto& [number, call] : calls_) {
    call->said.push_back(Json::parse(mcp::ErrorText(
        call->id, {mcp::kInternalError, why + "; ask again", {}})));
    call->done = true;
  }
  calls_.clear();
  changed_.notify_all();
}

void McpRelay::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  if (child_ != nullptr) child_->Kill();
}

}  // namespace lamina::serve
