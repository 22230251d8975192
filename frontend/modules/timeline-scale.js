// Where a time stands in the timeline's picture. A long wait before anything runs takes a small part of the width.

const GAP_SHARE = 0.12; // of the width, for a gap
const LONG = 0.5; // of the whole time; a shorter wait is drawn as long as it was

// Returns [from, to] of the longest time before the first start in which nothing happened, if that is most of the time.
export function quiet({ bars, waits }, [from, to]) {
  const starts = bars.map((bar) => bar[4]).filter((time) => time !== null);
  if (starts.length === 0) return null;
  const first = Math.min(...starts);
  const known = [...bars.flatMap((bar) => bar.slice(2, 5)), ...waits.flatMap(([, begun, ended]) => [begun, ended])];
  const times = [...new Set([from, ...known, first])].filter((time) => time !== null && time <= first);
  times.sort((one, other) => one - other);
  let gap = null;
  for (let index = 1; index < times.length; index += 1) {
    const size = times[index] - times[index - 1];
    if (size > LONG * (to - from) && (!gap || size > gap[1] - gap[0])) gap = [times[index - 1], times[index]];
  }
  return gap;
}

// Returns x(time) and its inverse, time(x), between two edges of the picture; a gap may be null.
export function scaleOf([from, to], left, right, gap) {
  const [opens, closes] = gap ?? [to, to];
  const folded = gap ? (right - left) * GAP_SHARE : 0;
  const each = (right - left - folded) / (to - from - (closes - opens));
  const [before, after] = [left + (opens - from) * each, left + (opens - from) * each + folded];
  return {
    x: (time) => {
      if (time <= opens) return left + (time - from) * each;
      return time < closes ? before + ((time - opens) / (closes - opens)) * folded : after + (time - closes) * each;
    },
    time: (x) => {
      if (x <= before) return from + (x - left) / each;
      return x < after ? opens + ((x - before) / folded) * (closes - opens) : closes + (x - after) / each;
    },
    each,
  };
}
