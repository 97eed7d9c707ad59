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

Column Flag(std::string name) {
  return {std::move(name), ColumnType::kBool, kMeaning};
}

Result<ResultSet> MakeSheets(const Context& context, Options options) {
  const Model model(context, options);
  std::optional<Overlaps> overlaps;
  if (options.overlaps) {
    LAMINA_ASSIGN(overlaps, Overlaps::Find(model));
  }
  const Overlaps* const beside = overlaps ? &*overlaps : nullptr;
  ResultSet result;
  if (context.trace.info.format == "xplane") {
    AddJaxSheets(model, result);
    return result;
  }
  AddTimelineSheet(model, result);
  AddOpSheets(model, beside, result);
  LAMINA_TRY(AddPerfSheets(model, beside, result));
  AddKernelSheets(model, result);
  if (!options.inference) AddCollectiveSheet(model, result);
  return result;
}

}  // namespace lamina::compat::tracelens
