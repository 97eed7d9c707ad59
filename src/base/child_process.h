// SPDX-License-Identifier: Apache-2.0
//
// Other programs (an exporter, a layout engine), run without a shell and never
// longer than a time limit.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/leftovers.h"
#include "base/status.h"

namespace lamina {

struct ChildResult {
  int exit_status = -1;    // -1: ended by a signal
  bool timed_out = false;  // and was stopped
  std::string out;
  std::string err;
};

// The program `name` in the folders of $PATH; nothing when there is none.
std::optional<std::string> FindProgram(std::string_view name);

// Runs `arguments` (the first is the path of the program) with `input` on its
// standard input and collects what it prints, at most `max_output` bytes of
// each stream; the rest is read and dropped. Errors: it cannot be started.
Result<ChildResult> RunChild(const std::vector<std::string>& arguments,
                             std::string_view input,
                             std::chrono::milliseconds limit,
                             size_t max_output = size_t{64} << 20);

// A program that is talked to while it runs. It is ended by the system when the
// thread that started it ends.
class StartedChild {
 public:
  // It has the descriptors `kept`, under their numbers, beside its standard
  // ones. Errors: it cannot be started.
  static Result<std::unique_ptr<StartedChild>> Start(
      const std::vector<std::string>& arguments,
      std::span<const int> kept = {});

  // Its process, which leads a group of its own; whoever started it waits for
  // it by waitpid().
  pid_t process() const { return running_.process(); }
  Descriptor in, out, err;  // our ends; in does not block

 private:
  explicit StartedChild(const std::function<pid_t()>& start)
      : running_(start) {}
  RunningChild running_;
};

}  // namespace lamina
