// SPDX-License-Identifier: Apache-2.0
//
// What the operating system did for threads of the host, as slices of
// Kind::kOther. Calls of its library (OS runtime) stand on the track of their
// thread. States of a thread (on a processor or not) stand on a track beside
// it, because they begin and end anywhere within its other events.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lamina::trace {

inline constexpr std::string_view kOsCallCategory = "os_runtime";
inline constexpr std::string_view kThreadStateCategory = "thread_state";

// Names of states. A reason may follow "blocked" behind a comma.
inline constexpr std::string_view kStateRunning = "running";
// Could run, and no processor was free.
inline constexpr std::string_view kStatePreempted = "preempted";
inline constexpr std::string_view kStateBlocked = "blocked";
// Not on a processor; why is not recorded.
inline constexpr std::string_view kStateOff = "off the processor";

// The thread id of the track with the states of a thread.
inline std::string StateTrackOf(std::string_view tid) {
  return std::string(tid) + " state";
}
// The reverse; nothing for other tracks.
inline std::optional<std::string_view> ThreadOfStateTrack(
    std::string_view tid) {
  constexpr std::string_view kEnd = " state";
  if (!tid.ends_with(kEnd)) return std::nullopt;
  return tid.substr(0, tid.size() - kEnd.size());
}

}  // namespace lamina::trace
