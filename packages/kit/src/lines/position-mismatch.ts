import { HeraldError } from "../herald-error.ts";

/** The error of an upload that does not continue after the lines that are stored. */
export const positionMismatch = (stored: number): HeraldError =>
  new HeraldError(
    "import-position-mismatch",
    `after_line: must be ${stored}, the number of lines that Herald has stored; send the whole file, it skips those lines`,
  );
