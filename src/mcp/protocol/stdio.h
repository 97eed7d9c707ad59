// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mcp/protocol/server.h"

namespace lamina::mcp {

// Serves one peer: a message a line from `in`, answers to `out` as they are
// ready, until `in` ends or `out` takes no more. What still runs then has a
// second to end. False: the peer went before its answers.
bool ServeLines(Server& server, int in, int out);

}  // namespace lamina::mcp
