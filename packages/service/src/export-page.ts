/** A gateway has two pages of an export in memory. */
const maxPageBytes = 4 * 1_048_576;

/**
 * A page of an export: at least one row, and rows as JSON text of at most 4 MiB together. `next`: the id of the last row; null: there are
 * no more rows. Text, because measuring, sending and exporting as NDJSON then share one serialization per row.
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
