// SPDX-License-Identifier: Apache-2.0
#include "graph/layers/repeats.h"

#include <algorithm>
#include <iterator>

namespace lamina::graph {
namespace {

// Shorter units are runs of one op and its neighbour, not layers.
constexpr size_t kMinUnit = 5;
// So many ops in a row make the begin of a unit known.
constexpr size_t kSignature = 24;

struct Covered {
  size_t ops = 0;
  size_t longest_begin = 0;
  size_t longest = 0;
};

// What stretches of at least two whole units of length `unit` cover; others
// hold an odd layer.
Covered Cover(std::span<const uint32_t> ops, size_t unit) {
  Covered out;
  size_t run = 0;
  size_t covered_to = 0;
  const size_t last = ops.size() - unit;
  for (size_t i = 0; i <= last; ++i) {
    if (i < last && ops[i] == ops[i + unit]) {
      ++run;
      continue;
    }
    if (run >= unit) {
      const size_t begin = std::max(i - run, covered_to);
      const size_t end = i + unit;
      out.ops += end - begin;
      covered_to = end;
      if (run > out.longest) {
        out.longest = run;
        out.longest_begin = i - run;
      }
    }
    run = 0;
  }
  return out;
}

// Ops that both stretches have, each as often as the rarer.
size_t Common(std::span<const uint32_t> ops, Repeat a, Repeat b) {
  std::vector<uint32_t> first(ops.begin() + a.begin, ops.begin() + a.end);
  std::vector<uint32_t> second(ops.begin() + b.begin, ops.begin() + b.end);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  std::vector<uint32_t> both;
  std::set_intersection(first.begin(), first.end(), second.begin(),
                        second.end(), std::back_inserter(both));
  return both.size();
}

}  // namespace

std::vector<Repeat> FindRepeats(std::span<const uint32_t> ops) {
  const size_t n = ops.size();
  if (n < 3 * kMinUnit || n > kMaxRepeatOps) return {};
  for (size_t unit = kMinUnit; unit <= n / 3; ++unit) {
    const Covered covered = Cover(ops, unit);
    if (covered.ops < 2 * unit) continue;
    // The first place where the unit runs, whatever it begins with there: so a
    // layer begins behind what stands in front of all layers.
    const auto two = ops.subspan(covered.longest_begin, 2 * unit);
    const size_t width = std::clamp(unit / 3, kMinUnit - 1, kSignature);
    size_t first = 0;
    while (first + width <= n &&
           std::search(two.begin(), two.end(), ops.begin() + first,
                       ops.begin() + first + width) == two.end())
      ++first;
    if (first + width > n) continue;
    const auto signature = ops.subspan(first, width);
    std::vector<Repeat> out;
    for (size_t at = first; at + width <= n;) {
      if (!std::equal(signature.begin(), signature.end(), ops.begin() + at)) {
        ++at;
        continue;
      }
      if (!out.empty()) out.back().end = at;
      out.push_back({at, std::min(at + unit, n)});
      at += std::max<size_t>(1, unit * 8 / 10);
    }
    // What follows the layers may begin as they do: a norm.
    if (!out.empty() && Common(ops, out.back(), out.front()) * 10 < unit * 8)
      out.pop_back();
    if (out.size() < 3 || (out.back().end - first) * 10 < n * 6) continue;
    // Most repeats are the unit, and no one is two of them.
    size_t same = 0;
    bool fits = true;
    for (const Repeat& one : out) {
      const size_t size = one.end - one.begin;
      same += size == unit ? 1 : 0;
      fits = fits && size * 10 <= unit * 15;
    }
    if (fits && same * 2 > out.size()) return out;
  }
  return {};
}

}  // namespace lamina::graph
