// SPDX-License-Identifier: Apache-2.0
//
// Counters of a trace as columns of a page: what the recording counts, and the
// memory that its allocations and frees say is in use.
#pragma once

#include "render/html/page.h"
#include "trace/trace.h"

namespace lamina::page {

// Adds the block "counters" and the fact that names its series; nothing when
// the trace counts nothing.
void AddCounters(const trace::Trace& trace, render::Page& page);

}  // namespace lamina::page
