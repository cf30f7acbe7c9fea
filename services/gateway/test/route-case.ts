import type { Device, Notification } from "@herald/contracts";
import type { TestProject } from "./gateway-fixture.ts";

/** One of everything in a project, for the paths and bodies of the table. */
export type World = {
  project: TestProject;
  tokenId: string;
  device: Device;
  /** The device's user. */
  user: string;
  credential: string;
  importId: string;
  /** A notification with recipients. */
  recipientsId: string;
  topic: { id: string; name: string };
  /** The name of a published template. */
  template: string;
  notification: Notification;
  /** The id of a Live Activity for all devices. */
  activity: string;
  openToken: string;
  deadLetter: string;
  webhook: string;
  webhookMessage: string;
  /** The id of the staged Web Push key. */
  nextKey: string;
  /** The id of an operator. */
  operator: string;
  /** The id of an identity secret. */
  identityKey: string;
};

/** What a test may create of a project: a field of the world, or the settings of a provider. */
export type WorldPart = keyof World | "apns" | "fcm";

export type Case = {
  /** Method and path, filled in from the world. */
  readonly route: (world: World) => string;
  readonly status: number;
  readonly body?: (world: World) => unknown;
  /** What has to exist, although neither the path nor the body names it. */
  readonly needs?: readonly WorldPart[];
  /** A body, or a query after the path, that is refused with 422. */
  readonly bad?: unknown;
  readonly badQuery?: string;
  /** The request needs the session of an operator: a token is not enough. */
  readonly session?: true;
  /** The status with another project's credential: 404 unless the route names nothing. */
  readonly foreign?: number;
};
