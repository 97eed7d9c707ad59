// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "base/byte_source.h"
#include "ingest/common/format.h"
#include "trace/trace.h"

namespace lamina::ingest::xplane {

// Opens the input; called twice, as names stand behind the events.
using OpenSource = std::function<Result<std::unique_ptr<ByteSource>>()>;

Result<trace::Trace> ReadXplane(const OpenSource& open,
                                const ReadOptions& options);

}  // namespace lamina::ingest::xplane
