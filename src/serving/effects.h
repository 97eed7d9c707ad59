// SPDX-License-Identifier: Apache-2.0
//
// What fixes mean for users: passes are run again with what they would save,
// tokens leave as long behind their pass as they did.
#pragma once

#include <vector>

#include "serving/tables.h"

namespace lamina::serving {

Schema EffectSchema();

// fix_effects: two what-ifs of the server itself (no prompt delays the tokens
// of others; no gap between passes), then the gains that are given.
Table EffectTable(const std::vector<ServedPass>& passes, const Join& join,
                  const std::vector<Limit>& limits,
                  const std::vector<FixGain>& gains, std::vector<Note>& notes);

}  // namespace lamina::serving
