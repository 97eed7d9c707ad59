// SPDX-License-Identifier: Apache-2.0
//
// What connects devices, as data/devices says.
#pragma once

#include <string_view>

#include "base/status.h"
#include "rules/document.h"

namespace lamina::cost {

// Bytes per second in one direction; 0: not known.
struct Links {
  double fabric_bytes_per_s = 0;  // NVLink of a device, or one xGMI link
  double pcie_bytes_per_s = 0;
};

// Of the device with this name ("h100-sxm"); both 0 for one that is not there.
// Errors: those of the data files.
Result<Links> LinksOf(const rules::DataSet& data, std::string_view device);

}  // namespace lamina::cost
