// SPDX-License-Identifier: Apache-2.0
//
// Documents of profilers and compilers that are no timeline, or none that is
// read yet. They are refused by name, with the time in them where they have
// any, instead of by what a reader misses first.
#pragma once

#include <optional>

#include "base/status.h"
#include "ingest/common/input.h"

namespace lamina::ingest {

// The error for such a document; nothing for any other.
std::optional<Error> RefuseOther(Input& input);

}  // namespace lamina::ingest
