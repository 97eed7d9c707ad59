// SPDX-License-Identifier: Apache-2.0
#include "serving/server_log.h"

#include <algorithm>
#include <cmath>
#include <re2/re2.h>

#include "compare/runs/statistics.h"

namespace lamina::serving {
namespace {

std::optional<int64_t> LogField(re2::StringPiece line, const RE2& pattern) {
  int64_t value = 0;
  if (!RE2::PartialMatch(line, pattern, &value)) return std::nullopt;
  return value;
}

bool ReadVllm(re2::StringPiece line, LogLine& out) {
  static const RE2 kIteration(
      R"(Iteration\(\d+\): (\d+) context requests, (\d+) context tokens, (\d+) generation requests)");
  static const RE2 kElapsed(R"(elapsed time: ([\d.]+) ?ms)");
  int64_t prompts = 0, tokens = 0, generating = 0;
  if (!RE2::PartialMatch(line, kIteration, &prompts, &tokens, &generating))
    return false;
  out.prompts = prompts;
  out.prompt_tokens = tokens;
  out.generating = generating;
  double elapsed = 0;
  if (RE2::PartialMatch(line, kElapsed, &elapsed)) out.elapsed_ms = elapsed;
  return true;
}

bool ReadTrtllm(re2::StringPiece line, LogLine& out) {
  static const RE2 kIteration(R"(\biter = \d+,)");
  static const RE2 kPrompts(R"('num_ctx_requests': (\d+))"),
      kTokens(R"('num_ctx_tokens': (\d+))"),
      kGenerating(R"('num_generation_tokens': (\d+))");
  static const RE2 kHost(R"(host_step_time = ([\d.]+) ?ms)");
  if (!RE2::PartialMatch(line, kIteration)) return false;
  out.prompts = LogField(line, kPrompts);
  out.prompt_tokens = LogField(line, kTokens);
  out.generating = LogField(line, kGenerating);
  double elapsed = 0;
  if (RE2::PartialMatch(line, kHost, &elapsed)) out.elapsed_ms = elapsed;
  return out.prompts && out.generating;
}

bool ReadSglang(re2::StringPiece line, LogLine& out) {
  static const RE2 kPrefill(
      R"(Prefill batch[.,]? ?#new-seq: (\d+), #new-token: (\d+))");
  static const RE2 kQueue(R"(#queue-req: (\d+))");
  int64_t prompts = 0, tokens = 0;
  if (!RE2::PartialMatch(line, kPrefill, &prompts, &tokens)) return false;
  out.prompts = prompts;
  out.prompt_tokens = tokens;
  out.waiting = LogField(line, kQueue);
  return true;
}

// How badly lines from `first` on fit passes: the mean over passes; nothing
// where a load that is known contradicts.
std::optional<double> Misfit(const std::vector<LogLine>& lines, size_t first,
                             const std::vector<ServedPass*>& passes) {
  double other_stage = 0;
  std::vector<double> ratios;
  for (size_t i = 0; i < passes.size(); ++i) {
    const LogLine& line = lines[first + i];
    const ServedPass& pass = *passes[i];
    const auto differs = [](const std::optional<int64_t>& a,
                            const std::optional<int64_t>& b) {
      return a && b && *a != *b;
    };
    if (differs(line.prompts, pass.prompts) ||
        differs(line.prompt_tokens, pass.prompt_tokens) ||
        differs(line.generating, pass.generating))
      return std::nullopt;
    // What kernels say of the stage of a pass is less sure than a log.
    const bool decode = pass.phase == runs::Phase::kDecode;
    const bool says = pass.phase != runs::Phase::kPass && !pass.prompts;
    if (says && line.prompts && (*line.prompts == 0) != decode)
      other_stage += 1;
    if (line.elapsed_ms && *line.elapsed_ms > 0 && pass.wall_ns() > 0) {
      ratios.push_back(std::log(*line.elapsed_ms * 1e6 /
                                static_cast<double>(pass.wall_ns())));
    }
  }
  // The host adds about the same to each.
  if (ratios.size() > 2) {
    const double middle = runs::Median(ratios);
    double sum = 0;
    for (const double ratio : ratios) sum += std::abs(ratio - middle);
    return sum / static_cast<double>(ratios.size());
  }
  return other_stage / static_cast<double>(passes.size());
}

}  // namespace

Result<ServerLog> ParseServerLog(const std::string& name,
                                 std::string_view text) {
  ServerLog out;
  size_t sglang = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const re2::StringPiece line(text.data() + begin, end - begin);
    begin = end + 1;
    LogLine read;
    if (ReadVllm(line, read)) {
      out.format = "vLLM log";
    } else if (ReadTrtllm(line, read)) {
      out.format = "TensorRT-LLM log";
    } else if (ReadSglang(line, read)) {
      out.format = "SGLang log";
      ++sglang;
    } else {
      out.other_lines += !line.empty();
      continue;
    }
    out.lines.push_back(read);
  }
  if (out.lines.empty() || (sglang > 0 && sglang < out.lines.size())) {
    return Fail(InputError(
        name, "has no line of a server that says what a pass had to do",
        "known are vLLM (Iteration(N): ...), TensorRT-LLM (iter = N, ...) and "
        "SGLang (Prefill batch, #new-seq: ...)"));
  }
  out.prompts_only = sglang > 0;
  return out;
}

LogFit ApplyServerLog(const ServerLog& log, std::vector<ServedPass>& passes) {
  LogFit out;
  std::vector<ServedPass*> taken;
  for (ServedPass& pass : passes) {
    if (!log.prompts_only || pass.phase == runs::Phase::kPrefill ||
        pass.phase == runs::Phase::kMixed)
      taken.push_back(&pass);
  }
  if (taken.empty() || log.lines.size() < taken.size()) return out;
  constexpr size_t kMostPlaces = 200'000'000;  // pairs of line and pass
  const size_t places = log.lines.size() - taken.size() + 1;
  if (places > kMostPlaces / taken.size()) return out;
  std::optional<double> best, second;
  size_t at = 0;
  for (size_t first = 0; first < places; ++first) {
    const auto misfit = Misfit(log.lines, first, taken);
    if (!misfit) continue;
    if (!best || *misfit < *best) {
      second = best;
      best = misfit;
      at = first;
    } else if (!second || *misfit < *second) {
      second = misfit;
    }
  }
  // Equal loads and stages, and times that go together; no other place as good.
  constexpr double kFits = 0.15;
  if (!best || *best > kFits || (second && *second < 2 * *best + 0.02))
    return out;
  out.placed = true;
  for (size_t i = 0; i < taken.size(); ++i) {
    const LogLine& line = log.lines[at + i];
    ServedPass& pass = *taken[i];
    const bool lacked = !pass.prompts || !pass.generating;
    if (!pass.prompts) pass.prompts = line.prompts;
    if (!pass.prompt_tokens) pass.prompt_tokens = line.prompt_tokens;
    if (!pass.generating) pass.generating = line.generating;
    if (!pass.waiting) pass.waiting = line.waiting;
    out.filled += lacked && pass.prompts;
    if (lacked && pass.prompts && pass.generating) {
      pass.phase = *pass.prompts == 0      ? runs::Phase::kDecode
                   : *pass.generating == 0 ? runs::Phase::kPrefill
                                           : runs::Phase::kMixed;
    }
  }
  return out;
}

}  // namespace lamina::serving
