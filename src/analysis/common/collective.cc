// SPDX-License-Identifier: Apache-2.0
// The kind of a collective is that of the recorded fields, else of the host
// range or op above the launch or of the range on the device around it
// ("nccl:all_to_all", "alltoall_base_"), else of the kernel: an all-to-all runs
// as a kernel that is called SendRecv. Where all recorded calls of a kernel are
// of other kinds than its name says, the name says nothing of the rest either.
#include "analysis/common/collective.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "analysis/common/collective_names.h"

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

bool NamesCollective(std::string_view name) {
  static constexpr std::array<std::string_view, 14> kPrefixes = {
      "nccl:",
      "rccl:",
      "gloo:",
      "ucc:",
      "hccl:",
      "xccl:",
      "mpi:",
      "c10d::",
      "_c10d_functional::",
      "c10d_functional::",
      "ProcessGroup",
      "oneccl:",
      "dist.",
      "torch.distributed."};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view p) { return name.starts_with(p); });
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

namespace {

// The kind that old profilers write among the inputs of record_param_comms.
CollectiveKind KindOfInputs(std::string_view concrete) {
  for (size_t at = concrete.find('"'); at != std::string_view::npos;) {
    const size_t end = concrete.find('"', at + 1);
    if (end == std::string_view::npos) break;
    const std::string_view word = concrete.substr(at + 1, end - at - 1);
    const bool is_name =
        !word.empty() && word.find_first_of("0123456789[(") == word.npos;
    const CollectiveKind kind =
        is_name ? CollectiveKindOf(word) : CollectiveKind::kUnknown;
    if (kind != CollectiveKind::kUnknown) return kind;
    at = concrete.find('"', end + 1);
  }
  return CollectiveKind::kUnknown;
}

// Ranges that name collectives, by track: on the host around launches, on the
// device around kernels.
class NamedRanges {
 public:
  explicit NamedRanges(const Trace& trace) : trace_(trace) {
    for (uint32_t i = 0; i < trace.slices.size(); ++i) {
      const SliceId s(i);
      const trace::Kind kind = trace.KindOf(s);
      if ((kind != trace::Kind::kAnnotation &&
           kind != trace::Kind::kGpuAnnotation) ||
          !NamesCollective(trace.Name(s)) ||
          CollectiveKindOf(trace.Name(s)) == CollectiveKind::kUnknown)
        continue;
      ranges_[trace.slices.track[i].value].push_back(s);
    }
    for (auto& [track, list] : ranges_) {
      std::stable_sort(list.begin(), list.end(), [&](SliceId a, SliceId b) {
        return trace.Start(a) < trace.Start(b);
      });
    }
  }

  // The kind of the latest range on the track that holds the start of `s`.
  CollectiveKind Around(SliceId s) const {
    const auto it = ranges_.find(trace_.slices.track[s.value].value);
    if (it == ranges_.end()) return CollectiveKind::kUnknown;
    const auto& list = it->second;
    const int64_t at = trace_.Start(s);
    auto next = std::upper_bound(
        list.begin(), list.end(), at,
        [&](int64_t time, SliceId r) { return time < trace_.Start(r); });
    // Ranges nest a few deep at most.
    for (int back = 0; back < 8 && next != list.begin(); ++back) {
      --next;
      if (at < trace_.End(*next)) return CollectiveKindOf(trace_.Name(*next));
    }
    return CollectiveKind::kUnknown;
  }

 private:
  const Trace& trace_;
  std::map<uint32_t, std::vector<SliceId>> ranges_;
};

// The kind that ops above the launch name.
CollectiveKind KindOfOps(const tree::Tree& tree, NodeId launch) {
  const Trace& trace = tree.trace();
  for (NodeId n = launch; n.valid(); n = tree.parent(n)) {
    if (!tree.IsOp(n)) continue;
    const std::string_view name = tree.name(n);
    CollectiveKind kind = CollectiveKind::kUnknown;
    if (name == "record_param_comms") {
      const trace::OpArgs* op = trace.Op(tree.slice(n));
      if (op != nullptr && op->concrete.valid())
        kind = KindOfInputs(trace.Text(op->concrete));
    } else if (NamesCollective(name)) {
      kind = CollectiveKindOf(name.substr(name.rfind(':') + 1));
    }
    if (kind != CollectiveKind::kUnknown) return kind;
  }
  return CollectiveKind::kUnknown;
}

}  // namespace

std::optional<int64_t> CollectiveBytes(int64_t elements,
                                       std::string_view dtype) {
  // Longest message whose size in bytes stays within int64.
  constexpr int64_t kMost = int64_t{1} << 58;
  const auto element = CollectiveElementBytes(dtype);
  if (!element || elements < 0 || elements > kMost) return std::nullopt;
  return elements * *element;
}

double BusFactor(CollectiveKind kind, int64_t ranks) {
  if (ranks < 1) return 1;
  const auto n = static_cast<double>(ranks);
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      return (n - 1) / n;
    default:
      return 1;
  }
}

std::vector<Collective> CollectCollectives(const tree::Tree& tree,
                                           const DeviceView& device) {
  const Trace& trace = tree.trace();
  std::vector<Collective> out;
  const NamedRanges ranges(trace);
  std::vector<size_t> by_name;  // what only the kernel's name can tell
  std::map<uint32_t, std::set<CollectiveKind>> recorded;  // by kernel name
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
    const NodeId launch = tree.launch(s);
    if (c.kind == CollectiveKind::kUnknown && launch.valid())
      c.kind = ranges.Around(tree.slice(launch));
    if (c.kind == CollectiveKind::kUnknown) c.kind = KindOfOps(tree, launch);
    if (c.kind == CollectiveKind::kUnknown) c.kind = ranges.Around(s);
    if (c.kind == CollectiveKind::kUnknown) {
      by_name.push_back(out.size());
    } else {
      recorded[trace.slices.name[s.value].value].insert(c.kind);
    }
    out.push_back(c);
  }
  for (const size_t i : by_name) {
    const SliceId s = out[i].slice;
    const CollectiveKind kind = CollectiveKindOf(trace.Name(s));
    const auto it = recorded.find(trace.slices.name[s.value].value);
    if (it == recorded.end() || it->second.contains(kind)) out[i].kind = kind;
  }
  return out;
}

}  // namespace lamina::analysis
