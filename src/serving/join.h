// SPDX-License-Identifier: Apache-2.0
//
// Which pass gave which token: the times of clients laid on the passes of a
// trace. All clocks but that of the trace are unknown by at least a delay, so
// an offset is searched for: every place where some first tokens would come
// right behind passes that took prompts is tried, and judged by what the passes
// say of themselves. What fits nowhere, or in two places, is not placed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compare/runs/units.h"
#include "serving/records.h"

namespace lamina::serving {

// A forward pass of a server, in the time of the trace.
struct ServedPass {
  size_t number = 0;  // of the unit
  runs::Phase phase = runs::Phase::kPass;
  int64_t start_ns = 0, end_ns = 0;
  // Prompts and their tokens, requests that generate and their context; none:
  // the trace does not say.
  std::optional<int64_t> prompts, prompt_tokens, generating, context;
  std::optional<int64_t> waiting;  // requests, as a log of the server says

  int64_t wall_ns() const { return end_ns - start_ns; }
  // Whether it read prompts; where nothing says so, it may have.
  bool MayHavePrompts() const {
    return prompts ? *prompts > 0 : phase != runs::Phase::kDecode;
  }
};

std::vector<ServedPass> PassesOf(const runs::Units& units);

// Tokens of a prompt that a pass read.
struct Chunk {
  size_t pass = 0;
  std::optional<int64_t> tokens;  // none: it cannot be told how many
};

constexpr size_t kNoPass = SIZE_MAX;

enum class PlacedState : uint8_t {
  kComplete,  // all of it lies in the recording
  kCut,       // it began before, or ended after
  kOutside,   // no token of it lies in the recording
};

// A request in the time of the trace.
struct PlacedRequest {
  const Request* request = nullptr;
  PlacedState state = PlacedState::kOutside;
  int64_t arrival_ns = 0;
  // Per chunk of tokens: when it left, and which pass made it, or kNoPass.
  std::vector<int64_t> token_ns;
  std::vector<size_t> pass;
  // Of its prompt, in order; empty where the passes do not add up.
  std::vector<Chunk> prompt;
  bool prompt_known = false;

  int64_t Ttft() const { return request->chunk_ns.front(); }
  int64_t EndToEnd() const { return request->chunk_ns.back(); }
};

enum class JoinStatus : uint8_t {
  kJoined,
  kNoFit,         // the tokens fit no place
  kAmbiguous,     // they fit several
  kNoStartTimes,  // nothing says when a request began
  kClocksApart,   // tokens would come before their passes, or the reverse
  kNoPasses,      // the trace has no passes that say what they had to do
};
std::string_view JoinStatusName(JoinStatus status);

struct JoinOptions {
  // The clock of the records minus that of the trace: only the delay is
  // searched for, and the best is taken.
  std::optional<int64_t> offset_ns;
};

struct Join {
  JoinStatus status = JoinStatus::kNoFit;
  Clock clock = Clock::kNone;
  // Clock of the records minus that of the trace, for tokens: with the least
  // delay. Epoch records: minus the wall clock of the trace.
  int64_t offset_ns = 0;
  double drift_ppm = 0;
  // How far arrivals may be later than said; the time from the end of a pass to
  // the client, the median.
  int64_t uncertainty_ns = 0;
  std::optional<int64_t> delay_ns;
  // Clocks that do not fit: by how much the records are ahead.
  int64_t apart_ns = 0;
  double score = 0, second = 0;  // 0 .. 1
  size_t passes_explained = 0;   // passes whose tokens the records explain
  size_t passes_judged = 0;
  double other_tokens = 0;  // share of tokens that no record explains
  std::vector<PlacedRequest> requests;  // in order of arrival; if joined
};

// `base_ns`: the wall clock of time 0 of the trace; none: it is not known.
// Cost: candidates times the first tokens that judge them, about 10^8 steps for
// 10,000 requests on 50,000 passes.
Join PlaceRequests(const Records& records, std::vector<ServedPass>& passes,
                   std::optional<int64_t> base_ns, const JoinOptions& options);

}  // namespace lamina::serving
