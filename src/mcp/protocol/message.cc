// SPDX-License-Identifier: Apache-2.0

#include "mcp/protocol/message.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

#include "base/decimal.h"
#include "base/escape.h"

namespace lamina::mcp {

namespace {

// Walks a text before it becomes values: what the library would build without
// a word, but a peer cannot have meant.
class Checker : public nlohmann::json_sax<Input> {
 public:
  std::string problem = "no JSON";

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return Enter(); }
  bool start_array(size_t) override { return Enter(); }
  bool end_object() override { return Leave(); }
  bool end_array() override { return Leave(); }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    problem = "a key stands twice in one object";
    return false;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    problem = "no JSON from byte " + std::to_string(position) + " on";
    return false;
  }

 private:
  bool Enter() {
    keys_.emplace_back();
    if (keys_.size() <= size_t{kMaxDepth}) return true;
    problem = "nested deeper than " + std::to_string(kMaxDepth);
    return false;
  }
  bool Leave() {
    keys_.pop_back();
    return true;
  }

  std::vector<std::set<std::string>> keys_;
};

Json Envelope(const Input& id) {
  Json out;
  out["jsonrpc"] = "2.0";
  out["id"] = id;
  return out;
}

}  // namespace

Rpc<Input> ParseMessage(std::string_view text) {
  Checker checker;
  if (!Input::sax_parse(text, &checker)) {
    return tl::make_unexpected(
        RpcError{kParseError, "Parse error: " + checker.problem, {}});
  }
  Input out = Input::parse(text, nullptr, false);
  if (out.is_discarded()) {
    return tl::make_unexpected(
        RpcError{kParseError, "Parse error: a number is out of range", {}});
  }
  return out;
}

std::string DumpText(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string ResultText(const Input& id, const Json& result) {
  Json out = Envelope(id);
  out["result"] = result;
  return DumpText(out);
}

std::string ErrorText(const Input& id, const RpcError& error) {
  Json out = Envelope(id);
  out["error"]["code"] = error.code;
  out["error"]["message"] = error.message;
  if (!error.data.is_null()) out["error"]["data"] = error.data;
  return DumpText(out);
}

std::string NotificationText(std::string_view method, const Json& params) {
  Json out;
  out["jsonrpc"] = "2.0";
  out["method"] = method;
  out["params"] = params;
  return DumpText(out);
}

// Longer than most: the schema that says what an argument may be, and the check
// that holds it to that, stand side by side.

namespace {

// The parameters of every tool.
const std::vector<Param>& CommonParams() {
  static const std::vector<Param> params = [] {
    Param cursor{.name = "cursor",
                 .doc = "next_cursor of this call's answer before"};
    Param tokens{.name = "max_tokens",
                 .doc = "Size of the answer",
                 .type = Type::kWhole,
                 .low = kLeastTokens,
                 .high = kMostTokens};
    Param full{.name = "full_names",
               .doc = "Texts not cut at 160 bytes",
               .type = Type::kFlag};
    return std::vector<Param>{cursor, tokens, full};
  }();
  return params;
}

std::string_view TypeName(Type type) {
  switch (type) {
    case Type::kText:
      return "string";
    case Type::kWhole:
      return "integer";
    case Type::kReal:
      return "number";
    case Type::kFlag:
      return "boolean";
  }
  return "";
}

Json NumberOf(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15)
    return static_cast<int64_t>(value);
  return value;
}

Json ValueSchema(const Param& param) {
  Json out;
  out["type"] = TypeName(param.type);
  if (!param.choices.empty()) out["enum"] = param.choices;
  // Bounds that nobody comes near cost more than they tell.
  constexpr double kFar = 1e9;
  if (param.low) out["minimum"] = NumberOf(*param.low);
  if (param.high && *param.high < kFar) out["maximum"] = NumberOf(*param.high);
  return out;
}

Json DefaultOf(const Param& param) {
  if (param.type == Type::kText) return param.default_text;
  if (const auto number = ParseDouble(param.default_text))
    return NumberOf(*number);
  return nullptr;
}

void AddProperty(const Param& param, Json& properties) {
  Json schema;
  if (param.many) {
    schema["type"] = "array";
    schema["items"] = ValueSchema(param);
  } else {
    schema = ValueSchema(param);
  }
  schema["description"] = param.doc;
  if (!param.default_text.empty() && !param.many) {
    if (Json value = DefaultOf(param); !value.is_null())
      schema["default"] = std::move(value);
  }
  properties[param.name] = std::move(schema);
}

std::string_view KindOf(const Input& value) {
  return value.is_number_integer() ? "integer" : value.type_name();
}

Problem Wrong(const Tool& tool, const Param& param, std::string what,
              std::string hint) {
  return UsageError(
      fmt::format("{}: argument {}: {}", tool.name, param.name, what),
      std::move(hint));
}

// One value as the parameter has it.
tl::expected<Input, Problem> Convert(const Tool& tool, const Param& param,
                                     const Input& value) {
  const auto wrong_type = [&] {
    return tl::make_unexpected(
        Wrong(tool, param,
              fmt::format("expected {}{}, got {}",
                          param.many ? "an array of type " : "type ",
                          TypeName(param.type), KindOf(value)),
              param.doc));
  };
  Input out = value;
  switch (param.type) {
    case Type::kText:
      if (value.is_number_integer()) {
        out = value.dump();
      } else if (!value.is_string()) {
        return wrong_type();
      }
      break;
    case Type::kFlag:
      if (!value.is_boolean()) return wrong_type();
      return out;
    case Type::kWhole:
    case Type::kReal: {
      std::optional<double> number;
      if (value.is_string()) {
        number = ParseDouble(value.get_ref<const std::string&>());
      } else if (value.is_number()) {
        number = value.get<double>();
      }
      if (!number || !std::isfinite(*number)) return wrong_type();
      if (param.type == Type::kWhole) {
        if (*number != std::floor(*number) || std::abs(*number) >= 9.2e18)
          return wrong_type();
        out = value.is_number_integer() ? value
                                        : Input(static_cast<int64_t>(*number));
      } else {
        out = *number;
      }
      if ((param.low && *number < *param.low) ||
          (param.high && *number > *param.high)) {
        return tl::make_unexpected(Wrong(
            tool, param,
            fmt::format("{} is not from {} to {}", DumpText(NumberOf(*number)),
                        param.low ? DumpText(NumberOf(*param.low)) : "any",
                        param.high ? DumpText(NumberOf(*param.high)) : "any"),
            param.doc));
      }
      return out;
    }
  }
  const auto& text = out.get_ref<const std::string&>();
  if (!param.choices.empty() &&
      std::find(param.choices.begin(), param.choices.end(), text) ==
          param.choices.end()) {
    Problem problem =
        Wrong(tool, param,
              fmt::format("'{}' is none of its values",
                          Shorten(EscapeTerminal(text), 80)),
              fmt::format("one of {}", fmt::join(param.choices, ", ")));
    problem.did_you_mean =
        NearestOf(text, {param.choices.begin(), param.choices.end()});
    return tl::make_unexpected(std::move(problem));
  }
  return out;
}

// The value with its paths resolved, which also join `paths`.
tl::expected<Input, Problem> Resolve(const Tool& tool, const Param& param,
                                     const Input& value, const Inputs& inputs,
                                     std::vector<std::string>& paths) {
  auto converted = Convert(tool, param, value);
  if (!converted || param.role == Role::kValue) return converted;
  const std::string text = *converted;
  auto path = param.role == Role::kOutput ? inputs.ResolveOutput(text)
                                          : inputs.Resolve(text);
  if (!path) return tl::make_unexpected(std::move(path).error());
  if (param.role == Role::kPath) paths.push_back(*path);
  return Input(*std::move(path));
}

Problem UnknownArgument(const Tool& tool, const std::string& name) {
  std::vector<std::string_view> names;
  for (const Param& param : tool.params) names.emplace_back(param.name);
  Problem problem(
      UsageError(fmt::format("{}: there is no argument '{}'", tool.name,
                             Shorten(EscapeTerminal(name), 80)),
                 fmt::format("it takes {}", fmt::join(names, ", "))));
  for (const Param& param : CommonParams()) names.emplace_back(param.name);
  problem.did_you_mean = NearestOf(name, names);
  // "path" of a tool with one place to look at.
  if (problem.did_you_mean.empty()) {
    const auto is_path = [](const Param& param) {
      return param.role == Role::kPath;
    };
    const auto only =
        std::find_if(tool.params.begin(), tool.params.end(), is_path);
    if (std::count_if(tool.params.begin(), tool.params.end(), is_path) == 1 &&
        (name == "path" || name == "file" || name == "folder"))
      problem.did_you_mean.push_back(only->name);
  }
  return problem;
}

}  // namespace

Json InputSchema(const Tool& tool) {
  Json out;
  out["type"] = "object";
  Json& properties = out["properties"];
  Json required = Json::array();
  for (const Param& param : tool.params) {
    AddProperty(param, properties);
    if (param.required) required.push_back(param.name);
  }
  for (const Param& param : CommonParams()) AddProperty(param, properties);
  if (!required.empty()) out["required"] = std::move(required);
  out["additionalProperties"] = false;
  return out;
}

const Json& OutputSchema() {
  // Short on purpose: a host puts the schemas of all tools before a model.
  // Every answer has all of these.
  static const Json schema = Json::parse(R"({
    "type": "object",
    "properties": {
      "question": {"type": "string"},
      "state": {"enum": ["complete", "working"]},
      "notes": {"type": "array"},
      "tables": {"type": "array", "items": {
        "type": "object",
        "required": ["name", "columns", "rows", "total_rows"]}},
      "truncated": {"type": "boolean"},
      "next_cursor": {"type": ["string", "null"]}}})");
  return schema;
}

tl::expected<Arguments, Problem> CheckArguments(const Tool& tool,
                                                const Input& given,
                                                const Inputs& inputs) {
  const auto fail = [&](Problem problem) {
    if (problem.example.empty()) {
      Json example = Json::object();
      for (const Param& param : tool.params) {
        if (!param.required) continue;
        Json value = !param.choices.empty()       ? Json(param.choices.front())
                     : param.type == Type::kWhole ? Json(1)
                     : param.role == Role::kPath  ? Json("trace.json.gz")
                                                  : Json("...");
        example[param.name] = param.many ? Json::array({value}) : value;
      }
      problem.example = DumpText(example);
    }
    return tl::make_unexpected(std::move(problem));
  };
  Arguments out;
  out.values = Input::object();
  if (!given.is_object() && !given.is_null()) {
    return fail(
        UsageError(fmt::format("{}: arguments are no object but of "
                               "type {}",
                               tool.name, KindOf(given))));
  }
  const auto param_of = [](const std::vector<Param>& params,
                           const std::string& name) {
    return std::find_if(params.begin(), params.end(),
                        [&](const Param& p) { return p.name == name; });
  };
  for (const auto& [name, value] : given.items()) {
    if (param_of(tool.params, name) != tool.params.end()) continue;
    const auto common = param_of(CommonParams(), name);
    if (common == CommonParams().end())
      return fail(UnknownArgument(tool, name));
    if (value.is_null()) continue;
    auto converted = Convert(tool, *common, value);
    if (!converted) return fail(std::move(converted).error());
    if (name == "cursor") {
      out.paging.cursor = *converted;
    } else if (name == "max_tokens") {
      out.paging.max_tokens = converted->get<int64_t>();
    } else {
      out.paging.full_names = *converted;
    }
  }
  for (const Param& param : tool.params) {
    const auto found = given.find(param.name);
    if (found == given.end() || found->is_null()) {
      if (!param.required) continue;
      return fail(Wrong(tool, param, "is missing", param.doc));
    }
    if (!param.many) {
      auto value = Resolve(tool, param, *found, inputs, out.paths);
      if (!value) return fail(std::move(value).error());
      out.values[param.name] = *std::move(value);
      continue;
    }
    // A single value is a list of one.
    Input list = found->is_array() ? *found : Input::array({*found});
    for (Input& one : list) {
      auto value = Resolve(tool, param, one, inputs, out.paths);
      if (!value) return fail(std::move(value).error());
      one = *std::move(value);
    }
    if (list.empty() && param.required)
      return fail(Wrong(tool, param, "is an empty list", param.doc));
    out.values[param.name] = std::move(list);
  }
  return out;
}

}  // namespace lamina::mcp
