// SPDX-License-Identifier: Apache-2.0
//
// What liblamina.so shows. Everything that is not marked stays inside.
#pragma once

#define LAMINA_API __attribute__((visibility("default")))
