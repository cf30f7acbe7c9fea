import { type ProjectId, type Provider, type SubscriptionKeys, vapidKeyId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { ProjectDirectory } from "./project-directory.ts";

type Subscription = {
  readonly keys?: Omit<SubscriptionKeys, "vapid_key">;
  /** The key that the app says it subscribed with. */
  readonly vapidKeyId?: string;
  /** The key of a new subscription that names none. */
  readonly currentVapidKeyId?: string;
};

/**
 * Reads the Web Push subscription of a registration for registry. `provider` is undefined when only registry knows it. Refuses a key
 * that the project does not have, because the push service would refuse every push. Without Web Push settings no key can be checked.
 * @throws HeraldError `validation-failed`, where `field` is the name of `keys` in the body.
 */
export const readSubscription = async (
  projects: Pick<ProjectDirectory, "vapidKeys">,
  projectId: ProjectId,
  provider: Provider | undefined,
  given: SubscriptionKeys | undefined,
  field: string,
): Promise<Subscription> => {
  if (provider !== undefined && provider !== "webpush") return {};
  const { vapid_key: publicKey, ...keys } = given ?? {};
  const known = await projects.vapidKeys(projectId);
  const current = known?.find(({ status }) => status === "current");
  const id = publicKey === undefined ? undefined : vapidKeyId(publicKey);
  if (id !== undefined && known !== undefined && !known.some((key) => key.id === id)) {
    // A key that was staged a moment ago may not be replicated yet.
    const now = await projects.vapidKeys(projectId, true);
    if (now !== undefined && !now.some((key) => key.id === id))
      throw new HeraldError(
        "validation-failed",
        `${field}.vapid_key: is not a key of this project; subscribe with the key of GET /api/v1/webpush-key`,
      );
  }
  return {
    ...("p256dh" in keys ? { keys: keys as NonNullable<Subscription["keys"]> } : {}),
    ...(id === undefined ? {} : { vapidKeyId: id }),
    ...(current === undefined ? {} : { currentVapidKeyId: current.id }),
  };
};
