// SPDX-License-Identifier: Apache-2.0
//
// The arguments of a slice as typed annotations, with the names that profilers
// of PyTorch give them, so that a reader of their traces understands them.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace lamina::emit {

// Category of instants of the allocator.
inline constexpr std::string_view kMemoryCategory = "cpu_instant_event";

// A typed argument. Texts and lists belong to somebody else.
struct Arg {
  enum class Type : uint8_t {
    kInt,
    kReal,
    kText,
    kJson,  // `text` is a JSON value
    kInts,  // `list`
  };
  std::string_view name;
  Type type = Type::kInt;
  int64_t integer = 0;
  double real = 0;
  std::string_view text;
  std::span<const int64_t> list;
};

// A JSON value for JSON: text as string, lists as lists. What is called JSON
// and is none becomes a string.
void AppendJsonValue(std::string& out, const Arg& arg);

class SliceArgs {
 public:
  void Clear() {
    args_.clear();
    triples_.clear();
  }
  std::span<const Arg> list() const { return args_; }

  void Slice(const trace::Trace& trace, trace::SliceId s);
  void Memory(const trace::MemoryArgs& memory);
  // `name` and `text` must stay valid until Clear().
  void Text(std::string_view name, std::string_view text);
  void Int(std::string_view name, int64_t value);

 private:
  void Real(std::string_view name, double value);
  // An integer where it is one.
  void Amount(std::string_view name, double value);
  void Text(std::string_view name, const trace::Trace& trace, StringId id,
            Arg::Type type = Arg::Type::kText);
  void Triple(std::string_view name, const std::array<uint32_t, 3>& value);
  void Config(const trace::Trace& trace, uint32_t row);
  void Collective(const trace::Trace& trace, uint32_t row);
  void Op(const trace::Trace& trace, const trace::OpArgs& op);
  void Device(const trace::Trace& trace, const trace::DeviceArgs& device);

  std::vector<Arg> args_;
  std::deque<std::array<int64_t, 3>> triples_;
};

// Facts about a recording in the form that PyTorch's profiler gives them.

// The list "deviceProperties"; empty when no device is known.
std::string DevicePropertiesJson(const trace::Info& info);
// The object "distributedInfo"; empty without a rank.
std::string DistributedJson(const trace::Info& info);

}  // namespace lamina::emit
