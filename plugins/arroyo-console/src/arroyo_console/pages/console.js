// Times are relative to the clock of this browser; links in pictures keep the focus when the picture is replaced.
(() => {
  const units = [[86400, "d"], [3600, "h"], [60, "m"]];
  const relative = (us) => {
    const s = Date.now() / 1000 - us / 1e6;
    const far = Math.abs(s);
    const unit = units.find(([size]) => far >= 2 * size);
    const words = unit ? `${Math.round(far / unit[0])} ${unit[1]}` : `${Math.round(far)} s`;
    return s < -1 ? `in ${words}` : `${words} ago`;
  };
  const tick = () =>
    document.querySelectorAll("time[data-us]").forEach((each) => {
      const words = relative(Number(each.dataset.us));
      if (each.textContent !== words) each.textContent = words;
    });
  let focused = null;
  document.addEventListener("focusin", (event) => {
    focused = event.target.closest?.(".live a[href]") ? event.target.closest("a").getAttribute("href") : null;
  });
  document.addEventListener("DOMContentLoaded", () => {
    new MutationObserver((changes) => {
      if (changes.some((change) => change.type === "childList" && change.target.nodeName !== "TIME")) tick();
      if (focused && document.activeElement === document.body) {
        for (const each of document.querySelectorAll(".live a[href]"))
          if (each.getAttribute("href") === focused) return each.focus({ preventScroll: true });
      }
    }).observe(document.body, { childList: true, subtree: true });
    tick();
    setInterval(tick, 1000);
  });
  window.arroyoTheme = (name) => {
    document.cookie = `arroyo_theme=${name}; path=/; max-age=31536000; samesite=strict`;
  };

  // The editor offers what is installed. Its words come from the server; texts of them are shown as texts.
  window.arroyoLanguage = "yaml";
  window.arroyoComplete = async (id, words, language) => {
    window.arroyoLanguage = language;
    const CM = await import("nicegui-codemirror");
    const host = getElement(id);
    await host.editorPromise;
    const optionsAt = (state, from) => {
      if (window.arroyoLanguage === "sql") return words.sql;
      const line = state.doc.lineAt(from);
      const before = line.text.slice(0, from - line.from);
      if (/operator:\s*['"]?$/.test(before)) return words.operators;
      const operators = [...state.sliceDoc(0, from).matchAll(/operator:\s*['"]?([\w.]+)/g)];
      const settings = operators.length ? words.settings[operators.at(-1)[1]] || [] : [];
      return /:\s+['"]?[^{]*$/.test(before) ? words.functions : [...settings, ...words.keys];
    };
    const source = (context) => {
      const word = context.matchBefore(/[\w.]+/);
      if (!word && !context.explicit) return null;
      const from = word ? word.from : context.pos;
      return { from, options: optionsAt(context.state, from), validFor: /^[\w.]*$/ };
    };
    // It follows the theme of the page, which may be the system's.
    const paint = () => host.setTheme(document.body.classList.contains("body--dark") ? "githubDark" : "githubLight");
    new MutationObserver(paint).observe(document.body, { attributes: true, attributeFilter: ["class"] });
    paint();
    host.editor.dispatch({
      effects: CM.StateEffect.appendConfig.of([
        CM.EditorState.languageData.of(() => [{ autocomplete: source }]),
        CM.EditorView.contentAttributes.of({ "aria-label": "text of the pipeline", tabindex: "0" }),
      ]),
    });
  };
})();
