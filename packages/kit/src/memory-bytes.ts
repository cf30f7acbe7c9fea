/** What V8 takes for them on a 64-bit machine, rounded up: an object with its first fields, one more field, a string, a number. */
const cost = { object: 64, field: 32, text: 24, scalar: 24 } as const;

/**
 * About how many bytes a value of JSON takes in memory: several times what it is as text where it is made of many small fields.
 * Does not recurse: the value may be a stranger's.
 */
export const memoryBytesOf = (value: unknown): number => {
  let bytes = 0;
  const left: unknown[] = [value];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (typeof next === "string") bytes += cost.text + 2 * next.length;
    else if (typeof next !== "object" || next === null) bytes += cost.scalar;
    else {
      bytes += cost.object;
      for (const [key, inner] of Object.entries(next)) {
        bytes += cost.field + 2 * key.length;
        if (inner !== undefined) left.push(inner);
      }
    }
  }
  return bytes;
};
