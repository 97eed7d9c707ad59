// SPDX-License-Identifier: Apache-2.0
//
// The Model Context Protocol without a transport: a message goes in, at most
// one comes out. Two eras are spoken at once: until 2025-11-25 a connection
// begins with `initialize`; from 2026-07-28 on every request says its version.
//
//   Server server(options);
//   Connection connection(notify);
//   Reply reply = server.Accept(line, connection);
//   if (reply.now) Send(*reply.now);
//   if (reply.later) pool.Add([&] { if (auto text = reply.later()) ... });
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "mcp/protocol/inputs.h"
#include "mcp/protocol/jobs.h"
#include "mcp/protocol/library.h"
#include "mcp/protocol/message.h"
#include "mcp/protocol/tool.h"

namespace lamina::mcp {

struct ServerOptions {
  std::string version;  // of the program
  std::string instructions;
  std::vector<Tool> tools;
  Library library;
  int64_t max_tokens = 6000;
  // After this a call is answered with "working" and goes on.
  std::chrono::milliseconds patience{20'000};
  int parallel = 4;
  // How often what a file means to tools became other; null: never. What was
  // answered before is not given again then.
  std::function<uint64_t(const std::string& path)> changes;
  // The text of an answer repeats the values as JSON, for clients that read
  // nothing else.
  bool json_text = false;
};

// One peer: what it has started, and how it is told of progress. For HTTP a
// connection is a request.
class Connection {
 public:
  explicit Connection(std::function<void(const std::string&)> notify)
      : notify_(std::move(notify)) {}

  // Ends the request with this id, if there is one: no reply will come, and the
  // id is free.
  void Cancel(const Input& id);
  void CancelAll();
  // As if the peer had begun with `initialize`.
  void Trust() { initialized_ = true; }
  // Requests whose reply has not been made.
  size_t in_flight() const;

 private:
  friend class Server;
  using Flag = std::shared_ptr<std::atomic<bool>>;
  // Null: the id is in use.
  Flag Begin(const Input& id);
  void End(const Input& id, const Flag& flag);

  std::function<void(const std::string&)> notify_;
  mutable std::mutex mutex_;
  std::map<std::string, Flag> in_flight_;  // by the text of the id
  bool initialized_ = false;
};

struct Reply {
  std::optional<std::string> now;
  // Takes its time; may be called on any thread, once, while the server and the
  // connection live. Nothing: the request was cancelled.
  std::function<std::optional<std::string>()> later;
};

class Server {
 public:
  static constexpr size_t kMostInFlight = 256;

  // `inputs` must live as long.
  Server(ServerOptions options, Inputs& inputs);

  // What to answer to one message, without its end of line.
  Reply Accept(std::string_view message, Connection& connection);
  // The same on this thread.
  std::optional<std::string> Handle(std::string_view message,
                                    Connection& connection);

  // Forgets answers whose pages nobody reads now.
  void Forget() { jobs_.Forget(); }

 private:
  struct Request {
    Input id;
    std::string method;
    Input params;  // an object
    bool modern = false;
  };

  Reply Answer(const Request& request, Connection& connection);
  Rpc<Json> Immediate(const Request& request, Connection& connection);
  Rpc<Json> Initialize(const Request& request, Connection& connection) const;
  Json Discover() const;
  Rpc<Json> ListTools(const Request& request) const;
  // Nothing: cancelled.
  std::optional<Rpc<Json>> CallTool(const Request& request,
                                    Connection& connection,
                                    const std::atomic<bool>& cancelled);
  // What a result of this era has besides.
  Json Finish(const Request& request, Json result) const;
  const Tool* FindTool(const std::string& name) const;

  ServerOptions options_;
  Inputs& inputs_;
  Jobs jobs_;
};

// Serves one peer: a message a line from `in`, answers to `out` as they are
// ready, until `in` ends or `out` takes no more. What still runs then has a
// second to end. False: the peer went before its answers.
bool ServeLines(Server& server, int in, int out);

}  // namespace lamina::mcp
