// SPDX-License-Identifier: Apache-2.0
//
// JSON-RPC 2.0: messages in and out, within limits.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "mcp/protocol/inputs.h"
#include "mcp/protocol/tool.h"

namespace lamina::mcp {

constexpr size_t kMaxMessageBytes = size_t{4} << 20;
constexpr int kMaxDepth = 64;

// Codes of errors, by JSON-RPC 2.0 and the Model Context Protocol.
enum Code : int {
  kParseError = -32700,
  kInvalidRequest = -32600,
  kNoSuchMethod = -32601,
  kInvalidParams = -32602,
  kInternalError = -32603,
  kNoSuchResource = -32002,      // until 2025-11-25
  kUnsupportedVersion = -32022,  // from 2026-07-28
};

struct RpcError {
  int code = kInternalError;
  std::string message;
  Json data;  // null: none
};

template <class T>
using Rpc = tl::expected<T, RpcError>;

inline tl::unexpected<RpcError> Refuse(int code, std::string message,
                                       Json data = nullptr) {
  return tl::make_unexpected(
      RpcError{code, std::move(message), std::move(data)});
}

// What a message holds. Errors: kParseError for what is no JSON, is nested
// deeper than kMaxDepth, has a key twice or broken UTF-8.
Rpc<Input> ParseMessage(std::string_view text);

// One line without its end. `id` null: the request could not be told.
std::string ResultText(const Input& id, const Json& result);
std::string ErrorText(const Input& id, const RpcError& error);
std::string NotificationText(std::string_view method, const Json& params);

// `value` as JSON on one line; broken UTF-8 becomes U+FFFD.
std::string DumpText(const Json& value);

// JSON Schemas of tools, and arguments held against them.

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
