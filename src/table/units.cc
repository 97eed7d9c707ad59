// SPDX-License-Identifier: Apache-2.0
#include "table/units.h"

namespace lamina {

std::string UnitOfName(std::string_view column) {
  for (const std::string_view unit :
       {"bytes_per_s", "khz", "ns", "us", "bytes", "percent", "flops"}) {
    if (column == unit || column.ends_with("_" + std::string(unit)))
      return unit == "bytes_per_s" ? "bytes/s"
             : unit == "khz"       ? "kHz"
                                   : std::string(unit);
  }
  return "";
}

}  // namespace lamina
