// SPDX-License-Identifier: Apache-2.0
#include "compare/cudagraph/calls.h"

#include <re2/re2.h>

#include "base/demangle.h"
#include "base/text.h"

namespace lamina::cudagraph {

bool IsLaunch(std::string_view name) {
  return Contains(name, "LaunchKernel") ||
         Contains(name, "LaunchCooperativeKernel") ||
         Contains(name, "Memcpy") || Contains(name, "Memset");
}

std::string TokenOf(std::string_view name) {
  if (Contains(name, "fillBuffer") || Contains(name, "Memset")) return "(fill)";
  if (Contains(name, "copyBuffer") || Contains(name, "Memcpy")) return "(copy)";
  if (name.ends_with(".kd")) name.remove_suffix(3);
  std::string plain = Demangle(name);
  const size_t clone = plain.find(" [clone");
  if (clone != std::string::npos) plain.resize(clone);
  return plain;
}

std::string TokenOfWork(const trace::Trace& trace, trace::SliceId work) {
  if (trace.KindOf(work) == trace::Kind::kMemcpy) return "(copy)";
  if (trace.KindOf(work) == trace::Kind::kMemset) return "(fill)";
  return TokenOf(trace.Name(work));
}

bool IsFrameworkFrame(std::string_view name) {
  for (const std::string_view word :
       {"torch/", "triton/", "importlib", "contextlib", "<built-in",
        "threading.py", "multiprocessing", "nn.Module: ", "runpy.py",
        "asyncio/"}) {
    if (Contains(name, word)) return true;
  }
  return !Contains(name, ".py(");
}

int64_t BatchOf(std::string_view range) {
  static const RE2 kCapture(R"(^capture_(\d+)_)");
  // vLLM: all tokens of the step; a step of generation only has one of each
  // request.
  static const RE2 kTokens(R"(^execute_(\d+)_context_\d+\()");
  static const RE2 kGeneration(R"(^execute_context_0\(.*_generation_(\d+)\()");
  static const RE2 kDiffusion(R"(^execute_diffusion_(\d+)_)");
  static const RE2 kSglang(R"(^step\[.*\b(?:bs|toks)=(\d+))");
  const re2::StringPiece text(range.data(), range.size());
  for (const RE2* pattern :
       {&kCapture, &kTokens, &kGeneration, &kDiffusion, &kSglang}) {
    int64_t batch = -1;
    if (RE2::PartialMatch(text, *pattern, &batch)) return batch;
  }
  return -1;
}

}  // namespace lamina::cudagraph
