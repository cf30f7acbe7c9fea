import type { Answered, GatewayTest, TestProject } from "./gateway-fixture.ts";

export const postBatch = (
  system: GatewayTest,
  { token }: TestProject,
  notifications: unknown,
  key?: string,
): Promise<Answered> =>
  system.call("POST /api/v1/notifications/batch", {
    token,
    body: { notifications },
    ...(key === undefined ? {} : { headers: { "idempotency-key": key } }),
  });

export const small = (title: string, more: object = {}) => ({ title, targets: [`token:${title}`], ...more });
export const smalls = (count: number) => Array.from({ length: count }, (_, index) => small(`small-${index}`));
