// SPDX-License-Identifier: Apache-2.0
#include "ingest/rocprof/messages.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace lamina::ingest::rocprof {
namespace {

bool IdLess(const Message& a, const Message& b) { return a.id < b.id; }

// Sorts messages by id and keeps the first of equal ones.
void SortUnique(PodVector<Message>& rows) {
  const auto not_above = [](const Message& a, const Message& b) {
    return a.id >= b.id;
  };
  if (std::adjacent_find(rows.begin(), rows.end(), not_above) == rows.end())
    return;
  std::stable_sort(rows.begin(), rows.end(), IdLess);
  const auto* const end = std::unique(
      rows.begin(), rows.end(),
      [](const Message& a, const Message& b) { return a.id == b.id; });
  rows.resize(static_cast<size_t>(end - rows.begin()));
}

}  // namespace

void MessageTable::Add(uint64_t offset, uint32_t since, MessageRows&& part,
                       StringPool& patterns) {
  if (part.empty()) return;
  std::vector<StringId> ids(part.patterns_.size());
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] =
        patterns.Intern(part.patterns_[StringId(static_cast<uint32_t>(i))]);
  PodVector<Message> rows = std::move(part.rows_);
  for (Message& row : rows) {
    row.pattern = ids[row.pattern.value];
    row.since = since;
  }
  rows.shrink_to_fit();
  pending_.emplace(offset, std::move(rows));
}

void MessageTable::Settle(uint32_t array) {
  PodVector<Message> more;
  while (IsPending(array)) {
    const auto first = pending_.begin();
    more.append(first->second.data(), first->second.size());
    pending_.erase(first);
  }
  SortUnique(more);
  if (rows_.empty()) {
    rows_ = std::move(more);
    return;
  }
  // Those behind all that are there, and the rest.
  const Message* const behind =
      std::upper_bound(more.begin(), more.end(), rows_.back(), IdLess);
  for (const Message* row = more.begin(); row != behind; ++row) {
    if (Place(row->id, 0) == rows_.size()) others_.try_emplace(row->id, *row);
  }
  rows_.append(behind, static_cast<size_t>(more.end() - behind));
}

const Message* MessageTable::Find(uint32_t array, int64_t id,
                                  size_t& hint) const {
  const Message* found = nullptr;
  if (const size_t place = Place(id, hint); place < rows_.size()) {
    found = &rows_[place];
    hint = place;
  } else if (const auto it = others_.find(id); it != others_.end()) {
    found = &it->second;
  }
  return found != nullptr && found->since <= array ? found : nullptr;
}

// Where a message stands in rows_; their number when it does not.
size_t MessageTable::Place(int64_t id, size_t hint) const {
  // Around the last one: a range ends after those in it.
  constexpr size_t kNear = 8;
  const size_t size = rows_.size();
  size_t begin = std::min(hint, size);
  size_t end = size;
  if (begin < size && rows_[begin].id <= id) {
    if (size - begin > kNear && rows_[begin + kNear].id > id)
      end = begin + kNear;
  } else {
    end = begin;
    begin = end > kNear && rows_[end - kNear].id <= id ? end - kNear : 0;
  }
  const Message* const at = std::lower_bound(
      rows_.begin() + begin, rows_.begin() + end, id,
      [](const Message& row, int64_t key) { return row.id < key; });
  return at != rows_.end() && at->id == id
             ? static_cast<size_t>(at - rows_.begin())
             : size;
}

}  // namespace lamina::ingest::rocprof
