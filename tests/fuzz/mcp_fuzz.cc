// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as messages, a line each: every answer is one line of JSON, and the
// next good message is answered.
#include <cstdlib>

#include "mcp/protocol/server.h"

namespace lamina::mcp {
namespace {

Server* MakeServer() {
  auto inputs = Inputs::Allow({"/usr/share"}, "");
  if (!inputs) std::abort();
  ServerOptions options;
  Tool echo;
  echo.name = "echo";
  echo.params = {Param{.name = "text", .doc = "Text"},
                 Param{.name = "n", .doc = "Number", .type = Type::kWhole},
                 Param{.name = "flag", .doc = "Flag", .type = Type::kFlag},
                 Param{.name = "path", .doc = "File", .role = Role::kPath},
                 Param{.name = "many", .doc = "Texts", .many = true}};
  echo.run = [](const Call& call) -> Outcome {
    Made made;
    made.document.command = "echo";
    Table table({"echo", "", {{"text", ColumnType::kText, ""}}});
    for (const auto& [name, value] : call.arguments.items()) {
      table.Add(name);
      table.Add(value.is_string() ? value.get<std::string>() : value.dump());
    }
    made.document.result.tables.push_back(std::move(table));
    return made;
  };
  options.tools.push_back(std::move(echo));
  return new Server(std::move(options), *inputs->release());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Server* const server = MakeServer();
  std::string_view text(reinterpret_cast<const char*>(data), size);
  Connection connection({});
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const auto reply = server->Handle(text.substr(0, end), connection);
    if (reply &&
        (reply->find('\n') != std::string::npos || !Input::accept(*reply)))
      std::abort();
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  const auto alive = server->Handle(
      R"({"jsonrpc":"2.0","id":"alive","method":"ping"})", connection);
  if (!alive || alive->find("alive") == std::string::npos) std::abort();
  return 0;
}

}  // namespace lamina::mcp
