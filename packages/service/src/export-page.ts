/** Two such pages of an export are in the memory of a gateway. */
const maxPageBytes = 4 * 1_048_576;

/** A page of an export: whole rows of at most 4 MiB of JSON together, at least one. `next` is the id of its last row; null: there are no more. */
export const exportPage = <Row extends { readonly id: string }>(
  rows: readonly Row[],
  hasMore: boolean,
): { rows: Row[]; next: string | null } => {
  let bytes = 0;
  let count = 0;
  for (const row of rows) {
    bytes += Buffer.byteLength(JSON.stringify(row));
    if (bytes > maxPageBytes && count > 0) break;
    count++;
  }
  const shown = rows.slice(0, count);
  return { rows: shown, next: hasMore || count < rows.length ? (shown.at(-1)?.id ?? null) : null };
};
