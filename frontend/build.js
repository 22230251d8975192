// Builds static/build: the bundle with its chunks, the style sheet and one sprite of icons.
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const OUT = "static/build";

// One symbol for each name in icons.json; `{% icon "pause" %}` refers to it as icons.svg#pause.
async function sprite() {
  const names = JSON.parse(await readFile("frontend/icons.json", "utf8"));
  const symbols = await Promise.all(names.map(symbol));
  return `<svg xmlns="http://www.w3.org/2000/svg">${symbols.join("")}</svg>\n`;
}

async function symbol(name) {
  const svg = await readFile(`node_modules/lucide-static/icons/${name}.svg`, "utf8");
  const inside = svg.slice(svg.indexOf(">", svg.indexOf("<svg")) + 1, svg.lastIndexOf("</svg>"));
  const shapes = inside.replace(/\s*\n\s*/g, "");
  return `<symbol id="${name}" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round">${shapes}</symbol>`;
}

await rm(OUT, { recursive: true, force: true });
await mkdir(OUT, { recursive: true });
await Promise.all([
  build({
    entryPoints: ["frontend/main.js", "frontend/styles/main.css"],
    outdir: OUT,
    bundle: true,
    splitting: true,
    format: "esm",
    minify: true,
    target: "es2022",
    loader: { ".svg": "dataurl" },
    chunkNames: "chunks/[name]-[hash]",
    logLevel: "warning",
  }),
  sprite().then((svg) => writeFile(`${OUT}/icons.svg`, svg)),
]);
