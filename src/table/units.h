// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lamina {

// The unit that stands at the end of the name of a column: "ns" of "dur_ns",
// "bytes/s" of "read_bytes_per_s"; empty: none.
std::string UnitOfName(std::string_view column);

}  // namespace lamina
