// SPDX-License-Identifier: Apache-2.0
#include "base/json/blocks.h"

#include <cstring>
#include <vector>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace lamina::json {
namespace {

constexpr size_t kBlock = 64;
// State is remembered at this distance, so that the last record end of a
// chunk is found by reading a few kB again instead of testing every block.
constexpr size_t kCheckpoint = 4096;

struct Checkpoint {
  size_t pos;
  ScanState state;
};
using Checkpoints = std::vector<Checkpoint>;

// One bit per byte of a block.
struct RawMasks {
  uint64_t quote = 0;
  uint64_t backslash = 0;
  uint64_t open = 0;   // { and [
  uint64_t close = 0;  // } and ]
  uint64_t control = 0;
};
struct Masks {
  uint64_t open = 0;  // outside strings
  uint64_t close = 0;
  uint64_t bad = 0;  // control characters inside strings
};

// '{' is '[' + 0x20 and '}' is ']' + 0x20: with that bit set one comparison
// finds both.
#ifdef __x86_64__

namespace avx2 {
#define LAMINA_TARGET __attribute__((target("avx2,popcnt,bmi")))
LAMINA_TARGET inline RawMasks Load(const char* block) {
  RawMasks m;
  const __m256i quote = _mm256_set1_epi8('"');
  const __m256i backslash = _mm256_set1_epi8('\\');
  const __m256i open = _mm256_set1_epi8('{');
  const __m256i close = _mm256_set1_epi8('}');
  const __m256i case_bit = _mm256_set1_epi8(0x20);
  const __m256i largest_control = _mm256_set1_epi8(0x1F);
  for (int i = 0; i < 2; ++i) {
    const __m256i bytes =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + 32 * i));
    const __m256i folded = _mm256_or_si256(bytes, case_bit);
    const auto put = [i](uint64_t& mask, __m256i equal) LAMINA_TARGET {
      mask |= static_cast<uint64_t>(
                  static_cast<uint32_t>(_mm256_movemask_epi8(equal)))
              << (32 * i);
    };
    put(m.quote, _mm256_cmpeq_epi8(bytes, quote));
    put(m.backslash, _mm256_cmpeq_epi8(bytes, backslash));
    put(m.open, _mm256_cmpeq_epi8(folded, open));
    put(m.close, _mm256_cmpeq_epi8(folded, close));
    put(m.control,
        _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, largest_control), bytes));
  }
  return m;
}
#include "base/json/block_kernel.inc"
#undef LAMINA_TARGET
}  // namespace avx2

#endif

namespace generic {
#define LAMINA_TARGET
#ifdef __x86_64__
inline RawMasks Load(const char* block) {  // SSE2, in every x86-64
  RawMasks m;
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i open = _mm_set1_epi8('{');
  const __m128i close = _mm_set1_epi8('}');
  const __m128i case_bit = _mm_set1_epi8(0x20);
  const __m128i largest_control = _mm_set1_epi8(0x1F);
  for (int i = 0; i < 4; ++i) {
    const __m128i bytes =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 16 * i));
    const __m128i folded = _mm_or_si128(bytes, case_bit);
    const auto put = [i](uint64_t& mask, __m128i equal) {
      mask |=
          static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(equal)))
          << (16 * i);
    };
    put(m.quote, _mm_cmpeq_epi8(bytes, quote));
    put(m.backslash, _mm_cmpeq_epi8(bytes, backslash));
    put(m.open, _mm_cmpeq_epi8(folded, open));
    put(m.close, _mm_cmpeq_epi8(folded, close));
    put(m.control, _mm_cmpeq_epi8(_mm_min_epu8(bytes, largest_control), bytes));
  }
  return m;
}
#else
inline RawMasks Load(const char* block) {
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
#include "base/json/block_kernel.inc"
#undef LAMINA_TARGET
}  // namespace generic

struct Kernel {
  size_t (*scan_blocks)(std::string_view, size_t, ScanState&, Checkpoints&,
                        RecordScanner::Result&);
  size_t (*last_end_in)(std::string_view, size_t, size_t, ScanState);
};

// The best one for this machine.
const Kernel& BestKernel() {
#ifdef __x86_64__
  static const bool has_avx2 = __builtin_cpu_supports("avx2") &&
                               __builtin_cpu_supports("popcnt") &&
                               __builtin_cpu_supports("bmi");
  static const Kernel fast{&avx2::ScanBlocks, &avx2::LastEndIn};
  if (has_avx2) return fast;
#endif
  static const Kernel plain{&generic::ScanBlocks, &generic::LastEndIn};
  return plain;
}

}  // namespace

RecordScanner::Result RecordScanner::Scan(std::string_view text, size_t from) {
  Checkpoints checkpoints;
  Result result;
  result.at = text.size();
  const Kernel& kernel = BestKernel();
  const size_t pos =
      kernel.scan_blocks(text, from, state_, checkpoints, result);
  if (result.stop == Stop::kEnd && pos < text.size()) {
    // The rest of this block comes with the next call. Spaces in its place
    // change no state but a pending escape, which is followed by hand.
    char padded[kBlock];
    std::memset(padded, ' ', kBlock);
    std::memcpy(padded, text.data() + pos, text.size() - pos);
    ScanState after = state_;
    const Masks masks = generic::Classify(padded, after);
    after.escaped = state_.escaped;
    for (size_t i = pos; i < text.size(); ++i)
      after.escaped = !after.escaped && text[i] == '\\';
    if (masks.bad != 0) {
      result.stop = Stop::kSuspicious;
      result.at = pos + static_cast<size_t>(__builtin_ctzll(masks.bad));
    } else {
      const int bit = generic::WalkBrackets(masks, after.depth);
      if (bit >= 0) {
        result.stop = Stop::kArrayEnd;
        result.at = pos + static_cast<size_t>(bit);
      } else {
        state_ = after;
      }
    }
  }
  size_t to = result.at;
  for (auto it = checkpoints.rbegin(); it != checkpoints.rend(); ++it) {
    if (to > it->pos)
      result.last_end = kernel.last_end_in(text, it->pos, to, it->state);
    if (result.last_end != 0) break;
    to = it->pos;
  }
  return result;
}

}  // namespace lamina::json
