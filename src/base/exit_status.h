// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lamina {

// Exit status of the program; nothing in it ends with another one.
enum ExitStatus : int {
  kFine = 0,
  kCheckFailed = 1,
  kUsage = 2,
  kBadInput = 3,
};

}  // namespace lamina
