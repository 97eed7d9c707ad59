// SPDX-License-Identifier: Apache-2.0
//
// Files of profilers that hold no timeline: what they are, and what to give
// instead. A message that names the form tells somebody more than that the
// file is no trace.
#pragma once

#include <optional>
#include <string>

#include "ingest/common/input.h"

namespace lamina::ingest {

struct UnreadForm {
  std::string_view is;    // "is a memory snapshot of PyTorch"
  std::string_view hint;  // what to give instead
};

// By the first bytes; nothing for other files.
std::optional<UnreadForm> FindUnreadForm(const Input& input);

}  // namespace lamina::ingest
