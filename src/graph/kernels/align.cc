// SPDX-License-Identifier: Apache-2.0
#include "graph/kernels/align.h"

#include <absl/container/flat_hash_map.h>
#include <algorithm>

#include "base/string_pool.h"

namespace lamina::graph_kernels {
namespace {

using graph::LaunchRule;

// Scores. A kernel that a rule names is worth more than leaving out the node
// and the kernel, an unknown one a little less than nothing lost.
constexpr float kRule = 2;
constexpr float kUnknown = 0.3F;
constexpr float kLearnt = 1.5F;
constexpr float kSameCount = 0.6F;
constexpr float kMisfit = -1;
constexpr float kSkipKernel = -1.5F;
constexpr float kSkipNode = -2;
constexpr float kSkipUnknownNode = -0.4F;
constexpr int kRounds = 6;
constexpr uint32_t kMaxSpan = 16;
constexpr float kImpossible = -1e9F;

// Kernels `start` .. `start + length` as the launch of one op.
struct Span {
  uint32_t length = 0;
  float score = 0;
};

// One op text.
struct OpClass {
  std::vector<const LaunchRule*> rules;
  float skip = kSkipNode;
  uint32_t nodes = 0;
  uint32_t first_role = 0;               // roles of its rules' steps, in order
  std::vector<std::vector<Span>> spans;  // by start
};

class Aligner {
 public:
  Aligner(std::span<const std::string_view> ops,
          std::span<const std::string_view> kernels,
          const graph::LaunchTable& launches)
      : launches_(launches), nodes_(ops.size()), kernels_(kernels.size()) {
    for (size_t i = 0; i < ops.size(); ++i) nodes_[i] = ClassOf(ops[i]);
    for (size_t j = 0; j < kernels.size(); ++j)
      kernels_[j] = NameOf(kernels[j]);
  }

  std::vector<Assignment> Run() {
    MatchNames();
    learnt_.assign(names_.size() * roles_, 0);
    std::vector<uint32_t> last;
    for (int round = 0; round < kRounds; ++round) {
      FindSpans();
      Fill();
      Trace();
      std::vector<uint32_t> nodes;
      for (const Assignment& one : out_) nodes.push_back(one.node);
      if (!any_unknown_ || nodes == last) break;
      last = std::move(nodes);
      Learn();
    }
    Margins();
    return std::move(out_);
  }

 private:
  size_t N() const { return nodes_.size(); }
  size_t K() const { return kernels_.size(); }
  float& F(size_t i, size_t j) { return forward_[i * (K() + 1) + j]; }
  float& B(size_t i, size_t j) { return backward_[i * (K() + 1) + j]; }

  uint32_t ClassOf(std::string_view op) {
    const auto [found, fresh] =
        class_of_.try_emplace(op, static_cast<uint32_t>(classes_.size()));
    if (fresh) {
      OpClass& one = classes_.emplace_back();
      one.rules = launches_.RulesFor(op);
      one.first_role = roles_;
      for (const LaunchRule* rule : one.rules)
        roles_ += static_cast<uint32_t>(rule->steps.size());
      ++roles_;  // any kernel of an op without a rule
      if (launches_.MayLaunchNothing(op)) {
        one.skip = 0;
      } else if (one.rules.empty()) {
        one.skip = kSkipUnknownNode;
      }
    }
    ++classes_[found->second].nodes;
    return found->second;
  }

  uint32_t NameOf(std::string_view kernel) {
    const auto [found, fresh] =
        name_of_.try_emplace(kernel, static_cast<uint32_t>(names_.size()));
    if (fresh) {
      names_.push_back(kernel);
      count_.push_back(0);
    }
    ++count_[found->second];
    return found->second;
  }

  // Which role each name can have, and which names no role knows.
  void MatchNames() {
    fits_.assign(names_.size() * roles_, false);
    unknown_.assign(names_.size(), true);
    for (size_t n = 0; n < names_.size(); ++n) {
      for (const OpClass& one : classes_) {
        uint32_t role = one.first_role;
        for (const LaunchRule* rule : one.rules) {
          for (const graph::LaunchStep& step : rule->steps) {
            if (step.Matches(names_[n])) {
              fits_[n * roles_ + role] = true;
              unknown_[n] = false;
            }
            ++role;
          }
        }
      }
      any_unknown_ = any_unknown_ || unknown_[n];
    }
  }

  // A kernel in a role that its name does not say.
  float Guess(uint32_t name, uint32_t role, uint32_t class_nodes) const {
    if (!unknown_[name]) return kMisfit;
    const float same = count_[name] == class_nodes ? kSameCount : 0;
    return kUnknown + same + kLearnt * learnt_[name * roles_ + role];
  }

  void FindSpans() {
    for (OpClass& one : classes_) {
      one.spans.assign(K(), {});
      for (size_t start = 0; start < K(); ++start) Spans(one, start);
    }
  }

  void Keep(OpClass& one, size_t start, const Span& span) {
    for (Span& other : one.spans[start]) {
      if (other.length != span.length) continue;
      if (span.score > other.score) other = span;
      return;
    }
    one.spans[start].push_back(span);
  }

  void Spans(OpClass& one, size_t start) {
    if (one.rules.empty()) {
      Keep(one, start, {1, Guess(kernels_[start], one.first_role, one.nodes)});
      return;
    }
    uint32_t role = one.first_role;
    for (const LaunchRule* rule : one.rules) {
      // Best score of the steps so far by number of kernels taken.
      std::vector<float> best(1, 0);
      std::vector<float> next;
      for (const graph::LaunchStep& step : rule->steps) {
        next.assign(std::min<size_t>(kMaxSpan, K() - start) + 1, kImpossible);
        for (size_t taken = 0; taken < best.size(); ++taken) {
          float score = best[taken];
          if (score <= kImpossible) continue;
          for (uint32_t n = 0;; ++n) {
            if (n >= step.min && taken + n < next.size())
              next[taken + n] = std::max(next[taken + n], score);
            if (n == step.max || taken + n + 1 >= next.size()) break;
            const uint32_t name = kernels_[start + taken + n];
            score += fits_[name * roles_ + role]
                         ? kRule
                         : Guess(name, role, one.nodes) -
                               (n >= step.min ? kSameCount : 0);
          }
        }
        best = std::move(next);
        ++role;
      }
      for (uint32_t length = 1; length < best.size(); ++length) {
        if (best[length] <= kImpossible) continue;
        Keep(one, start, {length, best[length]});
      }
    }
  }

  void Fill() {
    forward_.assign((N() + 1) * (K() + 1), kImpossible);
    backward_.assign((N() + 1) * (K() + 1), kImpossible);
    F(0, 0) = 0;
    for (size_t i = 0; i <= N(); ++i) {
      for (size_t j = 0; j <= K(); ++j) {
        const float here = F(i, j);
        if (here <= kImpossible) continue;
        if (j < K()) F(i, j + 1) = std::max(F(i, j + 1), here + kSkipKernel);
        if (i == N()) continue;
        const OpClass& one = classes_[nodes_[i]];
        F(i + 1, j) = std::max(F(i + 1, j), here + one.skip);
        if (j == K()) continue;
        for (const Span& span : one.spans[j]) {
          float& there = F(i + 1, j + span.length);
          there = std::max(there, here + span.score);
        }
      }
    }
    B(N(), K()) = 0;
    for (size_t i = N() + 1; i-- > 0;) {
      for (size_t j = K() + 1; j-- > 0;) {
        float best = i == N() && j == K() ? 0 : kImpossible;
        if (j < K()) best = std::max(best, B(i, j + 1) + kSkipKernel);
        if (i < N()) {
          const OpClass& one = classes_[nodes_[i]];
          best = std::max(best, B(i + 1, j) + one.skip);
          if (j < K()) {
            for (const Span& span : one.spans[j])
              best = std::max(best, B(i + 1, j + span.length) + span.score);
          }
        }
        B(i, j) = best;
      }
    }
  }

  // One best path, from the front; launches before skips among equals.
  void Trace() {
    out_.assign(K(), {});
    size_t i = 0;
    size_t j = 0;
    const auto good = [&](float score, size_t to_i, size_t to_j) {
      return score + B(to_i, to_j) >= B(i, j) - 1e-3F;
    };
    while (i < N() || j < K()) {
      bool moved = false;
      if (i < N() && j < K()) {
        for (const Span& span : classes_[nodes_[i]].spans[j]) {
          if (!good(span.score, i + 1, j + span.length)) continue;
          for (uint32_t k = 0; k < span.length; ++k) {
            out_[j + k].node = static_cast<uint32_t>(i);
            out_[j + k].by_rule = Knows(classes_[nodes_[i]], kernels_[j + k]);
          }
          ++i;
          j += span.length;
          moved = true;
          break;
        }
      }
      if (moved) continue;
      if (i < N() && good(classes_[nodes_[i]].skip, i + 1, j)) {
        ++i;
      } else {
        ++j;
      }
    }
  }

  // Whether a rule of the op names the kernel.
  bool Knows(const OpClass& one, uint32_t name) const {
    uint32_t role = one.first_role;
    for (const LaunchRule* rule : one.rules) {
      for (size_t step = 0; step < rule->steps.size(); ++step, ++role) {
        if (fits_[name * roles_ + role]) return true;
      }
    }
    return false;
  }

  // How often each unknown name stood in each role, as a share.
  void Learn() {
    std::fill(learnt_.begin(), learnt_.end(), 0.0F);
    for (size_t j = 0; j < K();) {
      const uint32_t node = out_[j].node;
      size_t end = j + 1;
      while (end < K() && out_[end].node == node) ++end;
      if (node != Assignment::kNone) Count(classes_[nodes_[node]], j, end);
      j = end;
    }
    for (size_t n = 0; n < names_.size(); ++n) {
      for (uint32_t r = 0; r < roles_; ++r)
        learnt_[n * roles_ + r] /= static_cast<float>(count_[n]);
    }
  }

  // Gives the kernels of one launch to the steps of its first rule in order.
  void Count(const OpClass& one, size_t begin, size_t end) {
    if (one.rules.empty()) {
      learnt_[kernels_[begin] * roles_ + one.first_role] += 1;
      return;
    }
    uint32_t role = one.first_role;
    const LaunchRule& rule = *one.rules[0];
    size_t left = end - begin;
    size_t required = 0;
    for (const graph::LaunchStep& step : rule.steps) required += step.min;
    size_t spare = left > required ? left - required : 0;
    size_t at = begin;
    for (const graph::LaunchStep& step : rule.steps) {
      size_t take = step.min;
      while (take < step.max && spare > 0 && at + take < end &&
             (fits_[kernels_[at + take] * roles_ + role] ||
              unknown_[kernels_[at + take]])) {
        ++take;
        --spare;
      }
      for (size_t k = 0; k < take && at < end; ++k, ++at)
        learnt_[kernels_[at] * roles_ + role] += 1;
      ++role;
    }
  }

  // Per kernel the best total with each node, and with none.
  void Margins() {
    struct Two {
      float first = kImpossible;
      uint32_t node = Assignment::kNone;
      float second = kImpossible;
      void Add(float score, uint32_t at) {
        if (at == node) {
          first = std::max(first, score);
        } else if (score > first) {
          second = first;
          first = score;
          node = at;
        } else {
          second = std::max(second, score);
        }
      }
    };
    std::vector<Two> best(K());
    for (size_t i = 0; i <= N(); ++i) {
      for (size_t j = 0; j < K(); ++j) {
        const float here = F(i, j);
        if (here <= kImpossible) continue;
        best[j].Add(here + kSkipKernel + B(i, j + 1), Assignment::kNone);
        if (i == N()) continue;
        for (const Span& span : classes_[nodes_[i]].spans[j]) {
          const float total = here + span.score + B(i + 1, j + span.length);
          for (uint32_t k = 0; k < span.length; ++k)
            best[j + k].Add(total, static_cast<uint32_t>(i));
        }
      }
    }
    for (size_t j = 0; j < K(); ++j) {
      out_[j].margin =
          out_[j].node == best[j].node ? best[j].first - best[j].second : 0;
    }
  }

  const graph::LaunchTable& launches_;
  std::vector<uint32_t> nodes_;    // class of each
  std::vector<uint32_t> kernels_;  // name of each
  absl::flat_hash_map<std::string_view, uint32_t, TextHash, std::equal_to<>>
      class_of_;
  absl::flat_hash_map<std::string_view, uint32_t, TextHash, std::equal_to<>>
      name_of_;
  std::vector<OpClass> classes_;
  std::vector<std::string_view> names_;
  std::vector<uint32_t> count_;  // kernels by name
  uint32_t roles_ = 0;
  std::vector<bool> fits_;  // name * roles + role
  std::vector<bool> unknown_;
  bool any_unknown_ = false;
  std::vector<float> learnt_;
  std::vector<float> forward_;
  std::vector<float> backward_;
  std::vector<Assignment> out_;
};

}  // namespace

Result<std::vector<Assignment>> AlignKernels(
    std::span<const std::string_view> ops,
    std::span<const std::string_view> kernels,
    const graph::LaunchTable& launches) {
  if ((ops.size() + 1) * (kernels.size() + 1) > kMaxCells) {
    return Fail(InputError("",
                           "the graph has too many ops and kernels to "
                           "align them",
                           "choose a smaller ⟨graph⟩ or ⟨section⟩"));
  }
  return Aligner(ops, kernels, launches).Run();
}

namespace {

// A name as XLA writes it in a kernel, without arguments of a signature.
std::string KernelNameOf(std::string_view name) {
  std::string out(name.substr(0, name.find_first_of("(< ")));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return out;
}

// Gives the calls between two instructions the kernels [begin, end). As many as
// calls between two whose kernels are known are as good as told by a rule.
void AssignCalls(const std::vector<uint32_t>& calls, size_t begin, size_t end,
                 std::vector<Assignment>& out) {
  if (calls.size() != 1 && calls.size() != end - begin) return;
  const bool told = calls.size() == end - begin && begin > 0 &&
                    out[begin - 1].by_name && end < out.size() &&
                    out[end].by_name;
  for (size_t k = begin; k < end; ++k) {
    out[k].node = calls[calls.size() == 1 ? 0 : k - begin];
    out[k].by_rule = told;
    out[k].margin = 1;
  }
}

}  // namespace

std::vector<Assignment> AlignByName(
    std::span<const std::string_view> instructions,
    const std::vector<bool>& calls, std::span<const std::string_view> kernels) {
  absl::flat_hash_map<std::string, uint32_t> by_name;
  for (size_t i = 0; i < instructions.size(); ++i) {
    const auto [found, fresh] = by_name.try_emplace(
        KernelNameOf(instructions[i]), static_cast<uint32_t>(i));
    if (!fresh) found->second = Assignment::kNone;  // of two it is neither's
  }
  std::vector<Assignment> out(kernels.size());
  bool any = false;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const std::string name = KernelNameOf(kernels[k]);
    auto found = by_name.find(name);
    const bool whole = found != by_name.end();
    // The first of several kernels of one fusion.
    if (!whole && name.ends_with("_0"))
      found = by_name.find(name.substr(0, name.size() - 2));
    if (found == by_name.end() || found->second == Assignment::kNone ||
        calls[found->second])
      continue;
    out[k] = {found->second, false, whole, 1};
    any = true;
  }
  if (!any) return out;
  size_t from = 0;  // first instruction behind the last one with a kernel
  for (size_t k = 0; k < kernels.size();) {
    if (out[k].node != Assignment::kNone) {
      from = out[k].node + 1;
      ++k;
      continue;
    }
    size_t end = k;
    while (end < kernels.size() && out[end].node == Assignment::kNone) ++end;
    const size_t to =
        end < kernels.size() ? out[end].node : instructions.size();
    std::vector<uint32_t> between;
    for (size_t i = from; i < to; ++i) {
      if (calls[i]) between.push_back(static_cast<uint32_t>(i));
    }
    AssignCalls(between, k, end, out);
    if (end < kernels.size()) from = out[end].node + 1;
    k = end + (end < kernels.size() ? 1 : 0);
  }
  return out;
}

}  // namespace lamina::graph_kernels
