import { newDeviceId, otherProvider, type ProjectId, pushTokenHash } from "@herald/contracts";
import type { Deps } from "../deps.ts";
import { eventContext } from "../domain/registry-events.ts";
import { conflict, createKeyedMutex } from "./concurrency.ts";
import {
  type NewDevice,
  prepareNew,
  type RegisterDeps,
  type Registered,
  registerInTurn,
  registerKnown,
  registrationKey,
  type WantedPut,
} from "./register-device.ts";

const holdingOf = ({ projectId, platform, provider, token }: WantedPut) => ({
  projectId,
  platform,
  ...otherProvider({ platform, provider }),
  tokenHash: pushTokenHash(token),
});

type Holders = Awaited<ReturnType<typeof findHolders>>;

/** One device in twenty is looked up first. If none of these is known, as in a new file, the insert finds the known devices. */
const sampleEvery = 20;

/** The devices that have these push tokens. Undefined if a sample finds none: then the others are not looked up. */
const findHolders = async ({ devices }: Pick<Deps, "devices">, all: readonly WantedPut[]) => {
  const asked = all.map(holdingOf);
  if (all.some(({ dryRun }) => dryRun)) return devices.findByTokens(asked);
  const sample = await devices.findByTokens(asked.filter((_, index) => index % sampleEvery === 0));
  // The sample is looked up again: a twentieth of one command costs less than merging two results.
  return sample.every((one) => one === undefined) ? undefined : devices.findByTokens(asked);
};

/** A device after the first step: ready for the common insert, already registered, or left to be registered alone. */
type Started = NewDevice | Registered | typeof conflict;

const isPlanned = (one: Started): one is NewDevice => one !== conflict && "document" in one;

/**
 * Registers devices of one project without credentials: looks them up in one command, and inserts the new ones in another. The others
 * follow one by one: repeats of a push token, devices that change meanwhile, and known devices that the sample missed. Starts when it is
 * the turn of every push token. A device that is stored with its `newId` counts as created: it is a repeat.
 * @throws HeraldError for errors that concern all devices, as `registerDevice` does. The errors of one device are in its result.
 */
export const registerTogether = async (deps: RegisterDeps, projectId: ProjectId, devices: readonly WantedPut[]) => {
  if (devices.length === 0) return [];
  const context = eventContext(projectId, deps.now());
  const all = devices.map((one) => ({ ...one, newId: one.newId ?? newDeviceId(context.at) }));
  const keys = all.map(registrationKey);
  const firstOfKey = new Map(keys.map((key, index) => [key, index] as const).reverse());

  const start = async (wanted: WantedPut, index: number, holders: Holders): Promise<Started> => {
    if (firstOfKey.get(keys[index] ?? "") !== index) return conflict;
    const holder = holders?.[index];
    if (!holder) {
      const planned = prepareNew(deps, wanted, context);
      // The device may be known, and some errors concern new devices only.
      return holders === undefined ? planned.catch(() => conflict) : planned;
    }
    return registerKnown(deps, wanted, holder, context, "none");
  };

  const insert = async (planned: readonly NewDevice[]): Promise<Set<NewDevice>> => {
    const inserted = await deps.devices.insertAll(planned);
    return new Set(planned.filter((_, at) => inserted[at]));
  };

  return deps.keyedMutex(keys, async () => {
    const [holders] = await Promise.all([findHolders(deps, all), deps.projects.requireExisting(projectId)]);
    const started = await Promise.allSettled(all.map((wanted, index) => start(wanted, index, holders)));
    const planned = started.flatMap((one) => (one.status === "fulfilled" ? one.value : [])).filter(isPlanned);
    const isDryRun = devices.some(({ dryRun }) => dryRun);
    const inserted = isDryRun ? new Set(planned) : await insert(planned);
    const inTurn = createKeyedMutex();
    const alone = (index: number, wanted: WantedPut): Promise<Registered> =>
      inTurn(keys[index] ?? "", () => registerInTurn(deps, wanted, "none"));
    return Promise.allSettled(
      all.map(async (wanted, index): Promise<Registered> => {
        const one = started[index];
        if (one?.status === "rejected") throw one.reason;
        const value = one?.value ?? conflict;
        if (isPlanned(value) && inserted.has(value)) return { device: value.document, created: true, changed: true };
        const registered = value === conflict || isPlanned(value) ? await alone(index, wanted) : value;
        return { ...registered, created: registered.created || registered.device._id === wanted.newId };
      }),
    );
  });
};
