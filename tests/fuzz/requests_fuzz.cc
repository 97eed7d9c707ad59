// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary text as the records of clients: what is read is usable, and laid on
// a few passes no token stands before the pass that made it.
#include <algorithm>

#include "serving/join.h"
#include "serving/records.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto records = serving::ParseRecords("fuzz", text, {});
  if (!records) return 0;
  LAMINA_CHECK(!records->requests.empty());
  for (const serving::Request& request : records->requests) {
    LAMINA_CHECK(!request.chunk_ns.empty() && request.chunk_ns.front() >= 0);
    LAMINA_CHECK(
        std::is_sorted(request.chunk_ns.begin(), request.chunk_ns.end()));
  }
  std::vector<serving::ServedPass> passes(40);
  for (size_t i = 0; i < passes.size(); ++i) {
    serving::ServedPass& pass = passes[i];
    pass.number = i;
    pass.start_ns = static_cast<int64_t>(i) * 300'000;
    pass.end_ns = pass.start_ns + 250'000;
    pass.prompts = i % 4 == 0;
    pass.prompt_tokens = i % 4 == 0 ? 200 : 0;
    pass.generating = 2;
    pass.phase = i % 4 == 0 ? runs::Phase::kMixed : runs::Phase::kDecode;
  }
  serving::JoinOptions options;
  options.offset_ns = records->requests.front().start_ns;
  for (const auto& how : {serving::JoinOptions(), options}) {
    const serving::Join join =
        serving::PlaceRequests(*records, passes, std::nullopt, how);
    for (const serving::PlacedRequest& one : join.requests) {
      LAMINA_CHECK(one.pass.size() == one.request->chunk_ns.size());
      for (const size_t pass : one.pass)
        LAMINA_CHECK(pass == serving::kNoPass || pass < passes.size());
    }
  }
  return 0;
}
