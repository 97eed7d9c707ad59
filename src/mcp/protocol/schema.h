// SPDX-License-Identifier: Apache-2.0
//
// JSON Schemas of tools, and arguments held against them.
#pragma once

#include "mcp/protocol/inputs.h"
#include "mcp/protocol/tool.h"

namespace lamina::mcp {

// Tokens of an answer, both its forms together.
constexpr int64_t kLeastTokens = 500;
constexpr int64_t kMostTokens = 25'000;

// What every tool takes besides.
struct Paging {
  std::string cursor;
  std::optional<int64_t> max_tokens;
  bool full_names = false;
};

// Without $ref and composition; nothing that is not named is allowed.
Json InputSchema(const Tool& tool);
// One for all tools: what a document becomes (answer.h).
const Json& OutputSchema();

struct Arguments {
  Input values;  // of the tool's own parameters; paths are resolved
  Paging paging;
  std::vector<std::string> paths;  // resolved, in the order of parameters
};

// Errors: kUsage with the names or values that there are. Numbers in texts and
// whole numbers with a fraction of 0 are taken for what they mean.
tl::expected<Arguments, Problem> CheckArguments(const Tool& tool,
                                                const Input& given,
                                                const Inputs& inputs);

}  // namespace lamina::mcp
