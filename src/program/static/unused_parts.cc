// SPDX-License-Identifier: Apache-2.0
//
// Debian's SQLite has full text search and spatial indexes, its libsodium
// ciphers and signatures: 400 kB that lamina does not use. What begins them
// begins nothing here: so the portable program, which alone is linked with this
// file, does not take them from the archives. Who comes to use one finds out
// when it is linked.
struct sqlite3;

extern "C" {
#define LAMINA_UNUSED(name, argument) \
  int name(argument);                 \
  int name(argument) { return 0; }

LAMINA_UNUSED(sqlite3Fts3Init, sqlite3*)
LAMINA_UNUSED(sqlite3Fts5Init, sqlite3*)
LAMINA_UNUSED(sqlite3RtreeInit, sqlite3*)
LAMINA_UNUSED(_crypto_onetimeauth_poly1305_pick_best_implementation, void)
LAMINA_UNUSED(_crypto_pwhash_argon2_pick_best_implementation, void)
LAMINA_UNUSED(_crypto_scalarmult_curve25519_pick_best_implementation, void)
LAMINA_UNUSED(_crypto_stream_salsa20_pick_best_implementation, void)

#undef LAMINA_UNUSED
}
