/**
 * RFC 7541, appendix B: how many bits each of the 256 bytes and, last, the end of string has. The code is canonical, so
 * lengths are all there is to it.
 */
export const huffmanLengths: readonly number[] = `
13 23 28 28 28 28 28 28 28 24 30 28 28 30 28 28 28 28 28 28 28 28 30 28 28 28 28 28 28 28 28 28
6 10 10 12 13 6 8 11 10 10 8 11 8 6 6 6 5 5 5 6 6 6 6 6 6 6 7 8 15 6 12 10
13 6 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 8 7 8 13 19 13 14 6
15 5 6 5 6 5 6 6 6 5 7 7 6 6 6 5 6 7 6 5 5 6 7 7 7 7 7 15 11 14 13 28
20 22 20 20 22 22 22 23 22 23 23 23 23 23 24 23 24 24 22 23 24 23 23 23 23 21 22 23 22 23 23 24
22 21 20 22 22 23 23 21 23 22 22 24 21 22 23 23 21 21 22 21 23 22 23 23 20 22 22 22 23 22 22 23
26 26 20 19 22 23 22 25 26 26 26 27 27 26 24 25 19 21 26 27 27 26 27 24 21 21 26 26 28 27 27 27
20 24 20 21 22 21 21 23 22 22 25 25 24 24 26 23 26 27 26 26 27 27 27 27 27 28 27 27 27 27 27 26
30`
  .trim()
  .split(/\s+/)
  .map(Number);

export const END_OF_STRING = 256;

export type HuffmanCode = { readonly symbol: number; readonly bits: number; readonly code: number };

/** Shorter codes first, and among those of a length the lower byte first: each is one more than the one before. */
export function huffmanCodes(): HuffmanCode[] {
  const codes = huffmanLengths
    .map((bits, symbol) => ({ symbol, bits, code: 0 }))
    .sort((a, b) => a.bits - b.bits || a.symbol - b.symbol);
  let next = 0;
  let before = 0;
  for (const code of codes) {
    next *= 2 ** (code.bits - before);
    code.code = next++;
    before = code.bits;
  }
  return codes;
}
