// SPDX-License-Identifier: Apache-2.0
#include "engine/origins.h"

#include <algorithm>

#include "base/escape.h"

namespace lamina::engine {
namespace {

template <typename T>
std::string_view BytesOf(const PodVector<T>& column) {
  return {reinterpret_cast<const char*>(column.data()),
          column.size() * sizeof(T)};
}

render::HashKey KeyOf(const trace::Trace& trace) {
  render::KeyMaker maker;
  for (uint32_t id = 0; id < trace.strings.size(); ++id)
    maker.Add(trace.strings[StringId(id)]);
  for (const auto& [key, value] : trace.info.properties) maker.Add(value);
  maker.Add(BytesOf(trace.slices.start_ns));
  maker.Add(BytesOf(trace.slices.dur_ns));
  maker.Add(BytesOf(trace.slices.offset));
  return maker.Finish();
}

}  // namespace

void Origins::Add(const std::string& path, const trace::Trace& trace) {
  // A page holds some of the texts; a name may be known by another one.
  render::Redactor reader({{}, {}, {}, patterns_, {}});
  for (uint32_t id = 0; id < trace.strings.size(); ++id)
    reader.Learn(trace.strings[StringId(id)]);
  for (const auto& [key, value] : trace.info.properties) {
    std::string name = key;  // "Host Name"
    std::replace(name.begin(), name.end(), ' ', '_');
    reader.Learn(JsonQuote(name) + ":" + value);
  }
  render::Secrets secrets = reader.Learned();
  secrets.key = KeyOf(trace);
  const std::lock_guard lock(mutex_);
  origins_.insert_or_assign(path, std::move(secrets));
}

render::Secrets Origins::SecretsOf(
    const std::vector<std::string>& inputs) const {
  const std::lock_guard lock(mutex_);
  render::Secrets secrets;
  secrets.patterns = patterns_;
  for (const auto& [path, origin] : origins_) {
    secrets.hosts.insert(secrets.hosts.end(), origin.hosts.begin(),
                         origin.hosts.end());
    secrets.users.insert(secrets.users.end(), origin.users.begin(),
                         origin.users.end());
    secrets.keys.insert(secrets.keys.end(), origin.keys.begin(),
                        origin.keys.end());
  }
  for (const std::string& input : inputs) {
    const auto it = origins_.find(input);
    if (it == origins_.end()) continue;
    secrets.key = it->second.key;
    break;
  }
  return secrets;
}

}  // namespace lamina::engine
