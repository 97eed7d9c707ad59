// SPDX-License-Identifier: Apache-2.0
//
// What is served under which path; docs/serve.md lists it for people.
#pragma once

#include <functional>
#include <string>

#include "serve/guard.h"
#include "serve/http.h"
#include "serve/store.h"

namespace lamina::serve {

struct ApiOptions {
  std::string version;  // of the program
  // Programs of pages, which hold no data: of the list, and of a trace given
  // JSON that says where its data are.
  std::string library_page;
  std::function<std::string(const std::string& data)> trace_page;
  std::function<std::string(const std::string& data)> memory_page;
  // The Model Context Protocol; null: it is not served.
  HttpHandler mcp;
};

// Every answer of the server. `guard` and `store` must live as long.
HttpHandler MakeApi(ApiOptions options, Guard& guard, Store& store);

}  // namespace lamina::serve
