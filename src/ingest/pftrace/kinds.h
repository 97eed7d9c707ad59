// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "trace/kinds.h"

namespace lamina::ingest::pftrace {

// What a category means: those of Kineto and of rocprofv3. kOther for others.
trace::Kind KindOfCategory(std::string_view category);

// What the arguments of an event without a known category show.
struct Hints {
  bool grid = false, stream = false, bytes = false, correlation = false;
  bool shapes = false, external_id = false, python = false;
};
trace::Kind KindOfEvent(std::string_view name, const Hints& hints);

}  // namespace lamina::ingest::pftrace
