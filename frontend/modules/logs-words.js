// What the page of logs says in words.

// Returns a number of bytes as people read it.
export function amount(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  const units = ["kB", "MB", "GB"];
  let [value, unit] = [bytes / 1000, 0];
  while (value >= 1000 && unit < 2) [value, unit] = [value / 1000, unit + 1];
  return `${value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

// Returns why pods have no log, with their names where others have one.
export function missing([why, names], all) {
  if (names.length === all) return why;
  const more = names.length - 3;
  return `${names.slice(0, 3).join(", ")}${more > 0 ? ` and ${more.toLocaleString()} more` : ""}: ${why}`;
}
