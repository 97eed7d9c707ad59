// SPDX-License-Identifier: Apache-2.0
//
// The block "device" of a page of several traces.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "render/html/page.h"

namespace lamina::page {

class DeviceColumns {
 public:
  struct Event {
    int64_t start_ns = 0;  // on the axis of the page
    int64_t dur_ns = 0;
    size_t family = 0;
    int64_t uid = 0;     // in the page
    int64_t kernel = 0;  // row + 1 of the table kernels
  };
  void Add(const Event& event);
  // The value of the last event in a further column: row + 1 of a table, or 0,
  // which is also that of events without a value. `is_delta` as in
  // render::Block::Add.
  void Set(std::string_view column, int64_t value, bool is_delta = false);

  size_t rows() const { return start_.size(); }
  void AddTo(render::Page& page) const;

 private:
  struct Further {
    std::string_view name;
    bool is_delta = false;
    std::vector<int64_t> values;
  };
  std::vector<int64_t> start_, dur_, family_, uid_, kernel_;
  std::vector<Further> further_;
};

}  // namespace lamina::page
