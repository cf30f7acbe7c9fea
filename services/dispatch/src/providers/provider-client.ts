import type { NotificationContent, NotificationId, Platform, ProjectId, Recipient } from "@herald/contracts";
import type { Outcome } from "../domain/outcome.ts";

/** What is sent to every device of a batch. */
export type Message = {
  readonly projectId: ProjectId;
  readonly notificationId: NotificationId;
  readonly content: NotificationContent;
  readonly expiresAt: Date;
  /** Of the devices. */
  readonly platform: Platform;
};

/** A way to send with one version of one project's settings. */
export type ProviderClient = {
  /** Does what is the same for all devices; what it returns costs little more than the request, and never rejects for what a provider said. */
  prepare(message: Message): (device: Recipient, openToken: string) => Promise<Outcome>;
  /** Which of the provider's servers a device is sent to: what it asks for or suffers from concerns those of the same alone. */
  routeOf(device: Recipient, platform: Platform): string;
  /** Whether a route is one that only devices name: its trouble is theirs, and none of the provider. */
  isNamedByDevice(route: string): boolean;
  /** Ends what is in flight and leaves no socket. */
  close(): Promise<void>;
};
