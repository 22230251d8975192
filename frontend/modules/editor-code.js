// The YAML editor: CodeMirror with line numbers, search, undo, and a gutter that shows problems at their lines.
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Annotation, EditorState } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

const fromForm = Annotation.define();

// CodeMirror's own rules stand outside of every layer, so its look is set here and not in a style sheet.
const look = EditorView.theme({
  "&": { minHeight: "320px", fontSize: "var(--text)", color: "var(--ink)" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { borderRight: "1px solid var(--line)", backgroundColor: "var(--sunken)", color: "var(--ink-soft)" },
  ".cm-activeLine, .cm-activeLineGutter": {
    backgroundColor: "color-mix(in srgb, var(--accent) 8%, transparent)",
    color: "inherit",
  },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": {
    backgroundColor: "light-dark(#c9dafc, #2d4a7c)",
  },
  ".cm-selectionMatch": { backgroundColor: "color-mix(in srgb, var(--ember) 22%, transparent)" },
  ".cm-tooltip, .cm-panels": { borderColor: "var(--line)", backgroundColor: "var(--raised)", color: "var(--ink)" },
  ".cm-panels input, .cm-panels button": {
    border: "1px solid var(--line-strong)",
    borderRadius: "4px",
    background: "var(--surface)",
    color: "var(--ink)",
  },
});

// Tab moves on, as in any field (WCAG 2.1.2), so lines are indented by Mod-]; Mod-Enter is the page's, in keys.js.
const ownKeys = defaultKeymap.filter(({ key }) => key !== "Mod-Enter");

// Puts an editor into parent. changed(text) is called for what a person types, not for replace().
// hint is the id of the element that tells its keys.
export function create(parent, text, { nonce, label, hint, changed }) {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        EditorView.cspNonce.of(nonce),
        lineNumbers(),
        highlightActiveLine(),
        highlightActiveLineGutter(),
        highlightSelectionMatches(),
        drawSelection(),
        history(),
        yaml(),
        syntaxHighlighting(classHighlighter),
        indentUnit.of("  "),
        lintGutter(),
        look,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": hint }),
        keymap.of([...ownKeys, ...historyKeymap, ...searchKeymap, ...lintKeymap]),
        EditorView.updateListener.of((update) => {
          const own = update.transactions.some((each) => each.annotation(fromForm));
          if (update.docChanged && !own) changed(update.state.doc.toString());
        }),
      ],
    }),
  });

  function replace(next) {
    const change = difference(view.state.doc.toString(), next);
    if (change) view.dispatch({ changes: change, annotations: fromForm.of(true), scrollIntoView: false });
  }

  function mark(problems) {
    const { doc } = view.state;
    const found = problems
      .filter(({ line }) => line > 0)
      .map(({ line, column, message, severity }) => {
        const at = doc.line(Math.min(line, doc.lines));
        const indent = at.text.length - at.text.trimStart().length;
        const from = Math.min(at.from + (column > 0 ? column - 1 : indent), at.to);
        return { from, to: at.to, severity, message };
      })
      .sort((one, other) => one.from - other.from);
    view.dispatch(setDiagnostics(view.state, found));
  }

  function show(line) {
    const at = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
    view.dispatch({
      selection: { anchor: at.from },
      effects: EditorView.scrollIntoView(at.from, { y: "center" }),
    });
    view.focus();
  }

  return { replace, mark, show, text: () => view.state.doc.toString(), destroy: () => view.destroy() };
}

// Returns the one piece in which two texts differ, or null: a small change keeps cursor and undo history.
function difference(old, next) {
  if (old === next) return null;
  let from = 0;
  while (from < old.length && old[from] === next[from]) from += 1;
  let [to, end] = [old.length, next.length];
  while (to > from && end > from && old[to - 1] === next[end - 1]) {
    to -= 1;
    end -= 1;
  }
  return { from, to, insert: next.slice(from, end) };
}
