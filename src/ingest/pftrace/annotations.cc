// SPDX-License-Identifier: Apache-2.0
//
// The debug annotations of a track event: arguments of the model, and what
// lamina wrote about a recording.
#include <cmath>

#include "base/decimal.h"
#include "base/escape.h"
#include "ingest/common/recording.h"
#include "ingest/pftrace/events.h"
#include "trace/categories.h"

namespace lamina::ingest::pftrace {

using protobuf::Field;
using protobuf::Walker;
using trace::kNoInt;

namespace {

constexpr int kMaxJsonDepth = 8;
constexpr size_t kMaxJson = size_t{1} << 20;

void AppendReal(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  AppendNumber(out, value);
}

}  // namespace

// The values of an annotation as JSON: lists of shapes.
void EventReader::AppendJson(const Field& annotation, const Sequence& sequence,
                             int depth, std::string& out) {
  bool list = false;
  bool any = false;
  const size_t begin = out.size();
  for (Walker walk(annotation); walk.Next();) {
    if (out.size() - begin > kMaxJson) return;
    switch (walk->number) {
      case 2:
        out += walk->value != 0 ? "true" : "false";
        any = true;
        break;
      case 3:
      case 4:
        AppendInt(out, walk->Int());
        any = true;
        break;
      case 5:
        AppendReal(out, walk->Double());
        any = true;
        break;
      case 6:
        AppendJsonQuoted(out, walk->bytes);
        any = true;
        break;
      case 17: {
        const StringId* text = sequence.texts.Find(walk->value);
        AppendJsonQuoted(out, text ? names_.Text(*text) : "");
        any = true;
        break;
      }
      case 12:
        if (depth >= kMaxJsonDepth) break;
        out += list ? ',' : '[';
        list = true;
        AppendJson(walk.field(), sequence, depth + 1, out);
        break;
      default:
        break;
    }
  }
  if (list) {
    out += ']';
  } else if (!any) {
    out += "[]";
  }
}

void EventReader::ReadArg(const Field& annotation, const Sequence& sequence) {
  ArgKey key = ArgKey::kCount;
  EventArgs::Value value;
  bool array = false;
  for (Walker walk(annotation); walk.Next();) {
    switch (walk->number) {
      case 1:
        if (const ArgName* name = sequence.arg_names.Find(walk->value))
          key = name->key;
        break;
      case 10:
        if (walk->IsBytes()) key = KeyOfName(walk->bytes);
        break;
      case 2:
      case 3:
      case 4:
      case 7:
        value.type = EventArgs::Value::Type::kInt;
        value.integer = walk->Int();
        break;
      case 5:
        value.type = EventArgs::Value::Type::kReal;
        value.real = walk->Double();
        break;
      case 6:
        value.type = EventArgs::Value::Type::kText;
        value.text = walk->bytes;
        break;
      case 9:
        value.type = EventArgs::Value::Type::kJson;
        value.text = walk->bytes;
        break;
      case 17:
        value.type = EventArgs::Value::Type::kText;
        if (const StringId* text = sequence.texts.Find(walk->value)) {
          value.interned = *text;
          value.text = names_.Text(*text);
        }
        break;
      case 12:
        array = true;
        break;
      default:
        break;
    }
  }
  if (key == ArgKey::kCount) return;
  if (array && (key == ArgKey::kGrid || key == ArgKey::kBlock)) {
    value.type = EventArgs::Value::Type::kTriple;
    size_t index = 0;
    for (Walker walk(annotation); walk.Next() && index < 3;) {
      if (walk->number != 12) continue;
      for (Walker inner(walk.field()); inner.Next();) {
        if (inner->number == 3 || inner->number == 4)
          value.triple[index] = Small(inner->value);
      }
      ++index;
    }
  } else if (array) {
    std::string text;
    AppendJson(annotation, sequence, 0, text);
    json_.push_back(std::move(text));
    value.type = EventArgs::Value::Type::kJson;
    value.text = json_.back();
  }
  args_.Set(key, value);
}

// What lamina wrote about the recording that the trace was made of.
void EventReader::Recording(const Field& event, const Sequence& sequence) {
  for (Walker walk(event); walk.Next();) {
    if (walk->number != 4 || !walk->IsBytes()) continue;
    std::string_view name;
    std::string_view text;
    int64_t number = kNoInt;
    for (Walker arg(walk.field()); arg.Next();) {
      if (arg->number == 1) {
        if (const ArgName* known = sequence.arg_names.Find(arg->value))
          name = names_.Text(known->text);
      } else if (arg->number == 4) {
        number = arg->Int();
      } else if (arg->number == 17) {
        if (const StringId* known = sequence.texts.Find(arg->value))
          text = names_.Text(*known);
      }
    }
    trace::Info& info = builder_.info();
    if (name == trace::kDevicePropertiesArg) {
      ReadDeviceProperties(text, info);
    } else if (name == trace::kDistributedArg) {
      ReadDistributedInfo(text, info);
    } else if (name == trace::kBaseTimeArg && number != kNoInt) {
      info.base_time_ns = number;
    }
  }
}

}  // namespace lamina::ingest::pftrace
