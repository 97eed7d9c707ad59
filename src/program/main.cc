// SPDX-License-Identifier: Apache-2.0
//
// The program: its main function, and the commands that begin another front
// than the command line.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <unistd.h>

#include "base/exit_status.h"
#include "base/leftovers.h"
#include "cli/commands.h"
#include "commit.h"
#include "lamina/version.h"
#include "mcp/mcp.h"
#include "serve/serve.h"

namespace {

using lamina::cli::Common;
using lamina::questions::Description;

// Each describes its options on a line of its own struct; threads are those of
// every command.
template <class Options>
lamina::cli::Run AddFront(Description& args, Common& common) {
  auto options = std::make_shared<Options>();
  options->Describe(args, common.asker.threads);
  return [options, &common] {
    options->threads = common.asker.ThreadCount();
    return options->Run();
  };
}

// What --version prints: with it a report of a fault can be repeated.
std::string VersionText() {
  return "lamina " + std::string(lamina::Version()) +
         " (commit " LAMINA_COMMIT ")\nbuilt with " LAMINA_LIBRARIES;
}

int Run(int argc, char** argv) {
  const lamina::cli::CommandInfo fronts[] = {
      lamina::cli::OwnCommand(
          "mcp", "Answer an agent's questions: Model Context Protocol on stdio",
          "lamina mcp --allow traces/ --allow dumps/",
          &AddFront<lamina::mcp::Front>),
      lamina::cli::OwnCommand(
          "serve", "A folder of traces in the browser of this machine",
          "lamina serve runs/ --port 8250", &AddFront<lamina::serve::Front>),
  };
  return lamina::cli::RunProgram(argc, argv, VersionText(), fronts);
}

// At once and on whichever thread: what other threads wait for would not come,
// and containers that were about to grow cannot be unwound (absl's are broken
// then).
[[noreturn]] void OutOfMemory() {
  // Said once, by the thread that finds none first; to clean up may need some.
  static std::atomic<bool> busy = false;
  static thread_local bool first = false;
  if (!first) {
    while (busy.exchange(true)) pause();
    first = true;
    lamina::RemoveLeftovers();
  }
  std::fputs(
      "lamina: error: out of memory; use fewer --threads, a part of the trace "
      "(lamina slice) or a larger machine\n",
      stderr);
  _exit(lamina::kBadInput);
}

// For what was not allocated by operator new.
[[noreturn]] void Terminate() {
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      OutOfMemory();
    } catch (...) {
      // A fault of ours: the core tells more than any message.
    }
  }
  lamina::RemoveLeftovers();
  std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  std::set_new_handler(OutOfMemory);
  std::set_terminate(Terminate);
  // A reader that closes the pipe early (head) is no error of ours.
  std::signal(SIGPIPE, SIG_DFL);
  // A file that grows too large for its limit is an error of its write.
  std::signal(SIGXFSZ, SIG_IGN);
  lamina::CleanUpOnSignals();
  try {
    int status = Run(argc, argv);
    // What was printed may wait in a buffer for a disk that is full.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      std::fprintf(stderr, "lamina: error: standard output: %s\n",
                   std::strerror(errno));
      if (status == lamina::kFine) status = lamina::kBadInput;
    }
    // Gigabytes of columns need no orderly release before the end.
    std::fflush(nullptr);
    _exit(status);
  } catch (const std::bad_alloc&) {
    OutOfMemory();
  }
}
