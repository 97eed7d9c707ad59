// SPDX-License-Identifier: Apache-2.0
//
// How the program finds MPI: as a plug-in beside it, so that it starts where no
// libmpi is.
#pragma once

#include <memory>

#include "base/status.h"
#include "dist/channel.h"

namespace lamina::dist {

// Raised when Channel changes.
inline constexpr int kMpiPluginInterface = 1;
inline constexpr const char* kMpiPluginFile = "lamina_mpi.so";
// The plug-in defines: extern "C" Channel* LaminaOpenMpi(int interface); null
// for an interface that it does not have.
inline constexpr const char* kMpiPluginEntry = "LaminaOpenMpi";

// Loads the plug-in and joins the MPI job. Errors: no plug-in beside the
// program or in ../lib/lamina, no MPI, a plug-in of another version.
Result<std::unique_ptr<Channel>> OpenMpiChannel();

}  // namespace lamina::dist
