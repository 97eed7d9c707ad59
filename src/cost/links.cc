// SPDX-License-Identifier: Apache-2.0
#include "cost/links.h"

namespace lamina::cost {

Result<Links> LinksOf(const rules::DataSet& data, std::string_view device) {
  Links out;
  LAMINA_ASSIGN(const auto files, data.Load("devices"));
  for (const auto& file : files) {
    const rules::Node* list = file->root.Find("devices");
    if (list == nullptr) continue;
    for (const rules::Node& item : list->items) {
      const rules::Node* name = item.Find("device");
      const rules::Node* links = item.Find("links");
      if (name == nullptr || links == nullptr || name->text != device) continue;
      constexpr std::string_view kKeys[] = {"nvlink_gbps", "xgmi_gbps",
                                            "pcie_gbps"};
      LAMINA_ASSIGN(const auto of, rules::Members::Of(*file, *links, kKeys));
      LAMINA_ASSIGN(const auto nvlink, of.OptionalNumber("nvlink_gbps"));
      LAMINA_ASSIGN(const auto xgmi, of.OptionalNumber("xgmi_gbps"));
      LAMINA_ASSIGN(const auto pcie, of.OptionalNumber("pcie_gbps"));
      out.fabric_bytes_per_s = nvlink.value_or(xgmi.value_or(0)) * 1e9;
      out.pcie_bytes_per_s = pcie.value_or(0) * 1e9;
    }
  }
  return out;
}

}  // namespace lamina::cost
