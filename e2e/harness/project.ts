import { randomBytes } from "node:crypto";
import { Herald } from "@herald/client";
import {
  Delivery,
  Device,
  Notification,
  type ProjectId,
  type RegisterDevice,
  type SendNotification,
} from "@herald/contracts";
import { eventually, expectStatus, type HttpAnswer, type Request, request } from "@herald/testing";
import { expect } from "vitest";

export type Registered = { readonly device: Device; readonly credential: string; readonly created: boolean };

/** The calls of an app's backend with its project token. Every answer is checked against its contract. */
export type Project = {
  readonly id: ProjectId;
  readonly token: string;
  /** Calls a route below `/api/v1` with the project's token: `call("GET /devices")`. */
  call(route: string, options?: Request): Promise<HttpAnswer>;
  register(device?: Partial<RegisterDevice["device"]>): Promise<Registered>;
  /** Resolves to the accepted notification. Throws unless the answer is 202. */
  send(notification: Content, headers?: Record<string, string>): Promise<Notification>;
  notification(id: string): Promise<Notification>;
  /** Waits until it is final, and checks on every read that its counts add up. */
  final(id: string, timeoutMs?: number): Promise<Notification>;
  /** All rows of all pages, one for each device. */
  deliveries(id: string): Promise<Delivery[]>;
  devices(): Promise<Device[]>;
  /** All notifications, oldest first. */
  notifications(): Promise<Notification[]>;
  /** Counts that did not add up in any read. */
  readonly violations: string[];
};

export type Content = SendNotification["notification"];

/** Of push tokens that no script of the simulator matches. */
export const plainPrefix = "00";

/** A text like an APNs device token. Scripts of the simulator match its hexadecimal `prefix`. */
export const apnsToken = (prefix = plainPrefix): string => (prefix + randomBytes(32).toString("hex")).slice(0, 64);

/** At any time devices = accepted + failed + expired + cancelled + skipped + pending. */
const addsUp = ({ counts }: Notification): boolean =>
  counts.accepted + counts.failed + counts.expired + counts.cancelled + counts.skipped + counts.pending ===
  counts.devices;

export function projectClient(gateway: string, { id, token }: { id: ProjectId; token: string }): Project {
  const call = (route: string, options: Request = {}) => {
    const [method, path] = route.split(" ");
    return request(gateway, `${method} /api/v1${path}`, { token, ...options });
  };
  // No retries: a test must see every answer.
  const herald = new Herald({ url: gateway, token, maxRetries: 0 });
  const all = async <Row>(list: AsyncIterable<unknown>, parse: (row: unknown) => Row): Promise<Row[]> => {
    const rows: Row[] = [];
    for await (const row of list) rows.push(parse(row));
    return rows;
  };
  const violations: string[] = [];
  const checked = (row: unknown): Notification => {
    const found = Notification.parse(row);
    if (!addsUp(found)) violations.push(`${found.id} ${found.status} ${JSON.stringify(found.counts)}`);
    return found;
  };
  const notification = async (notificationId: string) => checked(await herald.notifications.get(notificationId));
  return {
    id,
    token,
    call,
    register: async (device = {}) => {
      const body = { device: { token: apnsToken(), platform: "ios", ...device } };
      // As apps do: on a busy machine a service may not answer in time.
      const answer = await eventually(async () => {
        const found = await call("POST /devices", { body });
        if (found.status === 503) throw new Error(found.text);
        return found;
      });
      expectStatus(answer, 200, 201);
      const created = answer.status === 201;
      return { device: Device.parse(answer.body.data), credential: answer.body.credential, created };
    },
    send: async (content, headers = {}) => {
      const answer = expectStatus(await call("POST /notifications", { body: { notification: content }, headers }), 202);
      return Notification.parse(answer.body.data);
    },
    notification,
    final: (notificationId, timeoutMs = 30_000) =>
      eventually(
        async () => {
          const found = await notification(notificationId);
          if (found.completed_at === undefined)
            throw new Error(`${notificationId} is ${found.status}: ${JSON.stringify(found.counts)}`);
          expect(found.counts.pending).toBe(0);
          expect(violations).toEqual([]);
          return found;
        },
        { timeoutMs },
      ),
    deliveries: (notificationId) => all(herald.notifications.deliveries(notificationId), (row) => Delivery.parse(row)),
    devices: () => all(herald.devices.list(), (row) => Device.parse(row)),
    notifications: () => all(herald.notifications.list(), checked),
    violations,
  };
}
