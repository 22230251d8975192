// Values written as YAML, so that kubectl's YAML 1.1 and everybody else's 1.2 read the same.

const TRAPS = /^(?:y|n|yes|no|true|false|on|off|null|~)$|^[-+]?(?:\d[\d_]*(?:[.:eExXoObB].*)?|\.\d.*|\.(?:inf|nan))$/i;
const PLAIN = /^[A-Za-z0-9_./][A-Za-z0-9_./ @%+=,()~^$&*-]*$/;
const PLAIN_KEY = /^[A-Za-z_][A-Za-z0-9_./-]*$/;

// Returns whether text can stand without quotes and still be that text to every reader.
export function isPlain(text, flow = false) {
  if (!PLAIN.test(text) || TRAPS.test(text) || text.endsWith(" ")) return false;
  if (text.startsWith("...")) return false;
  return !(flow && /[,]/.test(text));
}

// Returns text in double quotes, everything that a YAML reader might refuse escaped.
export function quoted(text) {
  return JSON.stringify(text).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

// Returns whether text reads well, and survives, as a literal block.
function fitsBlock(text) {
  return (
    text.trimEnd().includes("\n") &&
    !/[^\n\t\u0020-\u007e\u00a0-\ud7ff\ue000-\ufffd]/.test(text) &&
    !/^[\s]/.test(text) &&
    !/[\ufeff\u2028\u2029]/.test(text) &&
    !/\n{2,}$/.test(text) &&
    !text.includes("\t\n")
  );
}

// Returns a key as YAML.
export function key(text) {
  return PLAIN_KEY.test(text) && !TRAPS.test(text) ? text : quoted(text);
}

// Returns a scalar as YAML; style is that of the scalar it replaces, indent where its block may go.
export function scalar(value, { style = "PLAIN", indent = 0, flow = false } = {}) {
  if (typeof value !== "string") return JSON.stringify(value);
  if (!flow && fitsBlock(value)) return block(value, indent);
  if (style === "QUOTE_DOUBLE") return quoted(value);
  if (style === "QUOTE_SINGLE" && /^[\u0020-\u007e]*$/.test(value)) {
    return `'${value.replaceAll("'", "''")}'`;
  }
  return isPlain(value, flow) ? value : quoted(value);
}

function block(text, indent) {
  const clipped = text.endsWith("\n");
  const lines = (clipped ? text.slice(0, -1) : text).split("\n");
  const margin = " ".repeat(indent);
  const body = lines.map((line) => (line === "" ? "" : margin + line)).join("\n");
  return `|${clipped ? "" : "-"}\n${body}`;
}

// Returns any value as YAML on one line.
export function flow(value) {
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  if (value === null || typeof value !== "object") {
    return scalar(value, { style: "QUOTE_DOUBLE", flow: true });
  }
  const pairs = Object.entries(value).map(([name, item]) => `${key(name)}: ${flow(item)}`);
  return `{${pairs.join(", ")}}`;
}

// Returns what follows "key:" or "-" for a value: " 5", or a newline and an indented block.
export function after(value, indent, inList = false) {
  if (value === null || typeof value !== "object") {
    return ` ${scalar(value, { indent: indent + 2 })}`;
  }
  if (Array.isArray(value)) return inList ? ` ${flow(value)}` : list(value, indent);
  const entries = Object.entries(value);
  if (entries.length === 0) return " {}";
  const margin = " ".repeat(indent + 2);
  const lines = entries.map(([name, item]) => `${key(name)}:${after(item, indent + 2)}`);
  return inList ? ` ${lines.join(`\n${margin}`)}` : `\n${margin}${lines.join(`\n${margin}`)}`;
}

function list(value, indent) {
  if (value.length === 0) return " []";
  const simple = value.every((item) => typeof item === "string" && !item.includes("\n"));
  const line = simple ? flow(value) : "";
  if (simple && line.length <= 90) return ` ${line}`;
  const margin = " ".repeat(indent);
  return value.map((item) => `\n${margin}-${after(item, indent, true)}`).join("");
}
