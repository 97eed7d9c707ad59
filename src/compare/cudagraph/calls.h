// SPDX-License-Identifier: Apache-2.0
//
// The names that capture and replay have in common: of launch calls, of
// kernels, and of the ranges that say how large a batch was.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/trace.h"

namespace lamina::cudagraph {

// Launches of kernels, copies and fills; not of whole graphs.
bool IsLaunch(std::string_view call);

// A kernel name as both sides write it: demangled, without clone suffixes;
// copies and fills by kind.
std::string TokenOf(std::string_view kernel);
std::string TokenOfWork(const trace::Trace& trace, trace::SliceId work);

// Frames of frameworks, interpreters and launch machinery.
bool IsFrameworkFrame(std::string_view frame);

// The batch that the range of a capture or of a step names; -1 if none.
int64_t BatchOf(std::string_view range);

}  // namespace lamina::cudagraph
