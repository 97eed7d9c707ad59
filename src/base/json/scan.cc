// SPDX-License-Identifier: Apache-2.0

#include "base/json/scan.h"

#include <array>
#include <cstring>
#include <vector>

#include "base/escape.h"
#include "base/text.h"

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

namespace {

using Kind = ScanResult::Kind;

// One past the closing quote of the string whose opening quote is at `pos`,
// npos when the text ends before it.
size_t StringEnd(std::string_view text, size_t pos) {
  for (size_t i = pos + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

ScanResult Incomplete(std::string_view text) {
  return {Kind::kIncomplete, text.size(), ""};
}

// Literals and numbers. A number at the very end may go on: the caller treats
// the end of the text as an end only when it is the end of the input.
ScanResult ScanScalar(std::string_view text, size_t pos) {
  constexpr std::array<std::string_view, 9> kWords = {
      "true",     "false", "null", "NaN",      "nan",
      "Infinity", "inf",   "-inf", "-Infinity"};
  for (const std::string_view word : kWords) {
    if (text.substr(pos, word.size()) == word)
      return {Kind::kOk, pos + word.size(), ""};
    // A word cut by the end of the text.
    if (text.size() - pos < word.size() && text.size() > pos &&
        word.starts_with(text.substr(pos)) && !IsDigit(text[pos]) &&
        text.substr(pos) != "-")
      return Incomplete(text);
  }
  size_t i = pos;
  if (i < text.size() && text[i] == '-') ++i;
  const size_t digits = i;
  while (i < text.size() && IsDigit(text[i])) ++i;
  if (i == digits) {
    if (i == text.size()) return Incomplete(text);
    return {Kind::kError, i, "a value"};
  }
  if (i < text.size() && text[i] == '.') {
    ++i;
    while (i < text.size() && IsDigit(text[i])) ++i;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    while (i < text.size() && IsDigit(text[i])) ++i;
  }
  if (i == text.size()) return {Kind::kOk, i, ""};
  return {Kind::kOk, i, ""};
}

}  // namespace

size_t SkipSpace(std::string_view text, size_t pos) {
  while (pos < text.size() && IsSpace(text[pos])) ++pos;
  return pos;
}

ScanResult ScanValue(std::string_view text, size_t pos) {
  // What may come next inside the innermost container.
  enum class Want { kValue, kValueOrEnd, kKeyOrEnd, kKey, kColon, kComma };
  std::vector<char> open;  // '{' or '[' of the containers we are in
  Want want = Want::kValue;
  size_t i = pos;
  while (true) {
    i = SkipSpace(text, i);
    if (i >= text.size()) return Incomplete(text);
    const char c = text[i];
    switch (want) {
      case Want::kColon:
        if (c != ':') return {Kind::kError, i, "':'"};
        ++i;
        want = Want::kValue;
        continue;
      case Want::kComma: {
        const char close = open.back() == '{' ? '}' : ']';
        if (c == ',') {
          ++i;
          want = open.back() == '{' ? Want::kKey : Want::kValue;
          continue;
        }
        if (c != close)
          return {Kind::kError, i, close == '}' ? "',' or '}'" : "',' or ']'"};
        ++i;
        open.pop_back();
        break;
      }
      case Want::kKeyOrEnd:
        if (c == '}') {
          ++i;
          open.pop_back();
          break;
        }
        [[fallthrough]];
      case Want::kKey: {
        if (c != '"') return {Kind::kError, i, "a key in quotes"};
        i = StringEnd(text, i);
        if (i == std::string_view::npos) return Incomplete(text);
        want = Want::kColon;
        continue;
      }
      case Want::kValueOrEnd:
        if (c == ']') {
          ++i;
          open.pop_back();
          break;
        }
        [[fallthrough]];
      case Want::kValue:
        if (c == '{' || c == '[') {
          if (open.size() >= static_cast<size_t>(kMaxDepth))
            return {Kind::kError, i, "less nesting"};
          open.push_back(c);
          want = c == '{' ? Want::kKeyOrEnd : Want::kValueOrEnd;
          ++i;
          continue;
        }
        if (c == '"') {
          i = StringEnd(text, i);
          if (i == std::string_view::npos) return Incomplete(text);
        } else {
          const ScanResult scalar = ScanScalar(text, i);
          if (scalar.kind != Kind::kOk) return scalar;
          i = scalar.end;
        }
        break;
    }
    // A value is complete.
    if (open.empty()) return {Kind::kOk, i, ""};
    want = Want::kComma;
  }
}

size_t FindRecordStart(std::string_view text, size_t pos) {
  for (; pos < text.size(); ++pos) {
    const void* found = std::memchr(text.data() + pos, '{', text.size() - pos);
    if (found == nullptr) return std::string_view::npos;
    pos = static_cast<size_t>(static_cast<const char*>(found) - text.data());
    size_t before = pos;
    bool line_start = false;
    while (before > 0 && IsSpace(text[before - 1])) {
      line_start = line_start || text[before - 1] == '\n';
      --before;
    }
    if (before > 0 && !line_start && text[before - 1] != ',' &&
        text[before - 1] != '[')
      continue;
    const size_t key = SkipSpace(text, pos + 1);
    if (key >= text.size() || text[key] != '"') continue;
    const size_t end = StringEnd(text.substr(0, key + 80), key);
    if (end == std::string_view::npos) continue;
    const size_t colon = SkipSpace(text, end);
    if (colon < text.size() && text[colon] == ':') return pos;
  }
  return std::string_view::npos;
}

size_t ResumeFrom(size_t begin, size_t error) {
  constexpr size_t kLookBack = 4096;
  return error > begin + kLookBack ? error - kLookBack : begin + 1;
}

bool NextRecord(std::string_view text, size_t& pos, RecordSpan& record) {
  pos = SkipSpace(text, pos);
  while (pos < text.size() && text[pos] == ',') pos = SkipSpace(text, pos + 1);
  if (pos >= text.size()) return false;
  const ScanResult scan = ScanValue(text, pos);
  record.begin = pos;
  record.broken = scan.kind != ScanResult::Kind::kOk;
  record.end = scan.end;
  if (record.broken) {
    record.end = FindRecordStart(text, ResumeFrom(pos, scan.end));
    if (record.end == std::string_view::npos) record.end = text.size();
  }
  pos = record.end;
  return true;
}

std::string DecodeString(std::string_view raw) {
  const auto hex4 = [&](size_t at) -> int {
    if (at + 4 > raw.size()) return -1;
    int value = 0;
    for (size_t i = at; i < at + 4; ++i) {
      const char c = raw[i];
      int digit;
      if (IsDigit(c)) {
        digit = c - '0';
      } else if (c >= 'a' && c <= 'f') {
        digit = c - 'a' + 10;
      } else if (c >= 'A' && c <= 'F') {
        digit = c - 'A' + 10;
      } else {
        return -1;
      }
      value = value * 16 + digit;
    }
    return value;
  };
  std::string out;
  out.reserve(raw.size());
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      out += raw[i];
      continue;
    }
    const char c = raw[++i];
    switch (c) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case '"':
      case '\\':
      case '/':
        out += c;
        break;
      case 'u': {
        const int first = hex4(i + 1);
        if (first < 0) {
          out += "\\u";
          break;
        }
        i += 4;
        char32_t code = static_cast<char32_t>(first);
        if (code >= 0xD800 && code < 0xDC00 && i + 2 < raw.size() &&
            raw[i + 1] == '\\' && raw[i + 2] == 'u') {
          const int second = hex4(i + 3);
          if (second >= 0xDC00 && second < 0xE000) {
            code = 0x10000 + ((code - 0xD800) << 10) +
                   (static_cast<char32_t>(second) - 0xDC00);
            i += 6;
          }
        }
        if (code >= 0xD800 && code < 0xE000) code = 0xFFFD;
        AppendUtf8(out, code);
        break;
      }
      default:
        out += '\\';
        out += c;
    }
  }
  if (!IsValidUtf8(out)) out = RepairUtf8(out);
  return out;
}

std::string Canonical(std::string_view value) {
  std::string out;
  out.reserve(value.size());
  bool in_string = false;
  for (size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    if (in_string) {
      out += c;
      if (c == '\\' && i + 1 < value.size()) {
        out += value[++i];
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') continue;
    in_string = c == '"';
    out += c;
  }
  return out;
}

std::string Sanitize(std::string_view value) {
  const std::string repaired = RepairUtf8(value);
  std::string out;
  out.reserve(repaired.size() + 16);
  bool in_string = false;
  constexpr char kHex[] = "0123456789abcdef";
  for (size_t i = 0; i < repaired.size(); ++i) {
    const char c = repaired[i];
    if (in_string && static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 15];
      continue;
    }
    out += c;
    if (c == '"') {
      in_string = !in_string;
    } else if (c == '\\' && in_string && i + 1 < repaired.size()) {
      const char next = repaired[++i];
      if (static_cast<unsigned char>(next) < 0x20) {
        // A raw control character behind a lone backslash.
        out += '\\';
        --i;
      } else {
        out += next;
      }
    }
  }
  return out;
}

}  // namespace lamina::json
