// SPDX-License-Identifier: Apache-2.0
#include "compare/cudagraph/lcs.h"

#include <algorithm>

namespace lamina::cudagraph {
namespace {

class Lcs {
 public:
  Lcs(std::span<const uint32_t> a, std::span<const uint32_t> b)
      : a_(a), b_(b), width_(b.size() + 1) {}

  void Run(std::vector<Match>& matches) {
    CountLengths();
    FindPartners(matches);
    CountRuns();
    FollowRuns(matches);
    // On some optimal alignment, but not on the one followed.
    for (Match& match : matches) {
      if (match.partner == Match::kNoPartner) match = Match();
    }
  }

 private:
  // The longest common subsequence of the parts before and behind each pair.
  void CountLengths() {
    const size_t n = a_.size();
    const size_t m = b_.size();
    forward_.assign((n + 1) * width_, 0);
    backward_.assign((n + 1) * width_, 0);
    for (size_t i = 1; i <= n; ++i) {
      for (size_t j = 1; j <= m; ++j) {
        At(forward_, i, j) =
            a_[i - 1] == b_[j - 1]
                ? static_cast<uint16_t>(At(forward_, i - 1, j - 1) + 1)
                : std::max(At(forward_, i - 1, j), At(forward_, i, j - 1));
      }
    }
    for (size_t i = n; i-- > 0;) {
      for (size_t j = m; j-- > 0;) {
        At(backward_, i, j) =
            a_[i] == b_[j]
                ? static_cast<uint16_t>(At(backward_, i + 1, j + 1) + 1)
                : std::max(At(backward_, i + 1, j), At(backward_, i, j + 1));
      }
    }
  }

  // Which elements have one partner, or several, on optimal alignments.
  void FindPartners(std::vector<Match>& matches) {
    const size_t n = a_.size();
    const size_t m = b_.size();
    const uint16_t length = At(forward_, n, m);
    // Whether an element is unmatched on some optimal alignment, too, does not
    // matter: the question is which launch it comes from.
    for (size_t j = 0; j < m; ++j) {
      uint32_t partners = 0;
      uint32_t first = Match::kNoPartner;
      for (size_t i = 0; i < n; ++i) {
        if (a_[i] != b_[j] ||
            At(forward_, i, j) + 1 + At(backward_, i + 1, j + 1) != length)
          continue;
        if (partners++ == 0) first = static_cast<uint32_t>(i);
      }
      if (partners == 0) continue;
      matches[j].alternatives = partners;
      if (partners == 1) {
        matches[j].partner = first;
        matches[j].level = Level::kSure;
      } else {
        matches[j].level = Level::kLcs;
      }
    }
  }

  // Ties are decided by the alignment with the longest runs, since work is
  // missing in stretches rather than here and there; then by the earliest.
  void FollowRuns(std::vector<Match>& matches) {
    const size_t n = a_.size();
    const size_t m = b_.size();
    size_t i = 0;
    size_t j = 0;
    while (i < n && j < m) {
      const uint16_t best = At(runs_, i, j);
      if (Optimal(i, j) && At(paired_, i, j) == best) {
        // A run goes on as long as it is as good.
        do {
          if (matches[j].partner == Match::kNoPartner)
            matches[j].partner = static_cast<uint32_t>(i);
          ++i;
          ++j;
        } while (i < n && j < m && Optimal(i, j) &&
                 At(paired_, i - 1, j - 1) == At(paired_, i, j) + 1);
      } else if (At(backward_, i, j) == At(backward_, i + 1, j) &&
                 At(runs_, i + 1, j) == best) {
        ++i;
      } else {
        ++j;
      }
    }
  }

  // Whether a pair begins some optimal alignment of what follows it.
  bool Optimal(size_t i, size_t j) {
    return a_[i] == b_[j] &&
           At(backward_, i, j) == At(backward_, i + 1, j + 1) + 1;
  }

  // The most pairs that directly follow another, over the optimal alignments
  // of what begins at (i, j): `paired_` of those that begin with this pair.
  void CountRuns() {
    const size_t n = a_.size();
    const size_t m = b_.size();
    runs_.assign((n + 1) * width_, 0);
    paired_.assign((n + 1) * width_, 0);
    for (size_t i = n; i-- > 0;) {
      for (size_t j = m; j-- > 0;) {
        const uint16_t length = At(backward_, i, j);
        uint16_t best = 0;
        if (At(backward_, i + 1, j) == length) best = At(runs_, i + 1, j);
        if (At(backward_, i, j + 1) == length)
          best = std::max(best, At(runs_, i, j + 1));
        if (Optimal(i, j)) {
          uint16_t own = At(runs_, i + 1, j + 1);
          if (i + 1 < n && j + 1 < m && Optimal(i + 1, j + 1)) {
            own = std::max(
                own, static_cast<uint16_t>(At(paired_, i + 1, j + 1) + 1));
          }
          At(paired_, i, j) = own;
          best = std::max(best, own);
        }
        At(runs_, i, j) = best;
      }
    }
  }

  uint16_t& At(std::vector<uint16_t>& table, size_t i, size_t j) const {
    return table[i * width_ + j];
  }

  std::span<const uint32_t> a_;
  std::span<const uint32_t> b_;
  size_t width_;
  std::vector<uint16_t> forward_;
  std::vector<uint16_t> backward_;
  std::vector<uint16_t> runs_;
  std::vector<uint16_t> paired_;
};

}  // namespace

void MatchByLcs(std::span<const uint32_t> capture,
                std::span<const uint32_t> replay, std::vector<Match>& matches) {
  Lcs(capture, replay).Run(matches);
}

}  // namespace lamina::cudagraph
