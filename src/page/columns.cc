// SPDX-License-Identifier: Apache-2.0
#include "page/columns.h"

#include <algorithm>
#include <string>

namespace lamina::page {

void DeviceColumns::Add(const Event& event) {
  start_.push_back(event.start_ns);
  dur_.push_back(event.dur_ns);
  family_.push_back(static_cast<int64_t>(event.family));
  uid_.push_back(event.uid);
  kernel_.push_back(event.kernel);
}

void DeviceColumns::Set(std::string_view column, int64_t value, bool is_delta) {
  auto it = std::find_if(further_.begin(), further_.end(),
                         [&](const auto& f) { return f.name == column; });
  if (it == further_.end())
    it = further_.insert(further_.end(), {column, is_delta, {}});
  it->values.resize(rows());
  it->values.back() = value;
}

void DeviceColumns::AddTo(render::Page& page) const {
  render::Block block("device", rows());
  block.Add("start", start_, true);
  block.Add("dur", dur_);
  block.Add("kernel", kernel_);
  block.Add("family", family_);
  block.Add("uid", uid_, true);
  for (const Further& further : further_) {
    // Without rows of its kind the page shows nothing of it.
    if (std::all_of(further.values.begin(), further.values.end(),
                    [](int64_t row) { return row == 0; }))
      continue;
    std::vector<int64_t> values = further.values;
    values.resize(rows());
    block.Add(std::string(further.name), values, further.is_delta);
  }
  page.blocks.push_back(std::move(block));
}

}  // namespace lamina::page
