// SPDX-License-Identifier: Apache-2.0
#include "engine/recorded_values.h"

#include <algorithm>
#include <cmath>

#include "base/decimal.h"
#include "base/json/scan.h"

namespace lamina::engine {
namespace {

// Words of options of aten ops. Other text may say something of the user.
bool IsKnownWord(std::string_view word) {
  static constexpr std::string_view kWords[] = {
      "none",     "tanh",   "trunc",   "floor",    "sum",     "mean",
      "prod",     "amax",   "amin",    "constant", "reflect", "replicate",
      "circular", "linear", "nearest", "bilinear", "bicubic", "area",
      "zeros",    "border", "fro",     "nuc",      "max",     "min",
      "left",     "right",  "reduce",  "valid",    "same",    "exact",
  };
  return std::find(std::begin(kWords), std::end(kWords), word) !=
         std::end(kWords);
}

}  // namespace

std::string_view TorchType(std::string_view recorded) {
  struct Name {
    std::string_view recorded, torch;
  };
  static constexpr Name kNames[] = {
      {"float", "float32"},
      {"double", "float64"},
      {"c10::Half", "float16"},
      {"c10::BFloat16", "bfloat16"},
      {"long int", "int64"},
      {"long", "int64"},
      {"long long", "int64"},
      {"int", "int32"},
      {"short", "int16"},
      {"short int", "int16"},
      {"signed char", "int8"},
      {"unsigned char", "uint8"},
      {"bool", "bool"},
      {"c10::complex<float>", "complex64"},
      {"c10::complex<double>", "complex128"},
      {"c10::Float8_e4m3fn", "float8_e4m3fn"},
      {"c10::Float8_e4m3fnuz", "float8_e4m3fnuz"},
      {"c10::Float8_e5m2", "float8_e5m2"},
      {"c10::Float8_e5m2fnuz", "float8_e5m2fnuz"},
      {"unsigned short", "uint16"},
      {"unsigned int", "uint32"},
      {"unsigned long", "uint64"},
  };
  for (const Name& name : kNames) {
    if (name.recorded == recorded) return name.torch;
  }
  return {};
}

std::optional<std::string> JsonOf(std::string_view text) {
  std::string out;
  int depth = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == ' ' || c == ',' || c == '[' || c == ']') {
      depth += c == '[' ? 1 : c == ']' ? -1 : 0;
      if (depth > 8) return std::nullopt;
      out += c;
      ++i;
      continue;
    }
    const size_t end = std::min(text.find_first_of(" ,[]", i), text.size());
    const std::string_view word = text.substr(i, end - i);
    i = end;
    if (word == "True" || word == "true") {
      out += "true";
    } else if (word == "False" || word == "false") {
      out += "false";
    } else if (word == "None" || word == "null") {
      out += "null";
    } else if (word == "inf" || word == "Infinity") {
      out += "Infinity";
    } else if (word == "-inf" || word == "-Infinity") {
      out += "-Infinity";
    } else if (word == "nan" || word == "NaN") {
      out += "NaN";
    } else if (IsKnownWord(word)) {
      out += "\"" + std::string(word) + "\"";
    } else {
      const bool whole =
          word.find_first_not_of("+-0123456789") == std::string_view::npos;
      const auto integer = whole ? ParseInt(word) : std::nullopt;
      if (integer) {
        AppendInt(out, *integer);
      } else if (const auto real = ParseDouble(word);
                 real && std::isfinite(*real)) {
        out += FormatDouble(*real);  // keeps the ".0" of a float
      } else {
        return std::nullopt;
      }
    }
  }
  const json::ScanResult scan = json::ScanValue(out, 0);
  if (scan.kind != json::ScanResult::Kind::kOk || scan.end != out.size())
    return std::nullopt;
  return out;
}

}  // namespace lamina::engine
