// SPDX-License-Identifier: Apache-2.0
#include "engine/link_peaks.h"

#include "cost/links.h"

namespace lamina::engine {

Result<analysis::host::LinkPeaks> FindLinkPeaks(Session& session) {
  analysis::host::LinkPeaks peaks;
  LAMINA_ASSIGN(const auto device, session.FindDevice());
  if (!device) return peaks;
  LAMINA_ASSIGN(const cost::Links links,
                cost::LinksOf(session.data(), device->name));
  peaks.host = links.pcie_bytes_per_s;
  peaks.device = links.fabric_bytes_per_s;
  peaks.memory = device->bytes_per_s;
  return peaks;
}

}  // namespace lamina::engine
