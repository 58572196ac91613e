// Keys, theme, instant filters, copying, Markdown. Every page works without this; nothing here makes markup of data.
// @ts-check
"use strict";
(() => {
  const root = document.documentElement;
  /** @type {(what: string, where?: ParentNode) => any} */
  const one = (what, where = document) => where.querySelector(what);
  /** @type {(what: string, where?: ParentNode) => any[]} */
  const all = (what, where = document) => [...where.querySelectorAll(what)];
  const stored = (name, value) => {
    try {
      if (value === undefined) return localStorage.getItem("evalwright." + name);
      localStorage.setItem("evalwright." + name, value);
    } catch { return null; } // a browser may refuse storage
    return value;
  };

  // Before the first paint, or the page would flash in the other colours.
  const theme = stored("theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;

  const THEMES = ["system", "light", "dark"];
  const isDark = (name) => name === "dark" || (name === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  function nextTheme() {
    const now = root.dataset.theme || "system";
    // the first press always changes what is seen
    const order = now === "system" ? (isDark(now) ? "light" : "dark") : THEMES[(THEMES.indexOf(now) + 1) % 3];
    if (order === "system") delete root.dataset.theme; else root.dataset.theme = order;
    stored("theme", order);
    const button = one("[data-theme-button]");
    if (button) button.title = "Theme: " + order;
  }

  function times(where) {
    for (const time of all("time[datetime]", where)) {
      const date = new Date(time.dateTime);
      if (isNaN(date.getTime())) continue;
      const two = (n) => String(n).padStart(2, "0");
      time.title = time.dateTime;
      time.textContent = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`;
    }
  }

  // Filters: the same page is fetched, and its results take the place of those that are shown.
  let asked = 0, waiting = 0, turned = false;
  async function show(address, push) {
    const mine = ++asked;
    let answer;
    try { answer = await fetch(address, { headers: { Accept: "text/html" } }); } catch { return; }
    if (mine !== asked) return;
    if (!answer.ok) { location.assign(address); return; }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = one("#results", page), old = one("#results");
    if (mine !== asked) return;
    if (!fresh || !old) { location.assign(address); return; } // it is being read anew
    old.replaceWith(document.adoptNode(fresh));
    if (push) history.replaceState(null, "", address);
    times(one("#results"));
    again();
    compareButton();
  }
  function filtered(form) {
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value) query.append(name, String(value));
    if (!query.has("evaluator")) query.delete("verdict");
    const columns = all("[name=column]", form); // the usual ones need no place in the address
    if (columns.every((box) => box.checked === "usual" in box.dataset)) query.delete("column");
    const path = form.getAttribute("action").split("?")[0];
    return path + (query.size ? "?" + query : "");
  }
  // One page after the other in the same document: choices of a form, and labels, which are stored before the next answer.
  async function turn(address, options) {
    const mine = ++asked;
    let answer;
    try { answer = await fetch(address, options); } catch { location.reload(); return; }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = one("main", page);
    if (mine !== asked || !fresh) return;
    one("main").replaceWith(document.adoptNode(fresh));
    document.title = page.title;
    history.pushState(null, "", answer.url);
    turned = true;
    begin();
    one("main").focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  function posted(form, button) {
    const body = new URLSearchParams(/** @type {any} */ (new FormData(form)));
    if (button && button.name) body.append(button.name, button.value);
    return { method: "POST", body };
  }
  let refresh = 0;
  function again() { // what is still being read or searched
    const later = one("[data-refresh]");
    clearTimeout(refresh);
    if (later) refresh = setTimeout(() => one("#results") ? show(location.href, false) : location.reload(), +later.dataset.refresh || 1000);
  }

  // A run that is being written: numbers move, rows do not.
  let stream = null, said = 0, failedAt = null;
  function live() {
    const box = one("[data-live]");
    if (!box || stream) return;
    stream = new EventSource(box.dataset.live);
    stream.addEventListener("progress", (event) => {
      const now = JSON.parse(event.data), bar = one("progress", box), list = one("[data-running]", box);
      bar.value = now.done; bar.max = now.total;
      bar.setAttribute("aria-valuetext", now.text);
      one("[data-progress-text]", box).textContent = now.text;
      one("[data-progress-rate]", box).textContent = now.rate;
      one("[data-progress-spent]", box).textContent = now.spent;
      one("[data-progress-failed]", box).textContent = now.failed + now.errors;
      list.replaceChildren(...now.running.map((name) => { const item = document.createElement("li"); item.textContent = name; return item; }));
      const failed = now.failed + now.errors, button = one("[data-new-failures]", box);
      if (failedAt === null) failedAt = failed;
      button.hidden = failed === failedAt;
      button.textContent = `${failed - failedAt} new failure${failed - failedAt === 1 ? "" : "s"}`;
      if (Date.now() - said > 10000) { said = Date.now(); one("[data-progress-said]", box).textContent = now.text; }
      if (now.state === "running") return;
      stream.close();
      if (!isRead()) { setTimeout(() => location.reload(), 500); return; }
      one("[data-state]").textContent = now.state;
      button.hidden = false;
      button.textContent = "Show the run as it ended";
    });
  }
  // Rows are not moved under the eyes or the pointer of somebody who reads them.
  function isRead() {
    const rows = one("#results");
    return Boolean(rows) && (rows.getBoundingClientRect().top < innerHeight / 3 || rows.matches(":hover"));
  }
  // The list of runs: new ones appear by themselves, but not while two are being chosen.
  async function watch() {
    const box = one("[data-watch]");
    if (!box) return;
    setTimeout(watch, +box.dataset.watch);
    if (document.hidden || one("input[name=run]:checked", box) || box.contains(document.activeElement)) return;
    const address = location.href;
    let answer;
    try { answer = await fetch(address); } catch { return; }
    if (!answer.ok || location.href !== address) return;
    const fresh = one("#results", new DOMParser().parseFromString(await answer.text(), "text/html")), old = one("#results");
    const rows = (where) => all("tbody tr", where).map((row) => ["th", "[data-label=Change]", "[data-label=State]"].map((cell) => one(cell, row)?.textContent).join()).join("|");
    if (!fresh || !old || rows(fresh) === rows(old)) return;
    const ids = (where) => all("input[name=run]", where).map((input) => input.value).join();
    if (old.matches(":hover") && ids(fresh) !== ids(old)) return; // a new run would move the others from under the pointer
    old.replaceWith(document.adoptNode(fresh));
    times(one("#results"));
    compareButton();
  }

  async function copy(text, button) {
    try { await navigator.clipboard.writeText(text); } catch { return; }
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  }

  // Markdown of models, rendered when asked for. Elements get their text by textContent; links and images stay text.
  // Inline marks do not span lines or contain themselves, so that no text takes long.
  const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\*([^*\s](?:[^*\n]*[^*\s])?)\*|~~([^~\n]+)~~/g;
  const FENCE = /^ *(```+|~~~+)/, ITEM = /^( *)([-*+]|\d{1,9}[.)]) +(?=\S)/, HEADING = /^ {0,3}#{1,6} +/, QUOTE = /^ {0,3}> ?/;
  const RULE = /^ *([-*_])( *\1){2,} *$/, ROW = /^ *\|.*\|/, BELOW_HEAD = /^[ |:-]+$/;
  const BLOCK = [FENCE, ITEM, HEADING, QUOTE, RULE, ROW];
  const MOST_MATCHES = 1000; // marked at once
  const DEEPEST = 8; // levels of lists and quotes
  const made = (name, ...inner) => { const element = document.createElement(name); element.append(...inner); return element; };
  const isMarkdown = (text) => text.match(INLINE) || text.split("\n").some((line) => BLOCK.some((block) => block.test(line)));
  function inline(text) {
    const parts = [];
    let from = 0;
    for (const found of text.matchAll(INLINE)) {
      const [code, bold, italic, struck] = found.slice(1);
      parts.push(text.slice(from, found.index), code ? made("code", code)
        : bold ? made("strong", ...inline(bold)) : italic ? made("em", ...inline(italic)) : made("del", ...inline(struck)));
      from = found.index + found[0].length;
    }
    return [...parts, text.slice(from)];
  }
  function blocks(lines, depth) {
    const found = [];
    let at = 0;
    const taken = (fits) => { const start = at; while (at < lines.length && fits(lines[at])) at++; return lines.slice(start, at); };
    const inner = (text) => depth < DEEPEST ? blocks(text, depth + 1) : [made("p", text.join("\n"))];
    while (at < lines.length) {
      const line = lines[at], [, fence] = line.match(FENCE) || [], [marked, indent, sign] = line.match(ITEM) || [];
      if (!line.trim()) at++;
      else if (fence) {
        at++;
        const code = made("pre", made("code", taken((next) => !next.trim().startsWith(fence)).join("\n")));
        code.tabIndex = 0;
        found.push(code);
        at++;
      } else if (RULE.test(line)) { at++; found.push(made("hr")); }
      else if (HEADING.test(line)) { at++; found.push(made("p", made("strong", ...inline(line.replace(HEADING, ""))))); }
      else if (QUOTE.test(line)) found.push(made("blockquote", ...inner(taken((next) => QUOTE.test(next)).map((next) => next.replace(QUOTE, "")))));
      else if (sign) {
        at++;
        const more = taken((next) => !next.trim() || next.search(/\S/) > indent.length);
        const item = made("li", ...inner([line.slice(marked.length), ...more.map((next) => next.slice(Math.min(marked.length, Math.max(0, next.search(/\S/)))))]));
        const kind = /\d/.test(sign) ? "OL" : "UL", list = found.at(-1);
        if (list && list.nodeName === kind) list.append(item);
        else { found.push(made(kind, item)); if (kind === "OL") found.at(-1).start = parseInt(sign); }
      } else if (ROW.test(line) && BELOW_HEAD.test(lines[at + 1] || "")) {
        const rows = taken((next) => ROW.test(next)).map((row) => row.trim().replace(/^\||\|$/g, "").split("|"));
        const cells = (row, name) => made("tr", ...row.map((cell) => made(name, ...inline(cell.trim()))));
        found.push(made("div", made("table", made("thead", cells(rows[0], "th")), made("tbody", ...rows.slice(2).map((row) => cells(row, "td"))))));
        found.at(-1).className = "wide";
        found.at(-1).tabIndex = 0;
      } else {
        at++;
        found.push(made("p", ...inline([line, ...taken((next) => next.trim() && !BLOCK.some((block) => block.test(next)))].join("\n"))));
      }
    }
    return found;
  }
  let isRendered = stored("rendered") === "on";
  function render() {
    const button = one("[data-rendered]");
    if (!button) return;
    const texts = all("pre[data-prose]").filter((text) => isMarkdown(text.textContent));
    button.hidden = !texts.length;
    button.setAttribute("aria-pressed", isRendered);
    for (const shown of all(".rendered")) shown.remove();
    for (const text of texts) {
      text.hidden = isRendered;
      if (!isRendered) continue;
      const shown = made("div", ...blocks(text.textContent.split("\n"), 0));
      shown.className = "rendered";
      shown.tabIndex = 0;
      shown.setAttribute("role", "group");
      shown.setAttribute("aria-label", text.getAttribute("aria-label"));
      text.after(shown);
    }
    highlight();
  }

  // What was searched for, in the texts of a cell: the address of its page has the search of the list.
  function highlight() {
    const words = [...(new URLSearchParams(location.search).get("q") || "").matchAll(/"([^"]+)"|([^\s"]+)/g)].map(([, phrase, word]) => (phrase || word).toLowerCase());
    if (!words.length || !globalThis.Highlight) return;
    const ranges = [], texts = document.createTreeWalker(one("main"), NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      const said = text.nodeValue.toLowerCase();
      if (said.length !== text.nodeValue.length || !text.parentElement.closest("pre, .rendered, .reason, .failed")) continue;
      for (const word of words) {
        for (let at = said.indexOf(word); at >= 0 && ranges.length < MOST_MATCHES; at = said.indexOf(word, at + word.length)) {
          const range = document.createRange();
          range.setStart(text, at);
          range.setEnd(text, at + word.length);
          ranges.push(range);
        }
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  }

  function compareButton() {
    const button = one("#compare-selected");
    if (button) button.disabled = all("input[name=run]:checked").length !== 2;
  }

  // Keys.
  let held = "";
  const visible = (element) => element && element.getClientRects().length;
  const rows = () => all("main table.list tbody th a").filter(visible);
  function move(by) {
    const links = rows(), at = links.indexOf(document.activeElement);
    const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + by, 0), links.length - 1)];
    if (next) { next.focus(); next.scrollIntoView({ block: "nearest" }); }
    return Boolean(next);
  }
  function press(key) {
    const link = one(`[data-key="${CSS.escape(key)}"]`);
    if (!visible(link) || link.disabled) return false;
    link.click();
    return true;
  }
  // The help is made when it is asked for: each of the thousands of pages of a bundle would hold the same.
  const KEYS = [["j k", "next, previous row or cell"], ["Enter", "open"], ["b", "back to the list"], ["/", "search"],
    ["n", "next changed cell"], ["[ ]", "previous, next trial"], ["x", "select a run"], ["g r", "runs"], ["?", "this help"]];
  function keyboard() {
    const made = (name, ...inner) => { const node = document.createElement(name); node.append(...inner); return node; };
    let help = one("#keyboard");
    if (!help) {
      const title = made("h2", "Keyboard"), list = made("dl"), box = made("input"), form = made("form", made("button", "Close"));
      help = made("dialog", title, list, made("p", made("label", box, " Keyboard shortcuts")), form);
      help.id = "keyboard"; title.id = "keyboard-title"; list.className = "keys"; form.method = "dialog";
      help.setAttribute("aria-labelledby", title.id);
      box.type = "checkbox"; box.id = "shortcuts"; box.checked = stored("keys") !== "off";
      for (const [keys, what] of KEYS) {
        if (keys === "x" && one("meta[http-equiv]")) continue; // a bundle has no runs to select
        const term = made("dt", ...keys.split(" ").flatMap((key) => [made("kbd", key), " "]));
        list.append(made("div", term, made("dd", what)));
      }
      document.body.append(help);
    }
    return help;
  }
  function acts(event) {
    const key = event.key;
    if (held === "g" && key === "r") { location.assign(one(".brand").href); return true; }
    held = key === "g" ? "g" : "";
    if (key === "?") { keyboard().showModal(); return true; }
    if (key === "/") { const box = one("main input[type=search]"); if (box) { box.focus(); box.select(); } return Boolean(box); }
    if (key === "x") {
      const row = document.activeElement.closest("tr");
      const box = row && one("input[type=checkbox]", row);
      if (box) { box.click(); return true; }
      return false;
    }
    if (press(key)) return true;
    const field = one(`[data-focus="${CSS.escape(key)}"]`);
    if (visible(field)) { field.focus(); return true; }
    if (/^[1-9]$/.test(key) && one("[data-score]")) {
      const box = one("[data-score]");
      box.value = key;
      if (box.reportValidity()) one("[data-score-button]").click();
      return true;
    }
    if (key === "j") return move(1);
    if (key === "k") return move(-1);
    return false;
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    const target = /** @type {Element} */ (event.target);
    const field = /** @type {HTMLElement | null} */ (target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]"));
    if (field) { if (event.key === "Escape") field.blur(); return; }
    if (stored("keys") === "off" || document.querySelector("dialog[open]")) return;
    if (acts(event)) event.preventDefault();
  });

  document.addEventListener("click", (event) => {
    const button = /** @type {Element} */ (event.target).closest("button");
    if (!button) return;
    if ("keyboard" in button.dataset) keyboard().showModal();
    if ("themeButton" in button.dataset) nextTheme();
    if ("newFailures" in button.dataset) location.reload();
    if ("rendered" in button.dataset) { isRendered = !isRendered; stored("rendered", isRendered ? "on" : "off"); render(); }
    if ("copyLink" in button.dataset) copy(location.href, button);
    if ("copy" in button.dataset) copy(one("pre", button.parentElement).textContent, button);
  });
  document.addEventListener("change", (event) => {
    const target = /** @type {HTMLInputElement} */ (event.target);
    const form = target.closest("form[data-filters]");
    if (form && target.type !== "search" && target.reportValidity()) { clearTimeout(waiting); show(filtered(form), true); }
    const still = /** @type {HTMLFormElement | null} */ (target.closest("form[data-static-filters]"));
    if (still && cells) { noted(new FormData(still)); narrowed(still); }
    if (target.name === "run") compareButton();
    if (target.id === "shortcuts") stored("keys", target.checked ? "on" : "off");
    const sends = /** @type {HTMLSelectElement | null} */ (target.closest("[data-sends]"));
    if (sends) turn(filtered(sends.form));
  });
  document.addEventListener("input", (event) => {
    const target = /** @type {HTMLInputElement} */ (event.target), form = target.closest("form[data-filters]");
    const still = target.closest("form[data-static-filters]"); // its address is set once the search is entered
    if (!form && !(still && cells) || target.type !== "search") return;
    clearTimeout(waiting);
    waiting = setTimeout(() => form ? show(filtered(form), true) : narrowed(still), 250);
  });
  document.addEventListener("submit", (event) => {
    const target = /** @type {HTMLFormElement} */ (event.target), form = target.closest("form[data-filters]");
    if ("staticFilters" in target.dataset) { event.preventDefault(); if (cells) { noted(new FormData(target)); narrowed(target); } return; }
    clearTimeout(waiting);
    asked++;
    if (form) { event.preventDefault(); location.assign(filtered(form)); }
    if (target.matches("form.labelling")) {
      event.preventDefault();
      for (const button of all("button", target)) if (button !== event.submitter) button.disabled = true; // one label a page
      turn(target.getAttribute("action"), posted(target, event.submitter));
    }
  });

  // The filter of a bundle: over a script with data, as pages of files may not fetch. Rows are made by textContent.
  const MOST = 200; // rows: more of them make a browser slow, and their pages are of the list without a filter
  let cells = null;
  /** @type {any} */ (window).evalwrightCells = (given) => { cells = given; restored(); };
  // Its address is a fragment: of files, browsers let scripts change nothing else.
  function noted(data) {
    const said = new URLSearchParams([...data].filter(([, value]) => value)).toString();
    if (said !== location.hash.slice(1)) history.pushState(null, "", said ? "#" + said : location.pathname);
  }
  function restored() {
    const form = one("form[data-static-filters]"), said = new URLSearchParams(location.hash.slice(1));
    if (!cells || !form || ![...said.keys()].some((name) => form.elements[name])) return false;
    for (const field of form.elements) {
      if (field.type === "checkbox") field.checked = said.getAll(field.name).includes(field.value);
      else if (field.name) field.value = said.get(field.name) || "";
    }
    narrowed(form);
    return true;
  }
  // As `short_name`, `few`, `duration` and `money` of the server.
  const short = (name) => name.length > 120 ? `${name.slice(0, 59)}…${name.slice(-60)}` : name;
  const few = (names) => names.slice(0, 5).map(short).join(", ") + (names.length > 5 ? ` and ${names.length - 5} more` : "");
  const duration = (ms) => {
    const seconds = ms / 1000, whole = Math.round(seconds);
    if (ms < 999.5) return `${ms.toFixed()} ms`;
    if (seconds < 59.95) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
    return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  };
  const money = (dollars) => {
    if (dollars >= 1 || dollars < 5e-13) return `$${Math.max(0, dollars).toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
    let digits = 4;
    while (digits < 12 && +dollars.toFixed(digits) < 10 ** (1 - digits)) digits++;
    return `$${dollars.toFixed(digits)}`;
  };
  function narrowed(form) {
    const data = new FormData(form), statuses = data.getAll("status"), sort = data.get("sort");
    const words = String(data.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
    let found = cells.filter((cell) => {
      if (statuses.length && !statuses.includes(cell[4])) return false;
      const text = [cell[1], cell[4], cell[5], cell[10]].join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const column = { latency: 7, cost: 8 }[sort];
    if (column) found = [...found].sort((a, b) => (b[column] ?? -1) - (a[column] ?? -1));
    const results = one("#results"), body = one("tbody", results), shape = one("#cell-row");
    const counted = `${found.length.toLocaleString("en")} of ${cells.length.toLocaleString("en")} cells`;
    one("[role=status]", results).textContent = found.length > MOST ? `${counted}, the first ${MOST} shown` : counted;
    for (const pages of all("nav.pages", results)) pages.hidden = true;
    if (!body) return;
    body.replaceChildren(...found.slice(0, MOST).map((cell) => {
      const row = shape.content.cloneNode(true), put = (label, text) => {
        const place = one(`[data-label="${label}"]`, row);
        if (place) place.textContent = text;
      };
      const status = one('[data-label="Status"]', row), word = document.createElement("span");
      const known = all("[name=status]", form).find((box) => box.value === cell[4]);
      word.className = "status " + (known ? known.dataset.style : "none");
      word.textContent = known ? `${known.dataset.mark} ${known.parentElement.textContent.trim()}` : "… No verdict";
      status.append(word);
      const link = one("a", row);
      link.textContent = short(cell[1]);
      link.href = form.dataset.cells.replace("KEY", cell[0]);
      put("Variant", short(cell[2])); put("Trial", cell[3] + 1); put("Answer", cell[6]);
      for (const label of ["Failed", "Below 1"]) put(label, few(cell[5].split("\n")));
      put("Latency", cell[7] == null ? "" : duration(cell[7])); put("Cost", cell[8] == null ? "" : money(cell[8]));
      put("Score", cell[9] == null ? "" : +cell[9].toPrecision(3));
      return row;
    }));
  }
  function begin() {
    for (const part of all("[data-script]")) part.hidden = false;
    const button = one("[data-theme-button]");
    if (button) button.title = "Theme: " + (root.dataset.theme || "system");
    times(document);
    render();
    compareButton();
    again();
    restored();
    live();
  }
  setTimeout(watch, 2000);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin); else begin();
  addEventListener("popstate", () => { if (turned) location.reload(); });
  addEventListener("hashchange", (event) => { if (!restored() && new URL(event.oldURL).hash.includes("=")) location.reload(); });
  addEventListener("pageshow", (event) => { if (event.persisted) begin(); });
})();
