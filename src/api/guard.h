// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>
#include <optional>
#include <string>

#include "base/names_in_text.h"
#include "base/stop.h"
#include "lamina/session.h"

namespace lamina::api {

// What `work` returns, or kCancelled where `stop` ended it (base/stop.h). Our
// own code throws nothing else, but memory can run out in it: no exception
// leaves the library.
template <class Work>
auto Guarded(const std::optional<StopSource>& stop, const Work& work)
    -> decltype(work()) {
  Error error;
  try {
    auto made = EndedByStop(stop ? stop->flag() : nullptr, work);
    if (!made) return Fail(WithNames(std::move(made).error(), PlainNames));
    return made;
  } catch (const std::bad_alloc&) {
    error.kind = ErrorKind::kLimit;
    error.what = "out of memory";
    error.hint = "ask for less, or for a part of the trace (slice)";
  } catch (const std::exception& thrown) {
    error.kind = ErrorKind::kInternal;
    error.what = std::string("a fault of lamina: ") + thrown.what();
  }
  return Fail(std::move(error));
}

}  // namespace lamina::api
