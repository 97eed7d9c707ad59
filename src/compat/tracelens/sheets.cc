// SPDX-License-Identifier: Apache-2.0
#include "compat/tracelens/sheets.h"

namespace lamina::compat::tracelens {
namespace {

constexpr const char* kMeaning = "See docs/tracelens.md.";

}  // namespace

Column Text(std::string name) {
  return {std::move(name), ColumnType::kText, kMeaning};
}
Column Number(std::string name) {
  return {std::move(name), ColumnType::kReal, kMeaning};
}
Column Count(std::string name) {
  return {std::move(name), ColumnType::kInt, kMeaning};
}

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
