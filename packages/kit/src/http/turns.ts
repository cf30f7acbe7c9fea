/** About four milliseconds of work. */
const perTurn = 32;

/**
 * Lets requests of low priority begin in turns of the event loop, a few in each and in their order. After a broadcast hundreds of receipts
 * arrive at the same moment, and a send needs several turns: it would wait behind all of them in each.
 */
export const createTurns = (): (() => Promise<void>) => {
  const waiting: (() => void)[] = [];
  const beginSome = (): void => {
    for (const begin of waiting.splice(0, perTurn)) begin();
    if (waiting.length > 0) setImmediate(beginSome);
  };
  return () =>
    new Promise((resolve) => {
      if (waiting.length === 0) setImmediate(beginSome);
      waiting.push(resolve);
    });
};
