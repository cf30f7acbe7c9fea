import type { ProjectId, Provider } from "@herald/contracts";
import { pauseCheckAt } from "../domain/settle-row.ts";
import type { CredentialDocument, CredentialStore } from "../stores/credential-store.ts";

/** The right to send one push although the provider is paused. `nextAt`: when the next push is tried. */
export type Trial<Channel> = { readonly channel: Channel; readonly nextAt: Date };

type Paused = NonNullable<CredentialDocument["paused"]>;

type Deps<Channel> = {
  readonly credentials: Pick<CredentialStore, "find" | "claimTrial">;
  /** Undefined when the settings cannot be used. */
  readonly channelOf: (document: CredentialDocument) => Promise<Channel | undefined>;
  readonly forget: (projectId: ProjectId, provider: Provider) => void;
  readonly now: () => Date;
};

/** Trials of paused providers. The database gives each to one process, and this gives it to one push. */
export const createTrials = <Channel extends Pick<CredentialDocument, "projectId" | "provider">>({
  credentials,
  channelOf,
  forget,
  now,
}: Deps<Channel>) => {
  /** Claimed and not used yet. `owner`: the row that it was claimed for. */
  const claimed = new Map<string, Trial<Channel> & { readonly owner: string | undefined }>();
  const keyOf = (projectId: ProjectId, provider: Provider) => `${projectId}/${provider}`;

  /** The trial, or the pause as it is now; undefined: it is over. */
  const claim = async (projectId: ProjectId, provider: Provider): Promise<Trial<Channel> | Paused | undefined> => {
    forget(projectId, provider);
    const document = await credentials.find(projectId, provider);
    const due = document?.paused?.nextTrialAt;
    if (!document || due === undefined || due > now()) return document?.paused;
    const channel = await channelOf(document);
    const nextAt = channel && (await credentials.claimTrial(document, now()));
    return nextAt ? { channel, nextAt } : (await credentials.find(projectId, provider))?.paused;
  };
  const usable = (key: string) => {
    const trial = claimed.get(key);
    if (trial && trial.nextAt > now()) return trial;
    claimed.delete(key);
    return undefined;
  };

  return {
    /** For a row of a paused provider whose next trial is `due`: until when it waits, or undefined when it may be sent. */
    waitOf: async (projectId: ProjectId, provider: Provider, due: Date | undefined, owner: string) => {
      const key = keyOf(projectId, provider);
      const known = usable(key);
      // Its owner may give it back.
      if (known?.owner !== undefined && known.owner !== owner) return pauseCheckAt(now(), now());
      if (known) {
        claimed.set(key, { ...known, owner });
        return undefined;
      }
      if (due === undefined || due > now()) return pauseCheckAt(now(), due);
      const result = await claim(projectId, provider);
      if (result === undefined) return undefined;
      if (!("channel" in result)) return pauseCheckAt(now(), result.nextTrialAt);
      claimed.set(key, { ...result, owner });
      return undefined;
    },
    /** A row is done. If it did not use the trial that was claimed for it, another may. */
    leave: (projectId: ProjectId, provider: Provider, owner: string): void => {
      const known = claimed.get(keyOf(projectId, provider));
      if (known?.owner === owner) claimed.set(keyOf(projectId, provider), { ...known, owner: undefined });
    },
    /** The trial for a push that is about to be sent. Undefined when none is due, or another push has it. */
    take: async (
      projectId: ProjectId,
      provider: Provider,
      due: Date | undefined,
    ): Promise<Trial<Channel> | undefined> => {
      const key = keyOf(projectId, provider);
      const known = usable(key);
      claimed.delete(key);
      if (known) return known;
      if (due === undefined || due > now()) return undefined;
      const result = await claim(projectId, provider);
      return result && "channel" in result ? result : undefined;
    },
    /** The push was not sent: the next one may be the trial. */
    giveBack: ({ channel, nextAt }: Trial<Channel>): void => {
      claimed.set(keyOf(channel.projectId, channel.provider), { channel, nextAt, owner: undefined });
    },
  };
};
