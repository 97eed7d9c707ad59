// SPDX-License-Identifier: Apache-2.0
//
// Who may ask. A browser on this machine runs programs of anyone, and any of
// them may send requests to a local port: so the name in Host must be ours (or
// a page of a name that was bound to 127.0.0.1 could read), Origin must be
// this server, and what gives data needs the token, which only the address that
// was printed holds.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "serve/http.h"

namespace lamina::serve {

// 32 bytes that nobody can foresee, as 43 characters of base64url.
std::string MakeToken();
bool IsToken(std::string_view text);

// An answer that says what is wrong: {"error":{"code","what","hint"}}.
HttpResponse Problem(int status, std::string_view code, std::string_view what,
                     std::string_view hint = {});

class Guard {
 public:
  // `hosts`: names that a Host header may have besides those of this machine
  // to itself.
  Guard(std::string token, const std::vector<std::string>& hosts);

  // The answer to who may not ask; nothing: go on.
  std::optional<HttpResponse> Check(const HttpRequest& request);

 private:
  bool IsOurs(std::string_view host) const;

  const std::string token_;
  std::vector<std::string> hosts_;
  std::atomic<int> wrong_ = 0;
  std::atomic<bool> delaying_ = false;
};

// What every answer has: nothing is kept, sniffed, framed or told to others.
void AddHeaders(HttpResponse& response);

}  // namespace lamina::serve
