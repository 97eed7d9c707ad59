// SPDX-License-Identifier: Apache-2.0
#include "ingest/pftrace/tracks.h"

#include "base/decimal.h"

namespace lamina::ingest::pftrace {

using protobuf::Field;
using protobuf::Walker;
using trace::kNoInt;

namespace {

// The number in brackets behind `word`: "AGENT [2]".
int64_t Bracketed(std::string_view name, std::string_view word) {
  const size_t at = name.find(word);
  if (at == std::string_view::npos) return kNoInt;
  std::string_view rest = name.substr(at + word.size());
  if (!rest.starts_with(" [")) return kNoInt;
  rest.remove_prefix(2);
  return ParseInt(rest.substr(0, rest.find(']'))).value_or(kNoInt);
}

// Lanes of rocprofv3 ("COMPUTE AGENT [2] STREAM [5] (GPU)") and of this
// program ("GPU 0 stream 7").
void ReadLaneName(Track& track) {
  const std::string_view name = track.name;
  if (name.starts_with("COMPUTE ") || name.starts_with("COPY ")) {
    track.device = Bracketed(name, "AGENT");
    track.stream = Bracketed(name, "STREAM");
    track.queue = Bracketed(name, "QUEUE");
    if (track.stream == kNoInt) track.stream = track.queue;
    return;
  }
  const size_t stream = name.find(" stream ");
  if (!name.starts_with("GPU ") || stream == std::string_view::npos) return;
  track.device = ParseInt(name.substr(4, stream - 4)).value_or(kNoInt);
  const std::string_view rest = name.substr(stream + 8);
  track.stream = ParseInt(rest.substr(0, rest.find(' '))).value_or(kNoInt);
}

// "1229" of "THREAD 1 (1229)".
std::string_view ThreadNumber(std::string_view name) {
  if (!name.starts_with("THREAD ") || !name.ends_with(')')) return {};
  const size_t open = name.rfind('(');
  if (open == std::string_view::npos) return {};
  return name.substr(open + 1, name.size() - open - 2);
}

}  // namespace

void Tracks::Describe(const Field& descriptor) {
  Track found;
  found.described = true;
  uint64_t uuid = 0;
  for (Walker walk(descriptor); walk.Next();) {
    switch (walk->number) {
      case 1:
        uuid = walk->value;
        break;
      case 2:
      case 10:
      case 13:
        if (walk->IsBytes()) found.name = walk->bytes;
        break;
      case 3:
        found.process = true;
        for (Walker inner(walk.field()); inner.Next();) {
          if (inner->number == 1) found.pid = inner->Int();
          if (inner->number == 6) found.process_name = inner->bytes;
          if (inner->number == 8) found.label = inner->bytes;
        }
        break;
      case 4:
        found.thread = true;
        for (Walker inner(walk.field()); inner.Next();) {
          if (inner->number == 1) found.pid = inner->Int();
          if (inner->number == 2) found.tid = inner->Int();
          if (inner->number == 5) found.name = inner->bytes;
        }
        break;
      case 5:
        found.parent = walk->value;
        break;
      case 8:
        found.counter = true;
        for (Walker inner(walk.field()); inner.Next();) {
          if (inner->number == 4)
            found.multiplier = static_cast<double>(inner->Int());
          if (inner->number == 5) found.incremental = inner->value != 0;
        }
        break;
      case 12:
        found.rank = walk->Int();
        break;
      default:
        break;
    }
  }
  ReadLaneName(found);
  if (found.process && found.pid != kNoInt) {
    if (!found.process_name.empty())
      process_names_[found.pid] = found.process_name;
    if (!found.label.empty()) process_labels_[found.pid] = found.label;
  }
  auto& slot = tracks_[uuid];
  if (slot == nullptr) {
    slot = std::make_unique<Track>(std::move(found));
    return;
  }
  // Repeated, or late: what the events already use stays.
  const trace::TrackId id = slot->id;
  const double last = slot->last_value;
  *slot = std::move(found);
  slot->id = id;
  slot->last_value = last;
}

void Tracks::DescribeProcess(const Field& process) {
  int64_t pid = kNoInt;
  std::string_view name;
  for (Walker walk(process); walk.Next();) {
    if (walk->number == 1) pid = walk->Int();
    if (walk->number == 6) name = walk->bytes;
  }
  if (pid != kNoInt && !name.empty())
    process_names_.try_emplace(pid, std::string(name));
}

uint64_t Tracks::DescribeThread(const Field& thread) {
  Track found;
  found.described = found.thread = true;
  for (Walker walk(thread); walk.Next();) {
    if (walk->number == 1) found.pid = walk->Int();
    if (walk->number == 2) found.tid = walk->Int();
    if (walk->number == 5) found.name = walk->bytes;
  }
  // A number that no writer gives: they are random or small.
  const uint64_t uuid = (uint64_t{0x7EAD} << 48) ^
                        (static_cast<uint64_t>(found.pid) << 24) ^
                        static_cast<uint64_t>(found.tid);
  auto& slot = tracks_[uuid];
  if (slot == nullptr) slot = std::make_unique<Track>(std::move(found));
  return uuid;
}

const Track* Tracks::ProcessOf(const Track& track) const {
  const Track* at = &track;
  for (int depth = 0; depth < 64; ++depth) {
    if (at->pid != kNoInt) return at;
    const auto it = tracks_.find(at->parent);
    if (at->parent == 0 || it == tracks_.end()) return at;
    at = it->second.get();
  }
  return at;
}

void Tracks::Place(uint64_t uuid, Track& track, trace::Segment& segment) {
  using What = trace::TrackFact::What;
  trace::LocalNames& names = *segment.names;
  const Track* root = ProcessOf(track);
  std::string pid;
  if (root->pid != kNoInt) {
    AppendInt(pid, root->pid);
  } else if (root != &track) {
    pid = root->name;
  }
  std::string tid;
  if (track.thread && track.tid != kNoInt) {
    AppendInt(tid, track.tid);
  } else if (!ThreadNumber(track.name).empty()) {
    tid = ThreadNumber(track.name);
  } else {
    tid = track.name;
  }
  if (tid.empty()) {
    tid = "track ";
    AppendInt(tid, static_cast<int64_t>(uuid));
  }
  // Begins and ends pair per track: namesakes are told apart.
  const std::string plain = tid;
  if (!taken_.emplace(pid, tid).second) {
    // Counted on, so that many namesakes are not tried one by one.
    int& n = namesakes_.try_emplace(std::pair(pid, plain), 2).first->second;
    do {
      tid = plain + " #" + std::to_string(n++);
    } while (!taken_.emplace(pid, tid).second);
  }
  track.id = names.InternTrack(names.Intern(pid), names.Intern(tid));
  const auto fact = [&](What what, std::string_view text) {
    if (!text.empty())
      segment.facts.push_back({track.id, what, names.Intern(text), 0});
  };
  fact(What::kThreadName, track.name);
  if (root->pid != kNoInt) {
    const auto name = process_names_.find(root->pid);
    if (name != process_names_.end()) fact(What::kProcessName, name->second);
    const auto label = process_labels_.find(root->pid);
    if (label != process_labels_.end())
      fact(What::kProcessLabels, label->second);
  } else if (root != &track) {
    fact(What::kProcessName, root->name);
  }
  if (track.rank != kNoInt) {
    segment.facts.push_back(
        {track.id, What::kThreadSort, StringId(), track.rank});
  }
}

Track& Tracks::Use(uint64_t uuid, trace::Segment& segment) {
  if (last_ != nullptr && last_uuid_ == uuid) return *last_;
  auto& slot = tracks_[uuid];
  if (slot == nullptr) {
    slot = std::make_unique<Track>();
    if (uuid != 0) ++undescribed_;
  }
  if (!slot->id.valid()) Place(uuid, *slot, segment);
  last_uuid_ = uuid;
  last_ = slot.get();
  return *slot;
}

}  // namespace lamina::ingest::pftrace
