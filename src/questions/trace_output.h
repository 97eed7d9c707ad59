// SPDX-License-Identifier: Apache-2.0
//
// Traces that commands write as Chrome JSON, as Perfetto traces where the name
// asks for one.
#pragma once

#include <functional>
#include <string>

#include "emit/chrome/filter.h"
#include "questions/asker.h"

namespace lamina::questions {

// Calls `write_json` with a name for its output. That is `output`, or, where
// `output` ends in .pftrace or .pftrace.gz, a file beside it that is then
// written anew as a Perfetto trace and removed.
Status WriteTraceAs(
    const std::string& output, Asker& asker,
    const std::function<Status(const std::string&)>& write_json);

// Warns of what of `input` is not, or not as it stands, in a copy of it; says
// nothing when the copy is whole.
void WarnOfLoss(const std::string& input, const emit::CopyLoss& loss,
                Asker& asker);

}  // namespace lamina::questions
