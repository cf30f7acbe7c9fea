/** Whether a name is an IANA time zone that this Node knows, such as `Europe/Berlin`. Upper and lower case count as the same. */
export const isTimeZone = (name: string): boolean => {
  // Node also accepts offsets such as +02:00, which give wrong days for half of the year where clocks change.
  if (!/^[A-Za-z]/.test(name) || name.length > maxTimeZoneLength) return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
};

export const maxTimeZoneLength = 64;
