// SPDX-License-Identifier: Apache-2.0
//
// Where the difference of matched units is: device work per unit by part of a
// layer, by module class and kernel by kernel. In each phase the deltas of
// diff_parts add up to that of the phase.
#pragma once

#include "compare/runs/match.h"

namespace lamina::runs {

// diff_parts, diff_modules and diff_aligned. `any`: a context of the units, for
// data files. Errors: data files that cannot be
// used.
Result<std::vector<Table>> DifferenceTables(const Context& any,
                                            const Matching& matching,
                                            const Options& options,
                                            std::vector<Note>& notes);

std::vector<Schema> DifferenceSchemas();

// "bf16": the type with most of the time of matrix products and attention, by
// the types of their ops, else by the names of their kernels; empty: not known.
std::string MainType(const std::vector<const Unit*>& units);

}  // namespace lamina::runs
