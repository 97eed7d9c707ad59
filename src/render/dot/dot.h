// SPDX-License-Identifier: Apache-2.0
//
// Graphs of boxes as DOT text, and DOT text as a picture. The text is ours;
// Graphviz, a child process, only places the boxes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace lamina::render {

// One line of a label.
struct DotLine {
  std::string text;
  std::string colour = "#1c202a";
  int size = 11;  // points
  bool bold = false;
  std::string swatch = {};  // colour of a square in front; empty: none
};

struct DotNode {
  std::string id;
  std::vector<DotLine> lines;
  std::string fill = "#ffffff";
  std::string border = "#5b616e";
  std::string tooltip;
  bool dashed = false;
  bool rounded = false;
  bool circle = false;  // small, without its lines
  std::string band;     // colour of a band at the left; empty: none
  std::string bar;      // the same at the right
  std::string badge;    // at the right of the first line
  double pen = 0;       // width of the border; 0: as usual
};

struct DotEdge {
  std::string from;
  std::string to;
  bool faint = false;       // not important: thin and grey
  std::string colour = {};  // dashed, in this colour; empty: as usual
  std::string label = {};
  std::string tooltip = {};
};

struct DotCluster {
  std::string title;
  std::string fill;
  std::vector<uint32_t> nodes;  // positions in DotGraph::nodes
  std::vector<DotCluster> clusters;
  // Stands beside the other columns, not below them: edges between two do not
  // order their nodes.
  bool column = false;
};

struct DotGraph {
  std::string title;
  std::vector<DotNode> nodes;
  std::vector<DotEdge> edges;
  std::vector<DotCluster> clusters;  // nodes in none stand at the top level
};

// Same text for same input. Texts are escaped here and nowhere else.
std::string DotText(const DotGraph& graph);

// A DOT file as "svg" or "png" by the program `dot`; a PNG has 144 dpi, fewer
// where it would be wider than 4,000 pixels or higher than 32,767. Errors: it
// fails or needs more than `limit_s` seconds in all.
Status RunGraphviz(const std::string& program, const std::string& dot_file,
                   const std::string& format, const std::string& output,
                   double limit_s);

}  // namespace lamina::render
