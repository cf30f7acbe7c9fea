/** A gateway has two pages of an export in memory. */
const maxPageBytes = 4 * 1_048_576;
/** Rows are read in steps, because only read rows show their size: a hundred of the largest notifications or devices are 4 to 6 MiB. */
const stepRows = 100;

type Step<Row> = { readonly rows: readonly Row[]; readonly next: string | null };

/**
 * A page of an export: at least one row if there is any, and rows as JSON text of at most 4 MiB together. `read` returns up to `limit` rows
 * after a position, and the position after them; null: there are no more rows. `next` is such a position, or the id of the last row. Text,
 * because measuring, sending and exporting as NDJSON then share one serialization per row. Reads no further once `signal` is aborted.
 */
export const exportPage = async <Row extends { readonly id: string }>(
  { after, limit }: { readonly after?: string | undefined; readonly limit: number },
  signal: AbortSignal,
  read: (after: string | undefined, limit: number) => Promise<Step<Row>>,
): Promise<{ rows: string[]; next: string | null }> => {
  const shown: string[] = [];
  let bytes = 0;
  let position = after;
  for (;;) {
    signal.throwIfAborted();
    const wanted = Math.min(stepRows, limit - shown.length);
    const { rows, next } = await read(position, wanted);
    for (const row of rows) {
      const text = JSON.stringify(row);
      bytes += Buffer.byteLength(text);
      if (bytes > maxPageBytes && shown.length > 0) return { rows: shown, next: position ?? null };
      shown.push(text);
      position = row.id;
    }
    if (next === null || rows.length < wanted || shown.length === limit) return { rows: shown, next };
    position = next;
  }
};
