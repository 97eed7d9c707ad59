// SPDX-License-Identifier: Apache-2.0
#include "dist/align.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

namespace lamina::dist {
namespace {

// Ends of one call agree within one of these, clocks apart: the narrower, the
// less can a neighbour be mistaken for it.
constexpr std::array<int64_t, 5> kWindowsNs = {2'000, 8'000, 32'000, 100'000,
                                               200'000};
// Clocks run apart by at most this part of the recording.
constexpr double kMostDrift = 100e-6;
// Pairs whose ends differ by up to this many windows more than most may still
// be the same call.
constexpr int64_t kOutlier = 4;
// Losses beyond the difference in length that the band allows for.
constexpr int64_t kSlack = 16;
// Cells of a table of alignments; lists that differ by more are merged by time.
constexpr size_t kMostCells = size_t{1} << 26;

struct Agreement {
  int64_t difference_ns = 0;  // of the ends, most pairs agree on it
  int64_t window_ns = 0;      // around it
  size_t pairs = 0;
};

// Differences of ends over pairs near the diagonal, sorted.
std::vector<int64_t> Differences(std::span<const AlignItem> reference,
                                 std::span<const AlignItem> other,
                                 int64_t band) {
  std::vector<int64_t> differences;
  const auto n = static_cast<int64_t>(reference.size());
  for (int64_t j = 0; j < static_cast<int64_t>(other.size()); ++j) {
    const AlignItem& o = other[static_cast<size_t>(j)];
    for (int64_t i = std::max<int64_t>(0, j - band);
         i < std::min(n, j + band + 1); ++i) {
      const AlignItem& r = reference[static_cast<size_t>(i)];
      if (r.signature == o.signature && r.ends_together && o.ends_together)
        differences.push_back(o.end_ns - r.end_ns);
    }
  }
  std::sort(differences.begin(), differences.end());
  return differences;
}

// The densest window of a width.
Agreement Densest(const std::vector<int64_t>& differences, int64_t window_ns) {
  Agreement best;
  best.window_ns = window_ns;
  size_t begin = 0;
  for (size_t end = 0; end < differences.size(); ++end) {
    while (differences[end] - differences[begin] > window_ns) ++begin;
    const size_t pairs = end - begin + 1;
    const int64_t middle = differences[begin + pairs / 2];
    if (pairs > best.pairs ||
        (pairs == best.pairs &&
         std::abs(middle) < std::abs(best.difference_ns))) {
      best.pairs = pairs;
      best.difference_ns = middle;
    }
  }
  return best;
}

// Calls whose ends say something.
size_t CountTimed(std::span<const AlignItem> list) {
  return static_cast<size_t>(
      std::count_if(list.begin(), list.end(),
                    [](const AlignItem& i) { return i.ends_together; }));
}

// The narrowest window on which most calls agree, else the widest.
Agreement FindAgreement(std::span<const AlignItem> reference,
                        std::span<const AlignItem> other, int64_t band) {
  const auto differences = Differences(reference, other, band);
  const size_t enough =
      (std::min(CountTimed(reference), CountTimed(other)) * 2 + 2) / 3;
  Agreement best;
  for (const int64_t window_ns : kWindowsNs) {
    best = Densest(differences, window_ns);
    if (best.pairs >= enough) return best;
  }
  const int64_t span = reference.back().end_ns - reference.front().end_ns;
  return Densest(differences, kWindowsNs.back() +
                                  static_cast<int64_t>(
                                      static_cast<double>(span) * kMostDrift));
}

// The best alignment within a band around the diagonal, by `score` of a pair
// (0: may not be paired).
template <class Score>
std::vector<int32_t> AlignBanded(size_t n, size_t m, int64_t band,
                                 Score score) {
  // Row j holds the columns [j - band, j + band] of the table of best sums.
  const auto width = static_cast<size_t>(2 * band + 1);
  enum Step : uint8_t { kStop, kSkipReference, kSkipOther, kPair };
  std::vector<uint8_t> steps((m + 1) * width, kStop);
  std::vector<int64_t> row(width, 0);
  std::vector<int64_t> before(width, 0);
  const auto column = [&](size_t j, size_t k) {
    return static_cast<int64_t>(j) - band + static_cast<int64_t>(k);
  };
  constexpr int64_t kLow = INT64_MIN / 2;
  for (size_t j = 0; j <= m; ++j) {
    for (size_t k = 0; k < width; ++k) {
      const int64_t i = column(j, k);
      int64_t best = kLow;
      Step step = kStop;
      if (i >= 0 && i <= static_cast<int64_t>(n)) {
        if (i == 0 || j == 0) best = 0;
        // Same column of the row before is one place further in its band.
        if (j > 0 && k + 1 < width && before[k + 1] > best) {
          best = before[k + 1];
          step = kSkipOther;
        }
        if (i > 0 && k > 0 && row[k - 1] > best) {
          best = row[k - 1];
          step = kSkipReference;
        }
        if (i > 0 && j > 0) {
          const int64_t value = score(static_cast<size_t>(i - 1), j - 1);
          if (value > 0 && before[k] + value > best) {
            best = before[k] + value;
            step = kPair;
          }
        }
        // At a border with nothing gained so far the way is straight on.
        if (step == kStop && i > 0 && k > 0) step = kSkipReference;
        if (step == kStop && j > 0 && k + 1 < width) step = kSkipOther;
      }
      row[k] = best;
      steps[j * width + k] = step;
    }
    std::swap(row, before);
  }
  std::vector<int32_t> match(m, kNoMatch);
  auto i = static_cast<int64_t>(n);
  auto j = static_cast<int64_t>(m);
  while (i > 0 && j > 0) {
    const int64_t k = i - j + band;
    const auto step = static_cast<Step>(
        steps[static_cast<size_t>(j) * width + static_cast<size_t>(k)]);
    if (step == kPair) {
      match[static_cast<size_t>(j - 1)] = static_cast<int32_t>(i - 1);
      --i;
      --j;
    } else if (step == kSkipReference) {
      --i;
    } else if (step == kSkipOther) {
      --j;
    } else {
      break;
    }
  }
  return match;
}

// Pairs calls that agree, walking both lists once.
template <class May, class Earlier>
std::vector<int32_t> MergeByTime(size_t n, size_t m, May may, Earlier earlier) {
  std::vector<int32_t> match(m, kNoMatch);
  for (size_t i = 0, j = 0; i < n && j < m;) {
    if (may(i, j)) {
      match[j++] = static_cast<int32_t>(i++);
    } else if (earlier(i, j)) {
      ++i;
    } else {
      ++j;
    }
  }
  return match;
}

// Calls between two pairs that come one by one on both ranks and overlap in
// time are the same, however late one of them ended.
void FillBetween(std::span<const AlignItem> reference,
                 std::span<const AlignItem> other, int64_t difference_ns,
                 std::vector<int32_t>& match) {
  size_t begin = 0;  // of the open stretch in each list
  size_t reference_begin = 0;
  for (size_t j = 0; j <= other.size(); ++j) {
    if (j < other.size() && match[j] == kNoMatch) continue;
    const size_t reference_end =
        j < other.size() ? static_cast<size_t>(match[j]) : reference.size();
    for (size_t o = begin, r = reference_begin; o < j && r < reference_end;) {
      const int64_t start = other[o].start_ns - difference_ns;
      const int64_t end = other[o].end_ns - difference_ns;
      if (end <= reference[r].start_ns) {
        ++o;
      } else if (reference[r].end_ns <= start) {
        ++r;
      } else {
        if (reference[r].signature == other[o].signature)
          match[o] = static_cast<int32_t>(r);
        ++o;
        ++r;
      }
    }
    begin = j + 1;
    reference_begin = reference_end + 1;
  }
}

// Drift of the other clock against the reference, from pairs of matches half a
// list apart.
double DriftOf(std::span<const AlignItem> reference,
               std::span<const AlignItem> other,
               const std::vector<int32_t>& match) {
  std::vector<size_t> matched;
  for (size_t j = 0; j < match.size(); ++j) {
    if (match[j] != kNoMatch) matched.push_back(j);
  }
  std::vector<double> slopes;
  const size_t half = matched.size() / 2;
  for (size_t k = 0; k + half < matched.size(); ++k) {
    const size_t a = matched[k];
    const size_t b = matched[k + half];
    const auto difference = [&](size_t j) {
      return other[j].end_ns - reference[static_cast<size_t>(match[j])].end_ns;
    };
    const int64_t apart = other[b].end_ns - other[a].end_ns;
    if (apart > 0) {
      slopes.push_back(static_cast<double>(difference(b) - difference(a)) /
                       static_cast<double>(apart));
    }
  }
  if (slopes.empty()) return 0;
  const auto middle =
      slopes.begin() + static_cast<ptrdiff_t>(slopes.size() / 2);
  std::nth_element(slopes.begin(), middle, slopes.end());
  return std::abs(*middle) <= 2 * kMostDrift ? *middle : 0;
}

// Whether a match in time speaks against pairing equal lists in order: it pairs
// calls at different places, and those at the same place did not even run at
// the same time.
bool Contradicts(std::span<const AlignItem> reference,
                 std::span<const AlignItem> other, int64_t difference_ns,
                 const std::vector<int32_t>& match) {
  for (size_t j = 0; j < match.size(); ++j) {
    if (match[j] == kNoMatch || static_cast<size_t>(match[j]) == j ||
        !other[j].ends_together || !reference[j].ends_together)
      continue;
    if (other[j].end_ns - difference_ns < reference[j].start_ns ||
        reference[j].end_ns < other[j].start_ns - difference_ns)
      return true;
  }
  return false;
}

int64_t BandOf(size_t n, size_t m) {
  return std::abs(static_cast<int64_t>(n) - static_cast<int64_t>(m)) + kSlack;
}

std::vector<int32_t> AlignOnce(std::span<const AlignItem> reference,
                               std::span<const AlignItem> other, int64_t band,
                               bool whole, const Agreement& agreement) {
  const size_t n = reference.size();
  const size_t m = other.size();
  const int64_t most_apart = kOutlier * agreement.window_ns;
  const auto apart = [&](size_t i, size_t j) {
    return std::abs(other[j].end_ns - reference[i].end_ns -
                    agreement.difference_ns);
  };
  std::vector<int32_t> match;
  if (whole) {
    if (agreement.pairs * 2 <=
        std::min(CountTimed(reference), CountTimed(other)))
      return AlignByOrder(reference, other);
    match = AlignBanded(n, m, band, [&](size_t i, size_t j) -> int64_t {
      if (reference[i].signature != other[j].signature) return 0;
      if (!reference[i].ends_together || !other[j].ends_together)
        return most_apart;
      // Nearer ends win among calls that follow each other closely.
      const int64_t far = apart(i, j);
      return far > most_apart ? 0 : 2 * most_apart - far;
    });
  } else {
    match = MergeByTime(
        n, m,
        [&](size_t i, size_t j) {
          return reference[i].signature == other[j].signature &&
                 apart(i, j) <= most_apart;
        },
        [&](size_t i, size_t j) {
          return reference[i].end_ns + agreement.difference_ns <
                 other[j].end_ns;
        });
  }
  FillBetween(reference, other, agreement.difference_ns, match);
  return match;
}

}  // namespace

std::vector<int32_t> AlignByOrder(std::span<const AlignItem> reference,
                                  std::span<const AlignItem> other) {
  return AlignBanded(reference.size(), other.size(),
                     BandOf(reference.size(), other.size()),
                     [&](size_t i, size_t j) -> int64_t {
                       return reference[i].signature == other[j].signature;
                     });
}

std::vector<int32_t> AlignCalls(std::span<const AlignItem> reference,
                                std::span<const AlignItem> other) {
  const size_t n = reference.size();
  const size_t m = other.size();
  if (n == 0 || m == 0) return std::vector<int32_t>(m, kNoMatch);
  const int64_t whole_band = BandOf(n, m);
  const auto most_band = static_cast<int64_t>(kMostCells / (2 * m + 2));
  const int64_t band = std::min(whole_band, most_band);
  const bool same_list =
      n == m && std::equal(reference.begin(), reference.end(), other.begin(),
                           [](const AlignItem& a, const AlignItem& b) {
                             return a.signature == b.signature;
                           });
  Agreement agreement = FindAgreement(reference, other, band);
  std::vector<int32_t> straight(same_list ? m : 0);
  std::iota(straight.begin(), straight.end(), 0);
  // Where most do not agree at any shift, order is all there is.
  if (same_list && agreement.pairs * 2 <= CountTimed(reference))
    return straight;
  // Order wins over a time on which few agree.
  const auto result = [&](std::span<const AlignItem> others,
                          std::vector<int32_t> match) {
    const bool sure = agreement.pairs * 3 >= CountTimed(reference) * 2;
    if (same_list && !(sure && Contradicts(reference, others,
                                           agreement.difference_ns, match)))
      return straight;
    return match;
  };
  const bool whole = band == whole_band;
  auto match = AlignOnce(reference, other, band, whole, agreement);
  if (agreement.window_ns == kWindowsNs.front())
    return result(other, std::move(match));
  // Wide windows come from clocks that run apart. Without the drift a narrow
  // one may do.
  const double drift = DriftOf(reference, other, match);
  if (drift == 0) return result(other, std::move(match));
  std::vector<AlignItem> straightened(other.begin(), other.end());
  const int64_t origin = other.front().end_ns;
  for (AlignItem& item : straightened) {
    const auto off =
        static_cast<int64_t>(drift * static_cast<double>(item.end_ns - origin));
    item.start_ns -= off;
    item.end_ns -= off;
  }
  agreement = FindAgreement(reference, straightened, band);
  return result(straightened,
                AlignOnce(reference, straightened, band, whole, agreement));
}

}  // namespace lamina::dist
