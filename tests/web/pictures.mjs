// SPDX-License-Identifier: Apache-2.0
//
// Pictures for people to look at: LAMINA_SHOTS=DIR keeps them.
import { mkdirSync } from "node:fs";
import { join } from "node:path";

const shots = process.env.LAMINA_SHOTS;

export async function picture(page, name) {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, name + ".png") });
}
