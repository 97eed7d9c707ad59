// SPDX-License-Identifier: Apache-2.0
//
// Reads whole requests from a socket within limits, before anything parses
// them: a library that reads by itself buffers headers without bound and waits
// for each byte anew.
#pragma once

#include <string>

#include "serve/http.h"

namespace lamina::serve {

class Receiver {
 public:
  Receiver(int socket, const HttpLimits& limits)
      : socket_(socket), limits_(limits) {}

  // 0: `head` and `body` hold a request. -1: the peer has gone or was idle, and
  // gets no answer. Else the status to refuse it with; nothing after it is
  // read.
  int Next(std::string& head, std::string& body);

 private:
  // False: nothing came until `until`, or the peer has gone.
  bool Fill(std::chrono::steady_clock::time_point until);

  const int socket_;
  const HttpLimits& limits_;
  std::string waiting_;  // bytes behind the last request
};

// What is wrong with the head of a request, as a status; 0: nothing.
// `body_bytes`: what its Content-Length says.
int CheckHead(std::string_view head, const HttpLimits& limits,
              size_t& body_bytes);

}  // namespace lamina::serve
