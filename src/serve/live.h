// SPDX-License-Identifier: Apache-2.0
//
// What the page of a trace asks of lamina serve while somebody looks at it: the
// bodies of /tiles, /sum and /find, and their answers; docs/serve.md has both.
#pragma once

#include <string>

#include "page/page.h"

namespace lamina::serve {

enum class LiveQuestion { kTiles, kSum, kFind };

// Both are JSON. Errors: kUsage for a body that is not understood, kCancelled,
// kLimit.
Result<std::string> AnswerLive(LiveQuestion question, const std::string& body,
                               const page::LiveTrace& live,
                               const page::LiveWatch& watch);

}  // namespace lamina::serve
