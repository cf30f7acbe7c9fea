/** Runs the work for every item with limited concurrency. Resolves to the results in the order of the items. */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  max: number,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const queue = items.entries();
  const worker = async () => {
    for (const [index, item] of queue) results[index] = await work(item, index);
  };
  await Promise.all(Array.from({ length: max }, worker));
  return results;
}
