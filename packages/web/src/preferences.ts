import { call } from "./call.ts";
import { type CallProblem, ownProblem, problemOf } from "./problem.ts";
import { exclusively, readState } from "./state.ts";
import type { PreferencesAnswer } from "./wire.ts";

/** A kind of notifications that the project has declared. */
export type KindChoice = PreferencesAnswer["data"]["kinds"][number];

/** No kinds beside a problem. */
export type KindChoices = {
  readonly kinds: readonly KindChoice[];
  readonly problem: CallProblem | null;
};

const answered = async (work: () => Promise<PreferencesAnswer>): Promise<KindChoices> => {
  try {
    return { kinds: (await work()).data.kinds, problem: null };
  } catch (problem) {
    return { kinds: [], problem: problemOf(problem) };
  }
};

const ask = async (body?: object): Promise<PreferencesAnswer> => {
  const { gateway = "", device, credential } = (await readState()) ?? {};
  if (!device || !credential) throw ownProblem("not-subscribed", "subscribe first", false);
  return call(gateway, `${body ? "PUT" : "GET"} devices/${device}/preferences`, body, credential);
};

export const getPreferences = (): Promise<KindChoices> => answered(() => ask());

/** Changes some choices of the device; the others stay, also those that another tab or call is changing. */
export const setPreferences = (kinds: Readonly<Record<string, boolean>>): Promise<KindChoices> =>
  answered(() =>
    exclusively(async () => {
      const { data } = await ask();
      const own = data.kinds.filter(({ set_by }) => set_by === "device").map(({ kind, on }) => [kind, on]);
      return ask({ preferences: { kinds: { ...Object.fromEntries(own), ...kinds } } });
    }),
  );
