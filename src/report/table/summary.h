// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "lamina/result.h"

namespace lamina::report::table {

// Notes as wrapped paragraphs: the verdict first, then opportunities with
// their worth, then warnings and remarks.
std::string FormatNotes(std::span<const Note> notes, int width, bool color);

// Breaks text at spaces; following lines start with `indent` spaces.
std::string Wrap(std::string_view text, int width, int indent);

// The first face of a report: verdict, timeline as bars, top categories and
// ops, steps, what is wrong with the trace, and where the rest is.
std::string FormatSummary(const ResultSet& result, int width, bool color,
                          size_t top);

}  // namespace lamina::report::table
