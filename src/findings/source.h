// SPDX-License-Identifier: Apache-2.0
//
// Which lines of Python a finding comes from.
#pragma once

#include <memory>

#include "findings/answer.h"
#include "rules/pattern_table.h"

namespace lamina::findings {

// Whose code a frame is by its name, library or framework; what no rule takes
// is the user's: data/host/packages.yaml.
Result<std::shared_ptr<const rules::PatternTable>> LoadFrameTiers(
    const rules::DataSet& data);

// Sets `own`, `library` and `framework_frames` of a fix by the frames around
// the launches of the finding's largest claims, or around the host in the
// middle of its idle spans; nothing without recorded frames. One pass over the
// events of the trace. Errors: data/host that cannot be used.
Status FindSource(engine::Session& session, const Finding& finding,
                  AnswerFix& fix);

}  // namespace lamina::findings
