// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command.h"
#include "engine/memory.h"
#include "engine/report.h"

namespace lamina::cli {

// Writes a document about memory snapshots: as every other one, but a page has
// all allocations of the recordings beside the tables.
Status WriteMemory(Document& document, const engine::Recordings& recordings,
                   const Common& common);

}  // namespace lamina::cli
