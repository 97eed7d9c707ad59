// SPDX-License-Identifier: Apache-2.0
//
// Device work in the order of time and on the streams of each device.
#pragma once

#include "trace/trace.h"

namespace lamina::trace {

// Fills trace.device_order, trace.streams and the lane of every device row.
// Where a row does not name its device or stream, the ids of its track in the
// viewer do.
void MakeStreams(Trace& trace, int threads);

}  // namespace lamina::trace
