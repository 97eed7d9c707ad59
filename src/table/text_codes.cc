// SPDX-License-Identifier: Apache-2.0
#include "table/text_codes.h"

namespace lamina {

TextCodes CodesOf(const Table& table, size_t column) {
  TextCodes out;
  const ColumnView view = table.View(column);
  // Tables share their texts among columns: not all of them are of this one.
  std::vector<int32_t> code_of(table.texts(), -1);
  out.codes.reserve(table.rows());
  for (size_t row = 0; row < table.rows(); ++row) {
    if (view.IsNull(row)) {
      out.codes.push_back(-1);
      continue;
    }
    int32_t& code = code_of[view.texts[row]];
    if (code < 0) {
      code = static_cast<int32_t>(out.texts.size());
      out.texts.push_back(view.texts[row]);
    }
    out.codes.push_back(code);
  }
  return out;
}

}  // namespace lamina
