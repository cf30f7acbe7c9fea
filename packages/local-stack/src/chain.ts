export type Step = "environment" | "docker" | "path" | "cache";

/** What one step of the chain said, in words fit to show. */
export type Attempt = { step: Step; chosen: boolean; why: string };

export type Source = { step: Step; why: string };

/** A step either gives what was looked for or only the reason why it cannot. */
export type Answer<T> = { found: T; why: string } | { found?: undefined; why: string };

export type Resolution<T> = { choice: T | undefined; attempts: Attempt[] };

/** Asks the steps in their order and stops at the first that gives something. A step that throws has not answered. */
export async function firstThatAnswers<T>(
  steps: readonly { step: Step; ask: () => Promise<Answer<T>> }[],
): Promise<Resolution<T>> {
  const attempts: Attempt[] = [];
  for (const { step, ask } of steps) {
    const answer = await ask().catch((error: unknown): Answer<T> => {
      return { why: error instanceof Error ? error.message : String(error) };
    });
    attempts.push({ step, chosen: answer.found !== undefined, why: answer.why });
    if (answer.found !== undefined) return { choice: answer.found, attempts };
  }
  return { choice: undefined, attempts };
}

/** The end of the chain: what was tried, and the one command that helps. */
export function nothingAnswered(what: string, attempts: readonly Attempt[], remedy: string): Error {
  const tried = attempts.map(({ step, why }) => `  ${step.padEnd(11)} ${why}`);
  return new Error([`${what}: nothing on this machine can provide it. Tried:`, ...tried, remedy].join("\n"));
}

/** The step that was taken, as the caller shows it. */
export function sourceOf(attempts: readonly Attempt[]): Source {
  const chosen = attempts.find((attempt) => attempt.chosen);
  if (!chosen) throw new Error("no step was chosen");
  return { step: chosen.step, why: chosen.why };
}
