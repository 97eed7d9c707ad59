// SPDX-License-Identifier: Apache-2.0
#include "emit/replay/script.h"

#include <fmt/core.h>

#include "base/decimal.h"
#include "base/escape.h"

namespace lamina::emit {
namespace {

constexpr std::string_view kHarness =
#include "replay_harness.inc"
    ;
constexpr std::string_view kBatch =
#include "replay_batch.inc"
    ;

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

bool IsWord(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (const char c : text) {
    if (!IsWordCharacter(c)) return false;
  }
  return true;
}

void AppendList(std::string& out, const std::vector<int64_t>& list) {
  out += '[';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ", ";
    AppendInt(out, list[i]);
  }
  out += ']';
}

void AppendTensor(std::string& out, const ReplayArgument& tensor) {
  out += "\"dtype\": ";
  AppendJsonQuoted(out, tensor.dtype);
  out += ", \"dims\": ";
  AppendList(out, tensor.dims);
  if (tensor.strides) {
    out += ", \"strides\": ";
    AppendList(out, *tensor.strides);
  }
}

void AppendArgument(std::string& out, const ReplayArgument& argument) {
  switch (argument.kind) {
    case ReplayArgument::Kind::kNone:
      out += "{\"kind\": \"none\"}";
      return;
    case ReplayArgument::Kind::kTensor:
      out += "{\"kind\": \"tensor\", ";
      AppendTensor(out, argument);
      out += '}';
      return;
    case ReplayArgument::Kind::kTensors:
      out += "{\"kind\": \"tensors\", \"tensors\": [";
      for (size_t i = 0; i < argument.tensors.size(); ++i) {
        out += i > 0 ? ", {" : "{";
        AppendTensor(out, argument.tensors[i]);
        out += '}';
      }
      out += "]}";
      return;
    case ReplayArgument::Kind::kValue:
      out += "{\"kind\": \"value\", \"value\": " + argument.value + "}";
      return;
  }
}

}  // namespace

bool IsOpName(std::string_view name) {
  const size_t colons = name.find("::");
  if (colons == std::string_view::npos || name.size() > 200) return false;
  const std::string_view op = name.substr(colons + 2);
  const size_t dot = op.find('.');
  return IsWord(name.substr(0, colons)) && IsWord(op.substr(0, dot)) &&
         (dot == std::string_view::npos || IsWord(op.substr(dot + 1)));
}

bool IsKernelName(std::string_view name) {
  return name.size() <= 200 && IsWord(name);
}

bool IsSourceHash(std::string_view text) {
  return text.size() >= 20 && text.size() <= 80 && IsWord(text) &&
         text.find('_') == std::string_view::npos;
}

std::string ReplayJson(const ReplayCall& call) {
  std::string out = "{\"op\": ";
  AppendJsonQuoted(out, call.op);
  out += fmt::format(
      ", \"id\": {}, \"count\": {}, \"kernel_time_us\": ", call.id, call.count);
  AppendMicroseconds(out, call.kernel_time_ns);
  out += ", \"trace_us\": ";
  AppendMicroseconds(out, call.mean_ns);
  const auto number = [&](std::string_view key,
                          const std::optional<double>& value) {
    if (!value) return;
    out += fmt::format(", \"{}\": ", key);
    AppendNumber(out, *value);
  };
  number("flops", call.flops);
  number("bytes", call.bytes);
  if (call.roofline_ns) {
    out += ", \"roofline_us\": ";
    AppendMicroseconds(out, *call.roofline_ns);
  }
  if (call.triton) {
    out += ", \"triton\": {\"kernel\": ";
    AppendJsonQuoted(out, call.triton->kernel);
    out += ", \"hash\": ";
    AppendJsonQuoted(out, call.triton->hash);
    out += ", \"grid\": ";
    AppendList(out, call.triton->grid);
    out += '}';
  }
  out += ", \"args\": [";
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (i > 0) out += ", ";
    AppendArgument(out, call.arguments[i]);
  }
  return out + "]}";
}

std::string ScriptName(size_t number, std::string_view op) {
  std::string name = fmt::format("{:03}_", number);
  for (const char c : op.substr(0, 80)) {
    if (IsWordCharacter(c)) {
      name += c;
    } else if (!name.ends_with('_')) {
      name += '_';
    }
  }
  return name + ".py";
}

std::string ReplayScript(const ReplayCall& call) {
  std::string out =
      "#!/usr/bin/env python3\n"
      "# One op of a profiler trace, made by lamina replay. Needs PyTorch and "
      "nothing\n# else.\nSPEC = ";
  AppendPythonQuoted(out, ReplayJson(call));
  out += "\n\n";
  out += kHarness;
  return out;
}

std::string BatchScript() { return std::string(kBatch); }

}  // namespace lamina::emit
