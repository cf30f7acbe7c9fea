/** Verdicts of one notification so far: answers that said something about the device itself. */
export type Verdicts = { readonly judged: number; readonly unregistered: number };

/** Fewer verdicts say nothing about a share. */
const minJudged = 50;
const maxUnregistered = 0.2;

/**
 * Whether so many devices of a notification are said to be dead that the verdict itself is doubtful: a wrong environment or
 * credential looks just like that. Then none is retired.
 */
export const isSpike = ({ judged, unregistered }: Verdicts): boolean =>
  judged >= minJudged && unregistered > judged * maxUnregistered;
