// SPDX-License-Identifier: Apache-2.0
//
// Events of a trace as columns of a page.
//
// Device events stand lane by lane, by start; host events thread by thread.
// Every device event names the rows of the tables that count it (kernels,
// op_efficiency, modules, layers, passes, steps), so the page can add up the
// events of any row and need not know how the row was made.
#pragma once

#include "page/device.h"
#include "page/host.h"
#include "page/stacks.h"
#include "page/thin.h"
#include "render/html/page.h"

namespace lamina::page {

// What a page holds of the host.
struct HostChoice {
  HostDetail detail = HostDetail::kAll;
  HostMask mask{};
  CallStacks stacks{};
  int64_t python_ns = kNoPython;  // least length of a Python function
};

// Adds the blocks "device" and "host" and the facts that describe them; with
// `thin` only its rows, and the blocks "merged" and "buckets".
void AddEvents(const analysis::Context& context,
               const std::vector<DeviceRow>& rows, const ThinRows* thin,
               const HostChoice& host, render::Page& page);

}  // namespace lamina::page
