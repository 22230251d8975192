// Makes an icon of the sprite; its address is in <body data-icons>.
const SVG = "http://www.w3.org/2000/svg";

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `${document.body.dataset.icons}#${name}`);
  svg.append(use);
  return svg;
}
