// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/memory.h"
#include "engine/report.h"
#include "questions/asker.h"

namespace lamina::questions {

// The answer with a document about memory snapshots: its page has all
// allocations of the recordings beside the tables.
Answer MemoryAnswer(Document document, engine::Recordings recordings,
                    const Asker& asker);

}  // namespace lamina::questions
