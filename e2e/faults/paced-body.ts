import { setTimeout as delay } from "node:timers/promises";

/** A file as a body that sends no more lines than `allowed` says, so that the upload is never ahead of the faults. */
export const pacedBody = (lines: readonly string[], allowed: () => number): ReadableStream<Uint8Array> => {
  let at = 0;
  return new ReadableStream({
    async pull(controller) {
      while (at >= allowed()) await delay(50);
      const to = Math.min(allowed(), at + 500);
      controller.enqueue(Buffer.from(lines.slice(at, to).join("")));
      at = to;
      if (at === lines.length) controller.close();
    },
  });
};
