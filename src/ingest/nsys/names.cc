// SPDX-License-Identifier: Apache-2.0
#include "ingest/nsys/names.h"

#include "base/text.h"

namespace lamina::ingest::nsys {
std::string_view PlainApiName(std::string_view name) {
  while (true) {
    if (name.ends_with("_ptsz") || name.ends_with("_ptds")) {
      name.remove_suffix(5);
      continue;
    }
    size_t digits = name.size();
    while (digits > 0 && IsDigit(name[digits - 1])) --digits;
    if (digits == name.size() || digits < 3 ||
        name.substr(digits - 2, 2) != "_v")
      return name;
    name = name.substr(0, digits - 2);
  }
}

bool IsDriverCall(std::string_view name) {
  return name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' &&
         name[2] <= 'Z';
}

std::string CopyDirection(std::string_view entry) {
  constexpr std::string_view kPrefix = "CUDA_MEMCPY_KIND_";
  if (!entry.starts_with(kPrefix)) return std::string(entry);
  std::string_view rest = entry.substr(kPrefix.size());
  std::string out;
  if (rest.starts_with("UVM_")) {
    out = "Unified ";
    rest.remove_prefix(4);
  }
  if (rest.size() == 4 && rest.substr(1, 2) == "TO")
    return out + rest[0] + "to" + rest[3];
  return std::string(entry);
}

}  // namespace lamina::ingest::nsys
