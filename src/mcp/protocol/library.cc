// SPDX-License-Identifier: Apache-2.0
//
// Longer than most: six methods of the protocol, a few lines each.
#include "mcp/protocol/library.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/escape.h"
#include "mcp/protocol/inputs.h"

namespace lamina::mcp {
namespace {

constexpr const char* kMime = "text/markdown";

// A text of the parameters; empty: it is not there.
std::string TextOf(const Input& params, const char* key) {
  const auto found = params.find(key);
  return found != params.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

Rpc<Json> OnePage(const Input& params) {
  if (params.contains("cursor"))
    return Refuse(kInvalidParams, "this list has one page only");
  return Json::object();
}

Rpc<Json> ListPages(const Library& library, const Input& params) {
  auto out = OnePage(params);
  if (!out) return out;
  Json& list = (*out)["resources"] = Json::array();
  for (const Page& page : library.pages) {
    list.push_back({{"uri", page.uri},
                    {"name", page.name},
                    {"title", page.title},
                    {"mimeType", kMime},
                    {"size", page.text.size()}});
  }
  return out;
}

Rpc<Json> ListFamilies(const Library& library, const Input& params) {
  auto out = OnePage(params);
  if (!out) return out;
  Json& list = (*out)["resourceTemplates"] = Json::array();
  for (const PageFamily& family : library.families) {
    list.push_back(
        {{"uriTemplate", family.prefix + "{" + family.argument + "}"},
         {"name", family.argument},
         {"title", family.title},
         {"mimeType", kMime}});
  }
  return out;
}

std::optional<std::string> TextAt(const Library& library,
                                  const std::string& uri) {
  for (const Page& page : library.pages) {
    if (page.uri == uri) return page.text;
  }
  for (const PageFamily& family : library.families) {
    if (uri.starts_with(family.prefix))
      return family.text(uri.substr(family.prefix.size()));
  }
  return std::nullopt;
}

Rpc<Json> Read(const Library& library, const Input& params, bool modern) {
  const std::string uri = TextOf(params, "uri");
  if (uri.empty()) return Refuse(kInvalidParams, "resources/read needs a uri");
  const auto text = TextAt(library, uri);
  if (!text) {
    RpcError error{modern ? kInvalidParams : kNoSuchResource,
                   "there is no resource " + Shorten(EscapeTerminal(uri), 200),
                   {}};
    std::vector<std::string_view> known;
    for (const Page& page : library.pages) known.emplace_back(page.uri);
    error.data["did_you_mean"] = NearestOf(uri, known);
    return tl::make_unexpected(std::move(error));
  }
  Json out;
  out["contents"] =
      Json::array({{{"uri", uri}, {"mimeType", kMime}, {"text", *text}}});
  return out;
}

Rpc<Json> ListPrompts(const Library& library, const Input& params) {
  auto out = OnePage(params);
  if (!out) return out;
  Json& list = (*out)["prompts"] = Json::array();
  for (const Prompt& prompt : library.prompts) {
    Json arguments = Json::array();
    for (const Param& param : prompt.params) {
      arguments.push_back({{"name", param.name},
                           {"description", param.doc},
                           {"required", param.required}});
    }
    list.push_back({{"name", prompt.name},
                    {"title", prompt.title},
                    {"description", prompt.doc},
                    {"arguments", std::move(arguments)}});
  }
  return out;
}

const Prompt* FindPrompt(const Library& library, const std::string& name) {
  for (const Prompt& prompt : library.prompts) {
    if (prompt.name == name) return &prompt;
  }
  return nullptr;
}

// The text with the arguments in their places; once through, so that a value
// with braces is no place itself.
std::string Fill(const std::string& text,
                 const std::map<std::string, std::string>& values) {
  std::string out, line;
  bool left_out = false;
  const auto end_line = [&] {
    if (!left_out) out += line;
    line.clear();
    left_out = false;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t close = text[i] == '{' ? text.find('}', i) : std::string::npos;
    if (close == std::string::npos) {
      line += text[i];
      if (text[i] == '\n') end_line();
      continue;
    }
    const auto found = values.find(text.substr(i + 1, close - i - 1));
    if (found == values.end()) {
      left_out = true;
    } else {
      line += found->second;
    }
    i = close;
  }
  end_line();
  return out;
}

Rpc<Json> GetPrompt(const Library& library, const Input& params) {
  const std::string name = TextOf(params, "name");
  const Prompt* const prompt = FindPrompt(library, name);
  if (prompt == nullptr) {
    return Refuse(kInvalidParams,
                  "there is no prompt " + Shorten(EscapeTerminal(name), 80));
  }
  const Input given = params.value("arguments", Input::object());
  if (!given.is_object())
    return Refuse(kInvalidParams, "arguments are no object");
  std::map<std::string, std::string> values;
  for (const auto& [key, value] : given.items()) {
    const bool known = std::any_of(
        prompt->params.begin(), prompt->params.end(),
        [&, k = key](const Param& param) { return param.name == k; });
    if (!known || !value.is_string()) {
      return Refuse(kInvalidParams,
                    fmt::format("{}: there is no argument {} of type string",
                                name, Shorten(EscapeTerminal(key), 80)));
    }
    values[key] = value.get<std::string>();
  }
  for (const Param& param : prompt->params) {
    if (param.required && !values.contains(param.name)) {
      return Refuse(kInvalidParams, fmt::format("{}: argument {} is missing",
                                                name, param.name));
    }
  }
  Json content;
  content["type"] = "text";
  content["text"] = Fill(prompt->text, values);
  Json out;
  out["description"] = prompt->doc;
  out["messages"] =
      Json::array({{{"role", "user"}, {"content", std::move(content)}}});
  return out;
}

Rpc<Json> Complete(const Library& library, const Input& params) {
  constexpr size_t kMost = 100;
  const auto ref = params.find("ref");
  const auto argument = params.find("argument");
  if (ref == params.end() || !ref->is_object() || argument == params.end() ||
      !argument->is_object()) {
    return Refuse(kInvalidParams,
                  "completion/complete needs a ref and an argument");
  }
  const std::string begin = TextOf(*argument, "value");
  std::vector<std::string> values;
  size_t total = 0;
  for (const PageFamily& family : library.families) {
    if (TextOf(*ref, "uri") != family.prefix + "{" + family.argument + "}" ||
        TextOf(*argument, "name") != family.argument)
      continue;
    for (std::string& value : family.values()) {
      if (!value.starts_with(begin)) continue;
      ++total;
      if (values.size() < kMost) values.push_back(std::move(value));
    }
  }
  Json out;
  out["completion"] = {
      {"values", values}, {"total", total}, {"hasMore", total > values.size()}};
  return out;
}

}  // namespace

std::optional<Rpc<Json>> AskLibrary(const Library& library,
                                    const std::string& method,
                                    const Input& params, bool modern) {
  if (method == "resources/list") return ListPages(library, params);
  if (method == "resources/templates/list")
    return ListFamilies(library, params);
  if (method == "resources/read") return Read(library, params, modern);
  if (method == "prompts/list") return ListPrompts(library, params);
  if (method == "prompts/get") return GetPrompt(library, params);
  if (method == "completion/complete") return Complete(library, params);
  return std::nullopt;
}

}  // namespace lamina::mcp
