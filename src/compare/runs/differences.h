// SPDX-License-Identifier: Apache-2.0
//
// Where the difference of matched units is: device work per unit by part of a
// layer, by module class and kernel by kernel. In each phase the deltas of
// diff_parts add up to that of the phase.
#pragma once

#include "compare/runs/match.h"

namespace lamina::runs {

// diff_parts, diff_modules, diff_aligned and diff_waits. `any`: a context of
// the units, for data files. Errors: data files that cannot be used.
Result<std::vector<Table>> DifferenceTables(const Context& any,
                                            const Matching& matching,
                                            const Options& options,
                                            std::vector<Note>& notes);

std::vector<Schema> DifferenceSchemas();

// diff_waits, and sentences about what came and went.
Table WaitsTable(const Matching& matching, std::vector<Note>& notes);
Schema WaitsSchema();

// diff_parts of two that a store kept; `rest` is what their own mixes and that
// of A differ by.
Table KeptParts(const PerSide<const std::vector<Part>*>& parts,
                const Matching& matching);

// What the units of one recording are made of, per unit.
struct ModulePart {
  Phase phase = Phase::kPass;
  std::string path;  // classes from the root
  size_t instances = 0;
  double ns = 0;
};
struct KernelPart {
  Phase phase = Phase::kPass;
  std::string name, op, family;
  double calls = 0, ns = 0;
};
struct Account {
  std::vector<Part> parts;
  std::vector<ModulePart> modules;
  std::vector<KernelPart> kernels;  // of a phase, most time first
};
// `one` is what ClassesOf() gave. Errors: data files that cannot be used.
Result<Account> AccountOf(const Context& any, const Matching& one);

// "bf16": the type with most of the time of matrix products, attention and
// convolutions, else of all work, by the types of their ops, else by the names
// of their kernels; empty: not known.
std::string MainType(const std::vector<const Unit*>& units);

}  // namespace lamina::runs
