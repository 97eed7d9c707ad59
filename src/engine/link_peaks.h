// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/host/tables.h"
#include "engine/session.h"

namespace lamina::engine {

// Of the device that a trace was recorded on; all unknown for one that
// data/devices does not have. Errors: those of the data files and of --device.
Result<analysis::host::LinkPeaks> FindLinkPeaks(Session& session);

}  // namespace lamina::engine
