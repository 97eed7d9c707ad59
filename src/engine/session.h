// SPDX-License-Identifier: Apache-2.0
//
// One opened trace and everything that was derived from it, made on first use
// and kept. The only place that sees every layer.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/analyses.h"
#include "base/memo.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/timer.h"
#include "lamina/result.h"
#include "rules/catalog.h"
#include "rules/markers.h"
#include "trace/trace.h"
#include "tree/modules.h"
#include "tree/steps.h"
#include "tree/tree.h"

namespace lamina::cudagraph {
struct Attribution;
}

namespace lamina::engine {

class Origins;

struct OpenOptions {
  int threads = 1;
  std::string rules_dir;  // overlay of data/, may be empty
  StageTimes* times = nullptr;
  std::function<void(uint64_t done, uint64_t total)> progress;
  // Name of a device or a file that describes one; empty: what the trace says.
  std::string device;
  // Loaded before, to open many traces with the same data files.
  std::shared_ptr<const rules::Catalog> catalog;
  // Traces, or folders of them, in which the replayed graphs were captured:
  // their ops join the tree below the launches, with all Python frames or only
  // those of modules.
  std::vector<std::string> captures;
  bool captured_frames = false;
  // Ranges whose names match this pattern (RE2) are the steps; empty: what the
  // profiler marks, else what data/steps says.
  std::string step;
  // Only what happened in, or was launched from, ranges of this name; empty:
  // all. A '*' stands for any text.
  std::string range;
  // Learns where each trace that is opened was made.
  Origins* origins = nullptr;
  // Told of each trace that was read, captures too: what of it was lost.
  std::function<void(const std::string& path, const trace::Trace& trace)> read;
  // Set from another thread to end the opening: kCancelled.
  const std::atomic<bool>* stop = nullptr;
  // Whether large traces are kept in the user's cache and mapped from there
  // when they are opened again (snapshot/cache.h).
  bool cache = false;
};

// How a caller watches work, and ends it: kCancelled.
struct Watch {
  const std::atomic<bool>* stop = nullptr;
  std::function<void(uint64_t done, uint64_t total)> progress;

  bool Stopped() const {
    return stop != nullptr && stop->load(std::memory_order_relaxed);
  }
};

class Session {
 public:
  // Reads a trace of any known format. Errors: unusable input.
  static Result<std::unique_ptr<Session>> Open(const std::string& path,
                                               const OpenOptions& options);
  // For readers of their own and tests.
  static Result<std::unique_ptr<Session>> Adopt(trace::Trace trace,
                                                const OpenOptions& options);

  const trace::Trace& trace() const { return trace_; }
  const rules::Catalog& catalog() const { return *catalog_; }
  std::shared_ptr<const rules::Catalog> shared_catalog() const {
    return catalog_;
  }
  const rules::DataSet& data() const { return data_; }
  // What it was opened with.
  const std::vector<std::string>& captures() const { return options_.captures; }

  // The trace and its data files, and the facts that need no tree: cost models,
  // the device (analysis/common/input.h).
  const analysis::Input& input() const { return *input_; }
  // Code of a compiler, for what its kernels compute: before the first
  // question.
  void UseCompiled(std::shared_ptr<const analysis::Input::Programs> programs) {
    input_->compiled = std::move(programs);
  }
  // For what is made of the trace.
  int threads() const { return options_.threads; }

  // What analyses need, for one way of building the tree and some settings,
  // with its facts. Kept: the same is given again, and what others got stays as
  // it was. From any thread; who waits hears a stop.
  Result<const analysis::Context*> ContextFor(
      tree::LinkMode link, bool python_stacks,
      const analysis::Settings& settings);

  // What replayed kernels were captured from: in the captures that were opened
  // with the trace, or by the nodes that the trace itself records. Null when
  // there is neither.
  Result<std::shared_ptr<const cudagraph::Attribution>> GraphAttribution(
      const analysis::Context& context);

  // Runs analyses in parallel and joins their results in the order given.
  // Errors: kUsage for a name that none has, kCancelled (base/stop.h).
  Result<ResultSet> RunAnalyses(std::span<const std::string_view> names,
                                const analysis::Context& context,
                                const Watch& watch = {});
  // Of one analysis, as a report without options shows it: run once and kept.
  // What was stopped is run by whoever asks next.
  Result<std::shared_ptr<const ResultSet>> Analysis(std::string_view name,
                                                    const Watch& watch = {});
  // What others make of the trace and want to keep with it, by a key that says
  // whose it is ("report", "rows of kernel").
  Memo& kept() { return kept_; }

 private:
  struct Derived;

  explicit Session(const OpenOptions& options);
  static Result<std::unique_ptr<Session>> Read(const std::string& path,
                                               const OpenOptions& options);
  Status LoadData();
  std::unique_ptr<analysis::Input> MakeInput() const;
  std::unique_ptr<Derived> Derive(tree::LinkMode link, bool python_stacks);
  Status MergeCaptures();
  Status FindSteps(const rules::MarkerTable& markers);

  trace::Trace trace_;
  OpenOptions options_;
  rules::DataSet data_;
  tree::StepRanges step_ranges_;
  std::shared_ptr<const rules::Catalog> catalog_;
  std::unique_ptr<analysis::Input> input_;
  StoppableMutex mutex_;  // of derived_
  std::vector<std::unique_ptr<Derived>> derived_;
  std::shared_ptr<const cudagraph::Attribution> attribution_;  // of captures
  Memo kept_;

 public:
  ~Session();
};

}  // namespace lamina::engine
