// SPDX-License-Identifier: Apache-2.0
//
// The yardstick for loading: simdjson's on-demand API merely iterating over
// the events of a trace and the fields of each, chunk by chunk of 256 KiB on
// one thread, without looking at a value.
//   simdjson_iterate FILE.json
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <simdjson.h>
#include <unistd.h>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: simdjson_iterate FILE.json\n");
    return 2;
  }
  constexpr size_t kChunk = size_t{256} << 10;
  const int fd = ::open(argv[1], O_RDONLY);
  if (fd < 0) return 3;
  std::vector<char> buffer(kChunk * 3 + simdjson::SIMDJSON_PADDING);
  simdjson::ondemand::parser parser;
  size_t have = 0;
  size_t events = 0;
  size_t fields = 0;
  bool in_events = false;
  while (true) {
    const ssize_t got = ::read(fd, buffer.data() + have, kChunk);
    if (got <= 0) break;
    have += static_cast<size_t>(got);
    char* text = buffer.data();
    size_t begin = 0;
    if (!in_events) {
      const char* found = static_cast<const char*>(
          memmem(text, have, "\"traceEvents\": [", 16));
      if (found == nullptr) return 3;
      begin = static_cast<size_t>(found - text) + 15;
      in_events = true;
    } else {
      text[0] = '[';
    }
    // Cut behind the last event that is complete: "},\n".
    size_t end = have;
    while (end > begin + 3 && std::memcmp(text + end - 3, "},\n", 3) != 0)
      --end;
    if (end <= begin + 3) break;
    text[end - 2] = ']';
    auto document =
        parser.iterate(text + begin, end - 1 - begin, buffer.size() - begin);
    for (auto event : document.get_array()) {
      ++events;
      for (auto field : event.get_object()) {
        if (field.error() != simdjson::SUCCESS) return 3;
        ++fields;
      }
    }
    // One byte stays free in front for the next '['.
    std::memmove(text + 1, text + end, have - end);
    have = have - end + 1;
  }
  ::close(fd);
  std::printf("%zu events, %zu fields\n", events, fields);
  return 0;
}
