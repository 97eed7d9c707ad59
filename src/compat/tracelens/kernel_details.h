// SPDX-License-Identifier: Apache-2.0
//
// The cells that list the kernels of a row: kernel_details_summary,
// kernel_details__summarize_kernel_stats and trunc_kernel_details.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compat/tracelens/model.h"

namespace lamina::compat::tracelens {

// As Python's round(value, 2).
double RoundHundredths(double value);

// By start.
std::vector<SliceId> ByStart(const Trace& trace, std::vector<SliceId> work);

// What a place in the list of kernels took in all instances of a row.
struct KernelPlace {
  std::string_view name;
  int64_t stream = trace::kNoInt;
  std::optional<double> overlap;  // of the place in the first instance
  std::vector<double> times_us;   // one per instance
  double total_us = 0;
};

// A row's kernels, one list per instance. The first list that is not empty
// names the places; lists of another length are left out, as TraceLens does.
// Ascending by (total, name).
std::vector<KernelPlace> SummarizePlaces(
    const std::vector<std::vector<KernelPlace>>& instances);

// The kernels of one instance, in the order given.
std::vector<KernelPlace> PlacesOf(const Trace& trace,
                                  const std::vector<SliceId>& work);

// "[{'name': ..., 'stream': 7, 'count': 2, 'total_duration_us': ...}]".
std::string DetailsCell(const std::vector<KernelPlace>& places);
// The same with names of 64 characters, stream and mean; nothing without
// kernels.
std::optional<std::string> TruncatedCell(
    const std::vector<KernelPlace>& places);

}  // namespace lamina::compat::tracelens
