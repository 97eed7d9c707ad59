// SPDX-License-Identifier: Apache-2.0
#include "mcp/protocol/message.h"

#include <set>

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

}  // namespace lamina::mcp
