// SPDX-License-Identifier: Apache-2.0

#include "cost/device.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <re2/re2.h>

#include "base/byte_source.h"
#include "base/text.h"
#include "cost/links.h"

namespace lamina::cost {

namespace {

using rules::DataFile;
using rules::Node;

Status ReadRates(const DataFile& file, const Node* map,
                 std::vector<std::pair<std::string, double>>& out) {
  if (map == nullptr) return {};
  for (size_t i = 0; i < map->keys.size(); ++i) {
    char* end = nullptr;
    const double value = std::strtod(map->items[i].text.c_str(), &end);
    if (*end != 0 || !(value > 0) || !std::isfinite(value))
      return Fail(file.ErrorAt(map->items[i], "expected TFLOPS above 0"));
    out.emplace_back(map->keys[i].text, value * 1e12);
  }
  return {};
}

Result<Device> ReadDevice(const DataFile& file, const Node& node) {
  constexpr std::string_view kKeys[] = {"device",
                                        "title",
                                        "aliases",
                                        "match",
                                        "source",
                                        "note",
                                        "memory_gb",
                                        "bandwidth_gbps",
                                        "multiprocessors",
                                        "compute_capability",
                                        "peak_tflops",
                                        "achievable_bandwidth_gbps",
                                        "achievable_tflops",
                                        "links"};
  LAMINA_ASSIGN(const auto members, rules::Members::Of(file, node, kKeys));
  Device device;
  LAMINA_ASSIGN(device.name, members.Text("device"));
  device.title = members.TextOr("title", device.name);
  device.source = members.TextOr("source", "");
  device.note = members.TextOr("note", "");
  device.match = members.TextOr("match", "");
  device.compute_capability = members.TextOr("compute_capability", "");
  LAMINA_ASSIGN(device.aliases, members.Texts("aliases"));
  LAMINA_ASSIGN(const auto memory, members.OptionalNumber("memory_gb"));
  LAMINA_ASSIGN(const double bandwidth, members.Number("bandwidth_gbps"));
  LAMINA_ASSIGN(const auto sms, members.OptionalNumber("multiprocessors"));
  LAMINA_ASSIGN(const auto achievable,
                members.OptionalNumber("achievable_bandwidth_gbps"));
  device.memory_gb = memory.value_or(0);
  device.bytes_per_s = bandwidth * 1e9;
  device.multiprocessors = sms.value_or(0);
  device.achievable_bytes_per_s = achievable.value_or(0) * 1e9;
  LAMINA_TRY(ReadRates(file, members.Find("peak_tflops"), device.peaks));
  LAMINA_TRY(
      ReadRates(file, members.Find("achievable_tflops"), device.achievable));
  if (!device.match.empty() && !RE2(device.match, RE2::Quiet).ok())
    return Fail(members.ErrorAt("'match' is no regular expression"));
  if (!(bandwidth > 0))
    return Fail(members.ErrorAt("'bandwidth_gbps' must be above 0"));
  return device;
}

// The JSON form of TraceLens: {name, mem_bw_gbps, max_achievable_tflops}.
Result<Device> ReadForeign(const DataFile& file, const Node& node) {
  Device device;
  const auto text = [&](std::string_view key) {
    const Node* value = node.Find(key);
    return value != nullptr ? value->text : std::string();
  };
  device.name = device.title = text("name");
  device.source = file.name;
  device.note = "measured peaks";
  device.bytes_per_s = std::strtod(text("mem_bw_gbps").c_str(), nullptr) * 1e9;
  device.memory_gb = std::strtod(text("memory_gb").c_str(), nullptr);
  LAMINA_TRY(ReadRates(file, node.Find("max_achievable_tflops"), device.peaks));
  if (!(device.bytes_per_s > 0))
    return Fail(file.ErrorAt(node, "expected 'mem_bw_gbps' above 0"));
  return device;
}

}  // namespace

std::optional<double> Device::Peak(std::string_view spec) const {
  for (const auto& [key, flops_per_s] : peaks) {
    if (key == spec) return flops_per_s;
  }
  return std::nullopt;
}

Result<std::shared_ptr<const DeviceSet>> DeviceSet::Load(
    const rules::DataSet& data) {
  auto set = std::make_shared<DeviceSet>();
  LAMINA_ASSIGN(const auto files, data.Load("devices"));
  for (const auto& file : files) {
    const Node* list = file->root.Find("devices");
    if (list == nullptr) continue;
    for (const Node& item : list->items) {
      LAMINA_ASSIGN(Device device, ReadDevice(*file, item));
      set->devices_.push_back(std::move(device));
    }
  }
  return std::shared_ptr<const DeviceSet>(std::move(set));
}

namespace {

// A name in small letters, without the maker in front and what separates words.
std::string Plain(std::string_view name) {
  std::string out;
  for (const char c : LowerCase(name)) {
    if (c != ' ' && c != '-' && c != '_') out += c;
  }
  for (const std::string_view maker :
       {"nvidia", "amd", "instinct", "geforce"}) {
    if (out.starts_with(maker)) out.erase(0, maker.size());
  }
  return out;
}

bool IsName(const Device& device, std::string_view name) {
  const std::string plain = Plain(name);
  return Plain(device.name) == plain || Plain(device.title) == plain ||
         std::any_of(
             device.aliases.begin(), device.aliases.end(),
             [&](const std::string& alias) { return Plain(alias) == plain; });
}

}  // namespace

Result<Device> DeviceSet::Find(const std::string& name) const {
  constexpr std::string_view kAchievable = ":achievable";
  if (name.ends_with(kAchievable)) {
    LAMINA_ASSIGN(Device device,
                  Find(name.substr(0, name.size() - kAchievable.size())));
    if (device.achievable.empty()) {
      return Fail(
          UsageError("no measured peaks are known of '" + device.name + "'",
                     "leave out ':achievable'"));
    }
    device.title += " (achievable)";
    device.source = "measured on long products";
    device.peaks = device.achievable;
    device.bytes_per_s = device.achievable_bytes_per_s;
    return device;
  }
  std::vector<std::string_view> names;
  for (const Device& device : devices_) {
    names.push_back(device.name);
    if (IsName(device, name)) return device;
  }
  std::error_code error;
  if (std::filesystem::is_regular_file(name, error)) {
    LAMINA_ASSIGN(std::string text, ReadAll(name, size_t{16} << 20));
    LAMINA_ASSIGN(const DataFile file, rules::ParseYaml(name, std::move(text)));
    const Node* list = file.root.Find("devices");
    if (list != nullptr && !list->items.empty())
      return ReadDevice(file, list->items[0]);
    if (file.root.Find("mem_bw_gbps") != nullptr)
      return ReadForeign(file, file.root);
    return ReadDevice(file, file.root);
  }
  // "h200x" is nearer to h200-sxm than to b200, which differs in one letter
  // less: the first letters say the device.
  std::string_view near;
  size_t most = 2;
  for (const std::string_view known : names) {
    const auto same = static_cast<size_t>(
        std::mismatch(known.begin(), known.end(), name.begin(), name.end())
            .first -
        known.begin());
    if (same > most) {
      most = same;
      near = known;
    }
  }
  if (near.empty()) near = rules::Nearest(name, names);
  // As vendors and profilers write it: "NVIDIA H100 80GB HBM3".
  for (const Device& device : devices_) {
    if (name.find(' ') != std::string::npos && !device.match.empty() &&
        RE2::PartialMatch(name, RE2(device.match, RE2::Quiet)))
      return device;
  }
  std::string list;
  for (const std::string_view known : names)
    list += (list.empty() ? "" : ", ") + std::string(known);
  return Fail(UsageError("there is no device '" + name + "'",
                         near.empty()
                             ? "a file, or one of " + list
                             : "did you mean '" + std::string(near) + "'?"));
}

std::optional<Device> DeviceSet::Match(const DeviceFacts& facts) const {
  const Device* found = nullptr;
  bool assumed = false;
  const double gb = facts.memory_bytes / 1e9;
  const auto memory_fits = [&](const Device& device) {
    return gb > 0.9 * device.memory_gb && gb < 1.15 * device.memory_gb;
  };
  // Of variants that share a name the memory tells which it is, else the first
  // counts. More memory than any has is a variant that is not known; less is a
  // partition of one.
  double most = 0;
  for (const Device& device : devices_) {
    if (facts.name.empty() || device.match.empty() ||
        !RE2::PartialMatch(facts.name, RE2(device.match, RE2::Quiet)))
      continue;
    most = std::max(most, device.memory_gb);
    if (found == nullptr || (memory_fits(device) && !memory_fits(*found)))
      found = &device;
  }
  if (found != nullptr && most > 0 && gb > 1.15 * most) return std::nullopt;
  // Some profilers leave the name empty or give one that many devices have:
  // memory and capability tell.
  const bool nameless =
      facts.name.empty() || facts.name == "AMD Radeon Graphics";
  for (const Device& device : devices_) {
    if (found != nullptr || !nameless || device.compute_capability.empty() ||
        device.compute_capability != facts.compute_capability)
      continue;
    if (memory_fits(device)) {
      found = &device;
      assumed = true;
    }
  }
  if (found == nullptr) return std::nullopt;
  Device device = *found;
  device.assumed = assumed;
  if (facts.multiprocessors > 0 && device.multiprocessors > 0 &&
      facts.multiprocessors != device.multiprocessors) {
    const double scale = facts.multiprocessors / device.multiprocessors;
    for (auto& [spec, peak] : device.peaks) peak *= scale;
    device.scaled = true;
  }
  return device;
}

std::optional<Roofline> RooflineOf(const Cost& cost, const Device& device,
                                   std::string_view spec) {
  double compute = 0;
  if (cost.flops > 0) {
    const auto peak = device.Peak(spec);
    if (!peak) return std::nullopt;
    compute = cost.flops / *peak;
  }
  const double memory = cost.bytes / device.bytes_per_s;
  if (compute <= 0 && memory <= 0) return std::nullopt;
  return Roofline{std::max(compute, memory), compute >= memory};
}

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
