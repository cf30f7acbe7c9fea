/** A filter for any of some values, each once. */
export const anyOf = <Value>(values: Iterable<Value>): { $in: Value[] } => ({ $in: [...new Set(values)] });
