// SPDX-License-Identifier: Apache-2.0
#include "base/json/writer.h"

#include <cmath>

#include "base/decimal.h"
#include "base/escape.h"
#include "base/status.h"

namespace lamina::json {

void Writer::Break() {
  out_ += '\n';
  out_.append(indent_ * levels_.size(), ' ');
}

void Writer::Begin() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (levels_.empty()) return;
  Level& level = levels_.back();
  if (level.any) out_ += ',';
  if (level.lines == Lines::kEach || new_line_) {
    Break();
  } else if (level.any && spaces_ == Spaces::kAfter) {
    out_ += ' ';
  }
  level.any = true;
  new_line_ = false;
}

void Writer::Open(char open, char close, Lines lines) {
  Begin();
  out_ += open;
  levels_.push_back({close, lines, false});
}

void Writer::Close() {
  LAMINA_CHECK(!levels_.empty() && !after_key_);
  const Level level = levels_.back();
  levels_.pop_back();
  if (level.any && level.lines == Lines::kEach) Break();
  out_ += level.close;
}

void Writer::Key(std::string_view key) {
  Begin();
  AppendJsonQuoted(out_, key);
  out_ += spaces_ == Spaces::kAfter ? ": " : ":";
  after_key_ = true;
}

void Writer::Text(std::string_view text) {
  Begin();
  AppendJsonQuoted(out_, text);
}

void Writer::Number(int64_t value) {
  Begin();
  AppendInt(out_, value);
}

void Writer::Real(double value) {
  if (!std::isfinite(value)) return Null();
  Begin();
  AppendNumber(out_, value);
}

void Writer::Microseconds(int64_t ns) {
  Begin();
  AppendMicroseconds(out_, ns);
}

void Writer::Bool(bool value) { Raw(value ? "true" : "false"); }

void Writer::Raw(std::string_view json) {
  Begin();
  out_ += json;
}

}  // namespace lamina::json
