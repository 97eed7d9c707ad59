// SPDX-License-Identifier: Apache-2.0
//
// Turns the events of a chunk of a Kineto trace into rows of a Segment.
#pragma once

#include <memory>

#include "ingest/common/record_reader.h"

namespace lamina::ingest::kineto {

std::unique_ptr<RecordParser> MakeEventParser();

}  // namespace lamina::ingest::kineto
