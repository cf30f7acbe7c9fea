/** A second entry, for the command line and the console alone: the published client stays small. */
export { knownValues } from "../api-types.ts";
