// SPDX-License-Identifier: Apache-2.0
//
// Device work of makers whose profilers write Chrome JSON without categories:
// processes and threads say what an event is, and flows what launched it.
#pragma once

#include "trace/trace.h"

namespace lamina::ingest::kineto {

// Turns events of such tracks into device work and calls of the host, and joins
// them by a correlation of their own. A trace that has none stays as it is. To
// be called when tracks have their names and before streams are made; linear
// in the number of slices and flows, n log n in those of the tracks it reads.
void ReadDeviceTracks(trace::Trace& trace);

}  // namespace lamina::ingest::kineto
