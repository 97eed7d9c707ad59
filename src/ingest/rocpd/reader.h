// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ingest/common/database.h"
#include "ingest/common/format.h"
#include "trace/trace.h"

namespace lamina::ingest::rocpd {

// Reads a database of rocprofv3 or rocprof-sys.
Result<trace::Trace> ReadRocpd(const Database& database,
                               const ReadOptions& options);

}  // namespace lamina::ingest::rocpd
