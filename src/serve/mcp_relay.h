// SPDX-License-Identifier: Apache-2.0
//
// The Model Context Protocol over HTTP: each request is handed to one `lamina
// mcp` on pipes, under an id of its own, so that nothing that an agent asks for
// can end the server. A request that wants progress is answered as a stream of
// events, others with one JSON.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "mcp/protocol/message.h"
#include "serve/http.h"
#include "serve/worker.h"

namespace lamina::serve {

class McpRelay : public std::enable_shared_from_this<McpRelay> {
 public:
  // `words` start the process; it is started when it is first asked, and again
  // when it has ended.
  McpRelay(std::vector<std::string> words, uint64_t memory_bytes)
      : words_(std::move(words)), memory_bytes_(memory_bytes) {}

  HttpResponse Answer(const HttpRequest& request);
  void Stop();

 private:
  struct Call {
    mcp::Input id;               // as the client gave it
    mcp::Input token;            // of its progress; null: none
    std::string cancel_key;      // empty: only by going away
    std::deque<mcp::Json> said;  // by the process, with the client's names
    bool done = false;
  };
  using CallPointer = std::shared_ptr<Call>;

  // Hands it to the process, in which it gets this number. Errors: the process
  // cannot be started.
  Result<uint64_t> Begin(const CallPointer& call, mcp::Input message);
  Result<std::shared_ptr<Child>> Process();  // with mutex_ held
  // Waits for the next message; nothing: there are no more, or the peer has
  // gone.
  std::optional<mcp::Json> Next(const CallPointer& call, uint64_t number,
                                const std::function<bool()>& gone);
  void Cancel(uint64_t number);
  void Take(std::string_view line);
  void Ended(uint64_t generation, const std::string& why);

  const std::vector<std::string> words_;
  const uint64_t memory_bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Child> child_;
  uint64_t generation_ = 0;  // of child_
  std::map<uint64_t, CallPointer> calls_;
  uint64_t last_ = 0;
  bool stopped_ = false;
};

}  // namespace lamina::serve
