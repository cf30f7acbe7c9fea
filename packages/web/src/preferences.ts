import { type CallProblem, call } from "./call.ts";
import { readState } from "./state.ts";
import type { PreferencesAnswer } from "./wire.ts";

/** A kind of notifications that the project has declared. */
export type KindPreference = PreferencesAnswer["data"]["kinds"][number];

/** No kinds beside a problem. */
export type KindPreferences = {
  readonly kinds: readonly KindPreference[];
  readonly problem: CallProblem | null;
};

const answered = async (work: () => Promise<PreferencesAnswer>): Promise<KindPreferences> => {
  try {
    return { kinds: (await work()).data.kinds, problem: null };
  } catch (problem) {
    return { kinds: [], problem: problem as CallProblem };
  }
};

const ask = async (body?: unknown): Promise<PreferencesAnswer> => {
  const { gateway = "", device, credential } = (await readState()) ?? {};
  if (!device || !credential)
    throw { slug: "not-subscribed", message: "subscribe first", retry: false, status: 0 } satisfies CallProblem;
  return call(gateway, `${body ? "PUT" : "GET"} devices/${device}/preferences`, body, credential);
};

export const getPreferences = (): Promise<KindPreferences> => answered(() => ask());

/** Changes some choices of the device; the others stay. */
export const setPreferences = (kinds: Readonly<Record<string, boolean>>): Promise<KindPreferences> =>
  answered(async () => {
    const { data } = await ask();
    const own = data.kinds.filter(({ set_by }) => set_by === "device").map(({ kind, on }) => [kind, on]);
    return ask({ preferences: { kinds: { ...Object.fromEntries(own), ...kinds } } });
  });
