// SPDX-License-Identifier: Apache-2.0
//
// The walk over a JSON document outside its records: from value to value in
// document order, asking a Router about each.
//
// Objects and arrays that the router descends into are a stack of levels, so
// nothing recurses. A broken document is read on behind the router's recovery
// key; once an array of records was read, what is broken behind it is given
// up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "base/json/router.h"
#include "base/status.h"

namespace lamina::json {

class Document {
 public:
  Document(ByteWindow* window, Router* router)
      : window_(*window), router_(*router) {}

  // Walks on to the next array of records: true with the window behind its
  // '[', false at the end of the document. Fails only when the input is not
  // JSON or the device fails.
  Result<bool> NextArray();
  // The array of records has ended, the window stands behind its ']'.
  void LeaveArray() { LeaveValue(); }
  // The input has ended inside the array.
  void Abandon() { levels_.clear(); }

 private:
  // What follows a step of the walk.
  enum class Step { kGoOn, kRecords, kOver };
  // An object or array around the place of the walk.
  struct Level {
    bool object = false;
    size_t next_index = 0;      // of an array
    bool wants_member = false;  // behind the opening bracket or a comma
  };

  Result<Step> Walk();
  Result<Step> EnterMember();
  Result<Step> EnterValue();
  void LeaveValue();
  // Consumes a key with its colon; none when the text is no such thing.
  Result<std::optional<std::string>> ReadKey();
  Result<Step> CaptureValue();
  Status SkipValue();

  // Consumes white space; false when the input ends with it.
  Result<bool> SkipToText();
  // The input has ended inside the document.
  Step Ended();
  Result<Step> Recover(uint64_t offset, std::string_view expected);
  Error NotJson(uint64_t offset, std::string_view expected) const;

  ByteWindow& window_;
  Router& router_;
  std::vector<std::string> path_;
  std::vector<Level> levels_;
  bool started_ = false;      // the first character was seen
  bool any_records_ = false;  // an array of records was found
  bool recovered_ = false;
};

}  // namespace lamina::json
