// SPDX-License-Identifier: Apache-2.0
//
// What of a trace does not lie flat in memory and is small: facts about the
// recording, diagnostics, tracks, streams and categories, one after the other.
#pragma once

#include <string>
#include <string_view>

#include "trace/trace.h"

namespace lamina::snapshot {

std::string FactsOf(const trace::Trace& trace);
// Of streams only what names them. False: these bytes are no facts. Ids of
// texts are as they stand there; they are checked with all others.
bool ReadFacts(std::string_view bytes, trace::Trace& trace);

}  // namespace lamina::snapshot
