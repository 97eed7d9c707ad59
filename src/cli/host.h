// SPDX-License-Identifier: Apache-2.0
//
// A program that runs commands in its own process and takes their documents:
// what a command asks it for instead of a terminal and files.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "sql/source.h"

namespace lamina::page {
struct LiveTrace;
}

namespace lamina::cli {

struct Host {
  int threads = 0;  // 0: all cores
  // How `open` opens traces: a command that wants one otherwise opens its own.
  std::string rules_dir, device;
  std::vector<std::string> captures;
  bool captured_frames = false;
  bool cache = true;
  // A trace that is open already, or is opened now. May be called from many
  // threads.
  std::function<Result<std::shared_ptr<sql::Source>>(const std::string& path)>
      open;
  // Given the document that a command would write, or that of the page that it
  // has written.
  std::function<void(Document document)> take;
  std::function<void(uint64_t done, uint64_t total)> progress;
  // Given what the page of a report was made of; may be null.
  std::function<void(page::LiveTrace&& live)> live;
  // A report without what to change next, which takes longest.
  bool without_findings = false;
  const std::atomic<bool>* stop = nullptr;
};

// The format of a document that a host takes: all tables with all their rows,
// as for a file.
constexpr const char* kAsDocument = "document";

// Runs the command that `words` name, one of those that give a document, as on
// a command line, without a terminal: nothing is printed. Its checks that fail
// are no error. Errors: those of the command, also of `words` that are wrong;
// kCancelled when it was stopped.
Result<Document> RunInHost(const std::vector<std::string>& words,
                           const Host& host);

// The command of these words ("graph", "layer"), as --help describes it; the
// program stops when it is none that gives a document.
DescribedCommand DescribeCommand(const std::vector<std::string>& words);

}  // namespace lamina::cli
