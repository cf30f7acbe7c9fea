/** Scheduled messages and atomic batches came with it. */
const minimum = [2, 12] as const;

/** What keeps Herald from working with a server of this version, in words; undefined when nothing does. */
export const versionProblem = (version: string): string | undefined => {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > minimum[0] || (major === minimum[0] && minor >= minimum[1])) return undefined;
  return `the nats-server at HERALD_NATS_URL is ${version}, and Herald needs ${minimum.join(".")} or later: upgrade it first`;
};
