// SPDX-License-Identifier: Apache-2.0
#include "compat/tracelens/kernel_details.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "base/decimal.h"
#include "base/escape.h"
#include "compat/tracelens/measures.h"

namespace lamina::compat::tracelens {
namespace {

constexpr size_t kNameLength = 64;

void AppendStream(std::string& out, int64_t stream) {
  out += stream == trace::kNoInt ? "None" : std::to_string(stream);
}

// Python cuts between characters, not between bytes.
std::string_view FirstCharacters(std::string_view text, size_t count) {
  for (size_t i = 0; i < text.size(); ++i) {
    const bool starts = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (starts && count-- == 0) return text.substr(0, i);
  }
  return text;
}

}  // namespace

double RoundHundredths(double value) {
  return ParseDouble(fmt::format("{:.2f}", value)).value_or(value);
}

std::vector<SliceId> ByStart(const Trace& trace, std::vector<SliceId> work) {
  std::stable_sort(work.begin(), work.end(), [&](SliceId a, SliceId b) {
    return trace.Start(a) < trace.Start(b);
  });
  return work;
}

std::vector<KernelPlace> PlacesOf(const Trace& trace,
                                  const std::vector<SliceId>& work) {
  std::vector<KernelPlace> places;
  for (const SliceId s : work) {
    KernelPlace& place = places.emplace_back();
    place.name = trace.Name(s);
    place.stream = trace.Device(s)->stream;
    place.times_us = {Us(trace.Duration(s))};
  }
  return places;
}

std::vector<KernelPlace> SummarizePlaces(
    const std::vector<std::vector<KernelPlace>>& instances) {
  std::vector<KernelPlace> out;
  for (const auto& instance : instances) {
    if (instance.empty()) continue;
    if (out.empty()) {
      out = instance;
    } else if (out.size() == instance.size()) {
      for (size_t i = 0; i < out.size(); ++i)
        out[i].times_us.push_back(instance[i].times_us[0]);
    }
  }
  for (KernelPlace& place : out) {
    for (const double time : place.times_us) place.total_us += time;
  }
  std::stable_sort(
      out.begin(), out.end(), [](const KernelPlace& a, const KernelPlace& b) {
        return std::pair(a.total_us, a.name) < std::pair(b.total_us, b.name);
      });
  return out;
}

std::string DetailsCell(const std::vector<KernelPlace>& places) {
  std::string out = "[";
  for (const KernelPlace& place : places) {
    if (out.size() > 1) out += ", ";
    const Five five = Summary(place.times_us);
    // NumPy divides by n here, not by n - 1.
    const auto n = static_cast<double>(place.times_us.size());
    const double deviation =
        five.std_dev ? *five.std_dev * std::sqrt((n - 1) / n) : 0;
    out += "{'name': ";
    AppendPythonQuoted(out, place.name);
    out += ", 'stream': ";
    AppendStream(out, place.stream);
    if (place.overlap)
      out += ", 'overlap_pct': " + FormatDouble(*place.overlap);
    out += ", 'count': " + std::to_string(place.times_us.size());
    const std::pair<const char*, double> numbers[] = {
        {"total_duration_us", place.total_us},
        {"mean_duration_us", *five.mean},
        {"median_duration_us", *five.median},
        {"std_dev_duration_us", deviation},
        {"min_duration_us", *five.min},
        {"max_duration_us", *five.max}};
    for (const auto& [name, value] : numbers)
      out += std::string(", '") + name + "': " + FormatDouble(value);
    out += "}";
  }
  return out + "]";
}

std::optional<std::string> TruncatedCell(
    const std::vector<KernelPlace>& places) {
  if (places.empty()) return std::nullopt;
  std::string out = "[";
  for (const KernelPlace& place : places) {
    if (out.size() > 1) out += ", ";
    std::string name(FirstCharacters(place.name, kNameLength));
    if (name.size() < place.name.size()) name += "...";
    out += "{'name': ";
    AppendPythonQuoted(out, name);
    out += ", 'stream': ";
    AppendStream(out, place.stream);
    out += ", 'mean_duration_us': " +
           FormatDouble(RoundHundredths(*Summary(place.times_us).mean)) + "}";
  }
  return out + "]";
}

}  // namespace lamina::compat::tracelens
