// All of our client code. Only this file listens to htmx; nothing here is evaluated from text.
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const csrf = () => $("[name=csrfmiddlewaretoken]")?.value;
const typing = (element) => element.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");
const UNDO_MS = 8000;
const MOST_TICKED = 500;

// --- searching while an input method composes would ask for half-typed pinyin ---

let composing = false;
addEventListener("compositionstart", () => { composing = true; }, true);
addEventListener("compositionend", (event) => {
  composing = false;
  event.target.dispatchEvent(new Event("input", { bubbles: true }));
}, true);
addEventListener("input", (event) => {
  if (composing || event.isComposing) event.stopImmediatePropagation();
}, true);
// what was typed was searched for already; asked again on leaving, it would push the list's address over a memory's
addEventListener("change", (event) => {
  if (event.target.matches("[type=search]")) event.stopImmediatePropagation();
}, true);

// --- toasts, with undo ---

function toast(text, undo, { label, act, key = "z" } = {}) {
  const box = document.createElement("div");
  box.className = "toastx";
  const words = document.createElement("span");
  words.textContent = text;
  box.append(words);
  if (undo || act) {
    const button = document.createElement("button");
    button.className = "btn btn-sm";
    if (key) button.dataset.key = key;
    button.textContent = label ?? $("#toasts").dataset.undo;
    button.addEventListener("click", () => {
      box.remove();
      (act ?? (() => takeBack(undo)))();
    });
    box.append(button);
  }
  $("#toasts").replaceChildren(box);
  fade(box);
}

function takeBack(undo) {
  const values = { csrfmiddlewaretoken: csrf() };
  htmx.ajax("POST", undo, { target: "#list", swap: "outerHTML", values }).then(() => {
    // the memory beside the list may be one of those that were put back
    if ($("#detail [data-focus]")) htmx.ajax("GET", location.href, { target: "#detail" });
    else focusRow(Math.max(currentRow(), 0));
  });
}

function fade(box) {
  let timer = setTimeout(() => box.remove(), UNDO_MS);
  const hold = () => clearTimeout(timer);
  const go = () => { timer = setTimeout(() => box.remove(), UNDO_MS / 2); };
  box.addEventListener("mouseenter", hold);
  box.addEventListener("mouseleave", go);
  box.addEventListener("focusin", hold);
  box.addEventListener("focusout", go);
}

$$("[data-toast]").forEach(fade);
addEventListener("toast", (event) => toast(event.detail.text, event.detail.undo));
addEventListener("changed", (event) => {
  const row = document.getElementById(event.detail.row);
  const link = row && $("[data-row]", row);
  if (link) htmx.ajax("GET", link.getAttribute("href"), { target: row, swap: "outerHTML" });
});

addEventListener("relist", () => { if ($("#filters")) htmx.trigger("#filters", "submit"); });

// --- htmx ---

addEventListener("htmx:configRequest", (event) => {
  const { elt, verb, path } = event.detail;
  // what is done beside the list leaves it as it is narrowed by now
  const list = $("#list");
  if (list && elt.matches("#detail form")) event.detail.path = path.split("?")[0] + list.dataset.address;
  // an address says what narrows the list, and nothing else
  if (verb !== "get") return;
  const given = event.detail.formData;
  for (const [name, value] of [...given.entries()]) if (value === "") given.delete(name);
});
addEventListener("htmx:responseError", (event) => {
  const status = event.detail.xhr.status;
  if (status === 409) return;
  failed($("#toasts").dataset[status === 503 ? "busy" : status === 403 ? "stale" : "failed"], event.detail);
});
addEventListener("htmx:sendError", (event) => {
  $("dialog[open]")?.close();
  failed($("#toasts").dataset.offline, event.detail);
});
addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id === "detail") keepUnsaved(event.detail.requestConfig.elt);
  // the second editor's answer is a 409 that shows both texts
  if (event.detail.xhr.status === 409) { event.detail.shouldSwap = true; event.detail.isError = false; }
});
addEventListener("htmx:afterSwap", (event) => {
  const browser = $(".mb");
  const asked = event.detail.requestConfig?.elt;
  if (event.detail.target.id === "detail") {
    browser?.classList.add("h-has-detail");
    const detail = event.detail.target;
    const wrong = $("[data-first]", detail) || $(".is-invalid", detail);
    (wrong || $("form[data-edit] .form-control", detail) || $("[data-focus]", detail))?.focus({ preventScroll: true });
    if (wrong) wrong.scrollIntoView({ block: "center" });
    else { detail.scrollTop = 0; if ($("#list").offsetParent === null) scrollTo(0, 0); }
  }
  if (event.detail.target.id === "tab") $("#tab [aria-current]")?.focus();
  if (asked?.matches?.("[data-deletes]")) {
    $("#detail").replaceChildren();
    browser?.classList.remove("h-has-detail");
    // the address was that of the memory which is gone
    history.replaceState({}, "", $("[data-home]").getAttribute("href") + $("#list").dataset.address);
    focusRow(deletedAt);
  }
  markCurrent();
  countSelected();
});
let deletedAt = 0;
addEventListener("htmx:beforeRequest", (event) => {
  if (event.detail.elt.matches?.("[data-deletes]")) deletedAt = Math.max(currentRow(), 0);
});

// --- a fragment that failed: under which id the log has it, and asking for it again ---

function failed(text, { xhr, elt, target, pathInfo, requestConfig }) {
  const { request, retry } = $("#toasts").dataset;
  const id = xhr.getResponseHeader("X-Request-ID");
  const said = id ? `${text} ${request} ${id}` : text;
  if (requestConfig.verb !== "get") { toast(said); return; }
  // what is in the form by now goes with it
  const again = () => (elt.isConnected ? htmx.ajax("GET", pathInfo.requestPath, { source: elt, target }) : location.reload());
  toast(said, "", { label: retry, act: again, key: "" });
}

// --- what asks again and again does not while nobody sees it ---

addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.detail.elt.getAttribute("hx-trigger")?.startsWith("every")) event.preventDefault();
});

// --- what somebody was writing when something else came in its place ---

const typedInto = (form) => form && [...form.elements].some((each) => each.name && each.value !== each.defaultValue
  && each.type !== "hidden" && !each.matches("select"));
function keepUnsaved(asked) {
  const form = $("form[data-edit]");
  if (!typedInto(form) || form.contains(asked)) return;
  const texts = [...form.elements].filter((each) => each.name).map((each) => [each.name, each.value]);
  const { unsaved, back } = $("#toasts").dataset;
  const address = form.getAttribute("action");
  toast(unsaved, "", { label: back, act: () => htmx.ajax("GET", address, { target: "#detail" }).then(() => {
    for (const [name, value] of texts) if (name !== "csrfmiddlewaretoken") $("form[data-edit]").elements[name].value = value;
  }) });
}
addEventListener("beforeunload", (event) => {
  if (typedInto($("form[data-edit]"))) event.preventDefault();
});

// --- the list: which row is open, which are selected ---

const rows = () => $$("[data-row]");
function markCurrent() {
  $$(".mi").forEach((row) => {
    const here = $("[data-row]", row)?.pathname === location.pathname;
    row.toggleAttribute("data-current", here);
  });
}
addEventListener("htmx:pushedIntoHistory", markCurrent);
markCurrent();

function currentRow() {
  const all = rows();
  const here = all.indexOf(document.activeElement.closest?.(".mi")?.querySelector("[data-row]"));
  return here >= 0 ? here : all.findIndex((row) => row.closest("[data-current]"));
}
function focusRow(place) {
  const all = rows();
  all[Math.min(Math.max(place, 0), all.length - 1)]?.focus();
}

const boxes = () => $$(".mi input[name=id]");
let lastBox = null;
function countSelected() {
  const everything = $("input[name=everything]:checked");
  const count = everything?.dataset.total || boxes().filter((box) => box.checked).length;
  const label = $("[data-selected]");
  if (label) label.textContent = count;
  const shown = $("[data-select-shown]");
  if (shown) {
    shown.checked = boxes().every((box) => box.checked);
    shown.indeterminate = count > 0 && !shown.checked;
  }
}
function select(box, event) {
  if (event.shiftKey && lastBox?.isConnected) {
    const all = boxes();
    const [from, to] = [all.indexOf(lastBox), all.indexOf(box)].sort((a, b) => a - b);
    all.slice(from, to + 1).forEach((each) => { each.checked = box.checked; });
  }
  lastBox = box;
  countSelected();
}
addEventListener("click", (event) => {
  const box = event.target.closest?.(".mi input[name=id]");
  if (box) return select(box, event);
  if (event.target.matches?.("input[name=everything]")) return countSelected();
  $$(".h-pop[open]").forEach((each) => { if (!each.contains(event.target)) each.open = false; });
  if (event.target.matches?.("[data-select-shown]")) {
    // so many are changed at once; for more there is "all that match"
    boxes().forEach((each, place) => { each.checked = event.target.checked && place < MOST_TICKED; });
    return countSelected();
  }
  if (event.target.closest?.("[data-clear]")) {
    boxes().forEach((each) => { each.checked = false; });
    return countSelected();
  }
  const chip = event.target.closest?.("[data-type]");
  if (chip) $("#filters [name=type]").value = chip.dataset.type;
  const opener = event.target.closest?.("[data-open]");
  if (opener && !event.ctrlKey && !event.metaKey) { event.preventDefault(); open(opener.dataset.open); }
  const back = event.target.closest?.("[data-back]");
  if (back && $(".h-has-detail")) {
    event.preventDefault();
    $(".mb").classList.remove("h-has-detail");
    history.pushState({}, "", back.getAttribute("href"));
    focusRow(currentRow());
    markCurrent();
  }
});
countSelected();

// --- dialogs ---

function open(name) {
  const dialog = document.getElementById(name);
  if (!dialog || dialog.open) return;
  dialog.showModal();
  if (name === "palette") {
    goesThere = false;
    const input = $("input", dialog);
    input.value = "";
    input.focus();
    htmx.trigger($("form", dialog), "open");
  }
}
addEventListener("click", (event) => {
  if (event.target.matches?.("dialog")) event.target.close();
});
let goesThere = false;
function goThere() {
  const results = $("#palette [data-results]");
  // what is shown may still be of fewer letters
  goesThere = results?.dataset.results !== $("#palette input").value.trim();
  if (!goesThere) $("a", results)?.click();
}
addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id === "palette-results" && goesThere) goThere();
});
function walkPalette(event) {
  const links = $$("#palette-results a");
  const here = links.indexOf(document.activeElement);
  if (event.key === "Escape") { event.preventDefault(); $("#palette").close(); return; }
  if (event.key === "Enter" && here < 0) { event.preventDefault(); goThere(); return; }
  if (here >= 0 && event.key.length === 1) $("#palette input").focus();
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  event.preventDefault();
  const next = here + (event.key === "ArrowDown" ? 1 : -1);
  if (next < 0) $("#palette input").focus();
  else links[Math.min(next, links.length - 1)]?.focus();
}

// --- keyboard ---

let going = false;
addEventListener("keydown", (event) => {
  if (composing || event.isComposing) return;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    open("palette");
    return;
  }
  if ($("#palette")?.open) { walkPalette(event); return; }
  if ($("dialog[open]")) return;
  const edit = event.target.closest?.("form[data-edit]");
  if (edit && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    edit.requestSubmit();
    return;
  }
  if (edit && event.key === "Escape") { $("[data-key=Escape]", edit).click(); return; }
  if (typing(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
  if ("noShortcuts" in document.body.dataset) return;
  if (going) {
    going = false;
    const target = $(`[data-go="${CSS.escape(event.key)}"]`);
    if (target) { event.preventDefault(); target.click(); return; }
  }
  press(event);
});

function press(event) {
  const act = {
    "/": () => $("[data-search]")?.focus(),
    "?": () => open("keys"),
    g: () => { going = true; setTimeout(() => { going = false; }, 1500); },
    j: () => focusRow(currentRow() + 1),
    k: () => focusRow(currentRow() - 1),
    x: () => $("input[name=id]", rows()[currentRow()]?.closest(".mi") ?? document.createElement("i"))?.click(),
    Escape: () => { const popped = $(".h-pop[open]"); if (popped) popped.open = false; else $("[data-clear]")?.click(); },
  }[event.key];
  if (act) { event.preventDefault(); act(); return; }
  const selected = boxes().some((box) => box.checked) && $(`[data-key-bulk="${CSS.escape(event.key)}"]`);
  const target = selected || $(`[data-key="${CSS.escape(event.key)}"]`);
  if (target) { event.preventDefault(); target.click(); }
}

// --- an agent's settings: a slider beside its number, what became of a change, the way back of a switch ---

addEventListener("input", (event) => {
  const field = event.target;
  const number = field.dataset?.twin && document.getElementById(field.dataset.twin);
  if (number) {
    number.value = field.value;
    number.dispatchEvent(new Event("input", { bubbles: true }));
  } else if (field.id && field.type === "number") {
    const slider = $(`[data-twin="${CSS.escape(field.id)}"]`);
    if (slider) slider.value = field.value;
  }
});
addEventListener("htmx:afterSwap", (event) => {
  const said = event.detail.target;
  if (said.id === "store") $("#store [data-focused]")?.focus();
  if (!said.matches?.(".h-said")) return;
  const isWrong = Boolean($(".h-wrong", said));
  for (const field of said.closest("form").elements) {
    if (!field.matches(".form-control, .form-select, [role=switch]")) continue;
    field.classList.toggle("is-invalid", isWrong);
    if (isWrong) field.setAttribute("aria-invalid", "true");
    else { field.removeAttribute("aria-invalid"); field.defaultChecked = field.checked; }
  }
});
const flipBack = (event) => {
  const box = $("[role=switch]", event.detail.elt);
  if (box) box.checked = box.defaultChecked;
};
addEventListener("htmx:responseError", flipBack);
addEventListener("htmx:sendError", flipBack);

// --- keys: copied by a button, and not kept for who comes back to the page ---

async function copy({ dataset, previousElementSibling: said }) {
  const box = document.getElementById(dataset.copy);
  getSelection().selectAllChildren(box);
  let isCopied = false;
  try {
    await navigator.clipboard.writeText(box.textContent);
    isCopied = true;
  } catch { // no HTTPS, or no permission
    isCopied = document.execCommand("copy");
  }
  said.textContent = isCopied ? dataset.copied : dataset.marked;
  setTimeout(() => { said.textContent = ""; }, UNDO_MS);
}
addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (button) copy(button);
});
// the browser may keep the page whole, to show it again after Back
addEventListener("pagehide", () => $$("[data-secret]").forEach((each) => each.replaceChildren()));
