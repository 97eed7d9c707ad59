// SPDX-License-Identifier: Apache-2.0
//
// What a client reads without a tool: pages by address, and prompts, which are
// questions that are written already.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mcp/protocol/message.h"
#include "mcp/protocol/tool.h"

namespace lamina::mcp {

// Markdown at a fixed address.
struct Page {
  std::string uri;
  std::string name;
  std::string title;
  std::string text;
};

// Pages whose address ends in the value of an argument.
struct PageFamily {
  std::string prefix;    // "lamina://table/"
  std::string argument;  // "name"
  std::string title;
  std::function<std::optional<std::string>(const std::string& value)> text;
  std::function<std::vector<std::string>()> values;
};

struct Prompt {
  std::string name;
  std::string title;
  std::string doc;
  std::vector<Param> params;
  // Each {name} becomes the value of an argument; a line with an argument that
  // was not given is left out.
  std::string text;
};

struct Library {
  std::vector<Page> pages;
  std::vector<PageFamily> families;
  std::vector<Prompt> prompts;
};

// The result of resources/list, resources/templates/list, resources/read,
// prompts/list, prompts/get or completion/complete; nothing for another method.
std::optional<Rpc<Json>> AskLibrary(const Library& library,
                                    const std::string& method,
                                    const Input& params, bool modern);

}  // namespace lamina::mcp
