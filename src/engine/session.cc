// SPDX-License-Identifier: Apache-2.0
#include "engine/session.h"

#include <malloc.h>
#include <mutex>
#include <optional>

#include "base/parallel.h"
#include "base/stop.h"
#include "compare/cudagraph/attribution.h"
#include "engine/captures.h"
#include "engine/module_markers.h"
#include "engine/origins.h"
#include "engine/range_limit.h"
#include "engine/report.h"
#include "engine/step_ranges.h"
#include "ingest/ingest.h"
#include "rules/document.h"
#include "snapshot/cache.h"

namespace lamina::engine {

namespace {

Error NoSuchAnalysis(std::string_view name) {
  std::vector<std::string_view> known;
  for (const analysis::AnalysisInfo& info : analysis::Analyses())
    known.push_back(info.name);
  const std::string_view near = rules::Nearest(name, known);
  return UsageError("there is no analysis '" + std::string(name) + "'",
                    near.empty() ? "⟨lamina⟩ list analyses names them"
                                 : "did you mean '" + std::string(near) + "'?");
}

// The trace as it was kept, or else as its reader reads it.
Result<trace::Trace> ReadOrMap(const std::string& path,
                               const ingest::ReadOptions& read, bool cached) {
  if (!cached) return ingest::ReadTrace(path, read);
  const snapshot::Cache cache(read.times);
  const auto input = snapshot::LookAt(path);
  if (!input) return ingest::ReadTrace(path, read);
  if (auto kept = cache.Find(*input, read.threads)) return *std::move(kept);
  LAMINA_ASSIGN(trace::Trace trace, ingest::ReadTrace(path, read));
  const StopScope none(nullptr);  // a file is written whole
  cache.Keep(*input, trace, read.threads);
  return trace;
}

}  // namespace

// What one way of building the tree gives, and the contexts that see it: one
// for each settings that were asked for, so that none changes under its holder.
struct Session::Derived {
  struct View {
    std::unique_ptr<analysis::Context> context;
    // Of all contexts with the same facts, made of the first.
    std::shared_ptr<const analysis::Facts<analysis::Context>> facts;
  };

  tree::LinkMode link;
  bool python_stacks;
  tree::Tree tree;
  tree::Modules modules;
  tree::Steps steps;
  analysis::DeviceView device;
  std::vector<View> views;
};

Session::Session(const OpenOptions& options)
    : options_(options), data_(options.rules_dir) {}

Session::~Session() = default;

Status Session::LoadData() {
  if (options_.catalog != nullptr) {
    catalog_ = options_.catalog;
    return {};
  }
  const ScopedStage stage(options_.times, "rules");
  LAMINA_ASSIGN(catalog_, rules::Catalog::Load(data_));
  return {};
}

Result<std::unique_ptr<Session>> Session::Open(const std::string& path,
                                               const OpenOptions& options) {
  return EndedByStop(options.stop, [&] { return Read(path, options); });
}

Result<std::unique_ptr<Session>> Session::Read(const std::string& path,
                                               const OpenOptions& options) {
  ingest::ReadOptions read;
  read.threads = options.threads;
  read.times = options.times;
  read.progress = options.progress;
  read.stop = options.stop;
  // The data files load while the trace is read: for a small trace they take
  // as long as the reading itself.
  std::unique_ptr<Session> session(new Session(options));
  Status loaded;
  std::optional<Result<trace::Trace>> trace;
  Result<std::shared_ptr<const rules::MarkerTable>> markers;
  ParallelFor(2, 2, [&](size_t part) {
    if (part == 0) {
      trace = ReadOrMap(path, read, options.cache);
    } else {
      loaded = session->LoadData();
      markers = rules::MarkerTable::Load(session->data_);
    }
  });
  LAMINA_TRY(std::move(loaded));
  if (!markers) return Fail(std::move(markers).error());
  if (!*trace) return Fail(std::move(*trace).error());
  session->trace_ = *std::move(*trace);
  session->input_ = session->MakeInput();
  // What readers had under way lies in the heaps of their threads, and would
  // stay there while tables fill others.
  ::malloc_trim(0);
  if (!options.range.empty())
    LAMINA_TRY(LimitToRange(session->trace_, options.range, options.threads));
  AddEngineOps(session->trace_, *session->catalog_);
  AddMarkedModules(session->trace_, **markers);
  LAMINA_TRY(session->FindSteps(**markers));
  if (options.origins != nullptr) options.origins->Add(path, session->trace_);
  if (options.read) options.read(path, session->trace_);
  if (!options.captures.empty()) LAMINA_TRY(session->MergeCaptures());
  // What watched the opening may end with it.
  session->options_.progress = nullptr;
  session->options_.read = nullptr;
  session->options_.stop = nullptr;
  return session;
}

Status Session::FindSteps(const rules::MarkerTable& markers) {
  LAMINA_ASSIGN(step_ranges_,
                FindStepRanges(trace_, *catalog_, markers, options_.step));
  return {};
}

Status Session::MergeCaptures() {
  OpenOptions open = options_;
  open.catalog = catalog_;
  open.step.clear();
  open.range.clear();
  LAMINA_ASSIGN(auto captures, OpenCaptures(open.captures, "^line_", open));
  analysis::Settings settings;
  settings.threads = options_.threads;
  LAMINA_ASSIGN(const analysis::Context* const context,
                ContextFor(tree::LinkMode::kAuto, false, settings));
  const ScopedStage stage(options_.times, "captures");
  const cudagraph::Annotation annotation =
      cudagraph::Annotate(*context, std::move(captures.segments));
  attribution_ = std::make_shared<const cudagraph::Attribution>(
      cudagraph::AttributionOf(trace_, annotation, captures.files));
  // What was derived from the trace ends with its change.
  derived_.clear();
  cudagraph::MergeCaptures(trace_, annotation, captures.contexts,
                           options_.captured_frames);
  return {};
}

Result<std::shared_ptr<const cudagraph::Attribution>> Session::GraphAttribution(
    const analysis::Context& context) {
  using Kept = std::shared_ptr<const cudagraph::Attribution>;
  if (attribution_ != nullptr || trace_.graph_nodes.empty())
    return attribution_;
  return kept_.Get<cudagraph::Attribution>(
      "graph attribution", [&]() -> Result<Kept> {
        return std::make_shared<const cudagraph::Attribution>(
            cudagraph::AttributionOf(trace_, cudagraph::Annotate(context, {}),
                                     {}));
      });
}

Result<std::unique_ptr<Session>> Session::Adopt(trace::Trace trace,
                                                const OpenOptions& options) {
  std::unique_ptr<Session> session(new Session(options));
  LAMINA_TRY(session->LoadData());
  LAMINA_ASSIGN(const auto markers, rules::MarkerTable::Load(session->data_));
  session->trace_ = std::move(trace);
  session->input_ = session->MakeInput();
  AddEngineOps(session->trace_, *session->catalog_);
  AddMarkedModules(session->trace_, *markers);
  LAMINA_TRY(session->FindSteps(*markers));
  return session;
}

std::unique_ptr<analysis::Input> Session::MakeInput() const {
  return std::make_unique<analysis::Input>(trace_, *catalog_, data_,
                                           options_.device, options_.times);
}

Result<const analysis::Context*> Session::ContextFor(
    tree::LinkMode link, bool python_stacks,
    const analysis::Settings& settings) {
  const std::lock_guard making(mutex_);
  Derived* derived = nullptr;
  for (const auto& known : derived_) {
    if (known->link == link && known->python_stacks == python_stacks)
      derived = known.get();
  }
  if (derived == nullptr) {
    derived_.push_back(Derive(link, python_stacks));
    derived = derived_.back().get();
  }
  std::shared_ptr<const analysis::Facts<analysis::Context>> facts;
  for (const Derived::View& view : derived->views) {
    if (view.context->settings == settings) return view.context.get();
    if (view.context->settings.SameFacts(settings)) facts = view.facts;
  }
  auto context = std::make_unique<analysis::Context>(
      analysis::Context{*input_, trace_, derived->tree, derived->modules,
                        derived->steps, *catalog_, derived->device, settings});
  if (facts == nullptr) {
    facts = std::make_shared<const analysis::Facts<analysis::Context>>(
        *context, options_.times);
  }
  context->facts = facts.get();
  derived->views.push_back({std::move(context), std::move(facts)});
  return derived->views.back().context.get();
}

std::unique_ptr<Session::Derived> Session::Derive(tree::LinkMode link,
                                                  bool python_stacks) {
  auto derived = std::make_unique<Derived>();
  derived->link = link;
  derived->python_stacks = python_stacks;
  {
    const ScopedStage stage(options_.times, "tree");
    tree::Options tree_options;
    tree_options.link = link;
    tree_options.python_stacks = python_stacks;
    tree_options.threads = options_.threads;
    derived->tree = tree::Tree::Build(trace_, tree_options);
  }
  // Independent of each other.
  const ScopedStage stage(options_.times, "views");
  ParallelFor(options_.threads, 3, [&](size_t i) {
    if (i == 0) derived->modules = tree::Modules::Build(derived->tree);
    if (i == 1)
      derived->steps = tree::Steps::Build(derived->tree, step_ranges_);
    if (i == 2) {
      derived->device = analysis::DeviceView::Build(derived->tree, *catalog_,
                                                    options_.threads);
    }
  });
  return derived;
}

Result<ResultSet> Session::RunAnalyses(std::span<const std::string_view> names,
                                       const analysis::Context& context,
                                       const Watch& watch) {
  const ScopedStage stage(options_.times, "analyses");
  std::vector<const analysis::AnalysisInfo*> infos;
  for (const std::string_view name : names) {
    infos.push_back(analysis::FindAnalysis(name));
    if (infos.back() == nullptr) return Fail(NoSuchAnalysis(name));
  }
  std::vector<std::optional<Result<ResultSet>>> results(names.size());
  std::mutex told;
  uint64_t done = 0;
  LAMINA_TRY(EndedByStop(watch.stop, [&]() -> Status {
    ParallelFor(options_.threads, names.size(), [&](size_t i) {
      results[i] = infos[i]->run(context);
      if (watch.progress == nullptr) return;
      const std::lock_guard lock(told);
      watch.progress(++done, names.size());
    });
    return {};
  }));
  ResultSet all;
  for (auto& result : results) {
    if (!*result) return Fail(result->error());
    all.Append(std::move(**result));
  }
  return all;
}

Result<std::shared_ptr<const ResultSet>> Session::Analysis(
    std::string_view name, const Watch& watch) {
  using Kept = std::shared_ptr<const ResultSet>;
  return kept_.Get<ResultSet>(
      "analysis " + std::string(name), [&]() -> Result<Kept> {
        ReportOptions options;
        options.threads = options_.threads;
        options.recompute = name == "recompute";
        LAMINA_ASSIGN(const analysis::Context* const context,
                      ContextFor(tree::LinkMode::kAuto, options.recompute,
                                 SettingsOf(options)));
        const std::string_view names[] = {name};
        LAMINA_ASSIGN(ResultSet result, RunAnalyses(names, *context, watch));
        return std::make_shared<const ResultSet>(std::move(result));
      });
}

}  // namespace lamina::engine
