// SPDX-License-Identifier: Apache-2.0
//
// Which device events one row of the table kernels is made of: the table and
// the page that joins its events to rows take it from here.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/common/context.h"

namespace lamina::analysis {

// Nearest op above the launch of a device slice, else the API call; invalid
// when unlinked.
NodeId KernelParent(const Context& context, SliceId s);
// Its name; none when invalid.
StringId NameOf(const Context& context, NodeId node);

// Events of one name, below one op, on one stream.
struct KernelGroup {
  SliceId first;
  NodeId parent;  // of the first
  int64_t sum_ns = 0;
  uint32_t count = 0;
};

struct KernelGroups {
  std::vector<KernelGroup> rows;  // longest first: the order of the table
  // By row of device arguments (Slices::detail): the index into `rows`, at
  // least rows.size() where no slice has it.
  std::vector<uint32_t> row_of;

  static KernelGroups Build(const Context& context);
};

}  // namespace lamina::analysis
