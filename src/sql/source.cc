// SPDX-License-Identifier: Apache-2.0
#include "sql/source.h"

#include <absl/cleanup/cleanup.h>

#include "engine/report.h"
#include "graph/compiled/compiled_join.h"
#include "sql/table_def.h"

namespace lamina::sql {
namespace {

const engine::Watch kUnwatched;

}  // namespace

Source::Source(std::string path, engine::OpenOptions options)
    : path_(std::move(path)), options_(std::move(options)) {}

Source::Source(std::shared_ptr<engine::Session> session, int threads)
    : path_(session->trace().info.file), session_(std::move(session)) {
  options_.threads = threads;
  opened_ = true;
}

Result<engine::Session*> Source::session() {
  if (opened()) return session_.get();
  const std::lock_guard lock(mutex_);
  if (failed_) return Fail(*failed_);
  if (session_ == nullptr) {
    auto opened = engine::Session::Open(path_, options_);
    if (!opened) {
      if (opened.error().kind != ErrorKind::kCancelled)
        failed_ = opened.error();
      return Fail(opened.error());
    }
    session_ = *std::move(opened);
    opened_.store(true, std::memory_order_release);
  }
  return session_.get();
}

Result<const trace::Trace*> Source::trace() {
  LAMINA_ASSIGN(const engine::Session* const opened, session());
  return &opened->trace();
}

Result<const analysis::Context*> Source::Context(bool python_frames) {
  const std::lock_guard lock(mutex_);
  LAMINA_ASSIGN(engine::Session* const opened, session());
  analysis::Settings settings;
  settings.threads = options_.threads;
  LAMINA_ASSIGN(
      const analysis::Context* const context,
      opened->ContextFor(tree::LinkMode::kAuto, python_frames, settings));
  return context;
}

Result<std::shared_ptr<const ResultSet>> Source::Analysis(
    std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto it = analyses_.find(name); it != analyses_.end())
    return it->second;
  LAMINA_ASSIGN(engine::Session* const opened, session());
  ReportOptions options;
  options.threads = options_.threads;
  options.recompute = name == "recompute";
  analysis::Settings settings = engine::SettingsOf(options);
  LAMINA_ASSIGN(
      const analysis::Context* const context,
      opened->ContextFor(tree::LinkMode::kAuto, options.recompute, settings));
  const std::string_view names[] = {name};
  LAMINA_ASSIGN(
      ResultSet result,
      opened->RunAnalyses(names, *context, watch_ ? *watch_ : kUnwatched));
  // As a report shows it.
  if (name == "timeline")
    LAMINA_TRY(engine::AddGapParts(*opened, *context, result));
  if (name == "steps")
    LAMINA_TRY(engine::AddStepVerdicts(*opened, *context, result));
  if (name == "layers")
    LAMINA_TRY(engine::AddLayerVerdicts(*opened, *context, result));
  if (name == "mfu") {
    LAMINA_TRY(
        engine::AddToUtilisation(*context, opened->data(), options, result));
  }
  auto kept = std::make_shared<const ResultSet>(std::move(result));
  analyses_.emplace(name, kept);
  return kept;
}

Result<std::shared_ptr<const ResultSet>> Source::Report() {
  const std::lock_guard lock(mutex_);
  if (report_ == nullptr) {
    LAMINA_ASSIGN(engine::Session* const opened, session());
    ReportOptions options;
    options.threads = options_.threads;
    LAMINA_ASSIGN(Document document,
                  engine::MakeReport(*opened, options, nullptr,
                                     watch_ ? *watch_ : kUnwatched));
    report_ = std::make_shared<const ResultSet>(std::move(document.result));
  }
  return report_;
}

Result<Document> Source::MakeReport(const ReportOptions& options,
                                    const engine::Watch& watch) {
  return EndedByStop(watch.stop, [&]() -> Result<Document> {
    const std::lock_guard lock(mutex_);
    LAMINA_ASSIGN(engine::Session* const opened, session());
    LAMINA_ASSIGN(Document document,
                  engine::MakeReport(*opened, options, nullptr, watch));
    document.inputs = {path_};
    return document;
  });
}

Result<const engine::FoundLayers*> Source::Layers() {
  const std::lock_guard lock(mutex_);
  if (!layers_) {
    LAMINA_ASSIGN(engine::Session* const opened, session());
    LAMINA_ASSIGN(const analysis::Context* const context, Context());
    LAMINA_ASSIGN(layers_, engine::FindLayers(*opened, *context));
  }
  return &*layers_;
}

Result<const engine::IdleView*> Source::Host() {
  const std::lock_guard lock(mutex_);
  LAMINA_ASSIGN(engine::Session* const opened, session());
  LAMINA_ASSIGN(const analysis::Context* const context, Context());
  return opened->IdleOf(*context);
}

Result<const analysis::path::Graph*> Source::PathGraph() {
  const std::lock_guard lock(mutex_);
  LAMINA_ASSIGN(engine::Session* const opened, session());
  LAMINA_ASSIGN(const analysis::Context* const context, Context());
  return opened->PathOf(*context);
}

void Source::UseCompiled(
    std::shared_ptr<const std::vector<graph::CompiledProgram>> programs) {
  const std::lock_guard lock(mutex_);
  programs_ = std::move(programs);
}

Result<const analysis::CompiledWork*> Source::Compiled() {
  const std::lock_guard lock(mutex_);
  if (programs_ == nullptr) return nullptr;
  if (!compiled_) {
    LAMINA_ASSIGN(const analysis::Context* const context, Context());
    compiled_ = graph::JoinCompiled(context->tree, *programs_);
  }
  return &*compiled_;
}

Result<std::shared_ptr<const ResultSet>> Source::Made(
    const std::string& key, Result<ResultSet> (*make)(Source& source)) {
  const std::lock_guard lock(mutex_);
  if (const auto it = analyses_.find(key); it != analyses_.end())
    return it->second;
  LAMINA_ASSIGN(ResultSet result, make(*this));
  auto kept = std::make_shared<const ResultSet>(std::move(result));
  analyses_.emplace(key, kept);
  return kept;
}

Result<const cost::ModelSet*> Source::CostModels() {
  const std::lock_guard lock(mutex_);
  if (models_ == nullptr) {
    LAMINA_ASSIGN(engine::Session* const opened, session());
    LAMINA_ASSIGN(models_, opened->CostModels());
  }
  return models_.get();
}

Result<std::optional<cost::Device>> Source::Device() {
  const std::lock_guard lock(mutex_);
  if (!device_) {
    LAMINA_ASSIGN(engine::Session* const opened, session());
    LAMINA_ASSIGN(device_, opened->FindDevice());
  }
  return *device_;
}

Result<std::shared_ptr<const Rows>> Source::Open(const TableDef& table,
                                                 const engine::Watch& watch) {
  if (auto made = MadeRows(table.name)) return made;
  return EndedByStop(watch.stop, [&]() -> Result<std::shared_ptr<const Rows>> {
    const std::lock_guard lock(mutex_);
    if (auto made = MadeRows(table.name)) return made;
    LookForStop();
    // Making one table may ask for others: theirs is the watch of the first.
    const engine::Watch* const outer = watch_;
    if (outer == nullptr) watch_ = &watch;
    const absl::Cleanup restore = [&] { watch_ = outer; };
    LAMINA_ASSIGN(auto rows, table.open(*this));
    const std::lock_guard shown(rows_mutex_);
    rows_.emplace(table.name, rows);
    return rows;
  });
}

std::shared_ptr<const Rows> Source::MadeRows(std::string_view table) const {
  const std::lock_guard lock(rows_mutex_);
  const auto it = rows_.find(table);
  return it == rows_.end() ? nullptr : it->second;
}

}  // namespace lamina::sql
