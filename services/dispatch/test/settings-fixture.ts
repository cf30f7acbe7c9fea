import { HeraldError } from "@herald/kit";

/** The problems that the checks throw; none when they pass. */
export const problemsOf = (check: () => unknown): readonly string[] => {
  try {
    check();
    return [];
  } catch (error) {
    if (error instanceof HeraldError) return error.messages;
    throw error;
  }
};
