// SPDX-License-Identifier: Apache-2.0
//
// What a question answers: a document, and what else can be made of it while
// what it was made of is still there.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "lamina/result.h"
#include "questions/command_words.h"

namespace lamina::findings {
struct TraceAnswer;
}
namespace lamina::page {
struct LiveTrace;
}
namespace lamina::render {
struct Secrets;
}

namespace lamina::questions {

struct PageRequest {
  std::string output = "-";
  const render::Secrets* redact = nullptr;  // what the page must not show
  CommandWords words;  // the command line that asks the same; may be empty
  // Given what the page was made of, where it is served; may be null.
  std::function<void(page::LiveTrace&& live)> live;
};

struct Answer {
  Answer() = default;
  explicit Answer(Document made) : document(std::move(made)) {}

  Document document;
  // The answer as another text than that of its tables, by format: "json".
  std::vector<std::pair<std::string, std::function<std::string()>>> forms;
  // What a terminal, or a file without a format, is given in place of tables.
  std::optional<std::string> text;
  // What the first screen shows of a trace; null: nothing was asked for. Where
  // `full`, a terminal is given the tables in its place.
  std::shared_ptr<findings::TraceAnswer> first;
  bool full = false;
  std::string below;  // what a command line prints below the tables
  // Writes a page that holds more than the tables; null: it holds them. Then
  // `document` is what the page shows.
  std::function<Status(Document& document, const PageRequest& request)> page;
  // Writes files in place of a document, where a command line asks.
  std::function<Status(const PageRequest& request)> files;
  bool sheets = false;   // tables of another tool, whose files hold no notes
  bool nothing = false;  // who asked has it already, in a file or a process
  // A check that was asked for is not met; `misses` says what, in lines.
  bool failed = false;
  std::vector<std::string> misses;
  // Why a document that is worth a look is no answer.
  std::optional<Error> fault;
};

}  // namespace lamina::questions
