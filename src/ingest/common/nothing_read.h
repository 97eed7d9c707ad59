// SPDX-License-Identifier: Apache-2.0
//
// The error of a reader that understood the form of a file and found nothing
// in it to show.
#pragma once

#include <string>

#include "base/status.h"
#include "trace/trace.h"

namespace lamina::ingest {

// `what` says what is missing, `hint` how to record it. What was lost on the
// way, if anything, is the likely reason: it is told with its place.
Error NothingRead(const trace::Trace& trace, std::string what,
                  std::string hint);

}  // namespace lamina::ingest
