// SPDX-License-Identifier: Apache-2.0
#include "analysis/common/collective.h"

#include <algorithm>
#include <array>

namespace lamina::analysis {
namespace {

// Lower case letters and digits only: "_All-Gather_base" -> "allgatherbase".
std::string Squeeze(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') {
      out += static_cast<char>(c + 32);
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string_view CollectiveKindName(CollectiveKind kind) {
  constexpr std::array<std::string_view, 11> kNames = {
      "all_reduce", "all_gather", "reduce_scatter", "all_to_all",
      "broadcast",  "reduce",     "gather",         "scatter",
      "send_recv",  "barrier",    "unknown"};
  return kNames[static_cast<size_t>(kind)];
}

CollectiveKind CollectiveKindOf(std::string_view name) {
  struct Row {
    std::string_view word;
    CollectiveKind kind;
  };
  // In this order: "allreduce" holds "reduce".
  static constexpr std::array<Row, 16> kRows = {{
      {"reducescatter", CollectiveKind::kReduceScatter},
      {"allreduce", CollectiveKind::kAllReduce},
      {"crossdevicereduce", CollectiveKind::kAllReduce},
      {"quickreduce", CollectiveKind::kAllReduce},
      {"oneshot", CollectiveKind::kAllReduce},
      {"twoshot", CollectiveKind::kAllReduce},
      {"allgather", CollectiveKind::kAllGather},
      {"alltoall", CollectiveKind::kAllToAll},
      {"all2all", CollectiveKind::kAllToAll},
      {"broadcast", CollectiveKind::kBroadcast},
      {"barrier", CollectiveKind::kBarrier},
      {"sendrecv", CollectiveKind::kSendRecv},
      {"send", CollectiveKind::kSendRecv},
      {"recv", CollectiveKind::kSendRecv},
      {"scatter", CollectiveKind::kScatter},
      {"gather", CollectiveKind::kGather},
  }};
  const std::string text = Squeeze(name.substr(0, name.find('(')));
  for (const Row& row : kRows) {
    if (text.find(row.word) != std::string::npos) return row.kind;
  }
  return text.find("reduce") != std::string::npos ? CollectiveKind::kReduce
                                                  : CollectiveKind::kUnknown;
}

std::optional<int64_t> CollectiveElementBytes(std::string_view dtype) {
  const std::string name = Squeeze(dtype);
  struct Row {
    std::string_view name;
    int64_t bytes;
  };
  static constexpr std::array<Row, 38> kRows = {{
      {"double", 8},
      {"float64", 8},
      {"long", 8},
      {"int64", 8},
      {"uint64", 8},
      {"float", 4},
      {"float32", 4},
      {"int", 4},
      {"int32", 4},
      {"uint32", 4},
      {"half", 2},
      {"float16", 2},
      {"bfloat16", 2},
      {"short", 2},
      {"int16", 2},
      {"bool", 1},
      {"byte", 1},
      {"char", 1},
      {"int8", 1},
      {"uint8", 1},
      {"complexfloat", 8},
      {"complexdouble", 16},
      // Element types of HLO.
      {"f64", 8},
      {"s64", 8},
      {"u64", 8},
      {"c64", 8},
      {"f32", 4},
      {"s32", 4},
      {"u32", 4},
      {"f16", 2},
      {"bf16", 2},
      {"s16", 2},
      {"u16", 2},
      {"s8", 1},
      {"u8", 1},
      {"pred", 1},
      {"f8e4m3fn", 1},
      {"f8e5m2", 1},
  }};
  for (const Row& row : kRows) {
    if (row.name == name) return row.bytes;
  }
  if (name.starts_with("float8") || name.starts_with("fp8")) return 1;
  return std::nullopt;
}

std::vector<Collective> CollectCollectives(const tree::Tree& tree,
                                           const DeviceView& device) {
  const Trace& trace = tree.trace();
  std::vector<Collective> out;
  for (const SliceId s : trace.device_slices()) {
    if (!device.communication(s)) continue;
    Collective c;
    c.slice = s;
    c.args = trace.Collective(trace.Device(s)->collective);
    // Older profilers write the fields on the host op above the launch.
    for (NodeId n = tree.launch(s); c.args == nullptr && n.valid();
         n = tree.parent(n)) {
      const trace::OpArgs* op = trace.Op(tree.slice(n));
      if (op != nullptr) c.args = trace.Collective(op->collective);
    }
    if (c.args != nullptr && c.args->name.valid())
      c.kind = CollectiveKindOf(trace.Text(c.args->name));
    if (c.kind == CollectiveKind::kUnknown)
      c.kind = CollectiveKindOf(trace.Name(s));
    out.push_back(c);
  }
  return out;
}

}  // namespace lamina::analysis
