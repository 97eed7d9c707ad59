// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes through the XPlane reader and the call tree.
#include "ingest/xplane/reader.h"
#include "trace_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamina;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto trace =
      ingest::xplane::ReadXplane([&] { return OpenMemory("fuzz", bytes); }, {});
  if (trace) fuzz::CheckTrace(*trace);
  return 0;
}
