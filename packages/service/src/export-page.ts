/** Two such pages of an export are in the memory of a gateway. */
const maxPageBytes = 4 * 1_048_576;

/**
 * A page of an export: whole rows as JSON of at most 4 MiB together, at least one. `next` is the id of its last row; null: there are no more.
 * As text, so that a row is written once: weighing it, sending it and exporting it as NDJSON need no more.
 */
export const exportPage = (
  rows: readonly { readonly id: string }[],
  hasMore: boolean,
): { rows: string[]; next: string | null } => {
  const shown: string[] = [];
  let bytes = 0;
  for (const row of rows) {
    const text = JSON.stringify(row);
    bytes += Buffer.byteLength(text);
    if (bytes > maxPageBytes && shown.length > 0) break;
    shown.push(text);
  }
  return { rows: shown, next: hasMore || shown.length < rows.length ? (rows[shown.length - 1]?.id ?? null) : null };
};
