// SPDX-License-Identifier: Apache-2.0
//
// Two traces of one program, compared unit by unit: only units of equal load
// meet, edges of a trace are left out and named, a change has an interval, and
// a gate fails only where the interval says so. Method: UnitsOf both sides,
// classes of equal load, rank statistics of their times (statistics.h), sums of
// device work per unit by part of a layer, module class and kernel. Cost:
// linear in the device events, and quadratic in the kernels of one unit for
// what is aligned.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/runs/units.h"
#include "lamina/result.h"

namespace lamina::runs {

struct Options {
  Measure measure = Measure::kUnit;
  bool steps = true, passes = true;  // which units may serve
  double level = 0.95;               // of intervals
  // What recordings of one program differ by: one standard deviation as a
  // share of the time. Nothing: 0.5 % are assumed, and said to be.
  std::optional<double> run_noise;
  // Where from: given, measured in a store of runs, or between the recordings
  // that are compared, of which there is more than one a side.
  enum class NoiseFrom : uint8_t { kGiven, kStore, kRecordings };
  NoiseFrom noise_from = NoiseFrom::kGiven;
  // By which that of one recording a side is multiplied, for several.
  double noise_factor = 1;
  // What sentences call the second side, and whether it stands beside others.
  char letter = 'B';
  bool several = false;
  // The gate: fails where B takes surely more than this share longer.
  std::optional<double> fail_above;
};

enum class Verdict : uint8_t { kNotAsked, kPass, kFail, kUnknown };

struct Compared {
  // Whether both sides have units; without, nothing else is filled.
  bool matched = false;
  Verdict verdict = Verdict::kNotAsked;
  // diff_verdict, diff_units, diff_comparable, diff_left_out, diff_parts,
  // diff_modules, diff_aligned, diff_waits, diff_pairs, and sentences about
  // them.
  ResultSet result;
};

std::vector<Schema> Schemas();

// One side: a trace, or those of the ranks that both sides have, in one order,
// or recordings of one program.
struct Side {
  std::vector<const Context*> ranks;
  bool recordings = false;  // and not ranks of a job
  // Numbers of ranks that the other side lacks: they are left out, and said.
  std::vector<int64_t> left_out;
};

// Time of a unit by half of a layer and family of device work, with "idle" and
// "overlap"; those of a phase add up to its mean unit.
struct Part {
  Phase phase = Phase::kPass;
  std::string half;  // empty: not known
  std::string family;
  double kernels = 0, ns = 0;  // per unit
};

// A side that a store kept, without its trace.
struct KeptSide {
  Units units;
  std::string model, device, type, ranks;  // empty: not known
  std::vector<Part> parts;
};

// The same of two that a store kept: diff_parts has no intervals, and there are
// no diff_modules and diff_aligned.
Compared CompareKept(const KeptSide& a, const KeptSide& b,
                     const Options& options);

// "LlamaForCausalLM, 32 x LlamaDecoderLayer": the class of the root module, and
// the class that stands more than once nearest to it. Fusions below a layer do
// not change it. Empty: there are no modules.
std::string ModelOf(const Context& context);
// Whether two such have other numbers of layers.
bool OtherLayers(std::string_view a, std::string_view b);
// What the profiler says of its surroundings: driver, runtime, recorder, and
// its options.
std::map<std::string, std::string> EnvironmentOf(const trace::Trace& trace);
// The format with the options that cost time; versions; empty: not recorded.
std::string RecorderOf(const trace::Trace& trace);
std::string VersionsOf(const trace::Trace& trace);

// "fp32 -> bf16": the element type with most of the time of matrix products,
// attention and convolutions of whole traces, where it differs; else empty.
std::string TypeChange(const Context& a, const Context& b);

// Errors: data files that cannot be used.
Result<Compared> CompareUnits(const Side& a, const Side& b,
                              const Options& options);

}  // namespace lamina::runs
