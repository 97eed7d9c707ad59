// SPDX-License-Identifier: Apache-2.0
//
// lamina graph layer: one layer as a graph of its own.
#include <algorithm>
#include <filesystem>
#include <unistd.h>

#include "base/byte_sink.h"
#include "base/child_process.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "engine/origins.h"
#include "graph/atlas/atlas.h"
#include "graph/dialects/read.h"
#include "graph/draw/draw_layer.h"
#include "graph/kernels/graph_kernels.h"
#include "graph/launch_rules/launch_rules.h"
#include "graph/layers/layer_graph.h"
#include "questions/bodies.h"
#include "questions/graph/graph_input.h"
#include "questions/graph/kernel_options.h"
#include "render/html/page.h"

namespace lamina::questions {
namespace {

struct GraphLayerOptions {
  std::string path;
  std::string section;
  graph::ParseOptions parse;
  std::string layer;
  bool extended = false;
  bool hide_views = false;
  bool show_views = false;
  bool force = false;
  bool ids = false;
  std::string trace;
  graph_kernels::Options kernels;
  std::vector<std::string> render;
  double render_limit_s = 60;
  std::string output;
};

std::string WithoutJson(const std::string& file) {
  return file.ends_with(".json") ? file.substr(0, file.size() - 5) : file;
}

// The file of the layer itself when -o names one: a user who asks for a drawing
// may name that.
std::string NamedFile(const GraphLayerOptions& options) {
  for (const std::string& format : options.render) {
    const std::string ending = "." + format;
    if (options.output.ends_with(ending)) {
      return options.output.substr(0, options.output.size() - ending.size()) +
             ".json";
    }
  }
  return options.output;
}

// Places that -n names: "5", "2-4", "vision_tower:5", "all", and the parts that
// are no layer: "shared", "epilogue".
Result<std::vector<graph::Place>> ChooseLayers(const graph::Layers& layers,
                                               std::string_view text) {
  std::vector<graph::Place> out;
  for (const graph::Place part : {graph::kShared, graph::kEpilogue}) {
    if (text != layers.NameOf(part)) continue;
    if ((part == graph::kShared ? layers.shared : layers.epilogue).empty()) {
      return Fail(UsageError(
          "⟨layer⟩ " + layers.NameOf(part) + ": the graph has no op there",
          "⟨graph_layers()⟩ shows its parts"));
    }
    return std::vector<graph::Place>{part};
  }
  if (layers.layers.empty()) {
    return Fail(
        InputError("", "the graph has no layers",
                   "⟨layer⟩ shared takes all of it; for layers names of "
                   "weights must hold layers_N_, blocks_N_ or h_N_, or "
                   "ops must repeat"));
  }
  if (text == "all") {
    for (size_t i = 0; i < layers.layers.size(); ++i)
      out.push_back(static_cast<graph::Place>(i));
    return out;
  }
  const std::string shown = EscapeTerminal(text);
  auto stack = static_cast<uint32_t>(layers.main_stack);
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    const std::string_view name = text.substr(0, colon);
    const auto found =
        std::find_if(layers.stacks.begin(), layers.stacks.end(),
                     [&](const graph::Stack& one) { return one.name == name; });
    if (found == layers.stacks.end() || found->count == 0) {
      std::string names;
      for (const graph::Stack& one : layers.stacks) {
        if (one.count > 0)
          names += (names.empty() ? "" : ", ") + EscapeTerminal(one.name);
      }
      return Fail(UsageError("⟨layer⟩ " + shown + ": no such stack of layers",
                             "the graph has " + names));
    }
    stack = static_cast<uint32_t>(found - layers.stacks.begin());
    text = text.substr(colon + 1);
  }
  const size_t dash = text.find('-');
  const auto first = ParseInt(text.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : ParseInt(text.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first || *last > 100000) {
    return Fail(
        UsageError("⟨layer⟩: expected a layer like 5, 2-4, STACK:5, all, "
                   "shared or epilogue, found '" +
                   shown + "'"));
  }
  for (int64_t i = *first; i <= *last; ++i) {
    const graph::Place place = layers.Find(stack, static_cast<uint32_t>(i));
    if (place >= 0) out.push_back(place);
  }
  if (out.empty()) {
    const graph::Stack& one = layers.stacks[stack];
    const auto index = [&](graph::Place place) {
      return std::to_string(layers.layers[static_cast<size_t>(place)].index);
    };
    return Fail(UsageError(
        "⟨layer⟩ " + shown + ": no such layer",
        "the graph has layers " + index(one.first) + " to " +
            index(one.first + static_cast<graph::Place>(one.count) - 1)));
  }
  return out;
}

// "<dump stem>_layer5" beside the dump, or here when that folder cannot be
// written.
std::string DefaultStem(const std::string& dump, const Asker& asker) {
  const size_t slash = dump.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : dump.substr(0, slash + 1);
  std::string stem = graph::StemOf(dump);
  if (slash == std::string::npos) return stem;
  if (access(folder.c_str(), W_OK) == 0) return folder + stem;
  asker.Mention(EscapeTerminal(folder) +
                " cannot be written, using this folder");
  return stem;
}

// The dumps of the folder around the chosen one, or that one alone.
Result<std::vector<graph::DumpFile>> FilesOfPage(
    const GraphLayerOptions& options, const GraphInput& input) {
  std::error_code error;
  if (std::filesystem::is_directory(options.path, error))
    return graph::ListDumps(options.path);
  graph::DumpFile file;
  graph::ParseDumpName(input.path, file);
  return std::vector<graph::DumpFile>{file};
}

// All layers of the dump, and of a folder those of its other dumps too, as a
// page that opens at one layer: the program of the page places the boxes.
Status WriteLayerPage(const GraphLayerOptions& options, const GraphInput& input,
                      const std::string& layer, const std::string& stem,
                      const graph::GroupRules& rules,
                      const graph::LaunchTable& launches,
                      const graph::Atlas::Decorate& decorate,
                      const PageRequest& request, const Asker& asker) {
  LAMINA_ASSIGN(const auto files, FilesOfPage(options, input));
  graph::Atlas atlas(rules, launches, {options.ids});
  size_t shown = 0;
  size_t start = 0;
  for (const graph::DumpFile& file : files) {
    const auto add = [&](const graph::Header& header, const graph::Graph& graph,
                         const graph::Atlas::Decorate& with) {
      atlas.Add({file.name.empty() ? input.FileName() : file.name, header.stage,
                 header.transform},
                graph, with);
      ++shown;
    };
    if (files.size() == 1 || file.path == input.path) {
      start = shown;
      add(input.dump.header, *input.graph, decorate);
      continue;
    }
    LAMINA_ASSIGN(const graph::Dump dump,
                  graph::ReadDump(file.path, options.parse));
    // Not every dump of a run has the section that was asked for.
    const auto graph = graph::ChooseGraph(dump, options.section);
    if (graph) add(dump.header, **graph, {});
  }
  Document document;
  document.command = "graph layer";
  document.inputs = {input.FileName()};
  document.result = std::move(atlas).Tables();
  render::Page page(document);
  std::optional<render::Secrets> secrets;
  if (asker.origins != nullptr)
    secrets = asker.origins->SecretsOf({options.path, options.trace});
  page.redact = secrets ? &*secrets : nullptr;
  page.facts.emplace_back("graph_start",
                          "{\"file\":" + std::to_string(start) +
                              ",\"layer\":" + JsonQuote(layer) +
                              (options.hide_views   ? ",\"views\":\"0\""
                               : options.show_views ? ",\"views\":\"1\""
                                                    : "") +
                              "}");
  if (!request.words.ReadsStdin())
    page.commands = {{document.command, request.words.Words(), {}, {}}};
  const std::string file = stem + ".html";
  LAMINA_TRY(render::WritePageFile(page, file, 1));
  asker.Mention("wrote " + EscapeTerminal(file));
  return {};
}

// DOT always, then what Graphviz makes of it. Without Graphviz the DOT file and
// a message are all.
Status Draw(graph::LayerGraph layer, const GraphLayerOptions& options,
            const std::string& stem, const graph::GroupRules& rules,
            const graph::LaunchTable& launches, const Asker& asker) {
  // Among kernels views are in the way; nodes with time stay.
  if (options.hide_views || (layer.trace && !options.show_views)) {
    // Forks and joins of streams are drawn.
    graph::HideNodes(layer, [&](std::string_view op) {
      return launches.NeverLaunches(op) &&
             !graph::Matches(rules.aux_streams, op);
    });
  }
  const std::string dot = stem + ".dot";
  LAMINA_TRY(WriteFile(
      dot, render::DotText(graph::DrawLayer(layer, rules, {options.ids}))));
  asker.Mention("wrote " + EscapeTerminal(dot));
  for (const std::string& format : options.render) {
    if (format == "dot" || format == "html") continue;
    const auto program = FindProgram("dot");
    if (!program) {
      asker.Mention(
          "no program 'dot' on PATH, so only the DOT file is written; install "
          "graphviz (apt-get install graphviz) for svg and png");
      return {};
    }
    const std::string file = stem + "." + format;
    LAMINA_TRY(render::RunGraphviz(*program, dot, format, file,
                                   options.render_limit_s));
    asker.Mention("wrote " + EscapeTerminal(file));
  }
  return {};
}

// What a layer, or several, is cut out of, and its kernels.
struct Cut {
  std::shared_ptr<const graph::GroupRules> rules;
  std::shared_ptr<const graph::LaunchTable> launches;
  GraphInput input;
  graph::Layers layers;
  std::vector<graph::Group> groups;
  graph::Kinds kinds;
  std::vector<graph::Place> places;
  std::shared_ptr<engine::Session> session;
  std::optional<graph_kernels::KernelMap> kernels;
  std::string misfit;  // why kernels are not claimed

  graph::LayerGraph Layer(graph::Place place, bool extended) const {
    graph::LayerGraph layer =
        graph::CutLayer(*input.graph, layers, place, groups, *rules, extended);
    layer.source_file = input.FileName();
    return layer;
  }
  void Decorate(graph::LayerGraph& layer, bool force) const {
    if (!kernels) return;
    graph_kernels::AddKernels(*kernels, *input.graph, layer);
    if (misfit.empty()) return;
    layer.trace->warning = misfit;
    layer.trace->claimed = force;
  }
};

Status FindKernels(const GraphLayerOptions& options, Asker& asker, Cut& cut) {
  LAMINA_ASSIGN(cut.session, asker.OpenTrace(options.trace));
  const ScopedStage stage(&asker.times, "kernels");
  LAMINA_ASSIGN(cut.kernels, graph_kernels::MapKernels(
                                 cut.session->trace(),
                                 {*cut.input.graph, cut.layers, cut.kinds},
                                 *cut.launches, options.kernels));
  const double share = graph_kernels::SureShare(*cut.kernels);
  if (share < graph_kernels::kSureEnough) {
    cut.misfit = graph_kernels::MisfitText(share) +
                 ": another model, phase, parallelism or stage";
    cut.kernels->notes.push_back(MakeNote(
        Severity::kWarning, "trace_fits_badly",
        cut.misfit + (options.force ? "."
                                    : "; no kernel is said to be of a node "
                                      "(⟨force⟩ says them all the same).")));
  }
  return {};
}

// The files of the layers, beside each other.
Status WriteLayers(const Cut& cut, const GraphLayerOptions& options,
                   const PageRequest& request, const Asker& asker) {
  const GraphInput& input = cut.input;
  if (cut.kernels) {
    for (const Note& note : cut.kernels->notes)
      asker.Mention(EscapeTerminal(note.text));
  }
  const graph::Atlas::Decorate decorate = [&](graph::LayerGraph& layer) {
    cut.Decorate(layer, options.force);
  };
  const bool claimed = cut.misfit.empty() || options.force;
  const bool beside = options.output.empty() && input.path != "-";
  const std::string stem = beside ? DefaultStem(input.path, asker) : "";
  for (const graph::Place place : cut.places) {
    graph::LayerGraph layer = cut.Layer(place, options.extended);
    graph::NameKind(layer, cut.layers, cut.kinds, place);
    const std::string place_name = cut.layers.NameOf(place);
    std::string name = place_name;
    std::replace(name.begin(), name.end(), ':', '_');
    std::replace(name.begin(), name.end(), '/', '_');
    const std::string file = beside ? stem + "_layer" + name + ".json"
                             : options.output.empty() ? "-"
                                                      : NamedFile(options);
    decorate(layer);
    LAMINA_TRY(WriteFile(file, graph::LayerJson(layer, options.extended)));
    if (cut.kernels && claimed && file != "-") {
      const std::string path = WithoutJson(file) + "_kernels.json";
      LAMINA_TRY(WriteFile(path, graph_kernels::KernelJson(
                                     *cut.kernels, input.graph, options.trace,
                                     options.extended, place_name)));
      asker.Mention("wrote " + EscapeTerminal(path));
    }
    if (file != "-") {
      asker.Mention("wrote " + EscapeTerminal(file) + ": layer " +
                    EscapeTerminal(place_name) + ", " +
                    std::to_string(layer.nodes.size()) + " nodes");
    }
    if (options.render.empty()) continue;
    const std::string picture = beside        ? stem + "_layer" + name
                                : file == "-" ? "layer" + name
                                              : WithoutJson(file);
    const auto& render = options.render;
    const auto pages = std::count(render.begin(), render.end(), "html");
    // One page for all layers.
    if (pages > 0 && place == cut.places.front()) {
      const std::string all = beside ? stem + "_layers" : "layers";
      LAMINA_TRY(WriteLayerPage(
          options, input, place_name, cut.places.size() > 1 ? all : picture,
          *cut.rules, *cut.launches, decorate, request, asker));
    }
    if (static_cast<size_t>(pages) == render.size()) continue;
    LAMINA_TRY(Draw(std::move(layer), options, picture, *cut.rules,
                    *cut.launches, asker));
  }
  return {};
}

Result<Answer> RunLayer(const GraphLayerOptions& options, Asker& asker) {
  LAMINA_TRY(KeepInputs("⟨output⟩", NamedFile(options),
                        {options.path, options.trace}));
  const auto cut = std::make_shared<Cut>();
  const rules::DataSet data(asker.rules_dir);
  LAMINA_ASSIGN(cut->rules, graph::GroupRules::Load(data));
  LAMINA_ASSIGN(cut->launches, graph::LaunchTable::Load(data));
  LAMINA_ASSIGN(cut->input,
                OpenGraph(options.path, options.section, asker, options.parse));
  const graph::Graph& graph = *cut->input.graph;
  cut->layers = graph::FindLayers(graph, *cut->rules);
  cut->groups = graph::GroupNodes(graph, cut->layers, *cut->rules);
  LAMINA_ASSIGN(cut->places, ChooseLayers(cut->layers, options.layer));
  if (cut->places.size() > 1 && !options.output.empty()) {
    return Fail(UsageError("⟨output⟩ names one file and ⟨layer⟩ several layers",
                           "leave out ⟨output⟩: each layer gets a name"));
  }
  cut->kinds = graph::FindKinds(graph, cut->layers, cut->groups);
  if (!options.trace.empty()) LAMINA_TRY(FindKernels(options, asker, *cut));
  Answer answer;
  Document& document = answer.document;
  document.command = "graph layer";
  document.inputs = {cut->input.path};
  std::vector<graph::LayerGraph> layers;
  for (const graph::Place place : cut->places) {
    layers.push_back(cut->Layer(place, options.extended));
    // Tables have no hollow form.
    if (cut->misfit.empty() || options.force)
      cut->Decorate(layers.back(), options.force);
  }
  document.result = graph::LayerGraphTables(layers);
  if (cut->kernels) {
    document.result.notes.insert(document.result.notes.end(),
                                 cut->kernels->notes.begin(),
                                 cut->kernels->notes.end());
  }
  answer.files = [cut, options, &asker](const PageRequest& request) {
    return WriteLayers(*cut, options, request, asker);
  };
  return answer;
}

}  // namespace

Body DescribeGraphLayer(Description& args, Asker& asker) {
  auto options = std::make_shared<GraphLayerOptions>();
  args.Add("dump", options->path,
           "Dump file, or a folder of dumps: the last one")
      .Required();
  args.Add("-n,--layer", options->layer,
           "Layer: 5, 2-4, STACK:5, all, shared or epilogue")
      .Required();
  args.Add("--section", options->section, "GraphModule (default: the largest)");
  AddDialectOption(args, options->parse.dialect);
  args.Flag("--extended", options->extended,
            "Also what the layer format has no place for, below the key "
            "lamina");
  args.Add("--trace", options->trace,
           "Trace with replays of the graph: their kernels are put on "
           "the nodes");
  AddKernelOptions(args, options->kernels);
  args.Add("--render", options->render,
           "Also draw the layer: html (a page to explore), dot, svg, png "
           "(Graphviz places the boxes)")
      .SplitAtCommas()
      .OneOf({"html", "dot", "svg", "png"});
  args.Flag("--hide-views", options->hide_views,
            "Draw without ops that launch nothing (views, getitem); with "
            "⟨trace⟩ this is so unless ⟨show_views⟩ is given");
  args.Flag("--show-views", options->show_views, "Draw them with ⟨trace⟩, too");
  args.Flag("--ids", options->ids,
            "Draw the name of every node; else only where two boxes have the "
            "same label and weights");
  args.Flag("--force", options->force,
            "Put kernels on nodes though less than 80 % of the kernel time "
            "fits the dump surely");
  args.Add("--render-limit", options->render_limit_s,
           "Seconds that Graphviz may take for one file")
      .Within(0.1, 86400.0)
      .ShowDefault();
  args.Add("-o,--output", options->output,
           "File of the layer, or of a drawing, which stand beside each "
           "other; - is standard output (default: beside the dump, "
           "<dump>_layer<N>.json)");
  return [options, &asker] { return RunLayer(*options, asker); };
}

}  // namespace lamina::questions
