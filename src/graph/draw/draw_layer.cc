// SPDX-License-Identifier: Apache-2.0
#include "graph/draw/draw_layer.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <map>

#include "base/counted.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/shorten.h"
#include "base/string_pool.h"
#include "graph/graph.h"
#include "graph/layers/names.h"
#include "graph/types.h"

namespace lamina::graph {
namespace {

// Readable on every shade of a box.
constexpr const char* kSoft = "#3f4551";
constexpr const char* kKernel = "#083a8c";
constexpr const char* kWeight = "#5e3700";
constexpr std::string_view kTimes = "\u00d7";
constexpr size_t kMaxWeightLines = 4;

using Positions =
    absl::flat_hash_map<std::string_view, uint32_t, TextHash, std::equal_to<>>;

Positions PositionsOf(const LayerGraph& layer) {
  Positions out;
  for (size_t i = 0; i < layer.nodes.size(); ++i)
    out.try_emplace(layer.nodes[i].id, static_cast<uint32_t>(i));
  return out;
}

// "s72×s70×4096"; unknown shapes are empty.
std::string OneShape(std::string_view shape) {
  const auto dims = SplitShape(shape);
  if (!dims) return {};
  std::string out;
  for (const std::string_view dim : *dims) {
    if (!out.empty()) out += kTimes;
    out += dim;
  }
  return dims->empty() ? "scalar" : out;
}

std::string Typed(std::string_view shape, std::string_view dtype) {
  std::string out = OneShape(shape);
  if (dtype.empty() || dtype == "N/A" || dtype == "None" || dtype == "unknown")
    return out;
  if (!out.empty()) out += ' ';
  return out + std::string(ShortDType(dtype));
}

// Lightens a colour: share 0 keeps it, 1 is white.
std::string Lighter(std::string_view colour, double share) {
  std::string out = "#";
  for (size_t i = 1; i + 1 < colour.size(); i += 2) {
    const int value = std::stoi(std::string(colour.substr(i, 2)), nullptr, 16);
    out += fmt::format("{:02x}", value + std::lround((255 - value) * share));
  }
  return out;
}

render::DotLine InputLine(const ExternalInput& input) {
  const std::string shape = OneShape(input.shape);
  return {
      shape.empty() ? input.id : input.id + "  " + shape, kSoft, 9, false, {}};
}

class Drawer {
 public:
  Drawer(const LayerGraph& layer, const GroupRules& rules)
      : layer_(layer), rules_(rules), at_(PositionsOf(layer)) {}

  render::DotGraph Run() {
    second_ = OnSecondStream(layer_, rules_);
    out_.title = layer_.part.empty()
                     ? "Layer " +
                           (layer_.stack.empty() ? "" : layer_.stack + ":") +
                           std::to_string(layer_.index)
                     : layer_.part;
    out_.title += " of " + layer_.source_file;
    if (layer_.trace) AddTraceTitle();
    ReadFaces();
    for (size_t i = 0; i < layer_.nodes.size(); ++i) AddNode(i);
    AddExternals();
    AddEdges();
    AddClusters();
    if (Heated()) AddLegend();
    return std::move(out_);
  }

 private:
  static constexpr const char* kSecond = "#7b4fa3";  // the second stream

  // Kernels are on their nodes: boxes are shaded by time.
  bool Heated() const { return layer_.trace && layer_.trace->claimed; }

  // They are not said to be of their nodes.
  bool Hollow() const { return layer_.trace && !layer_.trace->claimed; }

  static std::string Time(double ns) {
    return HumanTime(static_cast<int64_t>(ns));
  }

  void AddTraceTitle() {
    const TraceSummary& trace = *layer_.trace;
    out_.title += "\n";
    if (trace.wall_ns > 0)
      out_.title += fmt::format("wall {}, ", Time(trace.wall_ns));
    out_.title += fmt::format("busy {}, {} on {}", Time(trace.total_ns),
                              Counted(trace.kernels, "kernel"),
                              Counted(trace.streams, "stream"));
    if (trace.replays > 0)
      out_.title +=
          fmt::format(", median of {}", Counted(trace.replays, "replay"));
    if (!trace.warning.empty()) out_.title += "\n" + trace.warning;
  }

  // Shade and border by the share of the kernel time of the layer.
  static constexpr std::pair<double, const char*> kHeat[] = {
      {20, "#fc9a5f"}, {10, "#fdc28c"}, {5, "#fee0b6"}, {2, "#fff1dc"}};

  void Heat(const LayerNode& node, render::DotNode& box) const {
    double sum = 0;
    for (const LayerKernel& kernel : node.kernels) sum += kernel.duration_ns;
    const double share = layer_.trace->total_ns > 0 && !node.boundary
                             ? 100 * sum / layer_.trace->total_ns
                             : 0;
    box.band = box.fill;
    box.fill = "#ffffff";
    for (const auto& [least, colour] : kHeat) {
      if (share < least) continue;
      box.fill = colour;
      break;
    }
    if (share >= 10) box.pen = 2;
    if (node.kernels.empty()) return;
    box.badge = Time(sum);
    if (share >= 0.5) box.badge += fmt::format("  {:.1f} %", share);
  }

  void AddKernelLines(const LayerNode& node, render::DotNode& box) const {
    constexpr size_t kShown = 3;
    double more = 0;
    for (size_t k = 0; k < node.kernels.size(); ++k) {
      const LayerKernel& kernel = node.kernels[k];
      if (k >= kShown) {
        more += kernel.duration_ns;
        continue;
      }
      const bool hollow = Hollow() || kernel.fit == KernelFit::kAmbiguous;
      const char* const mark = hollow                             ? "? "
                               : kernel.fit == KernelFit::kLikely ? "~ "
                                                                  : "";
      box.lines.push_back(
          {fmt::format("{}{}  {}", mark, KernelLabel(kernel.name),
                       Time(kernel.duration_ns)),
           hollow ? kSoft : kKernel, 10, false});
    }
    if (node.kernels.size() > kShown) {
      box.lines.push_back(
          {fmt::format("+{} more, {}", node.kernels.size() - kShown,
                       Time(more)),
           Hollow() ? kSoft : kKernel, 10, false});
    }
  }

  // Label and weights of a box: where two have the same, ids are drawn.
  static std::string FaceOf(const std::string& label,
                            const std::vector<std::string>& weights) {
    std::string out = label;
    for (const std::string& weight : weights) out += '\n' + weight;
    return out;
  }

  void ReadFaces() {
    for (const LayerNode& node : layer_.nodes) {
      labels_.push_back(rules_.LabelOf(node.op));
      weights_.push_back(WeightLabels(node, rules_));
      ++faces_[FaceOf(labels_.back(), weights_.back())];
    }
  }

  void AddNode(size_t i) {
    const LayerNode& node = layer_.nodes[i];
    render::DotNode box;
    box.id = node.id;
    box.lines.push_back({labels_[i], "#1c202a", 12, true});
    const bool traced = layer_.trace.has_value();
    const std::vector<std::string>& weights = weights_[i];
    if (!traced || faces_[FaceOf(labels_[i], weights)] > 1)
      box.lines.push_back({node.id, kSoft, 9, false});
    const std::string shape = ShapeLabel(node);
    const auto add_shape = [&] {
      if (!shape.empty()) box.lines.push_back({shape, "#1c202a", 10, false});
    };
    if (!traced) add_shape();
    for (size_t w = 0; w < std::min(weights.size(), kMaxWeightLines); ++w)
      box.lines.push_back({weights[w], kWeight, 9, false});
    if (weights.size() > kMaxWeightLines) {
      box.lines.push_back(
          {fmt::format("and {} more", weights.size() - kMaxWeightLines),
           kWeight, 9, false});
    }
    if (traced) add_shape();
    AddKernelLines(node, box);
    box.fill = ColourOf(node);
    box.dashed = node.boundary || second_[i];
    box.tooltip = node.target;
    if (Heated()) Heat(node, box);
    if (IsCollective(node)) box.pen = std::max(box.pen, 2.0);
    if (second_[i]) {
      box.border = kSecond;
      box.bar = kSecond;
    }
    // Where a stream begins, ends or is waited for.
    if (Matches(rules_.aux_streams, node.op) && node.kernels.empty()) {
      box.circle = true;
      box.border = box.fill = kSecond;
      box.tooltip = labels_[i] + ": " + node.target;
    }
    out_.nodes.push_back(std::move(box));
  }

  bool IsCollective(const LayerNode& node) const {
    const int rule = rules_.closing_ops.Find(node.op);
    return rule != rules::PatternTable::kNone &&
           rules_.closing_ops.rule(rule).value == "collective";
  }

  std::string ColourOf(const LayerNode& node) const {
    return std::string(rules_.ColourOf(node.boundary        ? "boundary"
                                       : IsCollective(node) ? "collective"
                                                            : node.group));
  }

  static render::DotLine Swatch(std::string text, std::string colour) {
    render::DotLine line;
    line.text = std::move(text);
    line.size = 10;
    line.swatch = std::move(colour);
    return line;
  }

  // What the shades are, and the groups that bands stand for.
  void AddLegend() {
    render::DotNode box;
    box.id = kLegend;
    box.fill = "#f4f5f8";
    box.border = "#c9ccd4";
    box.rounded = true;
    box.lines.push_back({"share of the busy time", "#1c202a", 10, true, {}});
    const char* const words[] = {"20 % and more", "10 to 20 %", "5 to 10 %",
                                 "2 to 5 %"};
    for (size_t i = 0; i < std::size(kHeat); ++i)
      box.lines.push_back(Swatch(words[i], kHeat[i].second));
    box.lines.push_back({"band: group", "#1c202a", 10, true, {}});
    std::vector<std::string> groups;
    for (const LayerNode& node : layer_.nodes) {
      const std::string group =
          IsCollective(node) ? std::string("collective") : node.group;
      if (node.boundary ||
          std::find(groups.begin(), groups.end(), group) != groups.end())
        continue;
      groups.push_back(group);
      box.lines.push_back(Swatch(group, ColourOf(node)));
    }
    size_t kernels = 0;
    double busy_ns = 0;
    for (size_t i = 0; i < layer_.nodes.size(); ++i) {
      if (!second_[i]) continue;
      kernels += layer_.nodes[i].kernels.size();
      for (const LayerKernel& kernel : layer_.nodes[i].kernels)
        busy_ns += kernel.duration_ns;
    }
    if (kernels > 0) {
      box.lines.push_back(
          Swatch(fmt::format("second stream: {}, {}",
                             Counted(kernels, "kernel"), Time(busy_ns)),
                 kSecond));
    }
    if (std::any_of(layer_.nodes.begin(), layer_.nodes.end(),
                    [](const LayerNode& node) {
                      return std::any_of(
                          node.kernels.begin(), node.kernels.end(),
                          [](const LayerKernel& kernel) {
                            return kernel.fit == KernelFit::kLikely ||
                                   kernel.fit == KernelFit::kAmbiguous;
                          });
                    }))
      box.lines.push_back({"~ likely, ? ambiguous", "#1c202a", 9, false});
    out_.nodes.push_back(std::move(box));
  }

  // The stream of data comes in at the top. What layers only look at (sizes,
  // caches, tables) stands beside its users, one box for all that have the same
  // users.
  static bool IsStream(const ExternalInput& input) {
    return input.label.starts_with("Layer") || input.label == "Token embedding";
  }

  void AddExternals() {
    absl::flat_hash_map<std::string_view, std::vector<uint32_t>> users;
    for (size_t i = 0; i < layer_.nodes.size(); ++i) {
      for (const std::string& input : layer_.nodes[i].inputs)
        users[input].push_back(static_cast<uint32_t>(i));
    }
    std::map<std::vector<uint32_t>, size_t> boxes;
    for (const ExternalInput& input : layer_.externals) {
      const std::vector<uint32_t>& used_by = users[input.id];
      if (IsStream(input)) {
        streams_.push_back(static_cast<uint32_t>(out_.nodes.size()));
        out_.nodes.push_back(ExternalBox(input));
        AddLine(out_.nodes.back(), input);
      } else {
        const auto [found, fresh] =
            boxes.try_emplace(used_by, out_.nodes.size());
        if (fresh) out_.nodes.push_back(ExternalBox(input));
        render::DotNode& box = out_.nodes[found->second];
        if (!fresh && LastTitle(box) != input.label)
          box.lines.push_back({input.label, "#1c202a", 10, true});
        AddLine(box, input);
        if (!fresh) continue;
      }
      for (const uint32_t user : used_by) {
        out_.edges.push_back(
            {input.id, layer_.nodes[user].id, !IsStream(input), {}});
      }
    }
  }

  static std::string_view LastTitle(const render::DotNode& box) {
    const auto last =
        std::find_if(box.lines.rbegin(), box.lines.rend(),
                     [](const render::DotLine& line) { return line.bold; });
    return last->text;
  }

  render::DotNode ExternalBox(const ExternalInput& input) const {
    render::DotNode box = DrawInput(input, rules_);
    box.lines.resize(1);
    return box;
  }

  static void AddLine(render::DotNode& box, const ExternalInput& input) {
    box.lines.push_back(InputLine(input));
  }

  void AddEdges() {
    for (const LayerNode& node : layer_.nodes) {
      for (const std::string& input : node.inputs) {
        const auto from = at_.find(input);
        if (from == at_.end()) continue;
        const auto fork = [&](const LayerNode& one) {
          return Matches(rules_.aux_streams, one.op);
        };
        const bool change = fork(node) || fork(layer_.nodes[from->second]);
        out_.edges.push_back({input, node.id, false, change ? kSecond : ""});
      }
    }
  }

  // The frame of each node: that of its group; a norm stands with what it
  // feeds, an item with its value.
  std::vector<int> Frames() const {
    std::vector<int> frame(layer_.nodes.size(), -1);
    for (size_t i = 0; i < frame.size(); ++i) {
      for (size_t c = 0; c < rules_.clusters.size(); ++c) {
        const auto& groups = rules_.clusters[c].groups;
        if (!layer_.nodes[i].boundary &&
            std::find(groups.begin(), groups.end(), layer_.nodes[i].group) !=
                groups.end())
          frame[i] = static_cast<int>(c);
      }
    }
    std::vector<int> first_user(frame.size(), -1);
    for (size_t i = frame.size(); i-- > 0;) {
      const LayerNode& node = layer_.nodes[i];
      if (frame[i] < 0 && node.group == "norm" && !node.boundary)
        frame[i] = first_user[i];
      if (frame[i] < 0) continue;
      for (const std::string& input : node.inputs) {
        const auto found = at_.find(input);
        if (found != at_.end()) first_user[found->second] = frame[i];
      }
    }
    for (size_t i = 0; i < frame.size(); ++i) {
      const LayerNode& node = layer_.nodes[i];
      if (node.op != "builtin.getitem" || node.inputs.empty()) continue;
      const auto found = at_.find(node.inputs[0]);
      if (found != at_.end() && layer_.nodes[found->second].group == "norm")
        frame[i] = frame[found->second];
    }
    return frame;
  }

  void AddClusters() {
    const std::vector<int> frame = Frames();
    render::DotCluster inputs;
    inputs.title = kInputs;
    inputs.fill = "#fbfbfc";
    inputs.nodes = streams_;
    if (streams_.size() > 1) out_.clusters.push_back(std::move(inputs));
    for (size_t c = 0; c < rules_.clusters.size(); ++c) {
      const ClusterRule& rule = rules_.clusters[c];
      render::DotCluster cluster;
      cluster.title = rule.title;
      cluster.fill = Lighter(rules_.ColourOf(rule.groups[0]), 0.6);
      std::vector<render::DotCluster> inner(rules_.sub_clusters.size());
      size_t members = 0;
      for (size_t i = 0; i < frame.size(); ++i) {
        if (frame[i] != static_cast<int>(c)) continue;
        const auto sub =
            std::find_if(rules_.sub_clusters.begin(), rules_.sub_clusters.end(),
                         [&](const auto& entry) {
                           return entry.first == layer_.nodes[i].sub_group;
                         });
        auto& nodes =
            sub == rules_.sub_clusters.end()
                ? cluster.nodes
                : inner[static_cast<size_t>(sub - rules_.sub_clusters.begin())]
                      .nodes;
        nodes.push_back(static_cast<uint32_t>(i));
        ++members;
      }
      // One box alone needs no frame.
      if (members < 2) continue;
      for (size_t s = 0; s < inner.size(); ++s) {
        if (inner[s].nodes.size() == 1)
          cluster.nodes.push_back(inner[s].nodes[0]);
        if (inner[s].nodes.size() < 2) continue;
        inner[s].title = rules_.sub_clusters[s].second;
        inner[s].fill = Lighter(rules_.ColourOf(rule.groups[0]), 0.35);
        cluster.clusters.push_back(std::move(inner[s]));
      }
      out_.clusters.push_back(std::move(cluster));
    }
  }

  const LayerGraph& layer_;
  const GroupRules& rules_;
  const Positions at_;
  std::vector<bool> second_;
  std::vector<std::string> labels_;  // of the nodes
  std::vector<std::vector<std::string>> weights_;
  absl::flat_hash_map<std::string, size_t> faces_;
  std::vector<uint32_t> streams_;  // boxes of the stream of data
  render::DotGraph out_;
};

}  // namespace

render::DotGraph DrawLayer(const LayerGraph& layer, const GroupRules& rules) {
  return Drawer(layer, rules).Run();
}

render::DotNode DrawInput(const ExternalInput& input, const GroupRules& rules) {
  render::DotNode box;
  box.id = input.id;
  box.lines.push_back({input.label, "#1c202a", 10, true, {}});
  box.lines.push_back(InputLine(input));
  box.fill = rules.ColourOf("external");
  box.rounded = true;
  return box;
}

LineKind KindOf(const render::DotLine& line) {
  return line.bold                ? LineKind::kLabel
         : line.colour == kWeight ? LineKind::kWeight
         : line.colour == kKernel ? LineKind::kKernel
         : line.colour == kSoft   ? LineKind::kSoft
                                  : LineKind::kText;
}

void HideNodes(LayerGraph& layer,
               const std::function<bool(std::string_view op)>& hide) {
  // What stands for a hidden node; inputs come first, so one look is enough.
  absl::flat_hash_map<std::string, std::string> instead;
  std::vector<LayerNode> kept;
  for (LayerNode& node : layer.nodes) {
    std::vector<std::string> inputs;
    for (const std::string& input : node.inputs) {
      const auto found = instead.find(input);
      const std::string& now = found == instead.end() ? input : found->second;
      if (std::find(inputs.begin(), inputs.end(), now) == inputs.end())
        inputs.push_back(now);
    }
    node.inputs = std::move(inputs);
    if (!node.inputs.empty() && node.kernels.empty() && !node.boundary &&
        hide(node.op)) {
      instead[node.id] = node.inputs[0];
    } else {
      kept.push_back(std::move(node));
    }
  }
  layer.nodes = std::move(kept);
  absl::flat_hash_set<std::string_view> used;
  for (const LayerNode& node : layer.nodes)
    used.insert(node.inputs.begin(), node.inputs.end());
  std::erase_if(layer.externals, [&](const ExternalInput& input) {
    return !used.contains(input.id);
  });
}

std::vector<bool> OnSecondStream(const LayerGraph& layer,
                                 const GroupRules& rules) {
  const Positions at = PositionsOf(layer);
  std::vector<bool> second(layer.nodes.size(), false);
  std::vector<bool> ends(layer.nodes.size(), false);
  // Inputs come first in the order, so one pass follows every stream.
  size_t begin = 0;
  for (size_t i = 0; i < layer.nodes.size(); ++i) {
    const LayerNode& node = layer.nodes[i];
    const int rule = rules.aux_streams.Find(node.op);
    const std::string_view does =
        rule == rules::PatternTable::kNone
            ? std::string_view()
            : std::string_view(rules.aux_streams.rule(rule).value);
    if (does == "begin") {
      second[i] = true;
      begin = i;
      continue;
    }
    if (does == "wait") continue;
    bool from_second = false;
    bool from_main = false;  // computed since the stream began
    for (const std::string& input : node.inputs) {
      const auto found = at.find(input);
      if (found == at.end()) continue;
      const size_t source = found->second;
      if (second[source] && !ends[source]) {
        from_second = true;
      } else if (source > begin) {
        from_main = true;
      }
    }
    second[i] = from_second && (!from_main || does == "end");
    ends[i] = second[i] && does == "end";
  }
  return second;
}

std::string ShapeLabel(const LayerNode& node) {
  if (!node.dtype.starts_with('(')) return Typed(node.shape, node.dtype);
  const auto shapes = SplitTuple(node.shape);
  const auto dtypes = SplitTuple(node.dtype);
  std::string out;
  for (size_t i = 0; i < std::min(shapes.size(), dtypes.size()); ++i) {
    const std::string one = Typed(shapes[i], dtypes[i]);
    if (!out.empty()) out += ", ";
    out += one.empty() ? "?" : one;
  }
  return out;
}

std::string KernelLabel(std::string_view name) {
  constexpr size_t kMost = 34;
  constexpr size_t kTail = 12;
  // Namespaces say least, then what half of all names have in common.
  for (size_t colons = name.find("::");
       name.size() > kMost && colons != std::string_view::npos;
       colons = name.find("::"))
    name.remove_prefix(colons + 2);
  std::string out(name);
  for (const std::string_view noise : {"_sm90", "_sm100", "_kernel"}) {
    const size_t at = out.find(noise);
    const size_t end = at == std::string::npos ? at : at + noise.size();
    if (out.size() > kMost && end != std::string::npos &&
        (end == out.size() || out[end] == '_'))
      out.erase(at, noise.size());
  }
  return ShortenInside(out, kMost, kTail);
}

namespace {

// "self_attn_q_proj" as "q_proj": the box stands in the frame of its owner.
std::string_view WithoutOwner(std::string_view name, const GroupRules& rules) {
  for (const std::string& owner : rules.weight_owners) {
    if (name.size() > owner.size() + 1 && name.starts_with(owner) &&
        name[owner.size()] == '_')
      return name.substr(owner.size() + 1);
  }
  return name;
}

}  // namespace

std::vector<std::string> WeightLabels(const LayerNode& node,
                                      const GroupRules& rules) {
  std::vector<std::string_view> names;
  absl::flat_hash_set<std::string_view> weights;
  for (const LayerWeight& weight : node.weights) {
    const auto layer = ParseLayerName(weight.name);
    names.push_back(layer ? layer->rest : std::string_view(weight.name));
    constexpr std::string_view kWeightEnd = "_weight";
    if (names.back().ends_with(kWeightEnd)) {
      names.back().remove_suffix(kWeightEnd.size());
      weights.insert(names.back());
    }
  }
  std::vector<std::pair<std::string, size_t>> families;
  std::vector<std::string> first;
  absl::flat_hash_map<std::string, size_t> known;
  for (std::string_view name : names) {
    // Biases and scales are not listed beside their weight.
    const auto companion = std::find_if(
        rules.weight_companions.begin(), rules.weight_companions.end(),
        [&](const std::string& end) { return name.ends_with(end); });
    if (companion != rules.weight_companions.end()) {
      const std::string_view stem =
          name.substr(0, name.size() - companion->size());
      if (weights.contains(stem)) continue;
      if (*companion == "_bias") name = stem;
    }
    name = WithoutOwner(name, rules);
    std::string family = FamilyOf(name);
    const auto [found, fresh] = known.try_emplace(family, families.size());
    if (fresh) {
      families.emplace_back(std::move(family), 0);
      first.emplace_back(name);
    }
    ++families[found->second].second;
  }
  for (size_t i = 0; i < families.size(); ++i) {
    auto& [family, count] = families[i];
    if (count == 1) continue;
    std::replace(family.begin(), family.end(), '#', '*');
    first[i] = fmt::format("{} {}{}", family, kTimes, count);
  }
  return first;
}

}  // namespace lamina::graph
