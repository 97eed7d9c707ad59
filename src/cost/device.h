// SPDX-License-Identifier: Apache-2.0
//
// What a device can do at most, and the roofline: the time that a piece of work
// needs at least (Williams, Waterman, Patterson 2009).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cost/models.h"
#include "rules/document.h"

namespace lamina::cost {

struct Device {
  std::string name;    // "h100-sxm"
  std::string title;   // "NVIDIA H100 SXM"
  std::string source;  // where the numbers come from
  std::string note;
  std::vector<std::string> aliases;
  std::string match;               // RE2 on a recorded name
  std::string compute_capability;  // "9.4": for traces without a name
  double memory_gb = 0;
  double multiprocessors = 0;  // 0: not known
  double bytes_per_s = 0;
  // "matrix_bf16" -> FLOP/s.
  std::vector<std::pair<std::string, double>> peaks;
  // Measured on long products; empty when not given.
  double achievable_bytes_per_s = 0;
  std::vector<std::pair<std::string, double>> achievable;
  bool assumed = false;  // told by memory and capability, not by name
  bool scaled = false;   // peaks were scaled by multiprocessors

  std::optional<double> Peak(std::string_view spec) const;
};

// What a trace says about its device.
struct DeviceFacts {
  std::string name;
  double memory_bytes = 0;
  double multiprocessors = 0;
  std::string compute_capability;  // "9.0", may be empty
};

class DeviceSet {
 public:
  // Reads data/devices.
  static Result<std::shared_ptr<const DeviceSet>> Load(
      const rules::DataSet& data);

  const std::vector<Device>& devices() const { return devices_; }
  // By name or alias (with ":achievable" the measured peaks), or the first
  // device of a YAML or JSON file (lamina's form, or {name, mem_bw_gbps,
  // max_achievable_tflops}). Errors: kUsage with the names there are; the
  // file's own.
  Result<Device> Find(const std::string& name_or_file) const;
  // The device a trace was recorded on; nothing if unknown. With another number
  // of multiprocessors the compute peaks scale.
  std::optional<Device> Match(const DeviceFacts& facts) const;

 private:
  std::vector<Device> devices_;
};

struct Roofline {
  double seconds = 0;
  bool compute_bound = false;  // a tie is compute
};

// Nothing when the device has no peak for the spec, or the work no FLOPs and
// no bytes. Work without FLOPs is bound by memory.
std::optional<Roofline> RooflineOf(const Cost& cost, const Device& device,
                                   std::string_view spec);

}  // namespace lamina::cost
