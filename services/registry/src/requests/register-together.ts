import { newDeviceId, otherProvider, type ProjectId, pushTokenHash } from "@herald/contracts";
import type { Deps } from "../deps.ts";
import { eventContext } from "../domain/registry-events.ts";
import type { DeviceDocument } from "../stores/device-document.ts";
import {
  type NewDevice,
  prepareNew,
  type Registered,
  registerInTurn,
  registerKnown,
  requireProject,
  tokenKey,
  type WantedPut,
} from "./register-device.ts";
import { conflict } from "./retry-on-conflict.ts";

const holdingOf = ({ projectId, platform, provider, token }: WantedPut) => ({
  projectId,
  platform,
  ...otherProvider({ platform, provider }),
  tokenHash: pushTokenHash(token),
});

type Holders = Awaited<ReturnType<typeof findHolders>>;

/** One device in so many is looked up first. Where none of them is known, as in a new file, the insert finds those that are. */
const sampleEvery = 20;

/** The devices that have these push tokens. Undefined where a sample finds none: then they are not looked up. */
const findHolders = async (
  { devices }: Deps,
  all: readonly WantedPut[],
): Promise<(DeviceDocument | undefined)[] | undefined> => {
  const asked = all.map(holdingOf);
  if (!all.some(({ dryRun }) => dryRun)) {
    const sample = await devices.findByTokens(asked.filter((_, index) => index % sampleEvery === 0));
    if (sample.every((one) => one === undefined)) return undefined;
  }
  return devices.findByTokens(asked);
};

/** What a command for all leaves to be registered alone. */
type Started = { readonly planned: NewDevice } | { readonly registered: Registered } | typeof conflict;

/**
 * Registers devices of one project without credentials: looks them up in one command, and inserts the new ones in another. What is left follows one by
 * one: the later ones of the same push token, those that change meanwhile, and known ones among those that a sample took for new. Starts when each has its turn at its push token.
 * A device that has the id that it would get as a new one counts as created: it is a repeat.
 * @throws HeraldError what concerns all of them, as `registerDevice` does. A result has what concerns its device.
 */
export const registerTogether = async (
  deps: Deps,
  projectId: ProjectId,
  devices: readonly WantedPut[],
): Promise<PromiseSettledResult<Registered>[]> => {
  if (devices.length === 0) return [];
  const context = eventContext(projectId, deps.now());
  const all = devices.map((one) => ({ ...one, newId: one.newId ?? newDeviceId(context.at) }));
  const keys = all.map(tokenKey);
  const firstOfKey = new Map(keys.map((key, index) => [key, index] as const).reverse());

  const start = async (wanted: WantedPut, index: number, holders: Holders): Promise<Started> => {
    if (firstOfKey.get(keys[index] ?? "") !== index) return conflict;
    const holder = holders?.[index];
    if (!holder) {
      const planned = prepareNew(deps, wanted, context).then((device) => ({ planned: device }));
      // What a new device may not have or be, a known one may.
      return holders === undefined ? planned.catch(() => conflict) : planned;
    }
    const registered = await registerKnown(deps, wanted, holder, context, "none");
    return registered === conflict ? conflict : { registered };
  };

  const insert = async (planned: readonly NewDevice[]): Promise<Set<NewDevice>> => {
    const inserted = await deps.devices.insertAll(planned);
    return new Set(planned.filter((_, at) => inserted[at]));
  };

  return deps.keyedMutex(keys, async () => {
    const [holders] = await Promise.all([findHolders(deps, all), requireProject(deps, projectId)]);
    const started = await Promise.allSettled(all.map((wanted, index) => start(wanted, index, holders)));
    const planned = started.flatMap((one) =>
      one.status === "fulfilled" && one.value !== conflict && "planned" in one.value ? [one.value.planned] : [],
    );
    const isDryRun = devices.some(({ dryRun }) => dryRun);
    const inserted = isDryRun ? new Set(planned) : await insert(planned);
    const before = new Map<string, Promise<unknown>>();
    const alone = (index: number, wanted: WantedPut): Promise<Registered> => {
      const key = keys[index] ?? "";
      const registering = Promise.resolve(before.get(key)).then(() => registerInTurn(deps, wanted, "none"));
      before.set(
        key,
        registering.catch(() => undefined),
      );
      return registering;
    };
    return Promise.allSettled(
      all.map(async (wanted, index): Promise<Registered> => {
        const one = started[index];
        if (one?.status === "rejected") throw one.reason;
        const value = one?.value ?? conflict;
        if (value !== conflict && "planned" in value && inserted.has(value.planned))
          return { device: value.planned.document, created: true, changed: true };
        const registered = value !== conflict && "registered" in value ? value.registered : await alone(index, wanted);
        return { ...registered, created: registered.created || registered.device._id === wanted.newId };
      }),
    );
  });
};
