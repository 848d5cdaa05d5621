// The pages of a PDF. The server sends a few; this adds frames for all others, fills those that are
// near, and empties those that are far, so that two thousand pages scroll like ten.
const CALM_MS = 120;
const AT_ONCE = 2;
const KEPT = 12;
const RETRY_MS = 1500;
const MAX_RETRIES = 3;

export function watchPages() {
  start(document);
  document.addEventListener("htmx:afterSwap", () => start(document));
  document.addEventListener("error", ({ target }) => retryPicture(target), true);
  document.addEventListener("click", ({ target }) => {
    const note = target.closest?.("[data-try-picture]")?.parentElement;
    if (!note) return;
    note.hidden = true;
    loadPicture(note.previousElementSibling);
  });
  // Those that failed before this script ran.
  for (const picture of document.querySelectorAll(".page-picture")) {
    if (picture.complete && !picture.naturalWidth) retryPicture(picture);
  }
}

// A busy server draws a page a little later, which an address that failed does not show by itself.
function retryPicture(picture) {
  if (!picture.matches?.(".page-picture")) return;
  picture.dataset.failed = "";
  const retries = Number(picture.dataset.retries ?? 0);
  picture.nextElementSibling.hidden = retries < MAX_RETRIES;
  if (retries === MAX_RETRIES) return;
  picture.dataset.retries = retries + 1;
  setTimeout(() => loadPicture(picture), RETRY_MS * 2 ** retries);
}

function loadPicture(picture) {
  delete picture.dataset.failed;
  picture.srcset = picture.srcset;
}

function start(root) {
  for (const list of root.querySelectorAll("[data-pages]:not([data-started])")) {
    list.dataset.started = "";
    new Pages(list).begin();
  }
}

const isEmpty = (frame) => frame.firstElementChild?.localName === "canvas";

const nodes = (text) => new DOMParser().parseFromString(text, "text/html").body.childNodes;

class Pages {
  constructor(list) {
    this.list = list;
    this.side = list.closest("#chat-side");
    this.bar = (this.side ?? document).querySelector("[data-page-form]");
    this.near = new Set();
    this.running = new Map();
    this.frames = [];
    this.sizes = [];
    this.current = this.first = Number(list.firstElementChild.dataset.number);
  }

  begin() {
    this.addFrames();
    const around = { root: this.side, rootMargin: "100% 0px" };
    this.watching = new IntersectionObserver((seen) => this.noteNear(seen), around);
    const middle = { root: this.side, rootMargin: "-50% 0px -50% 0px" };
    this.reading = new IntersectionObserver((seen) => this.noteCurrent(seen), middle);
    for (const frame of this.frames) this.watching.observe(frame);
    // After the scroll to what the address names, which is no reading.
    setTimeout(() => this.frames.forEach((frame) => this.reading.observe(frame)), CALM_MS);
    this.bar?.addEventListener("submit", (event) => this.go(event));
  }

  addFrames() {
    const sent = new Map();
    for (const frame of this.list.children) sent.set(Number(frame.dataset.number), frame);
    const above = document.createDocumentFragment();
    const below = document.createDocumentFragment();
    let number = 0;
    for (const run of this.list.dataset.sizes.split(" ")) {
      const [wide, high, count] = run.split(/[x*]/);
      for (let left = Number(count); left; left -= 1) {
        number += 1;
        let frame = sent.get(number);
        if (!frame) {
          frame = this.newFrame(number);
          (number < this.first ? above : below).append(frame);
        }
        this.sizes.push([wide, high]);
        this.frames.push(frame);
        if (!frame.firstChild) this.empty(frame);
      }
    }
    this.list.prepend(above);
    this.list.append(below);
  }

  newFrame(number) {
    const frame = document.createElement("li");
    frame.className = "page-sheet";
    frame.dataset.number = number;
    frame.setAttribute("aria-label", `${this.list.dataset.label} ${number}`);
    return frame;
  }

  // What has the shape of the page, without a style.
  empty(frame) {
    const shape = document.createElement("canvas");
    [shape.width, shape.height] = this.sizes[frame.dataset.number - 1];
    frame.replaceChildren(shape);
  }

  noteNear(seen) {
    for (const { target, isIntersecting } of seen) {
      if (isIntersecting) this.near.add(target);
      else {
        this.near.delete(target);
        this.running.get(target)?.abort();
      }
    }
    // While one drags the scroll bar, pages only pass by.
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fill(), CALM_MS);
  }

  fill() {
    if (!this.list.isConnected) return this.watching.disconnect();
    const far = (frame) => Math.abs(frame.dataset.number - this.current);
    for (const frame of this.list.querySelectorAll(".page-sheet:has(> img)")) {
      if (far(frame) > KEPT && !this.near.has(frame)) this.empty(frame);
    }
    const wanted = [...this.near].filter((frame) => isEmpty(frame) && !this.running.has(frame));
    wanted.sort((one, other) => far(one) - far(other));
    for (const frame of wanted.slice(0, Math.max(0, AT_ONCE - this.running.size))) this.load(frame);
  }

  async load(frame) {
    const control = new AbortController();
    this.running.set(frame, control);
    let wait = 0;
    try {
      const address = this.list.dataset.pages.replace("/pages/0", `/pages/${frame.dataset.number}`);
      const headers = { "HX-Request": "true" };
      const answer = await fetch(address, { headers, signal: control.signal });
      if (answer.ok) frame.replaceChildren(...nodes(await answer.text()));
      else if ([429, 503].includes(answer.status)) wait = RETRY_MS;
      else frame.textContent = this.list.dataset.broken;
    } catch {
      // Passed by, or the network is away: the next time that it is near it is asked for again.
      wait = control.signal.aborted ? 0 : RETRY_MS;
    }
    this.running.delete(frame);
    if (wait) setTimeout(() => this.fill(), wait);
    else this.fill();
  }

  noteCurrent(seen) {
    const shown = seen.findLast(({ isIntersecting }) => isIntersecting);
    if (!shown) return;
    this.current = Number(shown.target.dataset.number);
    const field = this.bar?.elements.page;
    if (field && field !== document.activeElement) field.value = this.current;
    clearTimeout(this.noting);
    this.noting = setTimeout(() => this.remember(), 2 * CALM_MS);
  }

  // Reload and Back return to the page that was read.
  remember() {
    if (!this.list.isConnected || this.current === this.first) return;
    this.first = 0;
    const here = new URL(location);
    if (here.searchParams.get("page") !== String(this.current)) {
      here.searchParams.set("page", this.current);
      here.hash = "";
      history.replaceState(history.state, "", here);
    }
    for (const link of (this.side ?? document).querySelectorAll("[data-page-link]")) {
      const goal = new URL(link.href);
      goal.searchParams.set("page", this.current);
      link.href = goal;
      if (link.hasAttribute("hx-get")) link.setAttribute("hx-get", goal.pathname + goal.search);
    }
  }

  go(event) {
    const frame = this.frames[Number(this.bar.elements.page.value) - 1];
    event.preventDefault();
    this.bar.elements.page.blur();
    frame?.scrollIntoView();
  }
}
