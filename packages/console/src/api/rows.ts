/** The first rows of a list that has cursors but no page numbers. `more`: the list continues. */
export const firstRows = async <Row>(
  list: AsyncIterable<Row>,
  limit: number,
): Promise<{ readonly data: readonly Row[]; readonly more: boolean }> => {
  const data: Row[] = [];
  for await (const row of list) {
    if (data.length === limit) return { data, more: true };
    data.push(row);
  }
  return { data, more: false };
};
