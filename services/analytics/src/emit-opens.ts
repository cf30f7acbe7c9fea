import { type Bus, publishEvents } from "@herald/bus";
import { type Open, openedEvent } from "./domain/open.ts";
import type { OpenStore } from "./stores/open-store.ts";

export type EmitOpens = (opens: readonly Open[]) => Promise<void>;

/**
 * Publishes `notification.opened` for opens, then marks them. A crash in between publishes again under the same event id,
 * which the stream or the consumer drops.
 */
export const emitOpens =
  (bus: Bus, store: OpenStore): EmitOpens =>
  async (opens) => {
    if (opens.length === 0) return;
    await publishEvents(bus, opens.map(openedEvent));
    await store.markEmitted(opens);
  };
