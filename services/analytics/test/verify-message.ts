import { Webhook } from "standardwebhooks";
import type { Posted } from "./receiver.ts";
import type { Hook } from "./webhook-fixture.ts";

/** Verifies a message as a receiver does, with the reference library. */
export const verified = ({ body, headers }: Posted, { secret }: Pick<Hook, "secret">) =>
  new Webhook(secret).verify(body, headers) as { id: string; type: string; timestamp: string; data: unknown };

/** Whether a secret signed a message, regardless of the test's clock. */
export const signedBy = ({ body, headers }: Posted, { secret }: Pick<Hook, "secret">): boolean => {
  const at = new Date(Number(headers["webhook-timestamp"]) * 1_000);
  const expected = new Webhook(secret).sign(headers["webhook-id"] ?? "", at, body);
  return (headers["webhook-signature"] ?? "").split(" ").includes(expected);
};

export const idsOf = (posts: readonly Posted[]) => posts.map(({ body }) => JSON.parse(body).id as string);
