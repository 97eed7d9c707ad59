// SPDX-License-Identifier: Apache-2.0

#include "serve/guard.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <sodium.h>
#include <thread>

#include "base/escape.h"
#include "base/text.h"
#include "mcp/protocol/message.h"
#include "serve/http.h"

namespace lamina::serve {

namespace {

constexpr size_t kTokenBytes = 32;
constexpr size_t kTokenChars = 43;

// "name", "name:80", "[::1]:80"; empty where it is none of them.
std::string NameOfHost(std::string_view host) {
  size_t end = host.size();
  if (host.starts_with('[')) {
    end = host.find(']');
    if (end == std::string_view::npos) return {};
    ++end;
  } else if (const size_t colon = host.find(':');
             colon != std::string_view::npos) {
    end = colon;
  }
  const std::string_view port = host.substr(end);
  if (!port.empty() && (port[0] != ':' || port.size() < 2 || port.size() > 6 ||
                        !std::all_of(port.begin() + 1, port.end(), [](char c) {
                          return c >= '0' && c <= '9';
                        })))
    return {};
  return LowerCase(host.substr(0, end));
}

constexpr std::string_view kLoopback[] = {"127.0.0.1", "localhost", "[::1]"};

bool IsLoopback(std::string_view name) {
  return std::find(std::begin(kLoopback), std::end(kLoopback), name) !=
         std::end(kLoopback);
}

}  // namespace

std::string MakeToken() {
  std::array<unsigned char, kTokenBytes> bytes{};
  randombytes_buf(bytes.data(), bytes.size());
  std::string out(kTokenChars + 1, '\0');
  sodium_bin2base64(out.data(), out.size(), bytes.data(), bytes.size(),
                    sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  out.pop_back();
  return out;
}

bool IsToken(std::string_view text) {
  return text.size() == kTokenChars &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                  (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
         });
}

HttpResponse Problem(int status, std::string_view code, std::string_view what,
                     std::string_view hint) {
  mcp::Json out;
  mcp::Json& error = out["error"];
  error["code"] = code;
  error["what"] = Shorten(what, 2000);
  error["hint"] = Shorten(hint, 2000);
  HttpResponse response;
  response.status = status;
  response.body = mcp::DumpText(out);
  return response;
}

Guard::Guard(std::string token, const std::vector<std::string>& hosts)
    : token_(std::move(token)),
      hosts_(std::begin(kLoopback), std::end(kLoopback)) {
  for (const std::string& host : hosts) hosts_.push_back(LowerCase(host));
}

bool Guard::IsOurs(std::string_view host) const {
  return std::find(hosts_.begin(), hosts_.end(), NameOfHost(host)) !=
         hosts_.end();
}

std::optional<HttpResponse> Guard::Check(const HttpRequest& request) {
  constexpr int kFreeTries = 10;
  if (request.CountOf("Host") != 1 || !IsOurs(request.Header("Host"))) {
    return Problem(421, "host", "this name is not served",
                   "ask for 127.0.0.1 or localhost, or start lamina serve with "
                   "--host NAME");
  }
  // Behind a proxy, which has a name of --host, a page may come over HTTPS.
  if (const std::string origin = LowerCase(request.Header("Origin")),
      host = LowerCase(request.Header("Host"));
      request.CountOf("Origin") > 1 ||
      (request.CountOf("Origin") == 1 && origin != "http://" + host &&
       (IsLoopback(NameOfHost(host)) || origin != "https://" + host)))
    return Problem(403, "origin", "a page of another origin asks");
  if (const std::string site = request.Header("Sec-Fetch-Site");
      !site.empty() && site != "none" && site != "same-origin") {
    return Problem(403, "origin", "a page of another site asks",
                   "open the address that lamina serve printed by hand");
  }
  if (request.method != "GET" && request.method != "POST") {
    HttpResponse response =
        Problem(405, "method", "only GET and POST are answered");
    response.headers.emplace_back("Allow", "GET, POST");
    return response;
  }
  if (request.method == "POST") {
    const std::string type = LowerCase(request.Header("Content-Type"));
    if (type != "application/json" && !type.starts_with("application/json;"))
      return Problem(415, "type", "a body is application/json");
  }
  const bool data = request.path == "/mcp" ||
                    request.path.starts_with("/mcp/") ||
                    request.path == "/api" || request.path.starts_with("/api/");
  if (!data) return std::nullopt;
  const std::string given = request.Header("Authorization");
  const std::string wanted = "Bearer " + token_;
  if (request.CountOf("Authorization") == 1 && given.size() == wanted.size() &&
      sodium_memcmp(given.data(), wanted.data(), wanted.size()) == 0)
    return std::nullopt;
  if (!given.empty() && ++wrong_ > kFreeTries) {
    // One at a time waits; or tries would hold all threads.
    if (delaying_.exchange(true)) {
      return Problem(429, "token", "too many wrong tokens at a time",
                     "open the address that lamina serve printed, with all "
                     "behind the #");
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
    delaying_ = false;
  }
  HttpResponse response = Problem(
      401, "token", "the token is missing or wrong",
      "open the address that lamina serve printed, with all behind the #");
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

void AddHeaders(HttpResponse& response) {
  const auto add = [&](const char* name, const char* value) {
    const auto has =
        std::any_of(response.headers.begin(), response.headers.end(),
                    [&](const auto& header) { return header.first == name; });
    if (!has) response.headers.emplace_back(name, value);
  };
  add("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  add("X-Content-Type-Options", "nosniff");
  add("X-Frame-Options", "DENY");
  add("Referrer-Policy", "no-referrer");
  add("Cross-Origin-Opener-Policy", "same-origin");
  add("Cross-Origin-Resource-Policy", "same-origin");
  add("Cache-Control", "no-store");
}

std::string HttpRequest::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (EqualsIgnoringCase(key, name)) return value;
  }
  return {};
}

size_t HttpRequest::CountOf(std::string_view name) const {
  return static_cast<size_t>(std::count_if(
      headers.begin(), headers.end(),
      [&](const auto& one) { return EqualsIgnoringCase(one.first, name); }));
}

}  // namespace lamina::serve
