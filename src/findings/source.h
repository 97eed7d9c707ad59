// SPDX-License-Identifier: Apache-2.0
//
// Which lines of Python a finding comes from.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "findings/answer.h"
#include "rules/pattern_table.h"

namespace lamina::findings {

// Whose code a frame is by its name, library or framework; what no rule takes
// is the user's: data/host/packages.yaml.
Result<std::shared_ptr<const rules::PatternTable>> LoadFrameTiers(
    const rules::DataSet& data);

// A fix and the finding that it is of.
using FixOf = std::pair<const Finding*, AnswerFix*>;

// Sets `own`, `library` and `framework_frames` of fixes by the frames around
// the launches of the findings' largest claims, or around the host in the
// middle of their idle spans; nothing without recorded frames. One pass over
// the events of the trace, however many fixes. Errors: data/host that cannot be
// used.
Status FindSources(engine::Session& session, std::span<const FixOf> fixes);

}  // namespace lamina::findings
