// SPDX-License-Identifier: Apache-2.0
//
// Fits and measured results between processes of one run; never in files, so
// there is no version.
#include <algorithm>
#include <iterator>

#include "dist/archive.h"
#include "dist/measure.h"

namespace lamina::dist {

// Found by argument, so in no unnamed namespace.
template <class Archive>
static void Fields(Archive& a, MeasuredMember& x) {
  a(x.rank, x.call, x.previous, x.step, x.start_ns, x.dur_ns, x.wait_ns,
    x.in_bytes, x.file_ns, x.stream, x.in_elements, x.out_elements, x.in_split,
    x.out_split);
}

template <class Archive>
static void Fields(Archive& a, LateRank& x) {
  a(x.rank, x.late_ns, x.wait_ns, x.cause, x.cause_ns, x.cause_name,
    x.cause_call);
}

template <class Archive>
static void Fields(Archive& a, MeasuredCall& x) {
  a(x.group, x.sequence, x.kind, x.by, x.name, x.dtype, x.doubt, x.bytes,
    x.in_elements, x.out_elements, x.source, x.destination, x.ranks, x.start_ns,
    x.start_skew_ns, x.end_skew_ns, x.transfer_ns, x.late_rank, x.early_rank,
    x.wait_ns, x.synchronises, x.late, x.members);
}

template <class Archive>
static void Fields(Archive& a, Traffic& x) {
  a(x.group, x.source, x.destination, x.bytes, x.calls);
}

template <class Archive>
static void Fields(Archive& a, MeasuredLoss& x) {
  a(x.group, x.sequence, x.kind, x.rank, x.inside);
}

template <class Archive>
static void Fields(Archive& a, MeasuredGroup& x) {
  a(x.key, x.name, x.ranks, x.description, x.size, x.present);
}

template <class Archive>
static void Fields(Archive& a, Measured& x) {
  a(x.groups, x.calls, x.traffic, x.lost);
}

template <class Archive>
static void Fields(Archive& a, ClockFit& x) {
  a(x.rank, x.reference, x.origin_ns, x.offset_ns, x.drift, x.drift_error,
    x.spread_ns, x.largest_ns, x.calls);
}

std::string EncodeMeasured(const std::vector<Measured>& list) {
  Encoder out;
  out(list);
  return out.Take();
}

bool DecodeMeasured(std::string_view bytes, std::vector<Measured>& list) {
  Decoder in(bytes);
  std::vector<Measured> read;
  in(read);
  if (!in.ok() || !in.at_end()) return false;
  std::move(read.begin(), read.end(), std::back_inserter(list));
  return true;
}

std::string EncodeFits(const std::vector<ClockFit>& fits) {
  Encoder out;
  out(fits);
  return out.Take();
}

bool DecodeFits(std::string_view bytes, std::vector<ClockFit>& fits) {
  Decoder in(bytes);
  std::vector<ClockFit> read;
  in(read);
  if (!in.ok() || !in.at_end()) return false;
  fits.insert(fits.end(), read.begin(), read.end());
  return true;
}

}  // namespace lamina::dist
