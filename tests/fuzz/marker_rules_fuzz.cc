// SPDX-License-Identifier: Apache-2.0
//
// A user's file of rules for ranges that name modules (data/modules): compiled,
// held against its examples, and asked for texts; the file itself is one.
#include "rules/dictionary_text.h"
#include "rules/markers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  const std::string text(reinterpret_cast<const char*>(data), size);
  rules::TextOfKey(text, "Module");
  auto file = rules::ParseYaml("fuzz", text);
  if (!file) return 0;
  const auto table = rules::MarkerTable::Make(
      {std::make_shared<rules::DataFile>(std::move(*file))});
  if (!table) return 0;
  (*table)->CheckExamples();
  for (const std::string_view range :
       {std::string_view(), std::string_view("model.layers.7.self_attn"),
        std::string_view("{'Module': 'a.b'}"), std::string_view(text)})
    (*table)->Read(range);
  return 0;
}
