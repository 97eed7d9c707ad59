// SPDX-License-Identifier: Apache-2.0
//
// One trace that is queried: opened on first use, with all rows that queries
// asked for. May be used from many threads; what is given out is immutable and
// lives as long as the source. Who waits for another thread that asks hears a
// stop (base/stop.h), and what was stopped is made by whoever asks next.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/common/compiled_work.h"
#include "base/stop.h"
#include "engine/found_layers.h"
#include "engine/host_tables.h"
#include "engine/idle_report.h"
#include "engine/session.h"
#include "graph/compiled/compiled_code.h"
#include "lamina/engine.h"
#include "sql/rows.h"

namespace lamina::sql {

struct TableDef;

class Source {
 public:
  Source(std::string path, engine::OpenOptions options);
  // A trace that is open.
  explicit Source(std::shared_ptr<engine::Session> session, int threads = 1);

  const std::string& path() const { return path_; }
  // For what is made of the trace; 0 or less: all cores.
  int threads() const { return options_.threads; }
  // While it is held only this thread asks the trace: for work on session().
  std::unique_lock<StoppableMutex> Lock() { return std::unique_lock(mutex_); }
  // Opens the trace on first use. Errors: of reading it, again each time.
  Result<engine::Session*> session();
  bool opened() const { return opened_.load(std::memory_order_acquire); }
  Result<const trace::Trace*> trace();
  // Without Python frames in the tree, and with them.
  Result<const analysis::Context*> Context(bool python_frames = false);
  Result<std::shared_ptr<const ResultSet>> Analysis(std::string_view name);
  // Notes of all analyses of a report.
  Result<std::shared_ptr<const ResultSet>> Report();
  // A report with any options; not kept.
  Result<Document> MakeReport(const ReportOptions& options,
                              const engine::Watch& watch = {});
  Result<const engine::FoundLayers*> Layers();
  Result<const engine::IdleView*> Host();
  Result<const analysis::path::Graph*> PathGraph();
  // Of PathGraph(); asked while Lock() is held.
  const std::shared_ptr<engine::PathTimes>& path_times() const {
    return path_times_;
  }
  // Code of a compiler, for what its kernels compute; before the first query.
  void UseCompiled(
      std::shared_ptr<const std::vector<graph::CompiledProgram>> programs);
  // Null: none was given.
  Result<const analysis::CompiledWork*> Compiled();
  // What `make` gives, made once for each key.
  Result<std::shared_ptr<const ResultSet>> Made(
      const std::string& key, Result<ResultSet> (*make)(Source& source));
  Result<const cost::ModelSet*> CostModels();
  Result<std::optional<cost::Device>> Device();

  // The rows of a table, made on first use. Analyses that it needs are
  // watched; what was stopped is made by whoever asks next.
  Result<std::shared_ptr<const Rows>> Open(const TableDef& table,
                                           const engine::Watch& watch = {});

 private:
  std::string path_;
  engine::OpenOptions options_;
  std::shared_ptr<engine::Session> session_;
  std::atomic<bool> opened_ = false;
  // Held while something is made; making one thing asks for others.
  StoppableMutex mutex_;
  const engine::Watch* watch_ = nullptr;  // of whoever holds it
  std::optional<Error> failed_;
  std::map<std::string, std::shared_ptr<const ResultSet>, std::less<>>
      analyses_;
  std::shared_ptr<const ResultSet> report_;
  std::optional<engine::FoundLayers> layers_;
  const std::shared_ptr<engine::PathTimes> path_times_ =
      std::make_shared<engine::PathTimes>();
  std::shared_ptr<const std::vector<graph::CompiledProgram>> programs_;
  std::optional<analysis::CompiledWork> compiled_;
  std::optional<std::optional<cost::Device>> device_;
  std::shared_ptr<const cost::ModelSet> models_;
  // Rows that are made are read while others are made.
  std::shared_ptr<const Rows> MadeRows(std::string_view table) const;
  mutable std::mutex rows_mutex_;
  std::map<std::string, std::shared_ptr<const Rows>, std::less<>> rows_;
};

}  // namespace lamina::sql
