// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the head of a request, and as frames of a worker: what passes is
// within the limits, and frames do not depend on how they were cut.
#include <algorithm>
#include <cstdlib>

#include "serve/http/received.h"
#include "serve/worker.h"

namespace lamina::serve {
namespace {

std::string Frames(std::string_view bytes, size_t step) {
  FrameReader reader;
  std::string out;
  while (!bytes.empty() && !reader.damaged()) {
    const size_t size = std::min(step, bytes.size());
    reader.Feed(bytes.substr(0, size));
    bytes.remove_prefix(size);
    while (const auto frame = reader.Next()) out += FrameText(*frame);
  }
  return out + (reader.damaged() ? "damaged" : "");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const HttpLimits limits;
  size_t body = 0;
  const int status = CheckHead(text, limits, body);
  if (status == 0 &&
      (body > limits.body_bytes || text.find('\0') != std::string_view::npos ||
       !text.ends_with("\r\n") || text.find(" /") == std::string_view::npos))
    std::abort();
  if (status != 0 && (status < 400 || status > 505)) std::abort();
  const std::string whole = Frames(text, text.size());
  for (const size_t step : {size_t{1}, size_t{7}}) {
    const std::string cut = Frames(text, step);
    // What ends in the middle of a broken line may not be known as one yet.
    if (cut != whole && cut + "damaged" != whole && whole + "damaged" != cut)
      std::abort();
  }
  return 0;
}

}  // namespace lamina::serve
