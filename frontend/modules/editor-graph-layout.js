// Where the tasks of a job stand in a drawing of their order, and the order in words.

const [WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN] = [140, 32, 44, 12, 4];

// Returns {width, height, boxes, lines} of tasks {name, waitsFor, isAny}; a task stands right of those that it waits for.
export function layout(tasks) {
  const columns = columnsOf(tasks);
  const rows = [];
  const boxes = tasks.map(({ name }, index) => {
    const column = columns[index];
    rows[column] = (rows[column] ?? 0) + 1;
    const [x, y] = [MARGIN + column * (WIDTH + GAP_X), MARGIN + (rows[column] - 1) * (HEIGHT + GAP_Y)];
    return { name, x, y, width: WIDTH, height: HEIGHT };
  });
  const lines = tasks.flatMap(({ waitsFor, isAny }, index) =>
    waitsFor
      .map((name) => boxes.find((box) => box.name === name))
      .filter((box) => box && box !== boxes[index])
      .map((box) => ({ d: curve(box, boxes[index]), isAny })),
  );
  return {
    width: 2 * MARGIN + (Math.max(0, ...columns) + 1) * (WIDTH + GAP_X) - GAP_X,
    height: 2 * MARGIN + Math.max(1, ...rows.map((count) => count ?? 0)) * (HEIGHT + GAP_Y) - GAP_Y,
    boxes,
    lines,
  };
}

// Returns the column of each task. A task of a circle, which the check refuses, stands where the circle is met first.
function columnsOf(tasks) {
  const columns = tasks.map(() => null);
  const place = (index, path) => {
    if (columns[index] !== null) return columns[index];
    const before = tasks[index].waitsFor
      .map((name) => tasks.findIndex((task) => task.name === name))
      .filter((other) => other >= 0 && !path.includes(other));
    columns[index] = 1 + Math.max(-1, ...before.map((other) => place(other, [...path, other])));
    return columns[index];
  };
  return tasks.map((_, index) => place(index, [index]));
}

function curve(from, to) {
  const [x, y, end, down] = [from.x + from.width, from.y + from.height / 2, to.x - 6, to.y + to.height / 2];
  return `M${x} ${y}C${x + GAP_X / 2} ${y} ${end - GAP_X / 2} ${down} ${end} ${down}`;
}

// Returns what a task waits for as a sentence; one that waits for nothing starts first.
export function sentence({ name, waitsFor, isAny }) {
  if (waitsFor.length === 0) return `${name} starts first.`;
  const word = isAny ? "or" : "and";
  const listed = waitsFor.length === 1 ? waitsFor[0] : `${waitsFor.slice(0, -1).join(", ")} ${word} ${waitsFor.at(-1)}`;
  return `${name} waits for ${listed}.`;
}
