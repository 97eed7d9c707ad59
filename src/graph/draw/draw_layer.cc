// SPDX-License-Identifier: Apache-2.0
//
// Long, because boxes, edges and frames of one picture share what was found of
// streams, times and users.
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
#include "base/string_pool.h"
#include "graph/graph.h"
#include "graph/types.h"

namespace lamina::graph {
namespace {

// Readable on every shade of a box.
constexpr const char* kSoft = "#3f4551";
constexpr const char* kKernel = "#083a8c";
constexpr const char* kWeight = "#5e3700";
constexpr size_t kMostInOneColumn = 80;
constexpr size_t kMaxWeightLines = 4;
// Above so many nodes no edge is looked at for what goes around what.
constexpr size_t kMostResiduals = 3000;

using Positions =
    absl::flat_hash_map<std::string_view, uint32_t, TextHash, std::equal_to<>>;

Positions PositionsOf(const LayerGraph& layer) {
  Positions out;
  for (size_t i = 0; i < layer.nodes.size(); ++i)
    out.try_emplace(layer.nodes[i].id, static_cast<uint32_t>(i));
  return out;
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
  Drawer(const LayerGraph& layer, const GroupRules& rules,
         const DrawOptions& options)
      : layer_(layer),
        rules_(rules),
        options_(options),
        at_(PositionsOf(layer)) {}

  render::DotGraph Run() {
    ReadUsers();
    ReadStreams();
    AddTitle();
    ReadFaces();
    for (size_t i = 0; i < layer_.nodes.size(); ++i) AddNode(i);
    AddExternals();
    AddEdges();
    AddClusters();
    AddOffNodes();
    if (Heated()) AddLegend();
    return std::move(out_);
  }

 private:
  // Of streams beside the main one, in turn.
  static constexpr const char* kStreams[] = {"#7b4fa3", "#0b7f6f", "#a15c00"};

  // The border of boxes.
  static constexpr const char* kMain = "#5b616e";

  // "stream 2 (14 in the trace)"
  std::string NameOfStream(uint32_t stream) const {
    std::string out =
        stream == 0 ? "main stream" : fmt::format("stream {}", stream + 1);
    const std::vector<int64_t>& ids = layer_.stream_ids;
    if (stream < ids.size())
      out += fmt::format(" ({} in the trace)", ids[stream]);
    return out;
  }

  static const char* ColourOfStream(uint32_t stream) {
    return kStreams[(stream - 1) % std::size(kStreams)];
  }

  // Where kernels are, their stream; else what the markers say. 0: the main
  // one.
  void ReadStreams() {
    const std::vector<bool> second = OnSecondStream(layer_, rules_);
    for (size_t i = 0; i < layer_.nodes.size(); ++i) {
      uint32_t stream = second[i] ? 1 : 0;
      std::map<uint32_t, double> times;
      if (!Hollow()) {
        for (const LayerKernel& kernel : layer_.nodes[i].kernels)
          times[kernel.stream] += kernel.duration_ns;
      }
      double most = -1;
      for (const auto& [one, ns] : times) {
        if (ns <= most) continue;
        most = ns;
        stream = one;
      }
      stream_.push_back(stream);
    }
    if (Hollow()) return;
    if (std::any_of(stream_.begin(), stream_.end(),
                    [](uint32_t one) { return one > 1; }))
      ReadMarks(second);
    const auto run = [&](const std::vector<LayerKernel>& kernels) {
      for (const LayerKernel& kernel : kernels) {
        if (kernel.stream == 0)
          main_.emplace_back(kernel.start_ns,
                             kernel.start_ns + kernel.duration_ns);
      }
    };
    for (const LayerNode& node : layer_.nodes) {
      if (Clocked(node)) run(node.kernels);
    }
    run(layer_.off_nodes);
    std::sort(main_.begin(), main_.end());
  }

  // Markers say that there is another stream and not which one: where the trace
  // has several, they are of that of the work that they begin or end, and other
  // nodes without kernels of that of their inputs.
  void ReadMarks(const std::vector<bool>& second) {
    const auto of_work = [&](size_t at, bool users) {
      size_t first = layer_.nodes.size();
      for (const size_t one : Launching(at, users)) {
        if (stream_[one] > 0) first = std::min(first, one);
      }
      return first < layer_.nodes.size() ? stream_[first] : 0;
    };
    for (size_t i = 0; i < layer_.nodes.size(); ++i) {
      const LayerNode& node = layer_.nodes[i];
      if (!second[i] || !node.kernels.empty()) continue;
      const int rule = rules_.aux_streams.Find(node.op);
      uint32_t stream = 0;
      if (rule != rules::PatternTable::kNone) {
        stream = of_work(i, rules_.aux_streams.rule(rule).value == "begin");
      } else {
        for (const std::string& input : node.inputs) {
          const auto found = at_.find(input);
          if (stream == 0 && found != at_.end() && second[found->second])
            stream = stream_[found->second];
        }
      }
      if (stream > 0) stream_[i] = stream;
    }
  }

  // Its times are of the clock of this layer: those of the next one begin at
  // its own first kernel.
  static bool Clocked(const LayerNode& node) { return !node.boundary; }

  // How much of the kernels of a node on other streams runs beside those of the
  // main one.
  double HiddenNs(const LayerNode& node) const {
    double out = 0;
    for (const LayerKernel& kernel : node.kernels) {
      if (kernel.stream == 0) continue;
      double from = kernel.start_ns;
      const double end = from + kernel.duration_ns;
      for (const auto& [begin, until] : main_) {
        const double first = std::max(from, begin);
        const double last = std::min(end, until);
        if (last <= first) continue;
        out += last - first;
        from = last;
      }
    }
    return out;
  }

  bool IsFork(const LayerNode& node) const {
    return Matches(rules_.aux_streams, node.op) && node.kernels.empty();
  }

  // The next nodes with kernels, along the inputs or against them.
  std::vector<size_t> Launching(size_t at, bool users) const {
    std::vector<size_t> out;
    std::vector<bool> seen(layer_.nodes.size(), false);
    std::vector<size_t> open = {at};
    while (!open.empty()) {
      const size_t one = open.back();
      open.pop_back();
      if (seen[one]) continue;
      seen[one] = true;
      if (!Clocked(layer_.nodes[one])) continue;
      if (one != at && !layer_.nodes[one].kernels.empty()) {
        out.push_back(one);
        continue;
      }
      if (users) {
        open.insert(open.end(), users_[one].begin(), users_[one].end());
        continue;
      }
      for (const std::string& input : layer_.nodes[one].inputs) {
        const auto found = at_.find(input);
        if (found != at_.end()) open.push_back(found->second);
      }
    }
    return out;
  }

  // How long work waits at a fork or join, on the device: at the begin of a
  // stream from the end of what it follows to its first kernel; at the end of
  // one that is late from the last kernel of the main stream to the next.
  double WaitNs(size_t at) const {
    const int rule = rules_.aux_streams.Find(layer_.nodes[at].op);
    const std::string_view does = rules_.aux_streams.rule(rule).value;
    if (Hollow() || does == "wait") return 0;
    double ready = -1;
    for (const size_t source : Launching(at, false)) {
      for (const LayerKernel& kernel : layer_.nodes[source].kernels)
        ready = std::max(ready, kernel.start_ns + kernel.duration_ns);
    }
    double next = -1;
    for (const size_t user : Launching(at, true)) {
      const double start = layer_.nodes[user].kernels[0].start_ns;
      next = next < 0 ? start : std::min(next, start);
    }
    if (ready < 0 || next < 0) return 0;
    if (does == "begin") return std::max(0.0, next - ready);
    double last = -1;
    for (const auto& [begin, end] : main_) {
      if (begin < next) last = std::max(last, end);
    }
    return last < 0 || last > ready ? 0 : std::max(0.0, next - last);
  }

  // Kernels are on their nodes: boxes are shaded by time.
  bool Heated() const { return layer_.trace && layer_.trace->claimed; }

  // They are not said to be of their nodes.
  bool Hollow() const { return layer_.trace && !layer_.trace->claimed; }

  static std::string Time(double ns) {
    return HumanTime(static_cast<int64_t>(ns));
  }

  // Numbers begin at 0 as in the names: the last of 32 layers is 31.
  void AddTitle() {
    if (!layer_.part.empty()) {
      out_.title = layer_.part;
    } else {
      out_.title = "Layer " + (layer_.stack.empty() ? "" : layer_.stack + ":") +
                   std::to_string(layer_.index);
      if (layer_.of > 0) out_.title += " of " + std::to_string(layer_.of);
      if (!layer_.kind.empty()) {
        out_.title += fmt::format(
            ", kind {} ({} {})", layer_.kind,
            layer_.kind_layers.find_first_of(",-") == std::string::npos
                ? "layer"
                : "layers",
            layer_.kind_layers);
      }
    }
    out_.title += "\n";
    if (!layer_.section.empty()) out_.title += layer_.section + ", ";
    out_.title += layer_.source_file;
    if (layer_.trace) AddTraceTitle();
  }

  void ReadUsers() {
    users_.resize(layer_.nodes.size());
    for (size_t i = 0; i < layer_.nodes.size(); ++i) {
      for (const std::string& input : layer_.nodes[i].inputs) {
        const auto found = at_.find(input);
        if (found != at_.end())
          users_[found->second].push_back(static_cast<uint32_t>(i));
      }
    }
  }

  double OffNs() const {
    double out = 0;
    for (const LayerKernel& kernel : layer_.off_nodes)
      out += kernel.duration_ns;
    return out;
  }

  void AddTraceTitle() {
    const TraceSummary& trace = *layer_.trace;
    out_.title += " | ";
    if (trace.wall_ns > 0)
      out_.title += fmt::format("wall {}, ", Time(trace.wall_ns));
    out_.title += fmt::format("busy {}, {} on {}", Time(trace.total_ns),
                              Counted(trace.kernels, "kernel"),
                              Counted(trace.streams, "stream"));
    if (trace.replays > 0)
      out_.title +=
          fmt::format(" | median of {}", Counted(trace.replays, "replay"));
    const double off = OffNs();
    const double share =
        off > 0 ? 100 * trace.total_ns / (trace.total_ns + off) : 100;
    // Rounded down: what is told because it is below 95 % never says 95 %.
    constexpr double kTold = 95;
    if (share < kTold && !Hollow()) {
      out_.title += fmt::format(" | {:.0f} % of the time is on nodes",
                                std::min(std::floor(share + 1e-6), kTold - 1));
    }
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
    // What may as well be of another node is not shaded.
    const bool unsure = std::all_of(
        node.kernels.begin(), node.kernels.end(),
        [](const auto& kernel) { return kernel.fit == KernelFit::kAmbiguous; });
    for (const auto& [least, colour] : kHeat) {
      if (share < least || unsure) continue;
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
      labels_.push_back(OpLabel(node.op, rules_));
      weights_.push_back(WeightLabels(node, rules_));
      ++faces_[FaceOf(labels_.back(), weights_.back())];
    }
  }

  void AddNode(size_t i) {
    const LayerNode& node = layer_.nodes[i];
    render::DotNode box;
    box.id = node.id;
    box.lines.push_back({labels_[i], "#1c202a", 12, true});
    const std::vector<std::string>& weights = weights_[i];
    if (options_.ids || faces_[FaceOf(labels_[i], weights)] > 1)
      box.lines.push_back({node.id, kSoft, 9, false});
    const std::string shape = ShapeLabel(node);
    for (size_t w = 0; w < std::min(weights.size(), kMaxWeightLines); ++w)
      box.lines.push_back({weights[w], kWeight, 9, false});
    if (weights.size() > kMaxWeightLines) {
      box.lines.push_back(
          {fmt::format("and {} more", weights.size() - kMaxWeightLines),
           kWeight, 9, false});
    }
    if (!shape.empty()) box.lines.push_back({shape, "#1c202a", 10, false});
    AddKernelLines(node, box);
    AddStreamLines(i, box);
    box.fill = ColourOf(node);
    box.dashed = node.boundary || stream_[i] > 0;
    box.tooltip = TooltipOf(node);
    if (Heated()) Heat(node, box);
    if (IsCollective(node)) box.pen = std::max(box.pen, 2.0);
    if (stream_[i] > 0) box.border = box.bar = ColourOfStream(stream_[i]);
    // Where a stream begins, ends or is waited for.
    if (IsFork(node)) {
      box.circle = true;
      box.border = box.fill = ForkColour(i);
      const double wait = layer_.trace ? WaitNs(i) : 0;
      if (wait > 1000) box.badge = "waits " + Time(wait);
    }
    out_.nodes.push_back(std::move(box));
  }

  // A marker of the main stream, which waits, has the colour of the stream
  // whose end its users take too; else that of the first other one.
  const char* ForkColour(size_t at) const {
    if (stream_[at] > 0) return ColourOfStream(stream_[at]);
    for (const uint32_t user : users_[at]) {
      for (const std::string& input : layer_.nodes[user].inputs) {
        const auto found = at_.find(input);
        if (found != at_.end() && stream_[found->second] > 0 &&
            IsFork(layer_.nodes[found->second]))
          return ColourOfStream(stream_[found->second]);
      }
    }
    return ColourOfStream(1);
  }

  // "14.0 KiB × s0, 8 ranks" of a collective; how much of another stream is
  // hidden behind the main one.
  void AddStreamLines(size_t at, render::DotNode& box) const {
    const LayerNode& node = layer_.nodes[at];
    if (IsCollective(node)) {
      int64_t ranks = node.ranks;
      int64_t traced = 0;
      for (const LayerKernel& kernel : node.kernels) {
        if (Hollow()) break;
        if (kernel.bytes > 0) traced = kernel.bytes;
        if (kernel.ranks > 0) ranks = kernel.ranks;
      }
      std::string bytes = traced > 0 ? HumanBytes(static_cast<double>(traced))
                                     : MessageBytes(node, ranks);
      if (ranks > 0)
        bytes += (bytes.empty() ? "" : ", ") +
                 Counted(static_cast<size_t>(ranks), "rank");
      if (!bytes.empty()) box.lines.push_back({bytes, kSoft, 9, false});
    }
    if (stream_[at] == 0 || !layer_.trace || Hollow() || !Clocked(node)) return;
    double all = 0;
    for (const LayerKernel& kernel : node.kernels) {
      if (kernel.stream != 0) all += kernel.duration_ns;
    }
    const double hidden = HiddenNs(node);
    if (hidden > 0 && hidden > all / 2)
      box.lines.push_back({"hidden " + Time(hidden), kSoft, 9, false});
  }

  // Bytes of `times` tensors; symbols stay: "14.0 KiB × s0". Empty: not known.
  static std::string BytesOf(std::string_view shape, std::string_view dtype,
                             int64_t times) {
    const auto dims = SplitShape(shape);
    const auto size = DTypeBytes(dtype);
    int64_t bytes = 0;
    if (!dims || !size || __builtin_mul_overflow(*size, times, &bytes))
      return {};
    std::string symbols;
    for (const std::string_view dim : *dims) {
      if (const auto value = ParseInt(dim)) {
        if (*value < 0 || __builtin_mul_overflow(bytes, *value, &bytes))
          return {};
      } else if (dim.empty() || dim.find('?') != std::string_view::npos) {
        return {};
      } else {
        symbols += fmt::format(" {} {}", kTimes, dim);
      }
    }
    return HumanBytes(static_cast<double>(bytes)) + symbols;
  }

  // Of the message of a collective, as a profiler counts it.
  std::string MessageBytes(const LayerNode& node, int64_t ranks) const {
    const int rule = rules_.collective_messages.Find(node.op);
    const std::string_view counts =
        rule == rules::PatternTable::kNone
            ? std::string_view()
            : std::string_view(rules_.collective_messages.rule(rule).value);
    if (counts == "result") return BytesOf(node.shape, node.dtype, 1);
    const bool scatter = counts == "results_of_ranks";
    if (scatter && ranks > 0) return BytesOf(node.shape, node.dtype, ranks);
    const std::string in = InputBytes(node);
    return !in.empty() || scatter ? in : BytesOf(node.shape, node.dtype, 1);
  }

  // Of the first input, where nothing that is hidden made another of it.
  std::string InputBytes(const LayerNode& node) const {
    if (node.inputs.empty() || node.over.contains(node.inputs[0])) return {};
    const std::string& input = node.inputs[0];
    const auto found = at_.find(input);
    if (found != at_.end()) {
      const LayerNode& made = layer_.nodes[found->second];
      return BytesOf(made.shape, made.dtype, 1);
    }
    const auto outside =
        std::find_if(layer_.externals.begin(), layer_.externals.end(),
                     [&](const auto& one) { return one.id == input; });
    // A collective keeps the type.
    return outside == layer_.externals.end()
               ? std::string()
               : BytesOf(outside->shape, node.dtype, 1);
  }

  // Kernels of the layer that no node has, behind the node that ran before.
  void AddOffNodes() {
    if (layer_.off_nodes.empty() || Hollow()) return;
    constexpr size_t kShown = 3;
    render::DotNode box;
    box.id = kOffNodes;
    box.fill = "#e3e5ea";
    box.rounded = true;
    const size_t count = layer_.off_nodes.size();
    box.lines.push_back({fmt::format("not on any node: {}, {}",
                                     Counted(count, "kernel"), Time(OffNs())),
                         "#1c202a", 10, true});
    for (size_t k = 0; k < std::min(count, kShown); ++k) {
      const LayerKernel& kernel = layer_.off_nodes[k];
      box.lines.push_back({fmt::format("{}  {}", KernelLabel(kernel.name),
                                       Time(kernel.duration_ns)),
                           kSoft, 9, false});
    }
    if (count > kShown) {
      box.lines.push_back(
          {fmt::format("+{} more", count - kShown), kSoft, 9, false});
    }
    const LayerNode* before = nullptr;
    double latest = -1;
    for (const LayerNode& node : layer_.nodes) {
      if (!Clocked(node)) continue;
      for (const LayerKernel& kernel : node.kernels) {
        if (kernel.start_ns >= layer_.off_nodes[0].start_ns ||
            kernel.start_ns <= latest)
          continue;
        latest = kernel.start_ns;
        before = &node;
      }
    }
    if (before != nullptr)
      out_.edges.push_back({before->id, box.id, true, {}, {}, {}});
    out_.nodes.push_back(std::move(box));
  }

  // What lines leave out: the name of the node, whole names of its weights.
  static std::string TooltipOf(const LayerNode& node) {
    constexpr size_t kMost = 4;
    std::string out = node.id + ": " + node.target;
    for (size_t w = 0; w < std::min(node.weights.size(), kMost); ++w)
      out += ", " + node.weights[w].name;
    if (node.weights.size() > kMost)
      out += fmt::format(", and {} more", node.weights.size() - kMost);
    return out;
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
    std::map<uint32_t, std::pair<size_t, double>> streams;
    for (size_t i = 0; i < layer_.nodes.size(); ++i) {
      if (layer_.nodes[i].boundary) continue;
      for (const LayerKernel& kernel : layer_.nodes[i].kernels) {
        auto& [kernels, busy_ns] = streams[kernel.stream];
        ++kernels;
        busy_ns += kernel.duration_ns;
      }
    }
    for (const auto& [stream, sums] : streams) {
      // One alone needs no name.
      if (streams.rbegin()->first == 0) break;
      box.lines.push_back(
          Swatch(fmt::format("{}: {}, {}", NameOfStream(stream),
                             Counted(sums.first, "kernel"), Time(sums.second)),
                 stream == 0 ? kMain : ColourOfStream(stream)));
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
        out_.edges.push_back({input.id,
                              layer_.nodes[user].id,
                              !IsStream(input),
                              {},
                              ResidualLabel(user, input.id),
                              Over(layer_.nodes[user], input.id)});
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

  // Labels of the hidden nodes that an edge stands for.
  std::string Over(const LayerNode& node, const std::string& input) const {
    std::string out;
    const auto found = node.over.find(input);
    if (found == node.over.end()) return out;
    for (const std::string& op : found->second.ops)
      out += (out.empty() ? "" : ", ") + OpLabel(op, rules_);
    if (found->second.more > 0)
      out += fmt::format(", and {} more", found->second.more);
    return out;
  }

  // The input of an addition that goes around what is added: the others come
  // from it through ops with weights. Empty: none does.
  std::string_view ResidualOf(size_t at) const {
    const LayerNode& node = layer_.nodes[at];
    if (node.inputs.size() < 2 || layer_.nodes.size() > kMostResiduals ||
        (!IsAddition(node.op) && !Matches(rules_.residual_norms, node.op)))
      return {};
    for (size_t i = 0; i < 2; ++i) {
      const std::string& around = node.inputs[i];
      if (GoesThrough(node.inputs[1 - i], OriginOf(around))) return around;
    }
    return {};
  }

  // What an item of a tuple, a view or a cast is of. A dump may go in circles.
  std::string_view OriginOf(std::string_view value) const {
    for (size_t steps = 0; steps < layer_.nodes.size(); ++steps) {
      const auto found = at_.find(value);
      if (found == at_.end()) return value;
      const LayerNode& node = layer_.nodes[found->second];
      if (node.inputs.empty() || !Matches(rules_.passing_ops, node.op))
        return value;
      value = node.inputs[0];
    }
    return value;
  }

  std::string ResidualLabel(size_t at, std::string_view input) {
    if (residual_of_.empty()) residual_of_.resize(layer_.nodes.size());
    auto& found = residual_of_[at];
    if (!found) found = ResidualOf(at);
    return input == *found ? std::string(kResidual) : std::string();
  }

  // Whether a value is made of `source` by ops with weights.
  bool GoesThrough(std::string_view value, std::string_view source) const {
    const auto first = at_.find(source);
    const size_t least = first == at_.end() ? 0 : first->second;
    std::vector<bool> seen(layer_.nodes.size(), false);
    std::vector<std::string_view> open = {value};
    bool reached = false;
    bool weights = false;
    while (!open.empty()) {
      const std::string_view one = open.back();
      open.pop_back();
      if (one == source) {
        reached = true;
        continue;
      }
      const auto found = at_.find(one);
      if (found == at_.end() || found->second < least || seen[found->second])
        continue;
      seen[found->second] = true;
      const LayerNode& node = layer_.nodes[found->second];
      weights |= node.group != "norm" && !node.weights.empty();
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    return reached && weights;
  }

  void AddEdges() {
    for (size_t i = 0; i < layer_.nodes.size(); ++i) {
      const LayerNode& node = layer_.nodes[i];
      for (const std::string& input : node.inputs) {
        const auto from = at_.find(input);
        if (from == at_.end()) continue;
        const auto fork = [&](size_t one) {
          return Matches(rules_.aux_streams, layer_.nodes[one].op);
        };
        std::string colour;
        if (fork(from->second)) colour = ForkColour(from->second);
        if (fork(i)) colour = ForkColour(i);
        // What a fork or join waits stands on the edge that leaves it.
        const std::string& wait = out_.nodes[from->second].circle
                                      ? out_.nodes[from->second].badge
                                      : std::string();
        out_.edges.push_back({input, node.id, false, std::move(colour),
                              wait.empty() ? ResidualLabel(i, input) : wait,
                              Over(node, input)});
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
      cluster.column = out_.nodes.size() > kMostInOneColumn;
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
  const DrawOptions options_;
  const Positions at_;
  std::vector<uint32_t> stream_;  // of the nodes
  // Kernels of the main stream, those on no node too.
  std::vector<std::pair<double, double>> main_;
  std::vector<std::vector<uint32_t>> users_;
  std::vector<std::optional<std::string_view>> residual_of_;
  std::vector<std::string> labels_;  // of the nodes
  std::vector<std::vector<std::string>> weights_;
  absl::flat_hash_map<std::string, size_t> faces_;
  std::vector<uint32_t> streams_;  // boxes of the stream of data
  render::DotGraph out_;
};

}  // namespace

render::DotGraph DrawLayer(const LayerGraph& layer, const GroupRules& rules,
                           const DrawOptions& options) {
  return Drawer(layer, rules, options).Run();
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
  struct Instead {
    std::string value;
    HiddenOps over;
  };
  absl::flat_hash_map<std::string, Instead> instead;
  std::vector<LayerNode> kept;
  for (LayerNode& node : layer.nodes) {
    std::vector<std::string> inputs;
    std::map<std::string, HiddenOps> over;
    for (const std::string& input : node.inputs) {
      const auto found = instead.find(input);
      const Instead direct{input, {}};
      const Instead& now = found == instead.end() ? direct : found->second;
      const auto [way, fresh] = over.try_emplace(now.value, now.over);
      if (fresh) {
        inputs.push_back(now.value);
      } else if (now.over.Count() < way->second.Count()) {
        way->second = now.over;
      }
    }
    std::erase_if(over, [](const auto& way) { return way.second.ops.empty(); });
    node.inputs = std::move(inputs);
    node.over = std::move(over);
    if (!node.inputs.empty() && node.kernels.empty() && !node.boundary &&
        hide(node.op)) {
      Instead& one = instead[node.id];
      one.value = node.inputs[0];
      one.over = std::move(node.over[one.value]);
      if (one.over.ops.size() < HiddenOps::kMost) {
        one.over.ops.push_back(std::move(node.op));
      } else {
        ++one.over.more;
      }
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

}  // namespace lamina::graph
