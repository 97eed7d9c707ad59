// SPDX-License-Identifier: Apache-2.0
//
// The collectives of one trace beside those of the other ranks of its job: how
// long it waited for them, how long the transfer took.
#pragma once

#include <string>
#include <vector>

#include "analysis/common/context.h"
#include "analysis/host/work_facts.h"
#include "base/status.h"
#include "dist/load.h"

namespace lamina::dist {

// `context` is that of `file`; `others` are traces of other ranks, and may name
// `file` again. The numbers are those of `lamina ranks`; a collective that
// could not be joined without doubt has none. Errors: a trace that cannot be
// used, no rank but one.
Result<analysis::host::RankTimesOf> TimesAmongRanks(
    const analysis::Context& context, const std::string& file,
    const std::vector<std::string>& others, const LoadOptions& load);

}  // namespace lamina::dist
