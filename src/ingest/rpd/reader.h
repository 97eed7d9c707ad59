// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ingest/common/database.h"
#include "ingest/common/format.h"
#include "trace/trace.h"

namespace lamina::ingest::rpd {

// Reads a database of rocmProfileData.
Result<trace::Trace> ReadRpd(const Database& database,
                             const ReadOptions& options);

}  // namespace lamina::ingest::rpd
