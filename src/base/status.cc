// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <cstdio>
#include <cstdlib>

#include "base/escape.h"

namespace lamina {

std::string Error::ToString() const {
  std::string out;
  if (!file.empty()) {
    out += EscapeTerminal(file);
    if (line > 0) {
      out += ":" + std::to_string(line);
      if (column > 0) out += ":" + std::to_string(column);
    } else if (offset) {
      out += ":" + std::to_string(*offset);
    }
    out += ": ";
  }
  // Both may quote the input.
  out += EscapeTerminal(what);
  if (!hint.empty()) out += "; " + EscapeTerminal(hint);
  if (!excerpt.empty()) out += "\n" + excerpt;
  return out;
}

Error UsageError(std::string what, std::string hint) {
  Error error;
  error.kind = ErrorKind::kUsage;
  error.what = std::move(what);
  error.hint = std::move(hint);
  return error;
}

Error InputError(std::string file, std::string what, std::string hint) {
  Error error;
  error.kind = ErrorKind::kInput;
  error.file = std::move(file);
  error.what = std::move(what);
  error.hint = std::move(hint);
  return error;
}

Error CancelledError() {
  Error error;
  error.kind = ErrorKind::kCancelled;
  error.what = "stopped, as its caller asked";
  return error;
}

Error InputErrorAt(std::string file, uint64_t offset, std::string what,
                   std::string hint) {
  Error error = InputError(std::move(file), std::move(what), std::move(hint));
  error.offset = offset;
  return error;
}

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr,
               "lamina: internal error: %s:%d: '%s' does not hold; please "
               "report this with the command and the input\n",
               file, line, condition);
  std::abort();
}

}  // namespace lamina
