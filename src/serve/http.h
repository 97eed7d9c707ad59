// SPDX-License-Identifier: Apache-2.0
//
// HTTP between the program and its plug-in lamina_http.so, which alone knows
// cpp-httplib, so that the program starts without its libraries. A request
// reaches the handler when all of it is there and within the limits.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.h"

namespace lamina::serve {

struct HttpLimits {
  size_t header_bytes = size_t{16} << 10;
  size_t body_bytes = size_t{1} << 20;
  // From the first byte of a request to its last.
  std::chrono::milliseconds request_time{10'000};
  // A connection without a request.
  std::chrono::milliseconds idle_time{15'000};
  // A reader that takes nothing of an answer.
  std::chrono::milliseconds write_time{10'000};
  // Others are answered 503 and closed.
  size_t connections = 128;
  size_t requests_per_connection = 1000;
};

struct HttpRequest {
  std::string method;
  std::string path;  // percent-decoded, without what follows "?"
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // Whether the peer has closed its side; may be asked from any thread while
  // the handler runs.
  std::function<bool()> gone;

  // The value of a header, by any case of its name; empty: there is none.
  std::string Header(std::string_view name) const;
  size_t CountOf(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  // Where it is open: the body, of so many bytes.
  Descriptor file;
  uint64_t file_bytes = 0;
  // Where this is given it makes the body, bit by bit: `write` gives false when
  // the peer takes no more.
  std::function<void(const std::function<bool(std::string_view)>& write)>
      stream;
};

// Called on many threads.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

class HttpServer {
 public:
  virtual ~HttpServer() = default;
  // Answers what comes to the listening socket until `stop` can be read; then
  // closes all connections, and waits for their handlers for at most two
  // seconds.
  virtual void Run(int listener, int stop) = 0;
};

// Raised when anything above changes.
inline constexpr int kHttpPluginInterface = 2;
inline constexpr const char* kHttpPluginFile = "lamina_http.so";
// The plug-in defines: extern "C" HttpServer* LaminaOpenHttp(int interface,
// const HttpLimits*, const HttpHandler*); null for another interface.
inline constexpr const char* kHttpPluginEntry = "LaminaOpenHttp";
using HttpPluginEntry = HttpServer* (*)(int, const HttpLimits*,
                                        const HttpHandler*);

}  // namespace lamina::serve
