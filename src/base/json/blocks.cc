// SPDX-License-Identifier: Apache-2.0
#include "base/json/blocks.h"

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace lamina::json {
namespace {

constexpr size_t kBlock = 64;
// State is remembered at this distance, so that the last record end of a
// chunk is found by reading a few kB again instead of testing every block.
constexpr size_t kCheckpoint = 4096;

struct RawMasks {
  uint64_t quote = 0;
  uint64_t backslash = 0;
  uint64_t open = 0;
  uint64_t close = 0;
  uint64_t control = 0;
};

// '{' is '[' + 0x20 and '}' is ']' + 0x20: one comparison finds both.
#ifdef __SSE2__
RawMasks Load(const char* block) {
  RawMasks m;
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i open = _mm_set1_epi8('{');
  const __m128i close = _mm_set1_epi8('}');
  const __m128i case_bit = _mm_set1_epi8(0x20);
  const __m128i largest_control = _mm_set1_epi8(0x1F);
  for (int i = 0; i < 4; ++i) {
    const __m128i bytes = _mm_loadu_si128(
        reinterpret_cast<const __m128i*>(block + 16 * i));
    const __m128i folded = _mm_or_si128(bytes, case_bit);
    const auto mask = [i](__m128i equal) {
      return static_cast<uint64_t>(
                 static_cast<uint32_t>(_mm_movemask_epi8(equal)))
             << (16 * i);
    };
    m.quote |= mask(_mm_cmpeq_epi8(bytes, quote));
    m.backslash |= mask(_mm_cmpeq_epi8(bytes, backslash));
    m.open |= mask(_mm_cmpeq_epi8(folded, open));
    m.close |= mask(_mm_cmpeq_epi8(folded, close));
    m.control |= mask(
        _mm_cmpeq_epi8(_mm_min_epu8(bytes, largest_control), bytes));
  }
  return m;
}
#else
RawMasks Load(const char* block) {
  RawMasks m;
  for (size_t i = 0; i < kBlock; ++i) {
    const auto c = static_cast<unsigned char>(block[i]);
    const uint64_t bit = uint64_t{1} << i;
    if (c == '"') m.quote |= bit;
    if (c == '\\') m.backslash |= bit;
    if ((c | 0x20) == '{') m.open |= bit;
    if ((c | 0x20) == '}') m.close |= bit;
    if (c < 0x20) m.control |= bit;
  }
  return m;
}
#endif

// Bit i of the result is the xor of bits 0..i.
uint64_t PrefixXor(uint64_t bits) {
  for (int shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
}

}  // namespace

RecordScanner::Masks RecordScanner::Classify(const char* block,
                                             State& state) {
  const RawMasks raw = Load(block);
  uint64_t quote = raw.quote;
  if (raw.backslash != 0 || state.escaped) [[unlikely]] {
    uint64_t escaped = 0;
    bool next_escaped = state.escaped;
    for (int i = 0; i < 64; ++i) {
      const uint64_t bit = uint64_t{1} << i;
      if (next_escaped) {
        escaped |= bit;
        next_escaped = false;
      } else {
        next_escaped = (raw.backslash & bit) != 0;
      }
    }
    state.escaped = next_escaped;
    quote &= ~escaped;
  }
  const uint64_t inside = PrefixXor(quote) ^ state.in_string;
  state.in_string = static_cast<uint64_t>(static_cast<int64_t>(inside) >> 63);
  Masks masks;
  masks.open = raw.open & ~inside;
  masks.close = raw.close & ~inside;
  masks.bad = raw.control & inside;
  return masks;
}

// The last position in [from, to) behind a bracket that closes a record.
size_t RecordScanner::LastEndIn(std::string_view text, size_t from, size_t to,
                                State state) {
  size_t last = 0;
  std::array<char, kBlock> padded;
  for (size_t pos = from; pos < to; pos += kBlock) {
    const char* block = text.data() + pos;
    if (pos + kBlock > to) {
      padded.fill(' ');
      std::memcpy(padded.data(), block, to - pos);
      block = padded.data();
    }
    const Masks masks = Classify(block, state);
    uint64_t both = masks.open | masks.close;
    while (both != 0) {
      const int bit = std::countr_zero(both);
      both &= both - 1;
      if ((masks.open >> bit) & 1) {
        ++state.depth;
      } else if (--state.depth == 0) {
        last = pos + static_cast<size_t>(bit) + 1;
      }
    }
  }
  return last;
}

RecordScanner::Result RecordScanner::Scan(std::string_view text,
                                          size_t from) {
  struct Checkpoint {
    size_t pos;
    State state;
  };
  std::vector<Checkpoint> checkpoints;
  Result result;
  result.at = text.size();
  std::array<char, kBlock> padded;
  size_t pos = from;
  size_t next_checkpoint = from;
  for (; pos < text.size(); pos += kBlock) {
    if (pos >= next_checkpoint) {
      checkpoints.push_back({pos, state_});
      next_checkpoint = pos + kCheckpoint;
    }
    const char* block = text.data() + pos;
    if (pos + kBlock > text.size()) {
      // The rest of the block comes with the next call: the state behind the
      // padding must be that behind the text, and spaces change no state
      // except a pending escape.
      padded.fill(' ');
      std::memcpy(padded.data(), block, text.size() - pos);
      State after = state_;
      const size_t length = text.size() - pos;
      const Masks masks = Classify(padded.data(), after);
      if (masks.bad != 0) {
        result.stop = Stop::kSuspicious;
        result.at = pos + static_cast<size_t>(std::countr_zero(masks.bad));
        break;
      }
      // Recompute the pending escape for the true end.
      bool escaped = state_.escaped;
      for (size_t i = 0; i < length; ++i)
        escaped = !escaped && block[i] == '\\';
      after.escaped = escaped;
      uint64_t both = masks.open | masks.close;
      bool ended = false;
      while (both != 0) {
        const int bit = std::countr_zero(both);
        both &= both - 1;
        after.depth += (masks.open >> bit) & 1 ? 1 : -1;
        if (after.depth < 0) {
          result.stop = Stop::kArrayEnd;
          result.at = pos + static_cast<size_t>(bit);
          ended = true;
          break;
        }
      }
      if (!ended) state_ = after;
      break;
    }
    const State before = state_;
    const Masks masks = Classify(block, state_);
    if (masks.bad != 0) [[unlikely]] {
      result.stop = Stop::kSuspicious;
      result.at = pos + static_cast<size_t>(std::countr_zero(masks.bad));
      state_ = before;
      break;
    }
    const int closes = std::popcount(masks.close);
    if (state_.depth < closes) [[unlikely]] {
      // The array may end in this block.
      int64_t depth = state_.depth;
      uint64_t both = masks.open | masks.close;
      while (both != 0) {
        const int bit = std::countr_zero(both);
        both &= both - 1;
        depth += (masks.open >> bit) & 1 ? 1 : -1;
        if (depth < 0) {
          result.stop = Stop::kArrayEnd;
          result.at = pos + static_cast<size_t>(bit);
          break;
        }
      }
      if (result.stop == Stop::kArrayEnd) {
        state_ = before;
        break;
      }
    }
    state_.depth += std::popcount(masks.open) - closes;
  }
  const size_t limit = result.at;
  for (auto it = checkpoints.rbegin(); it != checkpoints.rend(); ++it) {
    const size_t to =
        it == checkpoints.rbegin() ? limit : std::prev(it)->pos;
    if (to <= it->pos) continue;
    result.last_end = LastEndIn(text, it->pos, to, it->state);
    if (result.last_end != 0) break;
  }
  return result;
}

}  // namespace lamina::json
