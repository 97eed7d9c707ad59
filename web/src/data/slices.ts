// SPDX-License-Identifier: Apache-2.0
//
// Long work in slices, between which the page draws and answers.

const kSliceMs = 8;

// Not setTimeout: nested ones wait for at least 4 ms.
function pause(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

// Runs the steps of `work`; null if `wanted` says no between two slices.
export async function inSlices<T>(work: Generator<void, T>,
                                  wanted: () => boolean): Promise<T | null> {
  for (;;) {
    const end = performance.now() + kSliceMs;
    do {
      const step = work.next();
      if (step.done) return step.value;
    } while (performance.now() < end);
    await pause();
    if (!wanted()) return null;
  }
}
