// SPDX-License-Identifier: Apache-2.0
#include "base/counted.h"

#include "base/decimal.h"

namespace lamina {

std::string Counted(uint64_t count, std::string_view noun,
                    std::string_view plural) {
  std::string out = GroupDigits(static_cast<int64_t>(count)) + " ";
  if (count == 1) return out.append(noun);
  return plural.empty() ? out.append(noun) + "s" : out.append(plural);
}

}  // namespace lamina
