// SPDX-License-Identifier: Apache-2.0
//
// The powers of ten between which values lie, for axes that are logarithmic.
#pragma once

#include <algorithm>
#include <cmath>

namespace lamina {

struct Decades {
  int low = 0;  // exponents
  int high = 1;
  bool any = false;

  // What is no positive number is on no such axis.
  void Fit(double value) {
    if (!(value > 0) || !std::isfinite(value)) return;
    const double exponent = std::log10(value);
    const auto below = static_cast<int>(std::floor(exponent));
    const auto above = static_cast<int>(std::ceil(exponent));
    low = any ? std::min(low, below) : below;
    high = any ? std::max(high, above) : above;
    any = true;
    if (high <= low) high = low + 1;
  }
  // 0 at the lowest power, 1 at the highest.
  double Share(double value) const {
    return (std::log10(value) - low) / (high - low);
  }
};

}  // namespace lamina
