// SPDX-License-Identifier: Apache-2.0
//
// The second look at a sequence of kernels: layers that are few or damaged.
#include <algorithm>

#include "analysis/layers/repeats.h"

namespace lamina::analysis::layers {
namespace {

// Share of the layers of a stack that must hold attention.
constexpr double kWithAttention = 0.8;

class SecondLook {
 public:
  SecondLook(std::span<const uint32_t> ids, std::span<const uint8_t> marks,
             const StackOptions& options)
      : ids_(ids.begin(), ids.end()), marks_(marks), options_(options) {
    options_.pairs = true;
    for (size_t i = 0; i < ids_.size(); ++i) {
      if ((marks_[i] & kAttentionMark) != 0) ids_[i] = UINT32_MAX;
    }
  }

  // The stacks of [begin, end), which no stack covers.
  void Look(uint32_t begin, uint32_t end, std::vector<Stack>& out) const {
    const auto marks = marks_.subspan(begin, end - begin);
    const auto attention = std::ranges::count_if(marks, IsAttention);
    if (attention < static_cast<ptrdiff_t>(options_.min_layers)) return;
    const auto ids =
        std::span<const uint32_t>(ids_).subspan(begin, end - begin);
    for (Stack& stack : FindStacks(ids, marks, options_)) {
      if (!IsBelieved(stack, marks)) continue;
      for (Piece& piece : stack.pieces) {
        piece.begin += begin;
        piece.end += begin;
        piece.exact = false;
      }
      out.push_back(std::move(stack));
    }
  }

 private:
  static bool IsAttention(uint8_t mark) { return (mark & kAttentionMark) != 0; }

  static bool IsBelieved(const Stack& stack, std::span<const uint8_t> marks) {
    const auto with =
        std::ranges::count_if(stack.pieces, [&](const Piece& piece) {
          return std::ranges::any_of(
              marks.subspan(piece.begin, piece.end - piece.begin), IsAttention);
        });
    return stack.at_norm &&
           static_cast<double>(with) >=
               kWithAttention * static_cast<double>(stack.pieces.size());
  }

  std::vector<uint32_t> ids_;
  std::span<const uint8_t> marks_;
  StackOptions options_;
};

}  // namespace

void AddFaintStacks(std::span<const uint32_t> ids,
                    std::span<const uint8_t> marks, const StackOptions& options,
                    std::vector<Stack>& stacks) {
  const SecondLook look(ids, marks, options);
  std::vector<Stack> found;
  uint32_t kinds = 0;
  uint32_t free_from = 0;
  for (const Stack& stack : stacks) {
    kinds = std::max(kinds, stack.kind + 1);
    if (stack.begin() > free_from) look.Look(free_from, stack.begin(), found);
    free_from = stack.end();
  }
  look.Look(free_from, static_cast<uint32_t>(ids.size()), found);
  for (Stack& stack : found) {
    // Kinds of different gaps are not compared.
    stack.kind = kinds++;
    stacks.push_back(std::move(stack));
  }
  std::ranges::sort(stacks, {}, &Stack::begin);
}

}  // namespace lamina::analysis::layers
