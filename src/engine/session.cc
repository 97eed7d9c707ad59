// SPDX-License-Identifier: Apache-2.0
#include "engine/session.h"

#include <malloc.h>
#include <mutex>
#include <optional>
#include <tuple>

#include "base/parallel.h"
#include "base/stop.h"
#include "compare/cudagraph/attribution.h"
#include "compare/cudagraph/merge.h"
#include "engine/captures.h"
#include "engine/idle_report.h"
#include "engine/module_markers.h"
#include "engine/origins.h"
#include "engine/range_limit.h"
#include "engine/step_ranges.h"
#include "ingest/ingest.h"
#include "rules/document.h"
#include "snapshot/cache.h"

namespace lamina::engine {

namespace {

// Whether analyses would see the same.
bool Same(const analysis::Settings& a, const analysis::Settings& b) {
  const auto all = [](const analysis::Settings& s) {
    return std::tie(s.threads, s.short_kernel_ns, s.micro_idle_ns, s.recompute,
                    s.costs);
  };
  return all(a) == all(b);
}

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
  tree::LinkMode link;
  bool python_stacks;
  tree::Tree tree;
  tree::Modules modules;
  tree::Steps steps;
  analysis::DeviceView device;
  std::optional<analysis::Efficiency> efficiency;
  std::vector<std::unique_ptr<analysis::Context>> contexts;
  std::unique_ptr<IdleView> idle;
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
  // What readers had under way lies in the heaps of their threads, and would
  // stay there while tables fill others.
  ::malloc_trim(0);
  if (!options.range.empty())
    LAMINA_TRY(LimitToRange(session->trace_, options.range, options.threads));
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
  attribution_ = std::make_unique<cudagraph::Attribution>(
      cudagraph::AttributionOf(trace_, annotation, captures.files));
  // What was derived from the trace ends with its change.
  derived_.clear();
  cudagraph::MergeCaptures(trace_, annotation, captures.contexts,
                           options_.captured_frames);
  return {};
}

std::unique_ptr<cudagraph::Attribution> Session::TakeGraphAttribution(
    const analysis::Context& context) {
  if (attribution_ == nullptr && !trace_.graph_nodes.empty()) {
    attribution_ = std::make_unique<cudagraph::Attribution>(
        cudagraph::AttributionOf(trace_, cudagraph::Annotate(context, {}), {}));
  }
  return std::move(attribution_);
}

Result<std::unique_ptr<Session>> Session::Adopt(trace::Trace trace,
                                                const OpenOptions& options) {
  std::unique_ptr<Session> session(new Session(options));
  LAMINA_TRY(session->LoadData());
  LAMINA_ASSIGN(const auto markers, rules::MarkerTable::Load(session->data_));
  session->trace_ = std::move(trace);
  AddMarkedModules(session->trace_, *markers);
  LAMINA_TRY(session->FindSteps(*markers));
  return session;
}

Result<std::shared_ptr<const cost::ModelSet>> Session::CostModels() {
  if (models_ == nullptr) {
    LAMINA_ASSIGN(models_, cost::ModelSet::Load(data_));
  }
  return models_;
}

Result<std::optional<cost::Device>> Session::FindDevice() {
  LAMINA_ASSIGN(const auto devices, cost::DeviceSet::Load(data_));
  if (!options_.device.empty()) {
    LAMINA_ASSIGN(cost::Device device, devices->Find(options_.device));
    return std::optional(std::move(device));
  }
  if (trace_.info.devices.empty()) return std::optional<cost::Device>();
  const trace::DeviceInfo& info = trace_.info.devices[0];
  cost::DeviceFacts facts;
  facts.name = info.name;
  if (info.memory_bytes != trace::kNoInt)
    facts.memory_bytes = static_cast<double>(info.memory_bytes);
  if (info.sm_count != trace::kNoInt)
    facts.multiprocessors = static_cast<double>(info.sm_count);
  if (info.compute_major != trace::kNoInt) {
    facts.compute_capability = std::to_string(info.compute_major) + "." +
                               std::to_string(info.compute_minor);
  }
  return devices->Match(facts);
}

Status Session::AddEfficiency(Derived& derived) {
  const ScopedStage stage(options_.times, "costs");
  LAMINA_ASSIGN(auto models, CostModels());
  analysis::Efficiency efficiency;
  LAMINA_ASSIGN(efficiency.device, FindDevice());
  efficiency.costs = analysis::CostView::Build(
      derived.tree, derived.steps, derived.device, std::move(models));
  derived.efficiency = std::move(efficiency);
  return {};
}

Result<analysis::Context*> Session::ContextFor(
    tree::LinkMode link, bool python_stacks,
    const analysis::Settings& settings) {
  Derived* derived = nullptr;
  for (const auto& known : derived_) {
    if (known->link == link && known->python_stacks == python_stacks)
      derived = known.get();
  }
  if (derived == nullptr) {
    derived_.push_back(Derive(link, python_stacks));
    derived = derived_.back().get();
  }
  for (const auto& context : derived->contexts) {
    if (Same(context->settings, settings)) return context.get();
  }
  if (settings.costs && !derived->efficiency)
    LAMINA_TRY(AddEfficiency(*derived));
  derived->contexts.push_back(std::make_unique<analysis::Context>(
      analysis::Context{trace_, derived->tree, derived->modules, derived->steps,
                        *catalog_, derived->device, settings,
                        settings.costs ? &*derived->efficiency : nullptr}));
  return derived->contexts.back().get();
}

Result<IdleView*> Session::MakeIdle(const analysis::Context& context) {
  const auto of = std::find_if(
      derived_.begin(), derived_.end(),
      [&](const auto& derived) { return &derived->tree == &context.tree; });
  LAMINA_CHECK(of != derived_.end());
  std::unique_ptr<IdleView>& kept = (*of)->idle;
  if (kept == nullptr) {
    namespace host = analysis::host;
    LAMINA_ASSIGN(const auto rules, host::LoadRules(data_));
    auto view = std::make_unique<IdleView>(
        IdleView{host::HostModel::Build(context, {}), {}, {}});
    view->idle = host::FindIdle(view->model, *rules);
    kept = std::move(view);  // whole: a stop leaves nothing
  }
  return kept.get();
}

Result<const IdleView*> Session::IdleOf(const analysis::Context& context) {
  return MakeIdle(context);
}

Result<const analysis::path::Graph*> Session::PathOf(
    const analysis::Context& context) {
  LAMINA_ASSIGN(IdleView* const view, MakeIdle(context));
  if (!view->path) view->path = analysis::path::Graph::Build(view->model);
  return &*view->path;
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

}  // namespace lamina::engine
