// SPDX-License-Identifier: Apache-2.0
//
// A trace format: how to recognise it and how to read it into the common
// model. Each lives in a folder of its own that defines
// `lamina::ingest::<folder>::Format()`; the build makes the list.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/timer.h"
#include "ingest/common/input.h"
#include "trace/trace.h"

namespace lamina::ingest {

struct ReadOptions {
  int threads = 1;
  StageTimes* times = nullptr;
  // Called now and then with the bytes read and the size of the file (0 when
  // unknown); on one thread at a time.
  std::function<void(uint64_t done, uint64_t total)> progress;
  // Set from another thread to end the reading early; ReadTrace says so.
  const std::atomic<bool>* stop = nullptr;

  bool Stopped() const {
    return stop != nullptr && stop->load(std::memory_order_relaxed);
  }
};

struct FormatInfo {
  std::string_view name;
  // Both fit into a line of a terminal together: at most 30 and 36 characters.
  std::string_view doc;    // what the files are
  std::string_view gives;  // what the model gets from it
  // How well the input fits: 0 not at all, 100 beyond doubt. Looks at the
  // content, never at the name alone.
  int (*sniff)(const Input& input);
  Result<trace::Trace> (*read)(Input& input, const ReadOptions& options);
  // What no recording of this format can tell; a row of trace_health, but for
  // formats of PyTorch's profiler, where that table names the options of the
  // profiler that would have recorded more.
  std::string_view lacks = {};
  bool has_torch_options = false;
};

}  // namespace lamina::ingest
