// SPDX-License-Identifier: Apache-2.0

#include "snapshot/facts.h"

#include <cstring>
#include <limits>
#include <type_traits>

#include "trace/fields.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lamina::snapshot {

uint64_t Digest(const void* bytes, size_t size) {
  return XXH3_64bits(bytes, size);
}

std::array<uint8_t, 16> Digest128(std::string_view bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical,
                           XXH3_128bits(bytes.data(), bytes.size()));
  std::array<uint8_t, 16> out;
  static_assert(sizeof(canonical.digest) == out.size());
  std::memcpy(out.data(), canonical.digest, out.size());
  return out;
}

namespace {

// One after the other; writer and reader have the same calls.
class Out {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (Put(values), ...);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  template <class T>
  void Put(const T& value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Put(StringId id) { Put(id.value); }
  void Put(const std::string& text) {
    Put(uint64_t{text.size()});
    bytes_ += text;
  }
  template <class T>
  void Put(const std::optional<T>& value) {
    Put(uint8_t{value.has_value()});
    if (value) Put(*value);
  }
  template <class A, class B>
  void Put(const std::pair<A, B>& value) {
    (*this)(value.first, value.second);
  }
  template <class T>
  void Put(const std::vector<T>& values) {
    Put(uint64_t{values.size()});
    for (const T& value : values) Put(value);
  }
  void Put(const trace::DeviceInfo& device);

  std::string bytes_;
};

class In {
 public:
  explicit In(std::string_view bytes) : bytes_(bytes) {}
  template <class... T>
  void operator()(T&... values) {
    (Take(values), ...);
  }
  // Everything was there, and nothing is left.
  bool Done() const { return good_ && bytes_.empty(); }
  bool good() const { return good_; }

 private:
  template <class T>
  void Take(T& value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    if constexpr (std::is_same_v<T, bool>) {
      uint8_t byte = 0;
      Take(byte);
      good_ = good_ && byte <= 1;
      value = byte != 0;
    } else {
      if (bytes_.size() < sizeof(value)) {
        good_ = false;
        bytes_ = {};
        return;
      }
      std::memcpy(&value, bytes_.data(), sizeof(value));
      bytes_.remove_prefix(sizeof(value));
    }
  }
  void Take(StringId& id) { Take(id.value); }
  // A number of things, each of which takes a byte at least.
  uint64_t Count() {
    uint64_t count = 0;
    Take(count);
    if (count > bytes_.size()) {
      good_ = false;
      return 0;
    }
    return count;
  }
  void Take(std::string& text) {
    const uint64_t size = Count();
    text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
  }
  template <class T>
  void Take(std::optional<T>& value) {
    bool there = false;
    Take(there);
    value.reset();
    if (there) Take(value.emplace());
  }
  template <class A, class B>
  void Take(std::pair<A, B>& value) {
    (*this)(value.first, value.second);
  }
  template <class T>
  void Take(std::vector<T>& values) {
    const uint64_t count = Count();
    values.clear();
    for (uint64_t i = 0; i < count && good_; ++i) Take(values.emplace_back());
  }
  void Take(trace::DeviceInfo& device);

  std::string_view bytes_;
  bool good_ = true;
};

// A member that is added to one of these does not compile before it is here.
template <class Archive, class Device>
void DeviceFacts(Archive& archive, Device& device) {
  auto& [id, name, memory, major, minor, sms, clock, bandwidth] = device;
  archive(id, name, memory, major, minor, sms, clock, bandwidth);
}
void Out::Put(const trace::DeviceInfo& device) { DeviceFacts(*this, device); }
void In::Take(trace::DeviceInfo& device) { DeviceFacts(*this, device); }

template <class Archive, class Info>
void InfoFacts(Archive& archive, Info& info) {
  auto& [format, lacks, file, file_bytes, input_bytes, events, devices, rank,
         world, backend, groups, base_time, unit, plain, properties] = info;
  archive(format, lacks, file, file_bytes, input_bytes, events, devices, rank,
          world, backend, groups, base_time, unit, plain, properties);
}

template <class Archive, class Diagnostic>
void DiagnosticFacts(Archive& archive, Diagnostic& diagnostic) {
  auto& [reason, effect, text, count, bytes, offsets] = diagnostic;
  archive(reason, effect, text, count, bytes, offsets);
}

// The fields of rows, but for what is made anew.
template <class Archive, class Rows>
void RowFacts(Archive& archive, Rows& rows) {
  using Row = typename std::remove_const_t<Rows>::value_type;
  for (auto& row : rows) {
    std::apply(
        [&](const auto&... field) {
          const auto each = [&](const auto& one) {
            if (one.info.role == trace::Role::kList) return;
            auto& value = row.*std::remove_cvref_t<decltype(one)>::kMember;
            if constexpr (!requires { value.begin(); }) archive(value);
          };
          (each(field), ...);
        },
        trace::Described<Row>::kFields);
  }
}

}  // namespace

std::string FactsOf(const trace::Trace& trace) {
  Out out;
  InfoFacts(out, trace.info);
  const auto diagnostics = trace.diagnostics.Sorted();
  out(uint64_t{diagnostics.size()});
  for (const trace::Diagnostic& d : diagnostics) DiagnosticFacts(out, d);
  out(trace.categories);
  out(uint64_t{trace.tracks.size()}, uint64_t{trace.streams.size()});
  RowFacts(out, trace.tracks);
  RowFacts(out, trace.streams);
  return out.Take();
}

bool ReadFacts(std::string_view bytes, trace::Trace& trace) {
  In in(bytes);
  InfoFacts(in, trace.info);
  uint64_t diagnostics = 0;
  in(diagnostics);
  // Each is looked up among those before; there are dozens.
  constexpr uint64_t kMostDiagnostics = 10'000;
  if (diagnostics > kMostDiagnostics) return false;
  for (uint64_t i = 0; i < diagnostics && in.good(); ++i) {
    trace::Diagnostic d;
    DiagnosticFacts(in, d);
    if (d.effect > trace::Effect::kLost ||
        d.first_offsets.size() > trace::Diagnostics::kMaxOffsets)
      return false;
    trace.diagnostics.Add(d.effect, d.reason, d.text,
                          trace::Diagnostics::kNoOffset, d.count, d.bytes);
    for (const uint64_t offset : d.first_offsets)
      trace.diagnostics.Add(d.effect, d.reason, d.text, offset, 0, 0);
  }
  in(trace.categories);
  uint64_t tracks = 0, streams = 0;
  in(tracks, streams);
  // Each row has five ids of four bytes, or one and two numbers.
  constexpr uint64_t kRowBytes = 20;
  if (!in.good() || tracks > bytes.size() / kRowBytes ||
      streams > bytes.size() / kRowBytes)
    return false;
  trace.tracks.resize(tracks);
  trace.streams.resize(streams);
  RowFacts(in, trace.tracks);
  RowFacts(in, trace.streams);
  return in.Done();
}

}  // namespace lamina::snapshot
