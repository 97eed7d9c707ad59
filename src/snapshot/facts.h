// SPDX-License-Identifier: Apache-2.0
//
// XXH3: fast enough to be no part of the time in which a file is mapped. It
// finds accidents, not forgeries.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "trace/trace.h"

namespace lamina::snapshot {

uint64_t Digest(const void* bytes, size_t size);
std::array<uint8_t, 16> Digest128(std::string_view bytes);

// What of a trace does not lie flat in memory and is small: facts about the
// recording, diagnostics, tracks, streams and categories, one after the other.

std::string FactsOf(const trace::Trace& trace);
// Of streams only what names them. False: these bytes are no facts. Ids of
// texts are as they stand there; they are checked with all others.
bool ReadFacts(std::string_view bytes, trace::Trace& trace);

}  // namespace lamina::snapshot
