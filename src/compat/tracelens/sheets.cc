// SPDX-License-Identifier: Apache-2.0
#include "compat/tracelens/sheets.h"

namespace lamina::compat::tracelens {

Result<ResultSet> MakeSheets(const Context& context, Options options) {
  const Model model(context, options);
  ResultSet result;
  AddTimelineSheet(model, result);
  AddOpSheets(model, result);
  AddPerfSheets(model, result);
  AddKernelSheets(model, result);
  if (!options.inference) AddCollectiveSheet(model, result);
  return result;
}

}  // namespace lamina::compat::tracelens
