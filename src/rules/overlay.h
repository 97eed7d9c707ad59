// SPDX-License-Identifier: Apache-2.0
//
// A folder of --rules is laid out like data/. What stands elsewhere, or under
// another name, would never be read: that is an error, not a silence.
#pragma once

#include <string>

#include "base/status.h"

namespace lamina::rules {

// Holds the files of a folder against those of data/: they stand in folders of
// the same names, and each begins with keys that files of its folder have, of
// the same form, and names a table that they know. Errors: the first file that
// does not, with the nearest right name; a folder without any data file.
Status CheckOverlay(const std::string& folder);

}  // namespace lamina::rules
