// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes through the Kineto reader and everything behind it. Besides
// not crashing, what is accepted must keep its books: categories, collectives
// and unlinked work add up to the device time.
#include <cstdlib>

#include "base/byte_source.h"
#include "compat/tracelens/sheets.h"
#include "engine/session.h"
#include "ingest/kineto/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto source = OpenMemory("fuzz", bytes);
  if (!source) return 0;
  ingest::ReadOptions options;
  auto trace = ingest::kineto::ReadKineto(std::move(*source), options);
  if (!trace) return 0;
  static const auto catalog = rules::Catalog::Load(rules::DataSet());
  engine::OpenOptions open;
  open.catalog = *catalog;
  auto session = engine::Session::Adopt(std::move(*trace), open);
  if (!session) std::abort();
  analysis::Settings settings;
  settings.recompute = true;
  const analysis::Context& context =
      (*session)->ContextFor(tree::LinkMode::kAuto, true, settings);
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
  analysis::Context& flow =
      (*session)->ContextFor(tree::LinkMode::kFlow, true, settings);
  if (!compat::tracelens::MakeSheets(flow, {})) std::abort();
  return 0;
}
