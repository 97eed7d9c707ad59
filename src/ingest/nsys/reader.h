// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ingest/common/database.h"
#include "ingest/common/format.h"
#include "trace/trace.h"

namespace lamina::ingest::nsys {

// Reads an export of Nsight Systems.
Result<trace::Trace> ReadNsys(const Database& database,
                              const ReadOptions& options);

}  // namespace lamina::ingest::nsys
