// SPDX-License-Identifier: Apache-2.0
//
// DOT text and the program that places it: what is escaped in the one is what
// the other reads.
#include "render/dot/dot.h"

#include <algorithm>
#include <chrono>
#include <fmt/core.h>
#include <map>

#include "base/child_process.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/text.h"

namespace lamina::render {
namespace {

constexpr size_t kMaxMessage = size_t{64} << 10;

// A quoted string: quotes, backslashes and line ends escaped, no other control
// characters.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : RepairUtf8(text)) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<uint8_t>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

// Lines in HTML form: the text is escaped before the line breaks are put in.
std::string Label(const std::vector<DotLine>& lines) {
  std::string out = "<";
  for (const DotLine& line : lines) {
    if (out.size() > 1) out += "<BR/>";
    const std::string text =
        EscapeXml(RepairUtf8(line.text.empty() ? " " : line.text));
    out += fmt::format("<FONT COLOR=\"{}\" POINT-SIZE=\"{}\">{}{}{}</FONT>",
                       EscapeXml(line.colour), line.size,
                       line.bold ? "<B>" : "", text, line.bold ? "</B>" : "");
  }
  return out + ">";
}

std::string Font(const DotLine& line) {
  return fmt::format("<FONT COLOR=\"{}\" POINT-SIZE=\"{}\">{}{}{}</FONT>",
                     EscapeXml(line.colour), line.size, line.bold ? "<B>" : "",
                     EscapeXml(RepairUtf8(line.text.empty() ? " " : line.text)),
                     line.bold ? "</B>" : "");
}

// The same as a table: with a band at the left and a badge behind the first
// line, or with a square in front of lines.
std::string TableLabel(const DotNode& node) {
  std::string out =
      "<<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"2\" "
      "CELLPADDING=\"1\">";
  for (size_t i = 0; i < node.lines.size(); ++i) {
    const DotLine& line = node.lines[i];
    out += "<TR>";
    if (i == 0 && !node.band.empty()) {
      out += fmt::format("<TD ROWSPAN=\"{}\" WIDTH=\"9\" BGCOLOR=\"{}\"></TD>",
                         node.lines.size(), EscapeXml(node.band));
    }
    if (!line.swatch.empty()) {
      out += fmt::format(
          "<TD BORDER=\"1\" COLOR=\"#8a90a0\" WIDTH=\"16\" "
          "BGCOLOR=\"{}\"></TD>",
          EscapeXml(line.swatch));
    }
    const bool alone = line.swatch.empty() && (i > 0 || node.badge.empty());
    out += fmt::format("<TD ALIGN=\"LEFT\"{}>{}</TD>",
                       alone ? " COLSPAN=\"2\"" : "", Font(line));
    if (i == 0 && !node.badge.empty()) {
      DotLine badge;
      badge.text = " " + node.badge;
      badge.bold = true;
      out += "<TD ALIGN=\"RIGHT\">" + Font(badge) + "</TD>";
    }
    if (i == 0 && !node.bar.empty()) {
      out += fmt::format("<TD ROWSPAN=\"{}\" WIDTH=\"5\" BGCOLOR=\"{}\"></TD>",
                         node.lines.size(), EscapeXml(node.bar));
    }
    out += "</TR>";
  }
  return out + "</TABLE>>";
}

class Writer {
 public:
  explicit Writer(const DotGraph& graph) : graph_(graph) {}

  std::string Run() {
    out_ = "digraph layer {\n";
    out_ += fmt::format(
        "  graph [label={}, labelloc=t, fontname=\"DejaVu Sans\", "
        "fontsize=16, rankdir=TB, ranksep=0.35, nodesep=0.25, "
        "compound=true, bgcolor=\"#ffffff\"];\n",
        Quoted(graph_.title));
    out_ +=
        "  node [shape=box, style=filled, fontname=\"DejaVu Sans\", "
        "fontsize=11, margin=\"0.12,0.06\"];\n"
        "  edge [color=\"#5b616e\", arrowsize=0.7];\n";
    placed_.assign(graph_.nodes.size(), false);
    for (const DotCluster& cluster : graph_.clusters) {
      if (cluster.column) ReadColumn(cluster, ++columns_);
      Cluster(cluster, 1);
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!placed_[i]) Node(graph_.nodes[i], 1);
    }
    for (const DotEdge& edge : graph_.edges) {
      std::string look;
      if (!edge.colour.empty()) {
        look = fmt::format(", color={}, style=dashed, penwidth=1.4",
                           Quoted(edge.colour));
      } else if (edge.faint) {
        look = ", color=\"#b8bcc6\", penwidth=0.6, arrowsize=0.5";
      }
      if (!edge.label.empty()) {
        look += fmt::format(
            ", label={}, fontname=\"DejaVu Sans\", fontsize=10, "
            "fontcolor=\"#3f4551\"",
            Quoted(" " + edge.label + " "));
      }
      const auto from = column_of_.find(edge.from);
      const auto to = column_of_.find(edge.to);
      if (from != column_of_.end() && to != column_of_.end() &&
          from->second != to->second)
        look += ", constraint=false";
      if (!edge.tooltip.empty())
        look += ", edgetooltip=" + Quoted(edge.tooltip);
      out_ += fmt::format("  {} -> {}{};\n", Quoted(edge.from), Quoted(edge.to),
                          look.empty() ? "" : " [" + look.substr(2) + "]");
    }
    return out_ + "}\n";
  }

 private:
  void Node(const DotNode& node, int depth) {
    if (node.circle) {
      out_.append(static_cast<size_t>(depth) * 2, ' ');
      out_ += fmt::format(
          "{} [label=\"\", shape=circle, width=0.16, fixedsize=true, "
          "fillcolor={}, color={}, id={}, tooltip={}];\n",
          Quoted(node.id), Quoted(node.fill), Quoted(node.border),
          Quoted("node-" + node.id),
          Quoted(node.tooltip.empty() ? node.id : node.tooltip));
      return;
    }
    std::string style = "filled";
    if (node.dashed) style += ",dashed";
    if (node.rounded) style += ",rounded";
    out_.append(static_cast<size_t>(depth) * 2, ' ');
    const bool table =
        node.rounded || !node.band.empty() || !node.bar.empty() ||
        !node.badge.empty() ||
        std::any_of(node.lines.begin(), node.lines.end(),
                    [](const DotLine& line) { return !line.swatch.empty(); });
    const std::string pen = node.pen > 0
                                ? fmt::format(", penwidth={:g}", node.pen)
                            : node.dashed ? ", penwidth=1.6"
                                          : "";
    out_ += fmt::format(
        "{} [label={}, fillcolor={}, color={}, style=\"{}\"{}{}, id={}, "
        "tooltip={}];\n",
        Quoted(node.id), table ? TableLabel(node) : Label(node.lines),
        Quoted(node.fill), Quoted(node.border), style, pen,
        table ? ", margin=\"0.03,0.03\"" : "", Quoted("node-" + node.id),
        Quoted(node.tooltip.empty() ? node.id : node.tooltip));
  }

  void Cluster(const DotCluster& cluster, int depth) {
    if (cluster.nodes.empty() && cluster.clusters.empty()) return;
    const std::string indent(static_cast<size_t>(depth) * 2, ' ');
    out_ += fmt::format("{}subgraph cluster_{} {{\n", indent, clusters_++);
    out_ += fmt::format(
        "{}  label={}; labeljust=l; fontname=\"DejaVu Sans\"; fontsize=13; "
        "style=\"filled,rounded\"; fillcolor={}; color=\"#c9ccd4\";\n",
        indent, Quoted(cluster.title), Quoted(cluster.fill));
    for (const uint32_t node : cluster.nodes) {
      placed_[node] = true;
      Node(graph_.nodes[node], depth + 1);
    }
    for (const DotCluster& inner : cluster.clusters) Cluster(inner, depth + 1);
    out_ += indent + "}\n";
  }

  void ReadColumn(const DotCluster& cluster, int column) {
    for (const uint32_t node : cluster.nodes)
      column_of_[graph_.nodes[node].id] = column;
    for (const DotCluster& inner : cluster.clusters) ReadColumn(inner, column);
  }

  const DotGraph& graph_;
  std::map<std::string_view, int> column_of_;
  int columns_ = 0;
  std::vector<bool> placed_;
  int clusters_ = 0;
  std::string out_;
};

}  // namespace

namespace {

constexpr double kDpi = 144;
constexpr double kMostWidth = 4000;    // pixels
constexpr double kMostHeight = 32767;  // above, Graphviz scales by itself

// Lays the graph out, writes it, and returns what plain output says first:
// "graph 1 WIDTH HEIGHT" in inches, whatever the resolution is.
Result<std::string> RunOnce(const std::string& program,
                            const std::string& dot_file,
                            const std::string& format,
                            const std::string& output,
                            std::chrono::milliseconds left, double limit_s,
                            double dpi) {
  std::vector<std::string> arguments = {program, "-T" + format};
  if (format == "png") arguments.push_back(fmt::format("-Gdpi={:.4f}", dpi));
  // A name that begins with a dash would be taken for an option.
  const auto path = [](const std::string& file) {
    return file.starts_with('-') ? "./" + file : file;
  };
  arguments.insert(arguments.end(), {"-o", path(output)});
  // Without a file of its own: to standard output.
  if (format == "png") arguments.emplace_back("-Tplain");
  arguments.push_back(path(dot_file));
  LAMINA_ASSIGN(ChildResult done, RunChild(arguments, {}, left, kMaxMessage));
  if (done.timed_out) {
    return Fail(InputError(
        dot_file, fmt::format("Graphviz did not finish within {:g} s", limit_s),
        "draw fewer nodes (--hide-views), or run dot on the file yourself"));
  }
  if (done.exit_status != 0) {
    const std::string first = done.err.substr(0, done.err.find('\n'));
    return Fail(InputError(dot_file, "Graphviz failed with status " +
                                         std::to_string(done.exit_status) +
                                         ": " + EscapeTerminal(first)));
  }
  return done.out.substr(0, done.out.find('\n'));
}

// The resolution at which a drawing is as wide and high as it may be; 0: the
// line does not say how large it is.
double DpiThatFits(std::string_view plain) {
  if (TakeUntil(plain, ' ') != "graph") return 0;
  TakeUntil(plain, ' ');
  const double width = ParseDouble(TakeUntil(plain, ' ')).value_or(0);
  const double height = ParseDouble(plain).value_or(0);
  if (!(width > 0) || !(height > 0)) return 0;
  // Four points of margin on each side; sizes in pixels are rounded up.
  constexpr double kMargin = 8.0 / 72;
  return std::min((kMostWidth - 1) / (width + kMargin),
                  (kMostHeight - 1) / (height + kMargin));
}

}  // namespace

std::string DotText(const DotGraph& graph) { return Writer(graph).Run(); }

Status RunGraphviz(const std::string& program, const std::string& dot_file,
                   const std::string& format, const std::string& output,
                   double limit_s) {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  const milliseconds limit(static_cast<int64_t>(limit_s * 1000));
  const auto begin = steady_clock::now();
  LAMINA_ASSIGN(const std::string plain, RunOnce(program, dot_file, format,
                                                 output, limit, limit_s, kDpi));
  const double fits = DpiThatFits(plain);
  if (format != "png" || fits == 0 || fits >= kDpi) return {};
  // Laid out a second time, on what is left of the limit.
  const auto taken = duration_cast<milliseconds>(steady_clock::now() - begin);
  return RunOnce(program, dot_file, format, output,
                 std::max(limit - taken, milliseconds(1)), limit_s, fits)
      .map([](auto&&) {});
}

}  // namespace lamina::render
