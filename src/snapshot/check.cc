// SPDX-License-Identifier: Apache-2.0
#include "snapshot/check.h"

#include <algorithm>
#include <limits>

#include "base/status.h"
#include "snapshot/format.h"

namespace lamina::snapshot {
namespace {

using trace::FieldInfo;
using trace::Kind;
using trace::Role;

// Values of one member of rows that lie `kStride` bytes apart.
template <class T, size_t kStride>
struct Values {
  const char* first;
  uint64_t count;

  const T& operator[](uint64_t i) const {
    return *reinterpret_cast<const T*>(first + i * kStride);
  }
};

// Numbers below `limit`, or none where that is allowed: none is the largest
// number, so that the next one is 0.
template <class T, size_t kStride>
bool AreBelow(Values<T, kStride> values, uint64_t limit, bool or_none) {
  const uint32_t step = or_none ? 1 : 0;
  uint32_t most = 0;
  for (uint64_t i = 0; i < values.count; ++i) {
    uint32_t value = 0;
    if constexpr (std::is_integral_v<T>) {
      value = values[i];
    } else {
      value = values[i].value;
    }
    most = std::max(most, value + step);
  }
  return or_none ? most <= limit : values.count == 0 || most < limit;
}

template <class T, size_t kStride>
bool AreWithin(Values<T, kStride> values, int64_t low, int64_t high,
               int64_t* least = nullptr) {
  int64_t small = high, large = low;
  for (uint64_t i = 0; i < values.count; ++i) {
    const auto value = static_cast<int64_t>(values[i]);
    small = std::min(small, value);
    large = std::max(large, value);
  }
  if (least != nullptr) *least = small;
  return small >= low && large <= high;
}

template <class E>
constexpr int64_t LastOf() {
  if constexpr (std::is_same_v<E, Kind>) {
    return trace::kKinds - 1;
  } else if constexpr (std::is_same_v<E, trace::FlowPhase>) {
    return static_cast<int64_t>(trace::FlowPhase::kFinish);
  } else {
    static_assert(std::is_same_v<E, trace::FlowKind>);
    return static_cast<int64_t>(trace::FlowKind::kOther);
  }
}

// `in_slices`: every slice has a name.
template <class T, size_t kStride>
bool FieldHolds(const FieldInfo& info, Values<T, kStride> values,
                const Bounds& bounds, bool in_slices) {
  if constexpr (std::is_same_v<T, StringId>) {
    return AreBelow(values, bounds.strings, !in_slices);
  } else if constexpr (std::is_same_v<T, trace::TrackId>) {
    return AreBelow(values, bounds.tracks, false);
  } else if constexpr (std::is_same_v<T, trace::StreamId>) {
    return AreBelow(values, bounds.streams, true);
  } else if constexpr (std::is_same_v<T, bool>) {
    return AreWithin(Values<uint8_t, kStride>{values.first, values.count}, 0,
                     1);
  } else if constexpr (std::is_enum_v<T>) {
    return AreWithin(values, 0, LastOf<T>());
  } else if constexpr (std::is_same_v<T, uint8_t>) {
    return info.role != Role::kCategory ||
           AreBelow(values, bounds.categories, false);
  } else if constexpr (std::is_same_v<T, uint32_t>) {
    return info.role != Role::kRow || info.of.empty() ||
           AreBelow(values, bounds.RowsOf(info.of), true);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    if (info.role == Role::kStart)
      return AreWithin(values, -trace::kMaxTimeNs, trace::kMaxTimeNs);
    if (info.role == Role::kDur)
      return AreWithin(values, 0, trace::kMaxDurationNs);
    return true;
  } else {
    return true;
  }
}

bool StartsHold(const char* data, uint64_t begin, uint64_t end,
                const Bounds& bounds) {
  int64_t least = 0;
  if (!AreWithin(Values<int64_t, 8>{data + begin * 8, end - begin},
                 -trace::kMaxTimeNs, trace::kMaxTimeNs, &least))
    return false;
  int64_t known = bounds.first_ns.load();
  while (least < known &&
         !bounds.first_ns.compare_exchange_weak(known, least)) {
  }
  return true;
}

// The row of a slice's arguments is one of the table of its kind.
bool DetailsHold(const char* data, uint64_t begin, uint64_t end,
                 const Bounds& bounds) {
  const auto* const rows = reinterpret_cast<const uint32_t*>(data);
  uint64_t bad = 0, device = 0;
  for (uint64_t i = begin; i < end; ++i) {
    const auto kind = static_cast<size_t>(bounds.kinds[i]);
    if (kind >= trace::kKinds) return false;
    const uint32_t row = rows[i];
    bad += !(row < bounds.arguments[kind] ||
             (row == trace::kNoRow && !bounds.must_have[kind]));
    device += trace::IsDevice(bounds.kinds[i]);
  }
  bounds.device_slices += device;
  return bad == 0;
}

// Offsets rise; each is held against the next one.
bool OffsetsHold(const char* data, uint64_t begin, uint64_t end,
                 const Bounds& bounds) {
  const auto* const offsets = reinterpret_cast<const uint64_t*>(data);
  const uint64_t last = bounds.string_offsets - 1;
  uint64_t bad = 0;
  for (uint64_t i = begin; i < std::min(end, last); ++i)
    bad += offsets[i] > offsets[i + 1];
  if (begin == 0) bad += offsets[0] != 0 || offsets[1] != 0;
  if (end > last) bad += offsets[last] != bounds.string_bytes;
  return bad == 0;
}

template <class Row, class F>
bool ColumnHolds(const char* data, uint64_t begin, uint64_t end,
                 const Bounds& bounds) {
  using T = typename std::remove_cvref_t<decltype(std::declval<Row>().*
                                                  F::kMember)>::value_type;
  static constexpr FieldInfo kInfo = [] {
    FieldInfo info;
    std::apply(
        [&](const auto&... field) {
          const auto each = [&](const auto& one) {
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(one)>, F>)
              info = one.info;
          };
          (each(field), ...);
        },
        trace::Described<Row>::kFields);
    return info;
  }();
  return FieldHolds(kInfo,
                    Values<T, sizeof(T)>{data + begin * sizeof(T), end - begin},
                    bounds, std::is_same_v<Row, trace::Slices>);
}

// The place of a member in a row.
template <class Row, class T>
size_t PlaceOf(T Row::*member) {
  static const Row row{};
  return static_cast<size_t>(reinterpret_cast<const char*>(&(row.*member)) -
                             reinterpret_cast<const char*>(&row));
}

template <class Row>
bool RowsHold(const char* data, uint64_t begin, uint64_t end,
              const Bounds& bounds) {
  return std::apply(
      [&](const auto&... field) {
        const auto holds = [&](const auto& one) {
          constexpr auto kMember = std::remove_cvref_t<decltype(one)>::kMember;
          using T = std::remove_cvref_t<decltype(std::declval<Row>().*kMember)>;
          return FieldHolds(one.info,
                            Values<T, sizeof(Row)>{data + begin * sizeof(Row) +
                                                       PlaceOf<Row>(kMember),
                                                   end - begin},
                            bounds, false);
        };
        return (holds(field) && ...);
      },
      trace::Described<Row>::kFields);
}

struct List {
  std::vector<SectionInfo> sections;

  template <class Row, class F, class T>
  void Column(const std::string& name, const FieldInfo& /*info*/,
              const PodVector<T>& /*column*/) {
    constexpr auto kMember = F::kMember;
    BlockCheck check = &ColumnHolds<Row, F>;
    if constexpr (std::is_same_v<Row, trace::Slices>) {
      if constexpr (std::is_same_v<T, int64_t>) {
        if (kMember == &trace::Slices::start_ns) check = &StartsHold;
      }
      if constexpr (std::is_same_v<T, uint32_t>) {
        if (kMember == &trace::Slices::detail) check = &DetailsHold;
      }
    }
    sections.push_back({name, trace::Described<Row>::kName, sizeof(T), check});
  }
  template <class Row, class R>
  void Rows(std::string_view name, const R& /*rows*/) {
    sections.push_back({std::string(name), name, sizeof(Row), &RowsHold<Row>});
  }
};

}  // namespace

uint64_t Bounds::RowsOf(std::string_view name) const {
  for (const auto& [known, count] : rows) {
    if (known == name) return count;
  }
  return 0;
}

const std::vector<SectionInfo>& Sections() {
  static const std::vector<SectionInfo> sections = [] {
    List list;
    const trace::Trace empty;
    ForEachRowSection(empty, list);
    list.sections.push_back({std::string(kFacts), {}, 1, nullptr});
    list.sections.push_back({std::string(kDeviceOrder), {}, 4, nullptr});
    list.sections.push_back({std::string(kStringBytes), {}, 1, nullptr});
    list.sections.push_back({std::string(kStringOffsets), {}, 8, &OffsetsHold});
    for (const SectionInfo& info : list.sections)
      LAMINA_CHECK(info.name.size() < sizeof(Entry::name));
    return std::move(list.sections);
  }();
  return sections;
}

}  // namespace lamina::snapshot
