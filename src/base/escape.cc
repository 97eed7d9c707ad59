// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <simdjson.h>

namespace lamina {
namespace {

constexpr char32_t kBroken = 0xFFFFFFFF;
constexpr char kHex[] = "0123456789abcdef";

void AppendHexEscape(std::string& out, unsigned char byte) {
  out += "\\x";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

// Characters that change how the text around them is shown: bidirectional
// marks, overrides and isolates, line and paragraph separators.
bool IsLayoutControl(char32_t c) {
  return (c >= 0x200E && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0x061C || c == 0xFEFF;
}

bool IsCombining(char32_t c) {
  return (c >= 0x0300 && c <= 0x036F) || (c >= 0x1AB0 && c <= 0x1AFF) ||
         (c >= 0x20D0 && c <= 0x20FF) || (c >= 0xFE00 && c <= 0xFE0F) ||
         (c >= 0xFE20 && c <= 0xFE2F) || c == 0x200B || c == 0x200D;
}

bool IsWide(char32_t c) {
  return (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) ||
         (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
         (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) ||
         (c >= 0x20000 && c <= 0x3FFFD);
}

bool IsPlainAscii(std::string_view text) {
  for (unsigned char c : text) {
    if (c < 0x20 || c >= 0x7F) return false;
  }
  return true;
}

}  // namespace

char32_t DecodeUtf8(std::string_view text, size_t& pos) {
  const auto byte = [&](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned char lead = byte(pos);
  if (lead < 0x80) {
    ++pos;
    return lead;
  }
  const int length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  if (lead < 0xC2 || lead > 0xF4 || pos + length > text.size()) {
    ++pos;
    return kBroken;
  }
  char32_t c = lead & (0xFF >> (length + 1));
  for (int i = 1; i < length; ++i) {
    if ((byte(pos + i) & 0xC0) != 0x80) {
      ++pos;
      return kBroken;
    }
    c = (c << 6) | (byte(pos + i) & 0x3F);
  }
  if (c < kSmallest[length] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) {
    ++pos;
    return kBroken;
  }
  pos += length;
  return c;
}

void AppendUtf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

namespace {

// Appends a character, and `bytes` are what it is in the text: as an escape of
// C where it would move the cursor, turn the layout or is broken.
void AppendVisible(std::string& out, char32_t c, std::string_view bytes) {
  if (c == kBroken) {
    AppendHexEscape(out, static_cast<unsigned char>(bytes[0]));
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\t') {
    out += "\\t";
  } else if (c < 0x20 || (c >= 0x7F && c < 0xA0)) {
    AppendHexEscape(out, static_cast<unsigned char>(c));
  } else if (IsLayoutControl(c)) {
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out += kHex[(c >> shift) & 15];
  } else {
    out.append(bytes);
  }
}

}  // namespace

std::string EscapeTerminal(std::string_view text) {
  if (IsPlainAscii(text)) return std::string(text);
  std::string out;
  out.reserve(text.size() + 16);
  for (size_t pos = 0; pos < text.size();) {
    const size_t begin = pos;
    const char32_t c = DecodeUtf8(text, pos);
    AppendVisible(out, c, text.substr(begin, pos - begin));
  }
  return out;
}

void AppendJsonQuoted(std::string& out, std::string_view text) {
  out += '"';
  // Runs of characters that need nothing are copied whole.
  size_t run = 0;
  for (size_t pos = 0; pos < text.size();) {
    const unsigned char byte = static_cast<unsigned char>(text[pos]);
    if (byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\') {
      ++pos;
      continue;
    }
    const size_t begin = pos;
    const char32_t c = DecodeUtf8(text, pos);
    if (c != kBroken && c >= 0x80) continue;  // valid, stays in the run
    out.append(text.substr(run, begin - run));
    run = pos;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      case kBroken:
        out += "\xEF\xBF\xBD";
        break;
      default:
        out += "\\u00";
        out += kHex[(c >> 4) & 15];
        out += kHex[c & 15];
    }
  }
  out.append(text.substr(run));
  out += '"';
}

std::string JsonQuote(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  AppendJsonQuoted(out, text);
  return out;
}

void AppendCsvField(std::string& out, std::string_view text) {
  if (text.find_first_of("\",\n\r") == std::string_view::npos) {
    out.append(text);
    return;
  }
  out += '"';
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

void AppendSafeCsvField(std::string& out, std::string_view text) {
  const bool risky =
      !text.empty() &&
      std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos;
  // "-1" and "+2.5e3" are numbers, and a lone sign is no formula.
  if (!risky || text.size() == 1 ||
      ((text[0] == '-' || text[0] == '+') &&
       text.find_first_not_of("0123456789.eE+-") == std::string_view::npos &&
       text.find_first_of("+-", 1) == std::string_view::npos)) {
    AppendCsvField(out, text);
    return;
  }
  AppendCsvField(out, "'" + std::string(text));
}

std::string EscapeMarkdown(std::string_view text) {
  std::string out;
  for (const char c : EscapeTerminal(text)) {
    if (std::string_view("\\`*_{}[]<>#|&~").find(c) != std::string_view::npos)
      out += '\\';
    out += c;
  }
  return out;
}

std::string MarkdownCode(std::string_view text) {
  const std::string plain = EscapeTerminal(text);
  if (plain.empty()) return {};
  // The fence is longer than any run of backticks inside.
  size_t longest = 0;
  size_t run = 0;
  std::string body;
  for (const char c : plain) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
    if (c == '|') body += '\\';
    body += c;
  }
  const std::string fence(longest + 1, '`');
  const bool padded = plain.front() == '`' || plain.back() == '`';
  const std::string pad(padded ? 1 : 0, ' ');
  return fence + pad + body + pad + fence;
}

std::string EscapeXml(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  for (size_t pos = 0; pos < text.size();) {
    const size_t begin = pos;
    const char32_t c = DecodeUtf8(text, pos);
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if (c == kBroken || (c < 0x20 && c != '\n' && c != '\t') ||
            (c >= 0x7F && c < 0xA0) || IsLayoutControl(c) || c == 0xFFFE ||
            c == 0xFFFF) {
          out += "\xEF\xBF\xBD";
        } else {
          out.append(text.substr(begin, pos - begin));
        }
    }
  }
  return out;
}

void AppendPythonQuoted(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out += quote;
  for (size_t pos = 0; pos < text.size();) {
    const size_t begin = pos;
    const char32_t c = DecodeUtf8(text, pos);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\r') {
      out += "\\r";
    } else {
      AppendVisible(out, c, text.substr(begin, pos - begin));
    }
  }
  out += quote;
}

std::string Shorten(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  size_t cut = max_bytes;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80)
    --cut;
  return std::string(text.substr(0, cut)) + "...";
}

std::string_view DisplayPrefix(std::string_view text, size_t cells) {
  size_t used = 0;
  for (size_t pos = 0; pos < text.size();) {
    const size_t begin = pos;
    const char32_t c = DecodeUtf8(text, pos);
    const size_t width = IsCombining(c) ? 0 : IsWide(c) ? 2 : 1;
    if (used + width > cells) return text.substr(0, begin);
    used += width;
  }
  return text;
}

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  for (size_t pos = 0; pos < text.size();) {
    const char32_t c = DecodeUtf8(text, pos);
    width += IsCombining(c) ? 0 : IsWide(c) ? 2 : 1;
  }
  return width;
}

bool IsValidUtf8(std::string_view text) {
  // Most texts are short and plain, for which the call below takes longer.
  constexpr uint64_t kHighBits = 0x8080808080808080;
  uint64_t all = 0;
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + i, sizeof(word));
    all |= word;
  }
  for (; i < text.size(); ++i)
    all |= static_cast<uint64_t>(static_cast<unsigned char>(text[i]));
  if ((all & kHighBits) == 0) return true;
  return simdjson::validate_utf8(text.data(), text.size());
}

std::string RepairUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 8);
  for (size_t pos = 0; pos < text.size();) {
    const size_t begin = pos;
    if (DecodeUtf8(text, pos) == kBroken) {
      out += "\xEF\xBF\xBD";
    } else {
      out.append(text.substr(begin, pos - begin));
    }
  }
  return out;
}

}  // namespace lamina
