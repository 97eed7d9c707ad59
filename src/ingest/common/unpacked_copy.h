// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lamina::ingest {

// Packed databases are read from an unpacked copy, which is kept while formats
// look at a file. This lets go of it; it is removed when no database reads it.
void ForgetUnpackedCopy();

}  // namespace lamina::ingest
