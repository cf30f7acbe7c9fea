/** Whether some subject matches both filters, each with NATS's wildcards `*` and `>`. */
export const overlaps = (one: string, other: string): boolean => {
  const [a, b] = [one.split("."), other.split(".")];
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const [left, right] = [a[index], b[index]];
    if (left === undefined || right === undefined) return false;
    if (left === ">" || right === ">") return true;
    if (left !== right && left !== "*" && right !== "*") return false;
  }
  return true;
};
