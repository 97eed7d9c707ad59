// SPDX-License-Identifier: Apache-2.0
#include "serve/api.h"

#include <algorithm>

#include "mcp/protocol/message.h"

namespace lamina::serve {
namespace {

using mcp::Json;

HttpResponse NotFound() {
  return Problem(404, "not_found", "there is nothing under this address",
                 "docs/serve.md lists what there is");
}

bool IsId(std::string_view text) {
  return text.size() == 24 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// The policy of a page stands in its head, too; only a header can say who may
// frame it.
HttpResponse PageAnswer(std::string text) {
  constexpr std::string_view kMark = "Content-Security-Policy\" content=\"";
  HttpResponse response;
  if (text.empty()) {
    response.type = "text/plain; charset=utf-8";
    response.body = "This build of lamina has no page.\n";
    return response;
  }
  response.type = "text/html; charset=utf-8";
  const size_t begin = text.find(kMark);
  if (begin != std::string::npos) {
    const size_t from = begin + kMark.size();
    response.headers.emplace_back(
        "Content-Security-Policy",
        text.substr(from, text.find('"', from) - from) +
            "; frame-ancestors 'none'");
  }
  response.body = std::move(text);
  return response;
}

class Api {
 public:
  Api(ApiOptions options, Guard& guard, Store& store)
      : options_(std::move(options)), guard_(guard), store_(store) {}

  HttpResponse Answer(const HttpRequest& request) {
    auto refused = guard_.Check(request);
    HttpResponse response = refused ? *std::move(refused) : Route(request);
    AddHeaders(response);
    return response;
  }

 private:
  HttpResponse Route(const HttpRequest& request) {
    constexpr std::string_view kApi = "/api/v1/";
    const std::string& path = request.path;
    const bool get = request.method == "GET";
    if (path == "/mcp" && options_.mcp) return options_.mcp(request);
    if (path.starts_with(kApi))
      return RouteApi(request, path.substr(kApi.size()), get);
    if (!get) return NotFound();
    if (path == "/") return PageAnswer(options_.library_page);
    // The program is named by who opened the file: that one is there, and what
    // it is, is told to nobody without the token.
    const bool trace = path.starts_with("/t/");
    if ((trace || path.starts_with("/m/")) && IsId(path.substr(3))) {
      Json data;
      data["trace"] = std::string(kApi) + "traces/" + path.substr(3);
      return PageAnswer((trace ? options_.trace_page
                               : options_.memory_page)(mcp::DumpText(data)));
    }
    return NotFound();
  }

  HttpResponse RouteApi(const HttpRequest& request, const std::string& path,
                        bool get) {
    if (path == "info" && get) {
      Json out;
      out["version"] = options_.version;
      out["mcp"] = static_cast<bool>(options_.mcp);
      HttpResponse response;
      response.body = mcp::DumpText(out);
      return response;
    }
    if (path == "traces" && get) return store_.List();
    if (path == "compare" && !get) {
      const auto body = mcp::ParseMessage(request.body);
      if (!body || !body->is_object() || !body->contains("a") ||
          !body->contains("b") || !(*body)["a"].is_string() ||
          !(*body)["b"].is_string())
        return Problem(400, "usage", "two traces are compared",
                       R"({"a": ID, "b": ID})");
      return store_.Compare((*body)["a"].get<std::string>(),
                            (*body)["b"].get<std::string>());
    }
    if (!path.starts_with("traces/")) return NotFound();
    const std::string rest = path.substr(7);
    const size_t slash = std::min(rest.find('/'), rest.size());
    const std::string id = rest.substr(0, slash);
    const std::string verb = rest.substr(slash);
    if (!IsId(id)) return NotFound();
    if (verb.empty() && get) return store_.Get(id);
    if (verb == "/page" && get) return store_.Page(id);
    if (verb == "/open" && !get) return store_.StartOpening(id);
    if (verb == "/close" && !get) return store_.Close(id);
    static constexpr std::pair<std::string_view, char> kQuestions[] = {
        {"/query", 'q'}, {"/tiles", 't'}, {"/sum", 's'}, {"/find", 'f'}};
    for (const auto& [name, kind] : kQuestions)
      if (verb == name && !get) return store_.Ask(id, kind, request);
    return NotFound();
  }

  const ApiOptions options_;
  Guard& guard_;
  Store& store_;
};

}  // namespace

HttpHandler MakeApi(ApiOptions options, Guard& guard, Store& store) {
  const auto api = std::make_shared<Api>(std::move(options), guard, store);
  return [api](const HttpRequest& request) { return api->Answer(request); };
}

}  // namespace lamina::serve
