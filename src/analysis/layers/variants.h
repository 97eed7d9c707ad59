// SPDX-License-Identifier: Apache-2.0
//
// The kinds of layers of a stack beside each other, kernel by kernel: all
// sequences of kernels of a stack are aligned to one list of places, so that
// the kernels of two layers that do the same stand in the same place.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/layers/details.h"
#include "table/row_columns.h"

namespace lamina::analysis::layers {

struct Element {
  uint64_t name = 0;
  uint64_t family = 0;
};

// The place of each element of each sequence, increasing in a sequence. Equal
// names share a place where the order allows it, between those elements of one
// family; a place never holds two families. Earlier sequences come first.
std::vector<std::vector<uint32_t>> AlignPlaces(
    std::span<const std::vector<Element>> sequences);

struct VariantKernels {
  // variant_kernels: one row per kind of layer, as layer_types has them, and
  // place.
  Table table;
  // By row of device arguments: row + 1 of the table; 0 for what is in no
  // layer. Where a stack has very many sequences the rarest have no rows.
  std::vector<uint32_t> row_of;
};
struct VariantRow {
  std::string_view stack;
  std::string variant;
  std::string_view type, stage;
  uint32_t place;
  std::string_view kernel, family;
  int64_t kernels, kernel_time, mean;  // times in nanoseconds
  std::string_view module;
};
const RowColumns<VariantRow>& VariantColumns();
VariantKernels FindVariantKernels(const Details& in);

}  // namespace lamina::analysis::layers
