// SPDX-License-Identifier: Apache-2.0
//
// A user's file of name patterns (data/kernels): compiled, held against its
// examples, and asked for names.
#include "rules/pattern_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  const auto file = rules::ParseYaml(
      "fuzz", std::string(reinterpret_cast<const char*>(data), size));
  if (!file) return 0;
  const rules::Node* const list = file->root.Find("rules");
  if (list == nullptr) return 0;
  auto read = rules::ReadPatternRules(*file, *list, "family");
  if (!read) return 0;
  const auto table = rules::PatternTable::Make(std::move(*read));
  if (!table) return 0;
  rules::CheckExamples(*table);
  for (const std::string_view name :
       {"", "void at::native::vectorized_elementwise_kernel<4>(int, float*)",
        "_Z16flash_fwd_kernelIiEvT_", "\xff\n\x1b[31m"})
    table->Find(name);
  return 0;
}
