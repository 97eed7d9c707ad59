// SPDX-License-Identifier: Apache-2.0
//
// The roofline plot as one SVG file: arithmetic intensity across, FLOP/s up,
// both logarithmic; the roofs of the device; one mark per op, its area by time,
// its colour and shape by family.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lamina::render {

struct RooflineMark {
  std::string label;
  std::string group;  // of its family: "gemm"
  double flops_per_byte = 0;
  double flops_per_s = 0;
  int64_t time_ns = 0;
};

struct RooflineRoof {
  std::string label;  // "matrix_bf16"
  double flops_per_s = 0;
};

// Colours of a group on a light and a dark ground, and its shape.
struct RooflineStyle {
  std::string group;
  std::string light;
  std::string dark;
};

struct RooflinePlot {
  std::string title;     // the device and where its numbers come from
  std::string footnote;  // what is not drawn
  double bytes_per_s = 0;
  std::vector<RooflineRoof> roofs;
  std::vector<RooflineMark> marks;
  std::vector<RooflineStyle> styles;
};

// Text of the file. Marks without a position in a logarithmic plane are left
// out; the largest are labelled.
std::string DrawRoofline(const RooflinePlot& plot);

}  // namespace lamina::render
