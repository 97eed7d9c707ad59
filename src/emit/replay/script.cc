// SPDX-License-Identifier: Apache-2.0
#include "emit/replay/script.h"

#include <fmt/core.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/json/writer.h"
#include "base/text.h"

namespace lamina::emit {
namespace {

constexpr std::string_view kHarness =
#include "replay_harness.inc"
    ;
constexpr std::string_view kBatch =
#include "replay_batch.inc"
    ;

bool IsWord(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (const char c : text) {
    if (!IsWordCharacter(c)) return false;
  }
  return true;
}

using json::Writer;

// The members of an object.
void WriteTensor(Writer& w, const ReplayArgument& tensor) {
  w.Text("dtype", tensor.dtype);
  w.Ints("dims", tensor.dims);
  if (tensor.strides) w.Ints("strides", *tensor.strides);
}

void WriteArgument(Writer& w, const ReplayArgument& argument) {
  w.Object();
  switch (argument.kind) {
    case ReplayArgument::Kind::kNone:
      w.Text("kind", "none");
      break;
    case ReplayArgument::Kind::kTensor:
      w.Text("kind", "tensor");
      WriteTensor(w, argument);
      break;
    case ReplayArgument::Kind::kTensors:
      w.Text("kind", "tensors");
      w.Array("tensors");
      for (const ReplayArgument& tensor : argument.tensors) {
        w.Object();
        WriteTensor(w, tensor);
        w.Close();
      }
      w.Close();
      break;
    case ReplayArgument::Kind::kValue:
      w.Text("kind", "value");
      w.Raw("value", argument.value);
      break;
  }
  w.Close();
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
  std::string out;
  Writer w(out, Writer::Spaces::kAfter);
  w.Object();
  w.Text("op", call.op);
  w.Int("id", call.id);
  w.Int("count", call.count);
  w.Microseconds("kernel_time_us", call.kernel_time_ns);
  w.Microseconds("trace_us", call.mean_ns);
  if (call.flops) w.Real("flops", *call.flops);
  if (call.bytes) w.Real("bytes", *call.bytes);
  if (call.roofline_ns) w.Microseconds("roofline_us", *call.roofline_ns);
  if (call.triton) {
    w.Object("triton");
    w.Text("kernel", call.triton->kernel);
    w.Text("hash", call.triton->hash);
    w.Ints("grid", call.triton->grid);
    w.Close();
  }
  w.Array("args");
  for (const ReplayArgument& argument : call.arguments)
    WriteArgument(w, argument);
  w.Close();
  w.Close();
  return out;
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
