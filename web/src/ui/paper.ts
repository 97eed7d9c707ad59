// SPDX-License-Identifier: Apache-2.0
//
// Whether what is drawn goes to paper: with more dots than a screen has, and
// without anything to scroll or to open.

export const paper = { on: false };
