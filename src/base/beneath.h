// SPDX-License-Identifier: Apache-2.0
//
// Files of a folder that is held open: what stands under a name now, and never
// what a link there leads to, whoever changes names meanwhile.
#pragma once

#include <string>

#include "base/descriptor.h"

namespace lamina {

// A folder, which is meant from now on wherever its name leads; not open, and
// errno, when there is none.
Descriptor HoldFolder(const std::string& path);

// The file or folder `name` below it, to be looked at alone: who opens
// /proc/self/fd/N reads this one. Errors as of OpenBeneath.
Descriptor HoldBeneath(const Descriptor& folder, const std::string& name);

// The regular file `name` ("a/b.json") below a folder, for reading; not open,
// and errno, when there is none: ELOOP where a link stands, EXDEV for a name
// that leads out, EINVAL for what is no regular file. Nothing else is opened:
// devices and pipes notice that.
Descriptor OpenBeneath(const Descriptor& folder, const std::string& name);

// The same for kernels that cannot do it at once, one folder after the other.
Descriptor HoldByParts(const Descriptor& folder, const std::string& name);
Descriptor OpenByParts(const Descriptor& folder, const std::string& name);

// What to tell of that errno, for people.
std::string WhyNotOpened(int number);

}  // namespace lamina
