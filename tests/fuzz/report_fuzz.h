// SPDX-License-Identifier: Apache-2.0
//
// A report on a trace: all analyses run, and what was accepted keeps its books:
// the categories add up to the device time.
#pragma once

#include <cstdlib>
#include <utility>

#include "compat/tracelens/sheets.h"
#include "engine/session.h"

namespace lamina::fuzz {

inline void CheckReport(trace::Trace trace) {
  static const auto catalog = rules::Catalog::Load(rules::DataSet());
  engine::OpenOptions open;
  open.catalog = *catalog;
  auto session = engine::Session::Adopt(std::move(trace), open);
  if (!session) std::abort();
  analysis::Settings settings;
  settings.recompute = true;
  const auto found =
      (*session)->ContextFor(tree::LinkMode::kAuto, true, settings);
  if (!found) std::abort();
  const analysis::Context& context = **found;
  std::vector<std::string_view> names;
  for (const analysis::AnalysisInfo& info : analysis::Analyses())
    names.push_back(info.name);
  const auto result = (*session)->RunAnalyses(names, context);
  if (!result) std::abort();
  // Sums wrap together or not at all, so unsigned arithmetic is exact here.
  uint64_t total = 0;
  for (const trace::SliceId s : context.trace.device_slices())
    total += static_cast<uint64_t>(context.trace.Duration(s));
  const Table& categories = *result->Find("op_categories");
  uint64_t sum = 0;
  for (size_t row = 0; row < categories.rows(); ++row)
    sum +=
        static_cast<uint64_t>(categories.At(row, "kernel_time_us").integer());
  if (sum != total) std::abort();
  const auto flow =
      (*session)->ContextFor(tree::LinkMode::kFlow, true, settings);
  if (!flow || !compat::tracelens::MakeSheets(**flow, {})) std::abort();
}

}  // namespace lamina::fuzz
